-- The queue stands in the list of its project.
--   ARGV    tag
--   returns OK, 1 if it is there
--   cost    O(1)
local w = enter()
if not w or w.tag ~= ARGV[2] then return { OK, 0 } end
w.unlisted, w.seldom = 0, true
leave(w)
return { OK, 1 }
