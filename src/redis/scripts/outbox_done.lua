-- Removes transfers from X that have arrived.
--   ARGV    transfers ...
--   cost    O(transfers)
local w = open_queue()
if not w then return { OK } end
local gone = call('HDEL', X, unpack(ARGV, 2))
w.in_transfer, w.rare_changed = w.in_transfer - gone, true
save_queue(w)
return { OK }
