-- Returns the message that holds a key.
--   ARGV    key
--   returns as message_get
--   cost    O(1)
--   changes nothing
local w = open_queue()
if not w then return { OK, 0, '' } end
if is_due(w) then return { EXPIRE_FIRST } end
local out, n, h = { OK, w.now, w.tag }, unique.find(ARGV[2])
if n then
    local found = call('HMGET', M, n, 'b' .. n)
    add_message(out, n, found[1] .. details_text(n, h.posted), found[2], claim_id_of({}, h))
end
return out
