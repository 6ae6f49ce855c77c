-- The queue with the oldest due delivery, for the process that asks first. It has the time of a lease to
-- look.
--   KEYS    as due_enter
--   ARGV    time, the lease (ms)
--   returns OK, now, when there is the next one (ms; 0: none is known), the queue, the end of the lease;
--           without the last two: there is none now
--   cost    O(log queues)
local now = time_now()
local two = call('ZRANGE', KEYS[1], 0, 1, 'WITHSCORES')
if #two == 0 then return { OK, now, 0 } end
if tonumber(two[2]) > now then return { OK, now, tonumber(two[2]) } end
local lease = now + tonumber(ARGV[2])
call('ZADD', KEYS[1], lease, two[1])
return { OK, now, math.min(tonumber(two[4] or lease), lease), two[1], lease }
