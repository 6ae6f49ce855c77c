-- changes: what is going to be changed, in one call for each key.

-- Lists of words for Z, M and T, made as they are needed; the earliest of new deadlines; claims by their
-- numbers (lib/claims.lua).
local function changes()
    return { due = math.huge }
end

-- Words are texts: a number that is left to Redis costs more than all else that is done with it.
local function digits(number)
    return format('%d', number)
end

local function put(ch, list, a, b)
    local words = ch[list]
    if not words then
        ch[list] = { a, b }
        return
    end
    local n = #words
    words[n + 1] = a
    if b then words[n + 2] = b end
end

local function falls_due(ch, ms, member)
    if ms < ch.due then ch.due = ms end
    put(ch, 'tadd', digits(ms), member)
end

local function all_of(command, key, words)
    if not words then return end
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

local function commit(w, ch)
    for _, c in pairs(ch.claims or {}) do
        if c.changed then
            put(ch, 'hset', c.name, pack(CLAIM, c.started, c.ends, c.left, c.secret) .. c.numbers)
        end
    end
    if ch.due < w.due then w.due, w.stirred = ch.due, true end
    all_of('HSET', M, ch.hset)
    all_of('HDEL', M, ch.hdel)
    all_of('ZADD', Z, ch.zadd)
    all_of('ZREM', Z, ch.zrem)
    all_of('ZADD', T, ch.tadd)
    all_of('ZREM', T, ch.trem)
end

