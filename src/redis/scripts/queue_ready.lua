-- How many messages are ready, and when that may change by itself.
--   ARGV    how long the caller listens from now on (ms; 0: not at all)
--   returns OK, how many, now, ms (0: never)
--   cost    O(log n), and a slice of what is due
local w = enter()
if not w then return { OK, 0, 0, 0 } end
if not settle(w) then return { AGAIN, 0, 0, 0 } end
local listens = tonumber(ARGV[2])
if w.watched < w.now + listens / 2 then
    w.watched, w.seldom = w.now + listens, true
    leave(w)
end
return { OK, call('ZCOUNT', Z, '(0', BELOW_HELD), w.now, w.due < math.huge and w.due or 0 }
