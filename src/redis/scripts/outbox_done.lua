-- Dead letters have arrived.
--   ARGV    transfers ...
--   cost    O(transfers)
local w = enter()
if not w then return { OK } end
local gone = call('HDEL', X, unpack(ARGV, 2))
w.outgoing, w.seldom = w.outgoing - gone, true
leave(w)
return { OK }
