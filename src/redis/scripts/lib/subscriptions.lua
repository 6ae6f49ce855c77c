-- subscriptions: the feed of a queue, and its subscriptions (claimd/store/subscription.h). Needs queue.
--
--   S  hash        '' -> numbers of the feed, sNUMBER -> a subscription, aSUBSCRIBER -> its NUMBER, eORDINAL -> a
--      message.
--                  Ordinals have no gaps
--   U  sorted set  NUMBER, by itself: the order of creation. The other members have scores in ranges above:
--                  cNUMBER  by the last ordinal that the subscription is done with; only subscriptions that get
--                           messages
--                  iNUMBER  likewise; only those of them that are idle
--                  dNUMBER  by the time in ms of the next delivery, or of the end of its lease
--                  lNUMBER  by the time in ms when the subscription ends
--
-- The cost of a post does not depend on the number of subscriptions. Idle subscriptions whose ordinal is not the last
-- one have a message to get.

local CURSORS, IDLE, DUE, ENDS = 2 ^ 50, 2 ^ 51, 2 ^ 52, 2 ^ 52 + 2 ^ 51
local FEED_SLICE = 64
local IDLE_STATE, LEASED, BACKING_OFF = 0, 1, 2
local DELIVER, CONFIRM, UNSUBSCRIBED = 0, 1, 2 -- notices. s.pending: 0, or 1 + the notice
local FIELDS = { 'secret', 'started', 'ttl', 'cursor', 'attached', 'confirmed', 'state', 'again', 'token',
    'pending', 'notice', 'failed', 'failed_at', 'failures', 'delivered', 'permanent_failures', 'dropped', 'version',
    'subscriber', 'options' }

-- The members of U with scores from `from` to below `to`.
local function subscriptions_in(from, to, ...)
    return call('ZRANGEBYSCORE', U, string.format('%.0f', from), string.format('(%.0f', to), ...)
end

-- nil: the queue never had a feed.
local function read_feed(w)
    if w.feed == 0 then return nil end
    local f = {}
    f.subscribed, f.first, f.last, f.bytes, f.tokens = unpack_struct('<ddddd', call('HGET', S, ''))
    return f
end

local function make_feed(w)
    w.feed = 1
    call('ZADD', U, 0, '')
    return { subscribed = 0, first = 1, last = 0, bytes = 0, tokens = 0 }
end

local function feed_drop_first(f)
    local entry = 'e' .. f.first
    f.bytes = f.bytes - call('HSTRLEN', S, entry)
    call('HDEL', S, entry)
    f.first = f.first + 1
end

-- Drops some messages that all subscriptions are done with, and saves the feed and the queue.
local function save_feed(w, f)
    local least = subscriptions_in(CURSORS, IDLE, 'WITHSCORES', 'LIMIT', 0, 1)[2]
    local to = math.min(least and least - CURSORS or f.last, f.first + FEED_SLICE - 1)
    while f.first <= to do feed_drop_first(f) end
    call('HSET', S, '', pack('<ddddd', f.subscribed, f.first, f.last, f.bytes, f.tokens))
    w.feed_bytes, w.rare_changed = f.bytes, true
    save_queue(w)
end

-- Adds a message. `most`: maximum size of the feed in bytes (0: unlimited). Drops the oldest messages beyond it.
local function feed_append(f, expires, ttl, delay, body, most)
    f.last = f.last + 1
    local entry = pack('<ddd', expires, ttl, delay) .. body
    call('HSET', S, 'e' .. f.last, entry)
    f.bytes = f.bytes + #entry
    while most > 0 and f.bytes > most and f.first < f.last do feed_drop_first(f) end
end

-- 1: a message that is added now makes an idle subscription due. `f` may be false.
local function idle_subscription_due(f)
    return f and #subscriptions_in(IDLE, IDLE + f.last + 1, 'LIMIT', 0, 1) > 0 and 1 or 0
end

-- The time in ms when there is something to do: w.now or later. -1: there is no subscription.
local function next_due(w, f)
    if #subscriptions_in(IDLE, IDLE + f.last, 'LIMIT', 0, 1) > 0 then return w.now end
    local due = subscriptions_in(DUE, ENDS, 'WITHSCORES', 'LIMIT', 0, 1)[2]
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

local function save_subscription(n, s)
    local values = {}
    for i, field in ipairs(FIELDS) do values[i] = s[field] end
    call('HSET', S, 's' .. n, cmsgpack.pack(values))
    call('ZADD', U, ENDS + s.started + s.ttl * 1000, 'l' .. n)
end

local function id_of_subscription(n, s)
    return s.secret .. string.format('%012x', n)
end

-- The secret of the id of a new subscription: that of the newest one, so that ids sort by their numbers; `fresh` if
-- there is none.
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

-- Removes some expired subscriptions.
local function remove_expired(w)
    for _, member in ipairs(call('ZRANGEBYSCORE', U, string.format('%.0f', ENDS),
        string.format('%.0f', ENDS + w.now), 'LIMIT', 0, FEED_SLICE)) do
        local n = tonumber(sub(member, 2))
        remove_subscription(w, n, read_subscription(call('HGET', S, 's' .. n)))
    end
end

-- These find a live subscription; nil: there is none.
local function subscription_by_number(w, n)
    local text = n and call('HGET', S, 's' .. n)
    local s = text and read_subscription(text)
    return s and w.now < s.ends and s or nil
end

local function subscription_by_subscriber(w, subscriber)
    local n = tonumber(call('HGET', S, 'a' .. subscriber) or nil)
    local s = subscription_by_number(w, n)
    if s then return n, s end
end

local function subscription_by_id(w, id)
    if #id ~= 24 then return nil end
    local n = tonumber(sub(id, 13), 16)
    local s = n and subscription_by_number(w, n)
    if s and s.secret == sub(id, 1, 12) then return n, s end
end

-- The ordinal of the next message for a subscription; nil: there is none.
local function next_ordinal(f, s)
    local ordinal = math.max(s.cursor + 1, f.first)
    return s.attached == 1 and ordinal <= f.last and ordinal or nil
end

-- Sets when the subscription is due.
local function schedule_at(n, ms)
    call('ZREM', U, 'i' .. n)
    call('ZADD', U, DUE + ms, 'd' .. n)
end

-- The subscription is not leased (any more): sets when it is due, or makes it idle.
local function update_schedule(w, f, n, s)
    s.state = IDLE_STATE
    call('ZREM', U, 'i' .. n, 'd' .. n)
    if s.pending > 0 or next_ordinal(f, s) then
        call('ZADD', U, DUE + w.now, 'd' .. n)
    elseif s.attached == 1 then
        call('ZADD', U, IDLE + s.cursor, 'i' .. n)
    end
end

-- Sets the pending notice. It is due at once.
local function set_pending(w, f, n, s, pending)
    s.pending, s.failed = pending, 0
    if s.state ~= LEASED then update_schedule(w, f, n, s) end
end

-- Sets whether the subscription gets messages (attached): if it is confirmed, or no confirmation is required.
local function update_attached(w, f, n, s, required)
    local wanted = (s.confirmed == 1 or not required) and 1 or 0
    if wanted == s.attached then return end
    s.attached, s.failed, s.cursor = wanted, 0, f.last
    w.listeners = w.listeners + (wanted == 1 and 1 or -1)
    if wanted == 1 then call('ZADD', U, CURSORS + s.cursor, 'c' .. n) else call('ZREM', U, 'c' .. n) end
    if s.state ~= LEASED then update_schedule(w, f, n, s) end
end

-- The subscription is done with a message, or the message was dropped.
local function advance_cursor(n, s, ordinal)
    s.failed = 0
    if s.attached == 1 and ordinal > s.cursor then
        s.dropped = s.dropped + ordinal - s.cursor - 1
        s.cursor = ordinal
        call('ZADD', U, CURSORS + ordinal, 'c' .. n)
    end
end

-- Sets all missing fields of a new subscription.
local function init_subscription(f, s)
    for _, field in ipairs(FIELDS) do s[field] = s[field] or 0 end
    s.cursor, s.ends = f.last, s.started + s.ttl * 1000
    return s
end

local function add_subscription(w, f, n, s, required)
    call('HSET', S, 'a' .. s.subscriber, n)
    call('ZADD', U, n, n)
    w.subscribers = w.subscribers + 1
    update_attached(w, f, n, s, required)
    update_schedule(w, f, n, s)
    save_subscription(n, s)
end

-- Adds the words of a subscription to a response (subscription_ops.h).
local function add_subscription_words(out, f, n, s)
    local failed = s.failed
    if s.failed_at > 0 and s.state ~= LEASED and next_ordinal(f, s) ~= s.failed_at then failed = 0 end
    local overtaken = s.notice == CONFIRM and s.confirmed == 1
    local unsent = s.pending
    if unsent == 0 and s.state == LEASED and s.notice > 0 and not overtaken then unsent = s.notice + 1 end
    for _, value in ipairs({ n, id_of_subscription(n, s), s.subscriber, s.options, s.started, s.ttl, s.confirmed,
        unsent == CONFIRM + 1 and 1 or 0, s.delivered, s.permanent_failures, s.dropped,
        s.attached == 1 and f.last - s.cursor or 0, s.attached == 1 and math.max(0, f.first - s.cursor - 1) or 0,
        s.failures, failed, s.state == LEASED and 1 or 0, s.state == BACKING_OFF and s.again or 0 }) do
        out[#out + 1] = value
    end
end
