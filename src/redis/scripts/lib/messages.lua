-- messages: reading and changing messages and claims. After queue.

-- Lists of words for Z, M and T, made as they are needed; the earliest of new deadlines; claims by their
-- numbers.
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

-- The values of any number of fields of a hash.
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

-- A claim as M has it; nil: none.
local function keep_claim(ch, number, record)
    if not record then return nil end
    local started, ends, left, secret, at = unpack_struct(CLAIM, record)
    local c = { number = number, name = 'c' .. digits(number), started = started, ends = ends, left = left,
        secret = secret, numbers = sub(record, at) }
    ch.claims = ch.claims or {}
    ch.claims[number] = c
    return c
end

-- A claim, as it is being changed; nil: it is over.
local function claim_of(ch, number)
    local c = ch.claims and ch.claims[number] or keep_claim(ch, number, call('HGET', M, 'c' .. digits(number)))
    return c and c.left > 0 and c or nil
end

-- Remembers when the claim was created: a renewal does not change that.
local function mark_created(ch, number, ms)
    put(ch, 'tadd', digits(ms + HELD), 'k' .. digits(number))
end

-- When the oldest live claim was created; 0: there is none. An older program leaves the marks of claims
-- that are over.
local function oldest_claim()
    for _ = 1, SLICE do
        local mark = call('ZRANGEBYSCORE', T, HELD_TEXT, '(inf', 'LIMIT', 0, 1, 'WITHSCORES')
        if not mark[1] then return 0 end
        if call('HEXISTS', M, 'c' .. sub(mark[1], 2)) == 1 then return tonumber(mark[2]) - HELD end
        call('ZREM', T, mark[1])
    end
    return 0
end

-- Nothing more is held by it.
local function end_claim(w, ch, c)
    c.left, c.changed = 0, nil
    w.claims = w.claims - 1
    put(ch, 'hdel', c.name)
    put(ch, 'trem', c.name, 'k' .. sub(c.name, 2))
end

-- It holds one message less.
local function lose(w, ch, number)
    local c = claim_of(ch, number)
    if c then
        c.left, c.changed = c.left - 1, true
        if c.left == 0 then end_claim(w, ch, c) end
    end
end

-- The numbers that a claim was made with.
local function numbers_of(c)
    local numbers = {}
    for at = 1, #c.numbers, 8 do
        numbers[#numbers + 1] = unpack_struct('<d', c.numbers, at)
    end
    return numbers
end

-- A head in words, and back.
local function head_of(text)
    local posted, expires, ready, claim, count, size, flags, client, at = unpack_struct(HEAD, text)
    return { posted = posted, expires = expires, ready = ready, claim = claim, count = count, size = size,
        flags = flags, client = client, rest = sub(text, at) }
end

local function text_of(h)
    return pack(HEAD, h.posted, h.expires, h.ready, h.claim, h.count, h.size, h.flags, h.client) .. h.rest
end

-- Puts a message at the end of the queue; its number, as a text. The head is a text, and says expires,
-- ready and claim, too. `id`: it came with it; nil: with none.
local function place(w, ch, body, head, expires, ready, claim, id)
    local number = w.last + 1
    local n = digits(number)
    w.last, w.bytes = number, w.bytes + #body
    put(ch, 'hset', n, head)
    put(ch, 'hset', 'b' .. n, body)
    if id then
        put(ch, 'hset', 'f' .. id, n)
        w.letters, w.seldom = w.letters + 1, true
    end
    if claim > 0 then
        w.held = w.held + 1
        put(ch, 'zadd', digits(number + HELD), n)
        falls_due(ch, expires, n)
    elseif ready > 0 then
        w.delayed = w.delayed + 1
        put(ch, 'zadd', digits(number + HELD), n)
        falls_due(ch, ready, n)
    else
        w.stirred = true
        put(ch, 'zadd', n, n)
        falls_due(ch, expires, n)
    end
    return n
end

-- Takes a message out of the queue; `n`: its number, as a text.
local function remove(w, ch, n, h)
    put(ch, 'hdel', n, 'b' .. n)
    if h.flags >= FOREIGN then
        put(ch, 'hdel', 'f' .. sub(h.rest, -24))
        w.letters, w.seldom = w.letters - 1, true
    end
    put(ch, 'zrem', n)
    put(ch, 'trem', n)
    w.bytes = w.bytes - h.size
    if h.claim > 0 then
        w.held = w.held - 1
        lose(w, ch, h.claim)
    elseif h.ready > 0 then
        w.delayed = w.delayed - 1
    end
end

-- Gives back all that a claim holds; `less` is taken off the counts.
local function release(w, ch, c, less)
    local numbers = numbers_of(c)
    w.stirred = true
    local heads = fields_of(M, numbers)
    for i, number in ipairs(numbers) do
        local h = heads[i] and head_of(heads[i])
        if h and h.claim == c.number then
            h.claim = 0
            h.count = h.count - less
            local n = digits(number)
            put(ch, 'hset', n, text_of(h))
            put(ch, 'zadd', n, n)
            w.held = w.held - 1
        end
    end
    end_claim(w, ch, c)
end

-- Counts a message that expires: `counts` has all, unread ones and dead letters.
local function count_expired(w, counts, h)
    counts.x = counts.x + 1
    if h.count == 0 and w.listeners == 0 then counts.xu = counts.xu + 1 end
    if h.flags >= FOREIGN then counts.xl = counts.xl + 1 end
end

-- Expires what is due, the earliest first. False: there may be more; the caller leaves, and
-- answers AGAIN.
local function settle(w)
    if not is_due(w) then return true end
    local due = call('ZRANGEBYSCORE', T, '-inf', w.now, 'LIMIT', 0, SLICE)
    if #due > 0 then call('ZREM', T, unpack(due)) end -- first: a Redis without memory lets a script that removes first go on
    local counts = { x = 0, xu = 0, xl = 0 }
    for _, what in ipairs(due) do
        local ch = changes()
        if byte(what) == 99 then -- 'c'
            release(w, ch, claim_of(ch, tonumber(sub(what, 2))), 0)
        elseif byte(what) == 100 then -- 'd'
            put(ch, 'hdel', what)
            put(ch, 'trem', what)
        else
            local h = head_of(call('HGET', M, what))
            if h.expires <= w.now then
                count_expired(w, counts, h)
                remove(w, ch, what, h)
            else
                h.ready, w.stirred = 0, true
                w.delayed = w.delayed - 1
                put(ch, 'hset', what, text_of(h))
                put(ch, 'zadd', what, what)
                falls_due(ch, h.expires, what)
            end
        end
        commit(w, ch)
    end
    for field, count in pairs(counts) do
        if count > 0 then call('HINCRBY', Q, field, count) end
    end
    w.due = tonumber(call('ZRANGE', T, 0, 0, 'WITHSCORES')[2])
    leave(w)
    return #due < SLICE
end

-- The number that an id stands for, as a text, if it is one that was given here; else nil.
local function number_of(w, id)
    local number = #id == 24 and sub(id, 1, 8) == w.tag and tonumber(sub(id, 9), 16)
    return number and number <= w.last and digits(number) or nil
end

-- One that came with its id has no other.
local function is_foreign(text)
    return select(7, unpack_struct(HEAD, text)) >= FOREIGN
end

-- The number of a message, as a text, and its head, by its id; nil: there is none.
local function find(w, id)
    local n = number_of(w, id)
    local text = n and call('HGET', M, n)
    if text and not is_foreign(text) then return n, text end
    n = #id == 24 and call('HGET', M, 'f' .. id)
    if n then return n, call('HGET', M, n) end
    return nil
end

-- The same of many: their numbers, and their heads; false: there is none.
local function find_all(w, ids)
    local numbers = {}
    for i, id in ipairs(ids) do numbers[i] = number_of(w, id) or '0' end
    local heads = fields_of(M, numbers)
    for i, id in ipairs(ids) do
        if not heads[i] or is_foreign(heads[i]) then
            local n, text = find(w, id)
            numbers[i], heads[i] = n or false, text or false
        end
    end
    return numbers, heads
end

-- The number of a live claim by its id; nil: there is none.
local function find_claim(ch, id)
    if #id ~= 24 then return nil end
    local c = claim_of(ch, tonumber(sub(id, 13), 16) or 0)
    return c and c.secret == sub(id, 1, 12) and c or nil
end

-- A number to go on behind: of a message that is there, or was, or as it stands.
local function find_marker(w, text)
    local n
    if #text == 24 then
        n = tonumber(find(w, text) or number_of(w, text))
    elseif #text < 17 and string.match(text, '^%d+$') then
        n = tonumber(text)
    end
    return n and n <= w.last and n or 0
end

-- The next numbers behind one, so many at most, `others` too: those that are held or delayed. Whether
-- there are none behind them.
local function numbers_behind(at, others, count)
    local function some(base, to)
        return call('ZRANGEBYSCORE', Z, '(' .. string.format('%.0f', base + at), to, 'LIMIT', 0, count)
    end

    local free, other = some(0, BELOW_HELD), others and some(HELD, '+inf') or {}
    local numbers, i, k = {}, 1, 1
    while #numbers < count and (free[i] or other[k]) do
        local a, b = tonumber(free[i]), tonumber(other[k])
        if a and (not b or a < b) then
            numbers[#numbers + 1], i = a, i + 1
        else
            numbers[#numbers + 1], k = b, k + 1
        end
    end
    return numbers, #numbers < count
end

-- The id of the claim that holds a message; '': it is free.
local function holder_of(h)
    if h.claim == 0 then return '' end
    local secret = select(4, unpack_struct(CLAIM, call('HGET', M, 'c' .. h.claim)))
    return secret .. string.format('%012x', h.claim)
end

-- Adds number, head, body and claim of a message, if it is there.
local function show(out, n)
    local m = call('HMGET', M, n, 'b' .. n)
    if m[1] then
        local at = #out
        out[at + 1], out[at + 2], out[at + 3], out[at + 4] = n, m[1], m[2], holder_of(head_of(m[1]))
    end
end

local function id_of(w, n, h)
    return h.flags >= FOREIGN and sub(h.rest, -24) or w.tag .. string.format('%016x', n)
end

-- The oldest ready messages behind those that are reserved for other waiters (names: their
-- numbers, as texts).
local function choose(w, limit, reserved)
    local names = call('ZRANGEBYSCORE', Z, '(0', BELOW_HELD, 'LIMIT', digits(reserved), digits(limit))
    local taken = { names = names, heads = {}, bodies = {} }
    if #names > 0 then
        local words = {}
        for i, n in ipairs(names) do
            words[2 * i - 1], words[2 * i] = n, 'b' .. n
        end
        local found = fields_of(M, words)
        for i = 1, #names do
            taken.heads[i], taken.bodies[i] = found[2 * i - 1], found[2 * i]
        end
    end
    return taken
end

-- Why they cannot be taken; nil: they can. ARGV has the ids that are opened, from here on.
local function refused(w, taken, room, from)
    local bytes = 0
    for _, body in ipairs(taken.bodies) do bytes = bytes + #body end
    if room > 0 and bytes > room then return { NO_ROOM, bytes } end
    if ARGV[from] == '-' then return nil end
    local opened = {}
    for i = from, #ARGV do opened[ARGV[i]] = true end
    for i, body in ipairs(taken.bodies) do
        if byte(body) == 1 and not opened[id_of(w, tonumber(taken.names[i]), head_of(taken.heads[i]))] then
            local out = { SEALED, w.now, w.tag }
            for k, n in ipairs(taken.names) do
                local at = #out
                out[at + 1], out[at + 2], out[at + 3], out[at + 4] = n, taken.heads[k], taken.bodies[k], ''
            end
            return out
        end
    end
    return nil
end
