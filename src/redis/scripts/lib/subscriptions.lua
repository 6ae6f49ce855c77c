-- subscriptions: the feed of a queue, and its subscriptions (claimd/store/subscription.h). After queue.
--
--   S  hash        '' -> numbers of the feed, sNUMBER -> a subscription, aSUBSCRIBER -> its NUMBER,
--                  eORDINAL -> what was posted; ordinals have no gaps
--   U  sorted set  NUMBER in the order of creation, and each once more behind that, in ranges: cNUMBER,
--                  by the ordinal that it has done with, of those that get messages; iNUMBER, likewise,
--                  of those of them that rest with nothing to get; dNUMBER, by the ms when there is
--                  something to get, or when its lease ends;
--                  lNUMBER, by the ms of its end
--
-- So a post costs the same for any number of subscriptions: those in the range of i with another ordinal than
-- the last one have something to get.

local CURSORS, IDLE, DUE, ENDS = 2 ^ 50, 2 ^ 51, 2 ^ 52, 2 ^ 52 + 2 ^ 51
local FEED_SLICE = 64
local RESTS, LEASED, WAITS = 0, 1, 2
local DELIVER, CONFIRM, UNSUBSCRIBED = 0, 1, 2 -- notices; a pending one is one more, none is 0
local FIELDS = { 'secret', 'started', 'ttl', 'cursor', 'attached', 'confirmed', 'state', 'again', 'token',
    'pending', 'notice', 'failed', 'failed_at', 'failures', 'delivered', 'given_up', 'fallen', 'version',
    'subscriber', 'options' }

local function range(from, to, ...)
    return call('ZRANGEBYSCORE', U, string.format('%.0f', from), string.format('(%.0f', to), ...)
end

-- The feed; nil: the queue never had one.
local function feed_of(w)
    if w.feed == 0 then return nil end
    local f = {}
    f.subscribed, f.first, f.last, f.bytes, f.tokens = unpack_struct('<ddddd', call('HGET', S, ''))
    return f
end

local function feed_make(w)
    w.feed = 1
    call('ZADD', U, 0, '')
    return { subscribed = 0, first = 1, last = 0, bytes = 0, tokens = 0 }
end

local function drop_first(f)
    local entry = 'e' .. f.first
    f.bytes = f.bytes - call('HSTRLEN', S, entry)
    call('HDEL', S, entry)
    f.first = f.first + 1
end

-- Drops some of the entries that no subscription has still to get, and keeps the rest.
local function leave_feed(w, f)
    local least = range(CURSORS, IDLE, 'WITHSCORES', 'LIMIT', 0, 1)[2]
    local to = math.min(least and least - CURSORS or f.last, f.first + FEED_SLICE - 1)
    while f.first <= to do drop_first(f) end
    call('HSET', S, '', pack('<ddddd', f.subscribed, f.first, f.last, f.bytes, f.tokens))
    w.feed_bytes, w.seldom = f.bytes, true
    leave(w)
end

-- Adds a message; `most`: bytes that the feed may have (0: any number).
local function append(f, expires, ttl, delay, body, most)
    f.last = f.last + 1
    local entry = pack('<ddd', expires, ttl, delay) .. body
    call('HSET', S, 'e' .. f.last, entry)
    f.bytes = f.bytes + #entry
    while most > 0 and f.bytes > most and f.first < f.last do drop_first(f) end
end

-- When there is next something to do: ms, w.now if there is now; -1: there is no subscription.
local function feed_when(w, f)
    if #range(IDLE, IDLE + f.last, 'LIMIT', 0, 1) > 0 then return w.now end
    local due = range(DUE, ENDS, 'WITHSCORES', 'LIMIT', 0, 1)[2]
    local ends = call('ZRANGEBYSCORE', U, string.format('%.0f', ENDS), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
    if not ends then return -1 end
    return math.max(w.now, math.min(due and due - DUE or math.huge, ends - ENDS))
end

local function read_subscription(text)
    local values, s = cmsgpack.unpack(text), {}
    for i, field in ipairs(FIELDS) do s[field] = values[i] end
    s.ends = s.started + s.ttl * 1000
    return s
end

local function keep(n, s)
    local values = {}
    for i, field in ipairs(FIELDS) do values[i] = s[field] end
    call('HSET', S, 's' .. n, cmsgpack.pack(values))
    call('ZADD', U, ENDS + s.started + s.ttl * 1000, 'l' .. n)
end

local function id_of_subscription(n, s)
    return s.secret .. string.format('%012x', n)
end

-- What the id of a new one begins with: as that of the newest one, so that ids sort by their numbers, which
-- rise; `fresh` if there is none.
local function next_secret(fresh)
    local newest = call('ZREVRANGEBYSCORE', U, string.format('(%.0f', CURSORS), 1, 'LIMIT', 0, 1)[1]
    return newest and read_subscription(call('HGET', S, 's' .. newest)).secret or fresh
end

local function remove_subscription(w, n, s)
    call('HDEL', S, 's' .. n)
    if tonumber(call('HGET', S, 'a' .. s.subscriber)) == n then call('HDEL', S, 'a' .. s.subscriber) end
    call('ZREM', U, n, 'c' .. n, 'i' .. n, 'd' .. n, 'l' .. n)
    w.listeners, w.subscribers = w.listeners - s.attached, w.subscribers - 1
end

-- Removes some expired subscriptions. Every script about subscriptions begins so.
local function end_some(w)
    for _, member in ipairs(call('ZRANGEBYSCORE', U, string.format('%.0f', ENDS),
        string.format('%.0f', ENDS + w.now), 'LIMIT', 0, FEED_SLICE)) do
        local n = tonumber(sub(member, 2))
        remove_subscription(w, n, read_subscription(call('HGET', S, 's' .. n)))
    end
end

-- A live one by its number, by its subscriber, by its id; nil: there is none.
local function subscription(w, n)
    local text = n and call('HGET', S, 's' .. n)
    local s = text and read_subscription(text)
    return s and w.now < s.ends and s or nil
end

local function subscription_of(w, subscriber)
    local n = tonumber(call('HGET', S, 'a' .. subscriber) or nil)
    local s = subscription(w, n)
    if s then return n, s end
end

local function find_subscription(w, id)
    if #id ~= 24 then return nil end
    local n = tonumber(sub(id, 13), 16)
    local s = n and subscription(w, n)
    if s and s.secret == sub(id, 1, 12) then return n, s end
end

-- The ordinal that one gets next; nil: there is nothing.
local function next_of(f, s)
    local ordinal = math.max(s.cursor + 1, f.first)
    return s.attached == 1 and ordinal <= f.last and ordinal or nil
end

local function due_at(n, ms)
    call('ZREM', U, 'i' .. n)
    call('ZADD', U, DUE + ms, 'd' .. n)
end

-- It is not leased (any more): it goes where it belongs.
local function rest(w, f, n, s)
    s.state = RESTS
    call('ZREM', U, 'i' .. n, 'd' .. n)
    if s.pending > 0 or next_of(f, s) then
        call('ZADD', U, DUE + w.now, 'd' .. n)
    elseif s.attached == 1 then
        call('ZADD', U, IDLE + s.cursor, 'i' .. n)
    end
end

-- Has it told so, at once.
local function notify(w, f, n, s, pending)
    s.pending, s.failed = pending, 0
    if s.state ~= LEASED then rest(w, f, n, s) end
end

-- Whether it gets messages follows from whether it is confirmed, where that is required.
local function attach(w, f, n, s, required)
    local wanted = (s.confirmed == 1 or not required) and 1 or 0
    if wanted == s.attached then return end
    s.attached, s.failed, s.cursor = wanted, 0, f.last
    w.listeners = w.listeners + (wanted == 1 and 1 or -1)
    if wanted == 1 then call('ZADD', U, CURSORS + s.cursor, 'c' .. n) else call('ZREM', U, 'c' .. n) end
    if s.state ~= LEASED then rest(w, f, n, s) end
end

-- It has done with a message, or lost it.
local function pass(n, s, ordinal)
    s.failed = 0
    if s.attached == 1 and ordinal > s.cursor then
        s.fallen = s.fallen + ordinal - s.cursor - 1
        s.cursor = ordinal
        call('ZADD', U, CURSORS + ordinal, 'c' .. n)
    end
end

-- A new one with all its fields.
local function new_subscription(f, s)
    for _, field in ipairs(FIELDS) do s[field] = s[field] or 0 end
    s.cursor, s.ends = f.last, s.started + s.ttl * 1000
    return s
end

-- Enters a new one.
local function subscribe(w, f, n, s, required)
    call('HSET', S, 'a' .. s.subscriber, n)
    call('ZADD', U, n, n)
    w.subscribers = w.subscribers + 1
    attach(w, f, n, s, required)
    rest(w, f, n, s)
    keep(n, s)
end

-- The words of one: number, id, subscriber, options ... (subscription_ops.c).
local function show_subscription(out, f, n, s)
    local failed = s.failed
    if s.failed_at > 0 and s.state ~= LEASED and next_of(f, s) ~= s.failed_at then failed = 0 end
    local overtaken = s.notice == CONFIRM and s.confirmed == 1
    local untold = s.pending
    if untold == 0 and s.state == LEASED and s.notice > 0 and not overtaken then untold = s.notice + 1 end
    for _, value in ipairs({ n, id_of_subscription(n, s), s.subscriber, s.options, s.started, s.ttl, s.confirmed,
        untold == CONFIRM + 1 and 1 or 0, s.delivered, s.given_up, s.fallen,
        s.attached == 1 and f.last - s.cursor or 0, s.attached == 1 and math.max(0, f.first - s.cursor - 1) or 0,
        s.failures, failed, s.state == LEASED and 1 or 0, s.state == WAITS and s.again or 0 }) do
        out[#out + 1] = value
    end
end
