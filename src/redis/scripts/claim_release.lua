-- Ends a claim and requeues its messages at their old places.
--   ARGV    id, 1: the claim does not count as an attempt
--   returns OK, number of requeued messages
--   cost    O(messages of the claim · log n)
local w = open_queue()
if not w then return { OK, 0 } end
if not expire_due(w) then return { EXPIRE_FIRST } end
local ch = changes()
local c = find_claim(ch, ARGV[2])
if not c then return { OK, 0 } end
local left = c.left
release_claim(w, ch, c, tonumber(ARGV[3]))
commit(w, ch)
save_queue(w)
return { OK, left }
