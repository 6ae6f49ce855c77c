-- changes: what is going to be changed, in one call for each key.

-- What is going to be changed in Z, M and T, in one call each.
local function changes()
    return { hset = {}, hdel = {}, zadd = {}, zrem = {}, tadd = {}, trem = {}, claims = {} }
end

local function all_of(command, key, words)
    for from = 1, #words, 4000 do
        call(command, key, unpack(words, from, math.min(from + 3999, #words)))
    end
end

-- What a hash has of these fields, however many.
local function fields_of(key, fields)
    if #fields <= 1000 then return call('HMGET', key, unpack(fields)) end
    local found = {}
    for from = 1, #fields, 1000 do
        local some = call('HMGET', key, unpack(fields, from, math.min(from + 999, #fields)))
        for i = 1, math.min(1000, #fields - from + 1) do found[from + i - 1] = some[i] end
    end
    return found
end

local function put(list, a, b)
    local n = #list
    list[n + 1], list[n + 2] = a, b
end

local function commit(w, ch)
    for _, c in pairs(ch.claims) do
        if c.changed then
            put(ch.hset, 'c' .. c.number, pack(CLAIM, c.started, c.ends, c.left, c.secret) .. c.numbers)
        end
    end
    for i = 1, #ch.tadd, 2 do
        if ch.tadd[i] < w.due then w.due, w.stirred = ch.tadd[i], true end
    end
    all_of('HSET', M, ch.hset)
    all_of('HDEL', M, ch.hdel)
    all_of('ZADD', Z, ch.zadd)
    all_of('ZREM', Z, ch.zrem)
    all_of('ZADD', T, ch.tadd)
    all_of('ZREM', T, ch.trem)
end

