-- Needs: queue
--
-- The queue stands in the list of its project.
--   ARGV    tag
--   cost    O(1)
local w = enter()
if w and w.tag == ARGV[2] then call('HDEL', Q, 'u') end
return { OK }
