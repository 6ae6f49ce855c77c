-- Returns the messages with these ids.
--   ARGV    ids ...
--   returns OK, now, tag, [number, head, body, claim id] ...
--   cost    O(ids)
--   changes nothing
local w = open_queue()
if not w then return { OK, 0, '' } end
if is_due(w) then return { EXPIRE_FIRST } end
local out = { OK, w.now, w.tag }
for i = 2, #ARGV do
    local n = find_message(w, ARGV[i])
    if n then add_message_by_number(out, n) end
end
return out
