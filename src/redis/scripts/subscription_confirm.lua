-- Confirms a subscription, or removes the confirmation and notifies the subscriber.
--   ARGV    id, 1: subscriptions must be confirmed, 1: it is confirmed
--   returns OK, when there is something to do (ms; lib/subscriptions.lua)
--   cost    O(log subscriptions)
local w = open_queue()
if not w or w.feed == 0 then return { NOT_FOUND } end
if not S then return { NEEDS_FEED } end
local n, s = subscription_by_id(w, ARGV[2])
if not n then return { NOT_FOUND } end
local f = read_feed(w)
s.confirmed = ARGV[4] == '1' and 1 or 0
update_attached(w, f, n, s, ARGV[3] == '1')
if s.confirmed == 0 then
    set_pending(w, f, n, s, UNSUBSCRIBED + 1)
elseif s.pending == CONFIRM + 1 then
    set_pending(w, f, n, s, 0)
end
save_subscription(n, s)
save_feed(w, f)
return { OK, next_due(w, f) }
