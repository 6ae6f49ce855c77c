-- Takes dead letters out of X that the target of a redrive has refused, because another message of it holds their key. They
-- become dead letters again, at the end of the queue. Their old numbers are the ids of the refused transfers.
--   ARGV    transfers ...
--   cost    O(messages · log n)
local w = open_queue()
if not w then return { OK } end
local ch = changes()
for i = 2, #ARGV do
    local content = call('HGET', X, ARGV[i])
    if content then
        local _, posted, expires, count, client, name, sum, details, at = unpack_struct(MESSAGE, content, #MARK + 1)
        local id, text = sub(content, at, at + 23), at + 24 + name
        local body = sub(content, text + sum + details)
        local flags = HAS_ID + (sum > 0 and HAS_CHECKSUM or 0)
        local head = pack(HEAD, posted + 0.5, expires, 0, 0, count, #body, flags, client) .. sub(content, text, text + sum - 1)
        local n = append_message(w, ch, body, head .. id, expires, 0, 0, id)
        add_words(ch, 'hset', 'e' .. n, sub(content, text + sum, text + sum + details - 1))
        call('HDEL', X, ARGV[i])
        w.in_transfer, w.rare_changed = w.in_transfer - 1, true
    end
end
commit(w, ch)
save_queue(w)
return { OK }
