-- Needs: queue
--
-- Dead letters have arrived.
--   ARGV    ids ...
--   cost    O(ids)
local w = enter()
if not w then return { OK } end
local gone = call('HDEL', X, unpack(ARGV, 2))
w.outgoing = w.outgoing - gone
leave(w)
return { OK }
