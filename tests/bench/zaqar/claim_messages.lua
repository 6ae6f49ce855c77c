-- Claims a queue's oldest free messages and returns their ids. Stands in for the script of
-- this name that Debian's zaqar leaves out; written from how storage/redis/claims.py calls it.
--
--   KEYS  the queue's sorted set of message ids
--   ARGV  now, limit, claim id, end of the claim, ttl and end of life at least

local now, limit, claim = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local claim_end, ttl, life_end = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])
local claimed, offset = {}, 0

while #claimed < limit do
    local ids = redis.call('ZRANGE', KEYS[1], offset, offset + limit - 1)

    if #ids == 0 then
        break
    end
    offset = offset + #ids
    for _, id in ipairs(ids) do
        local held, held_until, hidden_until, expires =
            unpack(redis.call('HMGET', id, 'c', 'c.e', 'd', 'e'))

        -- Messages that have expired are gone, their ids not yet.
        if expires and (held == '' or tonumber(held_until) <= now)
                and tonumber(hidden_until or 0) <= now then
            redis.call('HSET', id, 'c', claim, 'c.e', claim_end)
            if tonumber(expires) < life_end then
                redis.call('HSET', id, 't', ttl, 'e', life_end)
                redis.call('EXPIRE', id, ttl)
            end
            claimed[#claimed + 1] = id
            if #claimed == limit then
                break
            end
        end
    end
end
return claimed
