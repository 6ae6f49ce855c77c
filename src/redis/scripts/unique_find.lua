-- Finds out which keys messages of the queue hold.
--   ARGV    keys ...
--   returns OK, a digit for each key (1: a message holds it)
--   cost    O(keys)
--   changes nothing
local w, held = open_queue(), {}
if w and is_due(w) then return { EXPIRE_FIRST } end
for i = 2, #ARGV do held[i - 1] = w and unique.find(ARGV[i]) and '1' or '0' end
return { OK, table.concat(held) }
