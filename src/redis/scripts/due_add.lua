-- There is something to do in a queue at this time, or earlier.
--   KEYS    a list of queues by time (due.h)
--   ARGV    time, the queue, ms (0: now)
--   returns OK, now
--   cost    O(log queues)
local now, ms = time_now(), tonumber(ARGV[3])
if ms == 0 then
    ms = now
else -- if a process has leased the queue, due_set sees by the changed score that the queue was added
    local score = tonumber(call('ZSCORE', KEYS[1], ARGV[2]) or nil)
    if score and score > now and score <= ms then ms = score - 1 end
end
call('ZADD', KEYS[1], 'LT', ms, ARGV[2])
return { OK, now }
