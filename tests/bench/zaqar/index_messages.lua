-- Puts messages at the end of a queue, in their order. Stands in for the script of this name
-- that Debian's zaqar leaves out; written from how storage/redis/messages.py calls it.
--
--   KEYS  the queue's sorted set of message ids; its rank counter
--   ARGV  how many ids, the ids

local last = redis.call('INCRBY', KEYS[2], ARGV[1])
local first = last - ARGV[1] + 1
local ranked = {}

for i = 2, #ARGV do
    ranked[#ranked + 1] = first + i - 2
    ranked[#ranked + 1] = ARGV[i]
end
return redis.call('ZADD', KEYS[1], unpack(ranked))
