-- Deletes a subscription.
--   ARGV    id
--   cost    O(log subscriptions)
local w = open_queue()
if not w or w.feed == 0 then return { OK } end
if not S then return { NEEDS_FEED } end
local n, s = subscription_by_id(w, ARGV[2])
if not n then return { OK } end
local f = read_feed(w)
remove_subscription(w, n, s)
save_feed(w, f)
return { OK }
