-- preamble: what all scripts about a queue share. It stands in front of each of them.
--
-- Keys, which exist as long as the queue does (a slot that is being moved is answered TRYAGAIN only
-- while a queue's keys are in two places):
--
--   Q  hash        tag, v(ersion), j(son), s(ettings), w(ork: numbers, packed)
--   Z  sorted set  number of each message; score: the number if it is free, + 2^52 if it is held or
--                  delayed. So claiming is "the first below 2^52", giving back is "set the score"
--   M  hash        NUMBER -> head, bNUMBER -> body, cNUMBER -> claim, fID -> number of a message that
--                  came with its id from another queue
--   T  sorted set  deadlines in ms: NUMBER (end of a delay, else of its life), cNUMBER (end of a claim)
--   X  hash        id -> a dead letter on its way to another queue
--
-- ARGV[1] is the time for tests, else empty: then it is Redis' time, or the last one seen here if
-- that is later. A script answers {status, ...}; what is refused has changed nothing.

local Q, Z, M, T, X = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local call, pack, unpack_struct = redis.call, struct.pack, struct.unpack
local floor, tonumber, sub, byte = math.floor, tonumber, string.sub, string.byte

local OK, AGAIN, NOT_FOUND, CHANGED, CLAIMED, NOT_CLAIMED, NO_ROOM, TOO_LARGE, NOT_SEALED, SEALED,
    CONFLICT = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10

local HELD, HELD_TEXT = 4503599627370496, '4503599627370496' -- 2^52
local SLICE = 16              -- deadlines that one call settles
local WORK = '<dddddddddd'
local HEAD = '<ddddI4Bc8'     -- posted, expires, ready at (0: it is), claim (0: none), count, flags, client
local CLAIM = '<ddI4c12'      -- started, ends, how many it holds, secret; then their numbers
local SUM, FOREIGN = 1, 2     -- flags: 16 bytes of checksum, 24 of an id stand behind the head

local function time_now()
    if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
    local t = call('TIME')
    return t[1] * 1000 + floor(t[2] / 1000)
end

-- The queue, nil if there is none; with what `work` counts. `base`: claim numbers begin behind it,
-- times 4096.
local function enter()
    local q = call('HMGET', Q, 'w', 's', 'tag')
    if not q[1] then return nil end
    local w = { tag = q[3], settings = q[2], now = time_now() }
    w.last, w.last_claim, w.seen, w.base, w.held, w.delayed, w.bytes, w.claims, w.letters, w.outgoing =
        unpack_struct(WORK, q[1])
    if w.now < w.seen then w.now = w.seen else w.seen = w.now end
    return w
end

local function leave(w)
    call('HSET', Q, 'w', pack(WORK, w.last, w.last_claim, w.seen, w.base, w.held, w.delayed, w.bytes,
        w.claims, w.letters, w.outgoing))
end

-- No messages, no claims.
local function empty()
    call('HSET', M, '', '')
    call('ZADD', Z, 0, '')
    call('ZADD', T, '+inf', '')
end

-- Makes the queue, without metadata, not in the list of its project yet ('u'). What was left of an
-- earlier one of this name (KEYS[6]) says behind which number its claims begin.
local function create(tag)
    local now = time_now()
    local base = tonumber(call('GET', KEYS[6]) or 0)
    local w = { tag = tag, settings = '', now = now, seen = now, base = now > base and now or base,
        last = 0, last_claim = 0, held = 0, delayed = 0, bytes = 0, claims = 0, letters = 0,
        outgoing = 0 }
    call('HSET', Q, 'tag', tag, 'v', string.format('%.0f', tonumber(tag, 16) * 1048576), 'j', '', 's', '', 'u', 1)
    call('HSET', X, '', '')
    empty()
    leave(w)
    return w
end

-- Settings: max_post_bytes, message_ttl, message_delay, max_claim_count, dead_letter_ttl (-1: not
-- set), dead letter queue ('': none), transient, encrypt.
local function settings(w)
    return w.settings ~= '' and cmsgpack.unpack(w.settings) or { -1, -1, -1, -1, -1, '', 0, 0 }
end

-- What is going to be changed in Z, M and T, in one call each.
local function changes()
    return { hset = {}, hdel = {}, zadd = {}, zrem = {}, tadd = {}, trem = {}, claims = {} }
end

local function all_of(command, key, words)
    for from = 1, #words, 4000 do
        call(command, key, unpack(words, from, math.min(from + 3999, #words)))
    end
end

local function put(list, a, b)
    local n = #list
    list[n + 1], list[n + 2] = a, b
end

-- A claim, as it is being changed; nil: it is over.
local function claim_of(ch, number)
    local c = ch.claims[number]
    if c == nil then
        local record = call('HGET', M, 'c' .. number)
        if not record then return nil end
        local at
        c = { number = number }
        c.started, c.ends, c.left, c.secret, at = unpack_struct(CLAIM, record)
        c.numbers = sub(record, at)
        ch.claims[number] = c
    end
    return c.left > 0 and c or nil
end

-- Nothing more is held by it.
local function end_claim(w, ch, c)
    c.left, c.changed = 0, nil
    w.claims = w.claims - 1
    put(ch.hdel, 'c' .. c.number)
    put(ch.trem, 'c' .. c.number)
end

-- It holds one message less.
local function lose(w, ch, number)
    local c = claim_of(ch, number)
    if c then
        c.left, c.changed = c.left - 1, true
        if c.left == 0 then end_claim(w, ch, c) end
    end
end

local function commit(ch)
    for _, c in pairs(ch.claims) do
        if c.changed then
            put(ch.hset, 'c' .. c.number, pack(CLAIM, c.started, c.ends, c.left, c.secret) .. c.numbers)
        end
    end
    all_of('HSET', M, ch.hset)
    all_of('HDEL', M, ch.hdel)
    all_of('ZADD', Z, ch.zadd)
    all_of('ZREM', Z, ch.zrem)
    all_of('ZADD', T, ch.tadd)
    all_of('ZREM', T, ch.trem)
end

-- A head in words, and back.
local function head_of(text)
    local h = {}
    local at
    h.posted, h.expires, h.ready, h.claim, h.count, h.flags, h.client, at = unpack_struct(HEAD, text)
    h.rest = sub(text, at)
    return h
end

local function text_of(h)
    return pack(HEAD, h.posted, h.expires, h.ready, h.claim, h.count, h.flags, h.client) .. h.rest
end

local function id_of(w, n, h)
    return h.flags >= FOREIGN and sub(h.rest, -24) or w.tag .. string.format('%016x', n)
end

-- Takes a message out of the queue.
local function remove(w, ch, n, h, bytes)
    put(ch.hdel, n, 'b' .. n)
    if h.flags >= FOREIGN then
        put(ch.hdel, 'f' .. sub(h.rest, -24))
        w.letters = w.letters - 1
    end
    put(ch.zrem, n)
    put(ch.trem, n)
    w.bytes = w.bytes - bytes
    if h.claim > 0 then
        w.held = w.held - 1
        lose(w, ch, h.claim)
    elseif h.ready > 0 then
        w.delayed = w.delayed - 1
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

-- Gives back all that a claim holds; `less` is taken off the counts.
local function release(w, ch, c, less)
    local numbers = numbers_of(c)
    local heads = call('HMGET', M, unpack(numbers))
    for i, n in ipairs(numbers) do
        local h = heads[i] and head_of(heads[i])
        if h and h.claim == c.number then
            h.claim = 0
            h.count = h.count - less
            put(ch.hset, n, text_of(h))
            put(ch.zadd, n, n)
            w.held = w.held - 1
        end
    end
    end_claim(w, ch, c)
end

-- Makes happen what is due, the earliest first. False: there may be more; the caller leaves, and
-- answers AGAIN.
local function settle(w)
    local due = call('ZRANGEBYSCORE', T, '-inf', w.now, 'LIMIT', 0, SLICE)
    if #due == 0 then return true end
    for _, what in ipairs(due) do
        local ch = changes()
        if byte(what) == 99 then -- 'c'
            release(w, ch, claim_of(ch, tonumber(sub(what, 2))), 0)
        else
            local n = tonumber(what)
            local h = head_of(call('HGET', M, what))
            if h.expires <= w.now then
                remove(w, ch, n, h, call('HSTRLEN', M, 'b' .. what))
            else
                h.ready = 0
                w.delayed = w.delayed - 1
                put(ch.hset, n, text_of(h))
                put(ch.zadd, n, n)
                put(ch.tadd, h.expires, n)
            end
        end
        commit(ch)
    end
    leave(w)
    return #due < SLICE
end

-- The number of a message and its head, by its id; nil: there is none. One that came with its id has
-- no other.
local function find(w, id)
    if #id ~= 24 then return nil end
    local n = sub(id, 1, 8) == w.tag and tonumber(sub(id, 9), 16)
    local text = n and call('HGET', M, n)
    if text and head_of(text).flags < FOREIGN then return n, text end
    n = tonumber(call('HGET', M, 'f' .. id) or nil)
    if n then return n, call('HGET', M, n) end
    return nil
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
        n = find(w, text) or sub(text, 1, 8) == w.tag and tonumber(sub(text, 9), 16)
    elseif #text < 17 and string.match(text, '^%d+$') then
        n = tonumber(text)
    end
    return n and n <= w.last and n or 0
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

-- The oldest messages that are free.
local function choose(w, limit)
    local taken = { numbers = call('ZRANGEBYSCORE', Z, '(0', '(' .. HELD_TEXT, 'LIMIT', 0, limit),
        heads = {}, bodies = {} }
    if #taken.numbers > 0 then
        local words = {}
        for i, n in ipairs(taken.numbers) do
            taken.numbers[i] = tonumber(n)
            words[2 * i - 1], words[2 * i] = n, 'b' .. n
        end
        local found = call('HMGET', M, unpack(words))
        for i = 1, #taken.numbers do
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
        if byte(body) == 1 and not opened[id_of(w, taken.numbers[i], head_of(taken.heads[i]))] then
            local out = { SEALED, w.now, w.tag }
            for k, n in ipairs(taken.numbers) do
                local at = #out
                out[at + 1], out[at + 2], out[at + 3], out[at + 4] = n, taken.heads[k], taken.bodies[k], ''
            end
            return out
        end
    end
    return nil
end

-- Takes those that were claimed too often out of the queue; how many. What they are goes into X and
-- into `letters`: they are on their way.
local function move_letters(w, set, taken, letters)
    local ch, moved = changes(), 0
    for i, n in ipairs(taken.numbers) do
        local h = head_of(taken.heads[i])
        if h.count >= set[4] and #letters < 128 then
            local id = id_of(w, n, h)
            if set[5] >= 0 then
                h.posted, h.expires = w.now, w.now + 1000 * set[5]
            end
            local sum = h.flags % 2 == SUM and sub(h.rest, 1, 16) or ''
            local letter = pack('<ddc8BB', h.posted, h.expires, h.client, #set[6], #sum) .. set[6] .. sum ..
                taken.bodies[i]
            remove(w, ch, n, h, #taken.bodies[i])
            call('HSET', X, id, letter)
            put(letters, id, letter)
            moved = moved + 1
        end
    end
    w.outgoing = w.outgoing + moved
    commit(ch)
    return moved
end

-- Writes json and settings, which stand in ARGV from `from` on.
local function set_metadata(json, from)
    local set = {}
    for i = 1, 8 do
        set[i] = i == 6 and ARGV[from + 5] or tonumber(ARGV[from + i - 1])
    end
    call('HSET', Q, 'j', json, 's', cmsgpack.pack(set))
end

local function settings_texts(w)
    local set = settings(w)
    for i, value in ipairs(set) do set[i] = tostring(value) end
    return set
end

