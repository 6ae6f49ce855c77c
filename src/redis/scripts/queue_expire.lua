-- Expires some of what is due, and moves dead letters of expired claims.
--   ARGV    name of the queue, minimum TTL of dead letters (s)
--   returns OK, [transfer, what is in it] ...
--   cost    O(log n), 64 dead letters at most
local w, out = open_queue(), { OK }
if w then expire_due(w, letter_mover(w, out, ARGV[2], tonumber(ARGV[3]))) end
return out
