-- Dead letters have arrived.
--   ARGV    trips ...
--   cost    O(trips)
local w = enter()
if not w then return { OK } end
local gone = call('HDEL', X, unpack(ARGV, 2))
w.outgoing, w.seldom = w.outgoing - gone, true
leave(w)
return { OK }
