-- Adds a message that was in transfer from another queue, once. Until some time after transfer_forget, the queue
-- remembers that it has arrived.
--   ARGV    tag of a new queue, transfer, id, posted, expires, client, checksum ('': none), body, details ('': none),
--           claim count, -1: it is a dead letter; else: it is put back, and the default TTL (s)
--   returns OK, 1 if the queue is unlisted, its tag | NOT_SEALED: the queue accepts encrypted bodies only
--   cost    O(log n)
local w = open_queue()
if w and call('HEXISTS', M, 'd' .. ARGV[3]) == 1 then return { OK, w.unlisted, w.tag } end
local set = w and read_settings(w)
if w and set[8] == 1 and byte(ARGV[9]) ~= 1 then return { NOT_SEALED } end
if not w and not F then return { NEEDS_FENCE } end
w = w or make_queue(ARGV[2])
local ch, transfer, id, sum, body, details = changes(), 'd' .. ARGV[3], ARGV[4], ARGV[8], ARGV[9], ARGV[10]
local posted, expires, ttl = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[12])
local flags = HAS_ID + (sum == '' and 0 or HAS_CHECKSUM)
if ttl >= 0 then
    if set and set[2] >= 0 then ttl = set[2] end
    flags, posted, expires = flags + RETURNED, w.now, math.max(expires, deadline(w, 1000 * ttl))
    count_returned(1)
end
if details ~= '' then posted = posted + 0.5 end
local n = append_message(w, ch, body, pack(HEAD, posted, expires, 0, 0, tonumber(ARGV[11]), #body, flags, ARGV[7]) ..
    sum .. id, expires, 0, 0, id)
if details ~= '' then add_words(ch, 'hset', 'e' .. n, details) end
add_words(ch, 'hset', transfer, '')
add_deadline(ch, w.now + 604800000, transfer)
commit(w, ch)
save_queue(w)
return { OK, w.unlisted, w.tag }
