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
for _, n in ipairs(claim_numbers(c)) do
    local text = call('HGET', M, n)
    if text and unpack_head(text).claim == c.number then add_message_by_number(out, n) end
end
return out
