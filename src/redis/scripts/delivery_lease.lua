-- Leases due deliveries to a process that reports the outcome before the lease ends.
--   ARGV    how many, the lease (ms)
--   returns OK, now, when there is more to do (ms; lib/subscriptions.lua), the queue's document, then of each:
--           id, token, version, notice, subscriber, options, end, failed, ordinal, body, ttl, delay
--   cost    O(how many · log subscriptions), and a slice of what has fallen out
local w = enter()
if not w or w.feed == 0 then return { OK, 0, -1, '' } end
if not S then return { FEED } end
local f, limit, lease, budget = feed_of(w), tonumber(ARGV[2]), tonumber(ARGV[3]), 256
local out, leased = { OK, w.now, 0, call('HGET', Q, 'j') }, 0
end_some(w)

-- The first message that has not expired; those in front of it have fallen out.
local function find_message(n, s)
    local ordinal = next_of(f, s)
    while ordinal and budget > 0 do
        local entry = call('HGET', S, 'e' .. ordinal)
        local expires, ttl, delay, at = unpack_struct('<ddd', entry)
        if w.now < expires then return ordinal, sub(entry, at), ttl, delay end
        budget = budget - 1
        pass(n, s, ordinal)
        s.fallen = s.fallen + 1
        ordinal = next_of(f, s)
    end
end

local function lease_one(n)
    local s = subscription(w, n)
    if not s then return end
    local notice, ordinal, body, ttl, delay = DELIVER, 0, '', 0, 0
    if s.pending > 0 then
        notice, s.pending = s.pending - 1, 0
    else
        if s.failed_at > 0 and next_of(f, s) ~= s.failed_at then s.failed = 0 end
        ordinal, body, ttl, delay = find_message(n, s)
        if not ordinal then
            rest(w, f, n, s)
            keep(n, s)
            return
        end
    end
    f.tokens = f.tokens + 1
    s.state, s.notice, s.token, leased = LEASED, notice, f.tokens, leased + 1
    due_at(n, w.now + lease)
    keep(n, s)
    for _, value in ipairs({ id_of_subscription(n, s), s.token, s.version, notice, s.subscriber, s.options, s.ends,
        s.failed, ordinal, body, ttl, delay }) do
        out[#out + 1] = value
    end
end

-- Half of them are deliveries that were due before, so that none waits forever. If the lease of one has ended,
-- the process that had it has gone.
local function lease_some(base, to, count)
    for _, member in ipairs(range(base, to, 'LIMIT', 0, count)) do
        if leased == limit or budget <= 0 then return end
        local n = tonumber(sub(member, 2))
        local s = subscription(w, n)
        if s and s.state == LEASED and s.notice ~= DELIVER and s.pending == 0 and
            not (s.notice == CONFIRM and s.confirmed == 1) then
            s.pending = s.notice + 1
            keep(n, s)
        end
        lease_one(n)
    end
end

lease_some(DUE, DUE + w.now + 1, math.max(1, floor(limit / 2)))
lease_some(IDLE, IDLE + f.last, limit)
lease_some(DUE, DUE + w.now + 1, limit)
leave_feed(w, f)
out[3] = feed_when(w, f)
return out
