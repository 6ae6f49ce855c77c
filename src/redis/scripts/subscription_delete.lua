-- Ends a subscription.
--   ARGV    id
--   cost    O(log subscriptions)
local w = enter()
if not w or w.feed == 0 then return { OK } end
if not S then return { FEED } end
local n, s = find_subscription(w, ARGV[2])
if not n then return { OK } end
local f = feed_of(w)
remove_subscription(w, n, s)
leave_feed(w, f)
return { OK }
