-- Removes and returns the oldest messages that are free.
--   ARGV    how many, how many are reserved for other waiters, room for bodies (0: any), ids that are
--           opened ('-': as they are) ...
--   returns OK, now, tag, [number, head, body] ... | NO_ROOM, how much they have | SEALED, as OK
--   cost    O(messages · log n)
local w = enter()
if not w then return { OK, 0, '' } end
if not settle(w) then return { AGAIN } end
local taken = choose(w, tonumber(ARGV[2]), tonumber(ARGV[3]))
local refusal = refused(w, taken, tonumber(ARGV[4]), 5)
if refusal then return refusal end
local out, ch = { OK, w.now, w.tag }, changes()
for i, n in ipairs(taken.names) do
    local at = #out
    out[at + 1], out[at + 2], out[at + 3], out[at + 4] = n, taken.heads[i], taken.bodies[i], ''
    remove(w, ch, n, head_of(taken.heads[i]))
end
if #taken.names > 0 then
    commit(w, ch)
    leave(w)
end
return out
