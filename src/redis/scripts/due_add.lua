-- A queue has a delivery at this time, or earlier.
--   KEYS    a list of queues with subscriptions, by the time of their next delivery
--   ARGV    time, the queue, ms (0: now)
--   returns OK
--   cost    O(log queues)
local ms = tonumber(ARGV[3])
call('ZADD', KEYS[1], 'LT', ms > 0 and ms or time_now(), ARGV[2])
return { OK }
