-- The process that took a queue has looked. An entry that was made meanwhile counts.
--   KEYS    as due_enter
--   ARGV    time, the queue, the end of the lease, ms (-1: there is no subscription any more)
--   returns OK
--   cost    O(log queues)
local score = call('ZSCORE', KEYS[1], ARGV[2])
if not score or tonumber(score) ~= tonumber(ARGV[3]) then return { OK } end
if ARGV[4] == '-1' then
    call('ZREM', KEYS[1], ARGV[2])
else
    call('ZADD', KEYS[1], ARGV[4], ARGV[2])
end
return { OK }
