-- Adds a dead letter once. Until some time after transfer_forget, the queue remembers that it has arrived.
--   ARGV    tag of a new queue, transfer, id, posted, expires, client, checksum ('': none), body
--   returns OK, 1 if the queue is unlisted, its tag | NOT_SEALED: the queue accepts encrypted bodies only
--   cost    O(log n)
local w = open_queue()
if w and call('HEXISTS', M, 'd' .. ARGV[3]) == 1 then return { OK, w.unlisted, w.tag } end
if w and read_settings(w)[8] == 1 and byte(ARGV[9]) ~= 1 then return { NOT_SEALED } end
if not w and not F then return { NEEDS_FENCE } end
w = w or make_queue(ARGV[2])
local ch, transfer, id, expires, sum, body = changes(), 'd' .. ARGV[3], ARGV[4], tonumber(ARGV[6]), ARGV[8], ARGV[9]
local flags = HAS_ID + (sum == '' and 0 or HAS_CHECKSUM)
append_message(w, ch, body, pack(HEAD, tonumber(ARGV[5]), expires, 0, 0, 0, #body, flags, ARGV[7]) .. sum .. id, expires, 0, 0, id)
add_words(ch, 'hset', transfer, '')
add_deadline(ch, w.now + 604800000, transfer)
commit(w, ch)
save_queue(w)
return { OK, w.unlisted, w.tag }
