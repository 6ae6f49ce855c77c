-- queue: what all scripts about a queue begin with. In front of a script the build puts those files of
-- this folder that its first line names, in that order; few, since each call makes their functions anew.
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
local WORK = '<ddddddddddd'
local HEAD = '<ddddI4I4Bc8'   -- posted, expires, ready at (0: it is), claim (0: none), count, bytes of the
                              -- body, flags, client
local CLAIM = '<ddI4c12'      -- started, ends, how many it holds, secret; then their numbers
local SUM, FOREIGN = 1, 2     -- flags: 16 bytes of checksum, 24 of an id stand behind the head

local function time_now()
    if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
    local t = call('TIME')
    return t[1] * 1000 + floor(t[2] / 1000)
end

-- The queue, nil if there is none; with what `work` counts. `base`: claim numbers begin behind it,
-- times 4096; `due`: no deadline is earlier.
local function enter()
    local q = call('HMGET', Q, 'w', 's', 'tag')
    if not q[1] then return nil end
    local w = { tag = q[3], settings = q[2], now = time_now() }
    w.last, w.last_claim, w.seen, w.base, w.due, w.held, w.delayed, w.bytes, w.claims, w.letters,
        w.outgoing = unpack_struct(WORK, q[1])
    if w.now < w.seen then w.now = w.seen else w.seen = w.now end
    return w
end

local function leave(w)
    call('HSET', Q, 'w', pack(WORK, w.last, w.last_claim, w.seen, w.base, w.due, w.held, w.delayed,
        w.bytes, w.claims, w.letters, w.outgoing))
end

