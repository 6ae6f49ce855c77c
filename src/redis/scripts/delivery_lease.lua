-- Leases due deliveries to a process, which reports the outcome before the lease ends.
--   ARGV    limit, length of the lease (ms)
--   returns OK, now, when there is something to do (ms; lib/subscriptions.lua), JSON of the queue, then for each
--   delivery:
--           id, token, version, notice, subscriber, options, end, failed, ordinal, body, TTL, delay
--   cost    O(limit · log subscriptions), and some dropped messages
local w = open_queue()
if not w or w.feed == 0 then return { OK, 0, -1, '' } end
if not S then return { NEEDS_FEED } end
local f, limit, lease, budget = read_feed(w), tonumber(ARGV[2]), tonumber(ARGV[3]), 256
local out, leased = { OK, w.now, 0, call('HGET', Q, 'j') }, 0
remove_expired(w)

-- The first message that has not expired. Drops those before it.
local function find_message(n, s)
    local ordinal = next_ordinal(f, s)
    while ordinal and budget > 0 do
        local entry = call('HGET', S, 'e' .. ordinal)
        local expires, ttl, delay, at = unpack_struct('<ddd', entry)
        if w.now < expires then return ordinal, sub(entry, at), ttl, delay end
        budget = budget - 1
        advance_cursor(n, s, ordinal)
        s.dropped = s.dropped + 1
        ordinal = next_ordinal(f, s)
    end
end

local function lease_one(n)
    local s = subscription_by_number(w, n)
    if not s then return end
    local notice, ordinal, body, ttl, delay = DELIVER, 0, '', 0, 0
    if s.pending > 0 then
        notice, s.pending = s.pending - 1, 0
    else
        if s.failed_at > 0 and next_ordinal(f, s) ~= s.failed_at then s.failed = 0 end
        ordinal, body, ttl, delay = find_message(n, s)
        if not ordinal then
            update_schedule(w, f, n, s)
            save_subscription(n, s)
            return
        end
    end
    f.tokens = f.tokens + 1
    s.state, s.notice, s.token, leased = LEASED, notice, f.tokens, leased + 1
    schedule_at(n, w.now + lease)
    save_subscription(n, s)
    for _, value in ipairs({ id_of_subscription(n, s), s.token, s.version, notice, s.subscriber, s.options, s.ends,
        s.failed, ordinal, body, ttl, delay }) do
        out[#out + 1] = value
    end
end

-- Leases deliveries of a range of U. If the lease of a notice has ended, its process has ended, and the notice
-- becomes pending again.
local function lease_some(base, to, count)
    for _, member in ipairs(subscriptions_in(base, to, 'LIMIT', 0, count)) do
        if leased == limit or budget <= 0 then return end
        local n = tonumber(sub(member, 2))
        local s = subscription_by_number(w, n)
        if s and s.state == LEASED and s.notice ~= DELIVER and s.pending == 0 and
            not (s.notice == CONFIRM and s.confirmed == 1) then
            s.pending = s.notice + 1
            save_subscription(n, s)
        end
        lease_one(n)
    end
end

-- Half of the deliveries are those that were due before, so that none waits forever.
lease_some(DUE, DUE + w.now + 1, math.max(1, floor(limit / 2)))
lease_some(IDLE, IDLE + f.last, limit)
lease_some(DUE, DUE + w.now + 1, limit)
save_feed(w, f)
out[3] = next_due(w, f)
return out
