-- Needs: queue changes claims messages settle find find_claim
--
-- Deletes one message, with its claim or without.
--   ARGV    id, id of the claim ('': none is named)
--   cost    O(log n)
local w = enter()
if not w then return { OK } end
if not settle(w) then return { AGAIN } end
local n, text = find(w, ARGV[2])
if not n then return { OK, 0 } end
local h, ch = head_of(text), changes()
if ARGV[3] == '' then
    if h.claim > 0 then return { CLAIMED } end
else
    local named = find_claim(ch, ARGV[3])
    if not named or h.claim == 0 then return { NOT_CLAIMED } end
    if named.number ~= h.claim then return { CLAIMED } end
end
remove(w, ch, n, h, call('HSTRLEN', M, 'b' .. n))
commit(ch)
leave(w)
return { OK, 1 }
