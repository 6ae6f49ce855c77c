-- create: a queue that was not there.

-- No messages, no claims.
local function empty()
    call('HSET', M, '', '')
    call('ZADD', Z, 0, '')
    call('ZADD', T, '+inf', '')
end

-- Makes the queue, without metadata, not in the list of its project yet. What was left of an
-- earlier one of this name (F) says behind which number its claims begin. Those who waited for it
-- are told in any case: they could not say so.
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

