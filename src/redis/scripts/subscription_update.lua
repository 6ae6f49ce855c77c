-- Changes a subscription.
--   ARGV    id, 1: subscriptions must be confirmed, 1: the subscriber changes, subscriber, 1: the options change,
--           options, TTL (s; -1: unchanged)
--   returns OK, when there is something to do (ms; lib/subscriptions.lua)
--   cost    O(log subscriptions)
--   memory  grows
local w = open_queue()
if not w or w.feed == 0 then return { NOT_FOUND } end
if not S then return { NEEDS_FEED } end
local n, s = subscription_by_id(w, ARGV[2])
if not n then return { NOT_FOUND } end
local f, required, ttl = read_feed(w), ARGV[3] == '1', tonumber(ARGV[8])
local subscriber = ARGV[4] == '1' and ARGV[5] or s.subscriber
local other = subscription_by_subscriber(w, subscriber)
if other and other ~= n then return { CONFLICT } end
remove_expired(w)
s.version = s.version + 1
if ARGV[6] == '1' then s.options = ARGV[7] end
if ttl >= 0 then s.started, s.ttl = w.now, ttl end
if subscriber ~= s.subscriber then
    call('HDEL', S, 'a' .. s.subscriber)
    call('HSET', S, 'a' .. subscriber, n)
    s.subscriber, s.failed = subscriber, 0
    if required then
        s.confirmed = 0
        update_attached(w, f, n, s, required)
        set_pending(w, f, n, s, CONFIRM + 1)
    end
    if s.state == BACKING_OFF then update_schedule(w, f, n, s) end
end
save_subscription(n, s)
save_feed(w, f)
return { OK, next_due(w, f) }
