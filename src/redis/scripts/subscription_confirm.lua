-- Confirms a subscription, or takes that back and has its subscriber told.
--   ARGV    id, 1: it must be confirmed to get messages, 1: it is confirmed
--   returns OK, when something is to be delivered (ms; lib/subscriptions.lua)
--   cost    O(log subscriptions)
local w = enter()
if not w or w.feed == 0 then return { NOT_FOUND } end
if not S then return { FEED } end
local n, s = find_subscription(w, ARGV[2])
if not n then return { NOT_FOUND } end
local f = feed_of(w)
s.confirmed = ARGV[4] == '1' and 1 or 0
attach(w, f, n, s, ARGV[3] == '1')
if s.confirmed == 0 then
    notify(w, f, n, s, UNSUBSCRIBED + 1)
elseif s.pending == CONFIRM + 1 then
    notify(w, f, n, s, 0)
end
keep(n, s)
leave_feed(w, f)
return { OK, feed_when(w, f) }
