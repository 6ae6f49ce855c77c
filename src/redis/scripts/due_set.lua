-- Sets the next time of a leased queue, unless due_add has changed it meanwhile.
--   KEYS    as due_add
--   ARGV    time, the queue, end of the lease, ms (-1: there is nothing to do any more)
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
