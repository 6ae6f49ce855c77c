-- feed: who is subscribed, and what they have still to get (claimd/store/subscription.h). After queue.
--
--   S  hash        '' -> numbers of the feed, sNUMBER -> a subscription, aSUBSCRIBER -> its NUMBER,
--                  eORDINAL -> what was posted; ordinals have no gaps
--   U  sorted set  NUMBER in the order of creation, and each once more behind that, in ranges: cNUMBER,
--                  by the ordinal that it has done with, of those that get messages; iNUMBER, likewise,
--                  of those of them that rest with nothing to get; dNUMBER, by the ms when there is
--                  something to get, or when whoever it is lent to must have said what became of it;
--                  lNUMBER, by the ms of its end
--
-- So a post costs the same whoever listens: those in the range of i whose ordinal is not the last one
-- have something to get.

local CURSORS, IDLE, DUE, ENDS = 2 ^ 50, 2 ^ 51, 2 ^ 52, 2 ^ 52 + 2 ^ 51
local FEED_SLICE = 64
local RESTS, LENT, WAITS = 0, 1, 2
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

-- Lets go of some of what nobody has still to get, and keeps the rest.
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

-- When there is next something to do: ms, w.now if there is now; -1: nobody is subscribed.
local function feed_when(w, f)
    if #range(IDLE, IDLE + f.last, 'LIMIT', 0, 1) > 0 then return w.now end
    local due = range(DUE, ENDS, 'WITHSCORES', 'LIMIT', 0, 1)[2]
    local ends = call('ZRANGEBYSCORE', U, string.format('%.0f', ENDS), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
    if not ends then return -1 end
    return math.max(w.now, math.min(due and due - DUE or math.huge, ends - ENDS))
end
