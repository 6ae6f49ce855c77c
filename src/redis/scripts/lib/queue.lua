-- queue: what all scripts about a queue begin with. The build makes one library of Redis of the files of
-- this folder and the scripts (scripts/lua.cmake): each script is a function of it, and so what stands
-- here is made once, not at each call. What is kept in a local here stays from call to call: only what
-- served() sets is.
--
-- Keys, which exist as long as the queue does (a slot that is being moved is answered TRYAGAIN only
-- while a queue's keys are in two places):
--
--   Q  hash        tag, v(ersion), j(son), s(ettings), w, r: numbers, packed; x, xu, xl: how many messages
--                  expired, unread ones, dead letters (lib/messages.lua)
--   Z  sorted set  number of each message; score: the number if it is free, + 2^52 if it is held or
--                  delayed. So claiming is "the first below 2^52", giving back is "set the score"
--   M  hash        NUMBER -> head, bNUMBER -> body, cNUMBER -> claim, fID -> number of a message that
--                  came with its id from another queue, dTRANSFER -> '' a dead letter has arrived, and may
--                  be brought once more
--   T  sorted set  deadlines in ms: NUMBER (end of a delay, else of its life), cNUMBER (end of a claim),
--                  dTRANSFER (no process posts it any more). Behind all deadlines: kNUMBER, with the time at which
--                  the claim was created + 2^52
--   X  hash        TRANSFER -> a dead letter on its way to another queue; TRANSFER is what its id would be here:
--                  it may go this way several times
--   S, U           lib/subscriptions.lua; they exist from the first subscription on. A script that needs them
--                  and was called without answers FEED, and is called with them
--   F  string      of a queue that was deleted: behind which number its successor's claims begin. A
--                  script that makes a queue needs it, and answers FENCE likewise; it need not exist,
--                  so queues are not made and not deleted while their slot is being moved
--
-- ARGV[1] is the time for tests, else empty: then it is Redis' time, or the last one seen here if
-- that is later. A script answers {status, ...}; what is refused has changed nothing.

local KEYS, ARGV, Q, Z, M, T, X, S, U, F
local call, pack, unpack_struct, floor, sub, byte, format

-- What Redis calls for a script. A request ends with its number, and its response begins with it: so
-- claimd sees that it is the response to this request (pipeline.h). While a library is loaded there is
-- nothing of what Redis and Lua bring along.
local function served(script)
    return function(keys, arguments)
        local last = #arguments
        local number = tonumber(arguments[last])
        arguments[last] = nil
        KEYS, ARGV = keys, arguments
        Q, Z, M, T, X, S, U, F = unpack(keys, 1, 8)
        if not call then
            call, pack, unpack_struct = redis.call, struct.pack, struct.unpack
            floor, sub, byte, format = math.floor, string.sub, string.byte, string.format
        end
        return { number, script() }
    end
end

local OK, AGAIN, NOT_FOUND, CHANGED, CLAIMED, NOT_CLAIMED, NO_ROOM, TOO_LARGE, NOT_SEALED, SEALED,
    CONFLICT, FEED, FENCE, SETTLE = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13

local HELD, HELD_TEXT = 4503599627370496, '4503599627370496' -- 2^52
local BELOW_HELD = '(' .. HELD_TEXT
local SLICE = 16              -- deadlines that one call settles
local WORK, SELDOM = '<ddddddddd', '<dddddddddd'
local HEAD = '<ddddI4I4Bc8'   -- posted, expires, ready at (0: it is), claim (0: none), count, bytes of the
                              -- body, flags, client
local CLAIM = '<ddI4c12'      -- started, ends, how many it holds, secret; then their numbers
local SUM, FOREIGN = 1, 2     -- flags: 16 bytes of checksum, 24 of an id stand behind the head

local function time_now()
    if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
    local t = call('TIME')
    return t[1] * 1000 + floor(t[2] / 1000)
end

-- When so many ms that begin now are over. time_now() rounds the time of Redis down, so this rounds
-- up: nothing ends early. A test's clock is exact.
local function deadline(w, ms)
    return w.now + ms + (ARGV[1] == '' and 1 or 0)
end

-- The queue, nil if there is none; with what is known of it. Numbers that change with nearly every
-- operation are in one field, with `w`, and the others in another: scripts that change them set `seldom`.
--
--   base                 claim numbers begin behind it, times 4096
--   seen, due            the last time seen; no deadline is earlier
--   letters, outgoing    messages that came as dead letters; dead letters on their way
--   sent, since          when such were sent, or sent again, the last time; since when there are any
--   feed, listeners      1 if it has S and U; subscriptions that get posts
--   subscribers, feed_bytes
--   watched              until then a process listens whether messages have become ready
--   unlisted             1 until it stands in the list of its project
local function enter()
    local q = call('HMGET', Q, 'w', 'r', 's', 'tag')
    if not q[1] then return nil end
    local last, last_claim, seen, base, due, held, delayed, bytes, claims = unpack_struct(WORK, q[1])
    local letters, outgoing, sent, since, feed, listeners, subscribers, feed_bytes, watched, unlisted =
        unpack_struct(SELDOM, q[2])
    local now = time_now()
    if now < seen then now = seen end
    return { tag = q[4], settings = q[3], now = now, last = last, last_claim = last_claim, seen = now, base = base,
        due = due, held = held, delayed = delayed, bytes = bytes, claims = claims, letters = letters,
        outgoing = outgoing, sent = sent, since = since, feed = feed, listeners = listeners,
        subscribers = subscribers, feed_bytes = feed_bytes, watched = watched, unlisted = unlisted }
end

-- Is something due? A script that changes nothing answers SETTLE then, and is called again behind
-- queue_settle.
local function is_due(w)
    return w.now >= w.due
end

-- Some of the dead letters in transfer, with the ids of their transfers.
local function some_dead_letters()
    return call('HRANDFIELD', X, 64, 'WITHVALUES')
end

-- Notifies the processes that listen: '': there may be messages; 'gone': the queue was deleted. A user without
-- the right to use channels is served, too: processes look from time to time.
local function say(what)
    redis.pcall('SPUBLISH', sub(Q, 1, -2) .. 'w', what)
end

-- Keeps what has changed. stirred: messages have become ready, or will do so earlier than the
-- processes that listen know.
local function leave(w)
    local work = pack(WORK, w.last, w.last_claim, w.seen, w.base, w.due, w.held, w.delayed, w.bytes, w.claims)
    if w.seldom then
        call('HSET', Q, 'w', work, 'r', pack(SELDOM, w.letters, w.outgoing, w.sent, w.since, w.feed,
            w.listeners, w.subscribers, w.feed_bytes, w.watched, w.unlisted))
    else
        call('HSET', Q, 'w', work)
    end
    if w.stirred and w.watched > w.now then say('') end
    w.stirred, w.seldom = nil, nil
end

-- No messages, no claims.
local function empty()
    call('HSET', M, '', '')
    call('ZADD', Z, 0, '')
    call('ZADD', T, '+inf', '')
end

-- Makes the queue, without metadata, not in the list of its project yet. What was left of an
-- earlier one of this name (F) says behind which number its claims begin. Notifies its
-- waiters in any case: they could not listen.
local function create(tag)
    local now = time_now()
    local base = tonumber(call('GET', F) or 0)
    local w = { tag = tag, settings = '', now = now, seen = now, base = now > base and now or base,
        last = 0, last_claim = 0, due = math.huge, held = 0, delayed = 0, bytes = 0, claims = 0, letters = 0,
        outgoing = 0, sent = 0, since = 0, feed = 0, listeners = 0, subscribers = 0, feed_bytes = 0, watched = 0,
        unlisted = 1, seldom = true }
    call('HSET', Q, 'tag', tag, 'v', string.format('%.0f', tonumber(tag, 16) * 1048576), 'j', '', 's', '')
    call('HSET', X, '', '')
    empty()
    leave(w)
    say('')
    return w
end

-- Writes json and settings, which stand in ARGV from `from` on.
local function set_metadata(json, from)
    local set = {}
    for i = 1, 8 do
        set[i] = i == 6 and ARGV[from + 5] or tonumber(ARGV[from + i - 1])
    end
    call('HSET', Q, 'j', json, 's', cmsgpack.pack(set))
end

-- Settings: max_post_bytes, message_ttl, message_delay, max_claim_count, dead_letter_ttl (-1: not
-- set), dead letter queue ('': none), transient, encrypt.
local function settings(w)
    return w.settings ~= '' and cmsgpack.unpack(w.settings) or { -1, -1, -1, -1, -1, '', 0, 0 }
end
