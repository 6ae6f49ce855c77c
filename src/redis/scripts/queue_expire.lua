-- Expires some of what is due.
--   returns OK
--   cost    O(log n)
local w = open_queue()
if w then expire_due(w) end
return { OK }
