-- Changes a subscription.
--   ARGV    id, 1: a subscriber must confirm, 1: the subscriber changes, subscriber, 1: the options change,
--           options, ttl (s; -1: stays)
--   returns OK, when something is to be delivered (ms; lib/subscriptions.lua)
--   cost    O(log subscriptions)
--   memory  grows
local w = enter()
if not w or w.feed == 0 then return { NOT_FOUND } end
if not S then return { FEED } end
local n, s = find_subscription(w, ARGV[2])
if not n then return { NOT_FOUND } end
local f, required, ttl = feed_of(w), ARGV[3] == '1', tonumber(ARGV[8])
local subscriber = ARGV[4] == '1' and ARGV[5] or s.subscriber
local other = subscription_of(w, subscriber)
if other and other ~= n then return { CONFLICT } end
end_some(w)
s.version = s.version + 1
if ARGV[6] == '1' then s.options = ARGV[7] end
if ttl >= 0 then s.started, s.ttl = w.now, ttl end
if subscriber ~= s.subscriber then
    call('HDEL', S, 'a' .. s.subscriber)
    call('HSET', S, 'a' .. subscriber, n)
    s.subscriber, s.failed = subscriber, 0
    if required then
        s.confirmed = 0
        attach(w, f, n, s, required)
        notify(w, f, n, s, CONFIRM + 1)
    end
    if s.state == WAITS then rest(w, f, n, s) end
end
keep(n, s)
leave_feed(w, f)
return { OK, feed_when(w, f) }
