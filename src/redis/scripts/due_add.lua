-- Notes that there is something to do in a queue at this time, unless an earlier one is noted.
--   KEYS    a list of queues by time (due.h)
--   ARGV    time, the queue, ms (0: now)
--   returns OK, now
--   cost    O(log queues)
local now, ms = time_now(), tonumber(ARGV[3])
if ms == 0 then
    ms = now
else
    -- The score of a leased queue is the end of the lease. due_set keeps a score that was changed
    -- meanwhile. So make the score 1 ms earlier if this time is not earlier.
    local score = tonumber(call('ZSCORE', KEYS[1], ARGV[2]) or nil)
    if score and score > now and score <= ms then ms = score - 1 end
end
call('ZADD', KEYS[1], 'LT', ms, ARGV[2])
return { OK, now }
