-- Renews the lease of a delivery.
--   ARGV    id, token, the lease (ms)
--   cost    O(log subscriptions)
local w = enter()
if not w or w.feed == 0 then return { OK } end
if not S then return { FEED } end
local n, s = find_subscription(w, ARGV[2])
if n and s.state == LEASED and s.token == tonumber(ARGV[3]) then due_at(n, w.now + tonumber(ARGV[4])) end
return { OK }
