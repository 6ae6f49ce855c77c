-- One subscription.
--   ARGV    id
--   returns OK, now, what lib/subscriptions.lua shows
--   cost    O(1)
--   changes nothing
local w = enter()
if not w or w.feed == 0 then return { NOT_FOUND } end
if not S then return { FEED } end
local n, s = find_subscription(w, ARGV[2])
if not n then return { NOT_FOUND } end
local out = { OK, w.now }
show_subscription(out, feed_of(w), n, s)
return out
