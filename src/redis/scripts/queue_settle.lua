-- Expires what is due, a slice of it.
--   returns OK
--   cost    O(log n)
local w = enter()
if w then settle(w) end
return { OK }
