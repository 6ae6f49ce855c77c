-- Makes a queue unless there is one.
--   ARGV    tag of the new queue, JSON, settings ...
--   returns OK, 1 if it is new, its tag, 1 if it is unlisted
--   cost    O(metadata)
--   memory  grows
local w = open_queue()
if w then return { OK, 0, w.tag, w.unlisted } end
if not F then return { NEEDS_FENCE } end
w = make_queue(ARGV[2])
set_metadata(w, ARGV[3], 4)
return { OK, 1, w.tag, w.unlisted }
