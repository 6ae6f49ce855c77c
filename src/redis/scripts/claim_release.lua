-- Ends a claim; what it still holds is free at its old place.
--   ARGV    id, 1: it does not count as an attempt
--   returns OK, how many messages are free again
--   cost    O(messages of the claim · log n)
local w = enter()
if not w then return { OK, 0 } end
if not settle(w) then return { AGAIN } end
local ch = changes()
local c = find_claim(ch, ARGV[2])
if not c then return { OK, 0 } end
local left = c.left
release(w, ch, c, tonumber(ARGV[3]))
commit(w, ch)
leave(w)
return { OK, left }
