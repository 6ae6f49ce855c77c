-- Leases the first due queue of a list to a process.
--   KEYS    as due_add
--   ARGV    time, length of the lease (ms)
--   returns OK, now, when the next queue is due (ms; 0: unknown), the queue, end of the lease.
--           Without the last two no queue is due
--   cost    O(log queues)
local now = time_now()
local two = call('ZRANGE', KEYS[1], 0, 1, 'WITHSCORES')
if #two == 0 then return { OK, now, 0 } end
if tonumber(two[2]) > now then return { OK, now, tonumber(two[2]) } end
local lease = now + tonumber(ARGV[2])
call('ZADD', KEYS[1], lease, two[1])
return { OK, now, math.min(tonumber(two[4] or lease), lease), two[1], lease }
