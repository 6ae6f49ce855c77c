-- Makes a queue if there is none of this name.
--   ARGV    tag of a new one, json, settings ...
--   returns OK, 1 if it is new, its tag, 1 if it is not listed yet
--   cost    O(metadata)
--   memory  grows
local w = enter()
if w then return { OK, 0, w.tag, w.unlisted } end
if not F then return { FENCE } end
w = create(ARGV[2])
set_metadata(ARGV[3], 4)
return { OK, 1, w.tag, w.unlisted }
