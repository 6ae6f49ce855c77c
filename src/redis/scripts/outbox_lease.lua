-- Returns some transfers that began so long ago that their process may have ended. The caller sends them.
--   returns OK, [transfer, what is in it] ...
--   cost    O(1), 64 transfers at most
local w, out = open_queue(), { OK }
if w then lease_old_transfers(w, out) end
return out
