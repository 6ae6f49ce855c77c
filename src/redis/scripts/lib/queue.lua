-- queue: the beginning of all scripts about a queue. The build joins the files of this folder and the scripts to one
-- library of Redis (scripts/cmake/lua.cmake), in which each script is a function. Redis runs the top level of the library
-- once, when it loads the library. Locals keep their values from call to call, and make_callback() sets them anew.
--
-- A queue has these keys. Q, Z, M, T and X exist as long as the queue does. (While a slot moves, Redis answers
-- TRYAGAIN only if some keys of a call are on one node and some on the other.)
--
--   Q  hash        tag; v: version; j: JSON of the metadata; s: settings; w, r: packed numbers; x, xu, xl: number of
--                  expired messages, of unread ones and of dead letters; p: of messages that were put back; n: packed counters
--                  (lib/messages.lua); h: what is paused (enum store_pause), if anything is; b: the client that
--                  paused it, or ''; c: default TTL and grace of claims, if one is set; y: when claimd has to look at
--                  the queue, and until when (mark_due())
--   Z  sorted set  the number of each message. The score of a ready message is its number. That of a claimed or
--                  delayed message is its number + 2^52. So "below 2^52" selects ready messages, oldest first, and
--                  setting the score requeues a message at its old place
--   M  hash        NUMBER -> head, bNUMBER -> body, eNUMBER -> details, cNUMBER -> claim, hNUMBER -> Client-ID that holds
--                  the claim, fID -> number of the message with this original id, uKEY -> number of the message
--                  that holds this key, dTRANSFER -> this transfer has arrived and may be sent again: the number of its
--                  first message, the id of the message that held the key of a post, '-' if the message was refused
--                  because of its key, or ''
--   T  sorted set  deadlines in ms: NUMBER (end of the delay, or of the TTL), cNUMBER (end of a claim), dTRANSFER (no
--                  process posts it any more). After all deadlines kNUMBER: time of the creation of a claim + 2^52
--   X  hash        TRANSFER -> a message or a post in transfer to another queue (lib/outbox.lua). TRANSFER is the id
--                  that a message of this number would have here. A message with an original id can be transferred
--                  several times
--   S, U           the feed and the subscriptions (lib/subscriptions.lua). They exist from the first subscription on.
--                  A script that was called without them and needs them returns NEEDS_FEED. The caller adds them
--   F  string      left by a deleted queue: its successor's claims get greater numbers. A script that makes a queue
--                  needs this key and returns NEEDS_FENCE without it. The key often does not exist, so claimd can
--                  neither make nor delete a queue while its slot moves
--
-- ARGV[1] is the time of a test clock. If it is empty, the time is that of Redis, but never earlier than the last
-- time of the queue. A script returns {status, ...}. If the status is an error, the script has changed nothing.

local KEYS, ARGV, Q, Z, M, T, X, S, U, F, K, due_ms
local call, pack, unpack_struct, floor, sub, byte, format

-- Makes the function that Redis calls. The last argument of a request is its number, and the response begins with
-- this number. So claimd sees that the response belongs to the request (wire.h). Behind the response is when claimd has
-- to look at the queue (due_ms, mark_due()), if the script has changed that. Redis does not define its API while it
-- loads a library, so the first call sets the locals for it.
local function make_callback(script)
    return function(keys, arguments)
        local last = #arguments
        local number = tonumber(arguments[last])
        arguments[last] = nil
        KEYS, ARGV, due_ms = keys, arguments, nil
        Q, Z, M, T, X, S, U, F = unpack(keys, 1, 8)
        if not call then
            call, pack, unpack_struct = redis.call, struct.pack, struct.unpack
            floor, sub, byte, format = math.floor, string.sub, string.byte, string.format
        end
        local response = script()
        return { number, response, due_ms }
    end
end

local OK, AGAIN, NOT_FOUND, CHANGED, CLAIMED, NOT_CLAIMED, OVER_CAPACITY, TOO_LARGE, NOT_SEALED, SEALED,
    CONFLICT, PAUSED, NEVER_READY, NEEDS_FEED, NEEDS_FENCE, EXPIRE_FIRST, REPEATED, KEY_REUSED, KEY_ENDED = 0, 1, 2, 3,
    4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18

local UNREADY, UNREADY_TEXT = 4503599627370496, '4503599627370496' -- 2^52
local BELOW_UNREADY = '(' .. UNREADY_TEXT
local SLICE = 16              -- deadlines that one call expires
local WORK, RARE, COUNTS = '<ddddddddd', '<dddddddddd', '<ddddd'
local COUNTERS = { posted = 1, delivered = 2, deleted = 3, requeued = 4, dead_lettered = 5 } -- in COUNTS
local HEAD = '<ddddI4I4Bc8' -- posted (+ 0.5: the message has details), expires, end of the delay (0: none), claim (0:
                            -- none), claim count, size of the body, flags, client; then what the flags say
local CLAIM = '<ddI4c12'    -- started, ends, number of messages, secret; then the numbers of the messages
local HAS_CHECKSUM, HAS_ID = 1, 2 -- flags: 16 bytes of a checksum, 24 bytes of the original id follow
local PAUSED_CLAIMS, PAUSED_POSTS = 1, 2 -- w.paused; 3: both
local RETURNED = 4                -- flag of a message with an original id: it was put back, and is no dead letter

local function time_now()
    if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
    local t = call('TIME')
    return t[1] * 1000 + floor(t[2] / 1000)
end

-- The end of a period of `ms` that begins now. time_now() rounds the time of Redis down, so this rounds up: nothing
-- ends early. A test clock is exact.
local function deadline(w, ms)
    return w.now + ms + (ARGV[1] == '' and 1 or 0)
end

-- Reads the queue; nil: there is none. Numbers that change with nearly every operation are in the field w, the others
-- in the field r. A script that changes one of the others sets rare_changed.
--
--   last, last_claim       number of the latest message, of the latest claim
--   base                   fencing tokens are base * 4096 + number of the claim
--   seen, due              the last time; no deadline is earlier than `due`
--   claimed, delayed       number of messages
--   dead_letters           number of messages with an original id: dead letters, and messages that were put back
--   in_transfer            number of transfers in X
--   transferred_at         when a process last began to send what is in X
--   transfers_since        since when X has transfers
--   feed, listeners        1 if S and U exist; number of subscriptions that get messages
--   subscribers, feed_bytes
--   watched_until          until then a process listens for ready messages
--   unlisted               1 until the queue is in the index of its project
--   paused                 what is paused, in a field of its own
local function open_queue()
    local q = call('HMGET', Q, 'w', 'r', 's', 'tag', 'n', 'h')
    if not q[1] then return nil end
    local last, last_claim, seen, base, due, claimed, delayed, bytes, claims = unpack_struct(WORK, q[1])
    local dead_letters, in_transfer, transferred_at, transfers_since, feed, listeners, subscribers, feed_bytes,
        watched_until, unlisted = unpack_struct(RARE, q[2])
    local now = time_now()
    if now < seen then now = seen end
    return { tag = q[4], settings = q[3], counts_text = q[5], now = now, last = last, last_claim = last_claim, seen = now, base = base,
        due = due, claimed = claimed, delayed = delayed, bytes = bytes, claims = claims,
        dead_letters = dead_letters, in_transfer = in_transfer, transferred_at = transferred_at,
        transfers_since = transfers_since, feed = feed, listeners = listeners, subscribers = subscribers,
        feed_bytes = feed_bytes, watched_until = watched_until, unlisted = unlisted, paused = tonumber(q[6] or 0) }
end

local function claims_paused(w)
    return w.paused % 2 == PAUSED_CLAIMS
end

local function posts_paused(w)
    return w.paused >= PAUSED_POSTS
end

-- True if something expires now. A script that changes nothing returns EXPIRE_FIRST then. The caller calls
-- queue_expire and calls the script again.
local function is_due(w)
    return w.now >= w.due
end

-- Notifies the processes that listen. '': messages may be ready; 'gone': the queue was deleted. If the Redis user may
-- not publish, processes wake their waiters from time to time.
local function publish(what)
    redis.pcall('SPUBLISH', sub(Q, 1, -2) .. 'w', what)
end

-- The counters of the queue. They are 0 in a queue of an older version.
local function read_counts(w)
    return w.counts or w.counts_text and { unpack_struct(COUNTS, w.counts_text) } or { 0, 0, 0, 0, 0 }
end

-- Counts messages. The caller saves the queue.
local function count_messages(w, name, by)
    if by == 0 then return end
    w.counts = read_counts(w)
    local i = COUNTERS[name]
    w.counts[i] = w.counts[i] + by
end

-- Writes what has changed. ready_changed: messages have become ready, or will be ready earlier than the processes
-- that listen know. While claims are paused, nothing is published: the queue publishes when they go on.
local function save_queue(w)
    local work = pack(WORK, w.last, w.last_claim, w.seen, w.base, w.due, w.claimed, w.delayed, w.bytes, w.claims)
    local words, at = { 'w', work }, 2
    if w.rare_changed then
        words[3], words[4], at = 'r', pack(RARE, w.dead_letters, w.in_transfer, w.transferred_at, w.transfers_since, w.feed,
            w.listeners, w.subscribers, w.feed_bytes, w.watched_until, w.unlisted), 4
    end
    if w.counts then words[at + 1], words[at + 2] = 'n', pack(COUNTS, unpack(w.counts, 1, 5)) end
    call('HSET', Q, unpack(words))
    if w.ready_changed and w.watched_until > w.now and not claims_paused(w) then publish('') end
    w.ready_changed, w.rare_changed = nil, nil
end

-- Makes Z, M and T without messages and claims. Their dummy members keep the keys in existence.
local function make_empty()
    call('HSET', M, '', '')
    call('ZADD', Z, 0, '')
    call('ZADD', T, '+inf', '')
end

-- Makes the queue, without metadata and unlisted. Its claims get greater numbers than those of a deleted queue of
-- this name (F). It always publishes, because waiters could not listen before.
local function make_queue(tag)
    local now = time_now()
    local base = tonumber(call('GET', F) or 0)
    local w = { tag = tag, settings = '', now = now, seen = now, base = now > base and now or base,
        last = 0, last_claim = 0, due = math.huge, claimed = 0, delayed = 0, bytes = 0, claims = 0,
        dead_letters = 0, in_transfer = 0, transferred_at = 0, transfers_since = 0, feed = 0, listeners = 0,
        subscribers = 0, feed_bytes = 0, watched_until = 0, unlisted = 1, paused = 0, rare_changed = true }
    call('HSET', Q, 'tag', tag, 'v', string.format('%.0f', tonumber(tag, 16) * 1048576), 'j', '', 's', '')
    call('HSET', X, '', '')
    make_empty()
    save_queue(w)
    publish('')
    return w
end

-- claimd has to look at the queue at this time (claim_ends.h), and go on until `last`, as long as there are claims. It
-- already does if an earlier look is to come. If a look is late, the process that should have listed the queue may have
-- ended, so the queue is listed again.
local function mark_due(w, ms, last)
    local text = call('HGET', Q, 'y')
    local look, old_last = unpack_struct('<dd', text or pack('<dd', math.huge, 0))
    if look > ms or w.now > look + 10000 then
        look, due_ms = ms, format('%d', ms)
    elseif old_last >= last then
        return
    end
    call('HSET', Q, 'y', pack('<dd', look, math.max(old_last, last)))
end

-- Writes the JSON, and the settings in ARGV from `from` on. The last four are the defaults of claims, what is paused
-- and the client that paused it. They have fields of their own, because an older version expects eight settings.
local function set_metadata(w, json, from)
    local set = {}
    for i = 1, 8 do
        set[i] = i == 6 and ARGV[from + 5] or tonumber(ARGV[from + i - 1])
    end
    w.settings = cmsgpack.pack(set)
    call('HSET', Q, 'j', json, 's', w.settings)
    local ttl, grace = tonumber(ARGV[from + 8]), tonumber(ARGV[from + 9])
    if ttl < 0 and grace < 0 then call('HDEL', Q, 'c') else call('HSET', Q, 'c', pack('<dd', ttl, grace)) end
    w.paused = tonumber(ARGV[from + 10])
    if w.paused == 0 then call('HDEL', Q, 'h', 'b') else call('HSET', Q, 'h', w.paused, 'b', ARGV[from + 11]) end
end

-- Settings: max_post_bytes, message_ttl, message_delay, max_claim_count, dead_letter_ttl (-1: not set), dead-letter
-- queue ('': none), transient, encrypt. (And those of read_claim_defaults(), and read_pause().) w: nil: none is set
local function read_settings(w)
    return w and w.settings ~= '' and cmsgpack.unpack(w.settings) or { -1, -1, -1, -1, -1, '', 0, 0 }
end

-- The default TTL and grace of claims of the queue in s; -1: not set.
local function read_claim_defaults()
    local text = call('HGET', Q, 'c')
    if not text then return -1, -1 end
    local ttl, grace = unpack_struct('<dd', text)
    return ttl, grace
end

-- Returns what is paused, and the last pause ('': unknown).
local function read_pause(w)
    return w.paused, w.paused > 0 and call('HGET', Q, 'b') or ''
end

-- The body of queue_update and queue_update_full.
local function update_queue(may_grow)
    local w = open_queue()
    if not w then return { NOT_FOUND } end
    local version = call('HGET', Q, 'v')
    if version ~= ARGV[2] then return { CHANGED } end
    if is_due(w) then return { EXPIRE_FIRST } end -- dead letters go by the old settings
    if not may_grow and #ARGV[3] > call('HSTRLEN', Q, 'j') then return { TOO_LARGE } end
    local was_paused = claims_paused(w)
    set_metadata(w, ARGV[3], 4)
    call('HSET', Q, 'v', string.format('%.0f', tonumber(version) + 1))
    if w.claims > 0 and tonumber(ARGV[7]) >= 0 and ARGV[9] ~= '' then mark_due(w, w.due, math.huge) end
    if was_paused and not claims_paused(w) then
        w.ready_changed = true
        save_queue(w)
    end
    return { OK }
end
