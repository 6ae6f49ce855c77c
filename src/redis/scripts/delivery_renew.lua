-- Renews the lease of a delivery.
--   ARGV    id, token, length of the lease (ms)
--   cost    O(log subscriptions)
local w = open_queue()
if not w or w.feed == 0 then return { OK } end
if not S then return { NEEDS_FEED } end
local n, s = subscription_by_id(w, ARGV[2])
if n and s.state == LEASED and s.token == tonumber(ARGV[3]) then schedule_at(n, w.now + tonumber(ARGV[4])) end
return { OK }
