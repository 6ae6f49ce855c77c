-- Returns a claim and the messages that it still holds, oldest first.
--   ARGV    id
--   returns OK, now, tag, number, base, started, ends, [number, head, body, claim id] ...
--   cost    O(messages of the claim)
--   changes nothing
local w = open_queue()
if not w then return { NOT_FOUND } end
if is_due(w) then return { EXPIRE_FIRST } end
local c = find_claim(changes(), ARGV[2])
if not c then return { NOT_FOUND } end
local out = { OK, w.now, w.tag, c.number, w.base, c.started, c.ends }
add_messages_of_claim(out, c)
return out
