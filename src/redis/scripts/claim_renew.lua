-- Renews a claim.
--   ARGV    id, TTL, minimum lifetime of its messages (ms), Client-ID
--   returns OK, number, base
--   cost    O(messages of the claim · log n)
local w = open_queue()
if not w then return { NOT_FOUND } end
if not expire_due(w) then return { EXPIRE_FIRST } end
local ch = changes()
local c = find_claim(ch, ARGV[2])
if not c then return { NOT_FOUND } end
renew_claim(w, ch, c, tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5])
save_queue(w)
return { OK, c.number, w.base }
