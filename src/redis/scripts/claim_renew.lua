-- Renews a claim.
--   ARGV    id, terms (lib/messages.lua), Client-ID
--   returns OK, number, base
--   cost    O(messages of the claim · log n)
local w = open_queue()
if not w then return { NOT_FOUND } end
if not expire_due(w) then return { EXPIRE_FIRST } end
local ch = changes()
local c = find_claim(ch, ARGV[2])
if not c then return { NOT_FOUND } end
local ttl, life = read_terms(3)
renew_claim(w, ch, c, ttl, life, ARGV[6])
save_queue(w)
return { OK, c.number, w.base }
