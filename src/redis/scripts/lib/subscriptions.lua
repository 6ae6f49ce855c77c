-- subscriptions: each of those who are subscribed. After feed.

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

-- Ends those whose life is over, some of them. Every script about subscriptions begins so.
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

-- It is not lent (any more): it goes where it belongs.
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
    if s.state ~= LENT then rest(w, f, n, s) end
end

-- Whether it gets messages follows from whether it is confirmed, where that is required.
local function attach(w, f, n, s, required)
    local wanted = (s.confirmed == 1 or not required) and 1 or 0
    if wanted == s.attached then return end
    s.attached, s.failed, s.cursor = wanted, 0, f.last
    w.listeners = w.listeners + (wanted == 1 and 1 or -1)
    if wanted == 1 then call('ZADD', U, CURSORS + s.cursor, 'c' .. n) else call('ZREM', U, 'c' .. n) end
    if s.state ~= LENT then rest(w, f, n, s) end
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

-- One that is to be entered, with what is not said.
local function new_subscription(f, s)
    for _, field in ipairs(FIELDS) do s[field] = s[field] or 0 end
    s.cursor, s.ends = f.last, s.started + s.ttl * 1000
    return s
end

-- Enters a new one, which nobody else is.
local function subscribe(w, f, n, s, required)
    call('HSET', S, 'a' .. s.subscriber, n)
    call('ZADD', U, n, n)
    w.subscribers = w.subscribers + 1
    attach(w, f, n, s, required)
    rest(w, f, n, s)
    keep(n, s)
end

-- What is to be known of one: number, id, subscriber, options ... (subscription_ops.c).
local function show_subscription(out, f, n, s)
    local failed = s.failed
    if s.failed_at > 0 and s.state ~= LENT and next_of(f, s) ~= s.failed_at then failed = 0 end
    local overtaken = s.notice == CONFIRM and s.confirmed == 1
    local untold = s.pending
    if untold == 0 and s.state == LENT and s.notice > 0 and not overtaken then untold = s.notice + 1 end
    for _, value in ipairs({ n, id_of_subscription(n, s), s.subscriber, s.options, s.started, s.ttl, s.confirmed,
        untold == CONFIRM + 1 and 1 or 0, s.delivered, s.given_up, s.fallen,
        s.attached == 1 and f.last - s.cursor or 0, s.attached == 1 and math.max(0, f.first - s.cursor - 1) or 0,
        s.failures, failed, s.state == LENT and 1 or 0, s.state == WAITS and s.again or 0 }) do
        out[#out + 1] = value
    end
end
