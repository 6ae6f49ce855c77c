-- Stores the outcome of a leased delivery (enum store_outcome).
--   ARGV    id, token, version, notice, ordinal, outcome, ms until the retry
--   returns OK, when there is something to do (ms; lib/subscriptions.lua)
--   cost    O(log subscriptions)
local DELIVERED, FAILED, BACKED_OFF, PERMANENT_FAILURE, GONE = 0, 1, 2, 3, 4
local w = open_queue()
if not w or w.feed == 0 then return { OK, -1 } end
if not S then return { NEEDS_FEED } end
local f = read_feed(w)
local n, s = subscription_by_id(w, ARGV[2])
if not n or s.state ~= LEASED or s.token ~= tonumber(ARGV[3]) then return { OK, next_due(w, f) } end
local notice, ordinal, outcome, wait = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])

-- The attempt was not the last one.
local function keep_for_retry()
    local same, other = s.version == tonumber(ARGV[4]), s.pending > 0
    local overtaken = notice == CONFIRM and s.confirmed == 1
    if outcome == FAILED then
        s.failures = s.failures + 1
        s.failed = same and not other and not overtaken and s.failed + 1 or 0
        s.failed_at = notice == DELIVER and ordinal or 0
    end
    if notice ~= DELIVER and not other and not overtaken then s.pending = notice + 1 end
    if wait <= 0 or not same or other then
        update_schedule(w, f, n, s)
    else
        s.state, s.again = BACKING_OFF, w.now + wait
        schedule_at(n, s.again)
    end
end

-- The message was delivered, or never will be.
local function finish_delivery()
    s.failed = 0
    if notice == DELIVER then
        advance_cursor(n, s, ordinal)
        local which = outcome == DELIVERED and 'delivered' or 'permanent_failures'
        s[which] = s[which] + 1
    end
    update_schedule(w, f, n, s)
end

if outcome == GONE then
    remove_subscription(w, n, s)
else
    if outcome == FAILED or outcome == BACKED_OFF then keep_for_retry() else finish_delivery() end
    save_subscription(n, s)
end
save_feed(w, f)
return { OK, next_due(w, f) }
