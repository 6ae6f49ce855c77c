-- Returns a subscription.
--   ARGV    id
--   returns OK, now, the words of add_subscription_words()
--   cost    O(1)
--   changes nothing
local w = open_queue()
if not w or w.feed == 0 then return { NOT_FOUND } end
if not S then return { NEEDS_FEED } end
local n, s = subscription_by_id(w, ARGV[2])
if not n then return { NOT_FOUND } end
local out = { OK, w.now }
add_subscription_words(out, read_feed(w), n, s)
return out
