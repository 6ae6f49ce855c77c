-- Adds a subscription. If an unconfirmed one exists and confirmation is required, requests the confirmation again.
--   ARGV    tag of a new queue, 1: subscriptions must be confirmed, secret for the id of the first one, subscriber,
--           options, TTL (s)
--   returns OK, tag, 1 if the queue is unlisted, id, 1 if the subscription is new, 1 if it is confirmed
--   cost    O(log subscriptions)
--   memory  grows
if not S then return { NEEDS_FEED } end
local w = open_queue()
if not w and not F then return { NEEDS_FENCE } end
w = w or make_queue(ARGV[2])
local required = ARGV[3] == '1'
local f = read_feed(w) or make_feed(w)
remove_expired(w)
local n, s = subscription_by_subscriber(w, ARGV[5])
local created = n and 0 or 1
if not n then
    f.subscribed = f.subscribed + 1
    n = f.subscribed
    s = init_subscription(f, { secret = next_secret(ARGV[4]), started = w.now, ttl = tonumber(ARGV[7]),
        pending = required and CONFIRM + 1 or 0, subscriber = ARGV[5], options = ARGV[6] })
    add_subscription(w, f, n, s, required)
elseif required and s.confirmed == 0 then
    set_pending(w, f, n, s, CONFIRM + 1)
    save_subscription(n, s)
end
save_feed(w, f)
return { OK, w.tag, w.unlisted, id_of_subscription(n, s), created, s.confirmed }
