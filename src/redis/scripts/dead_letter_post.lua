-- A dead letter arrives, once: posted again, it is found to have arrived, until some time behind
-- transfer_forget.
--   ARGV    tag of a new queue, transfer, id, posted, expires, client, checksum ('': none), body
--   returns OK, 1 if the queue is not listed yet, its tag | NOT_SEALED: the queue takes sealed bodies only
--   cost    O(log n)
local w = enter()
if w and call('HEXISTS', M, 'd' .. ARGV[3]) == 1 then return { OK, w.unlisted, w.tag } end
if w and settings(w)[8] == 1 and byte(ARGV[9]) ~= 1 then return { NOT_SEALED } end
if not w and not F then return { FENCE } end
w = w or create(ARGV[2])
local ch, transfer, id, expires, sum, body = changes(), 'd' .. ARGV[3], ARGV[4], tonumber(ARGV[6]), ARGV[8], ARGV[9]
local flags = FOREIGN + (sum == '' and 0 or SUM)
place(w, ch, body, pack(HEAD, tonumber(ARGV[5]), expires, 0, 0, 0, #body, flags, ARGV[7]) .. sum .. id, expires, 0, 0, id)
put(ch, 'hset', transfer, '')
falls_due(ch, w.now + 604800000, transfer)
commit(w, ch)
leave(w)
return { OK, w.unlisted, w.tag }
