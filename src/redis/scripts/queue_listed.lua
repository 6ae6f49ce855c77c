-- Notes that the queue is in the index.
--   ARGV    tag
--   returns OK, 1 if there is a queue with this tag
--   cost    O(1)
local w = open_queue()
if not w or w.tag ~= ARGV[2] then return { OK, 0 } end
w.unlisted, w.rare_changed = 0, true
save_queue(w)
return { OK, 1 }
