-- Needs: queue changes claims messages settle
--
-- How many messages are ready, and when that may change by itself.
--   returns OK, how many, ms (0: never)
--   cost    O(log n), and a slice of what is due
local w = enter()
if not w then return { OK, 0, 0 } end
if not settle(w) then return { AGAIN, 0, 0 } end
return { OK, call('ZCOUNT', Z, '(0', '(' .. HELD_TEXT), w.due < math.huge and w.due or 0 }
