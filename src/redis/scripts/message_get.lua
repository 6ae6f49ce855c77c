-- Returns the messages with these ids.
--   ARGV    ids ...
--   returns OK, now, tag, [number, head, body, claim id] ...
--   cost    O(ids)
--   changes nothing
local w = open_queue()
if not w then return { OK, 0, '' } end
if is_due(w) then return { EXPIRE_FIRST } end
local out, known = { OK, w.now, w.tag }, {}
for i = 2, #ARGV do
    local n, head = find_message(w, ARGV[i])
    if head then
        local h = unpack_head(head)
        add_message(out, n, head .. details_text(n, h.posted), call('HGET', M, 'b' .. n), claim_id_of(known, h))
    end
end
return out
