-- Adds a subscription. An unconfirmed one is asked again, if confirmation is required.
--   ARGV    tag of a new queue, 1: it must be confirmed, what the id of the first one begins with, subscriber, options,
--           ttl (s)
--   returns OK, tag, 1 if the queue is not listed yet, id, 1 if the subscription is new, 1 if it is confirmed
--   cost    O(log subscriptions)
--   memory  grows
if not S then return { FEED } end
local w = enter()
if not w and not F then return { FENCE } end
w = w or create(ARGV[2])
local required = ARGV[3] == '1'
local f = feed_of(w) or feed_make(w)
end_some(w)
local n, s = subscription_of(w, ARGV[5])
local created = n and 0 or 1
if not n then
    f.subscribed = f.subscribed + 1
    n = f.subscribed
    s = new_subscription(f, { secret = next_secret(ARGV[4]), started = w.now, ttl = tonumber(ARGV[7]),
        pending = required and CONFIRM + 1 or 0, subscriber = ARGV[5], options = ARGV[6] })
    subscribe(w, f, n, s, required)
elseif required and s.confirmed == 0 then
    notify(w, f, n, s, CONFIRM + 1)
    keep(n, s)
end
leave_feed(w, f)
return { OK, w.tag, w.unlisted, id_of_subscription(n, s), created, s.confirmed }
