-- Deletes one message, with its claim or without.
--   ARGV    id, id of the claim ('': none is named)
--   returns OK, how many were there, ms since it was claimed, how often it was
--   cost    O(log n)
local w = enter()
if not w then return { OK } end
if not settle(w) then return { AGAIN } end
local ch, named = changes(), #ARGV[3] == 24 and tonumber(sub(ARGV[3], 13), 16)
local n, text
n = named and number_of(w, ARGV[2])
if n then -- both at once
    local found = call('HMGET', M, n, 'c' .. digits(named))
    keep_claim(ch, named, found[2])
    text = found[1]
end
if not text or is_foreign(text) then
    n, text = find(w, ARGV[2])
end
if not n then return { OK, 0 } end
local h, out = head_of(text), { OK, 1 }
if ARGV[3] == '' then
    if h.claim > 0 then return { CLAIMED } end
else
    local claim = find_claim(ch, ARGV[3])
    if not claim or h.claim == 0 then return { NOT_CLAIMED } end
    if claim.number ~= h.claim then return { CLAIMED } end
    out[3], out[4] = w.now - claim.started, h.count
end
remove(w, ch, n, h)
commit(w, ch)
leave(w)
return out
