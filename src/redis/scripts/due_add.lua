-- There is something to do in a queue at this time, or earlier.
--   KEYS    a list of queues by time (due.h)
--   ARGV    time, the queue, ms (0: now)
--   returns OK, now
--   cost    O(log queues)
local now, ms, score = time_now(), tonumber(ARGV[3]), tonumber(call('ZSCORE', KEYS[1], ARGV[2]) or nil)
if ms == 0 then ms = now end
-- If a process has leased the queue, due_set sees by the changed score that the queue was added.
if score and score > now and score <= ms then ms = score - 1 end
call('ZADD', KEYS[1], 'LT', ms, ARGV[2])
return { OK, now }
