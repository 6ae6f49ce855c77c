-- A queue has something to deliver at this time, or earlier.
--   KEYS    queues with subscriptions, by the time when to look
--   ARGV    time, the queue, ms (0: now)
--   returns OK
--   cost    O(log queues)
local ms = tonumber(ARGV[3])
call('ZADD', KEYS[1], 'LT', ms > 0 and ms or time_now(), ARGV[2])
return { OK }
