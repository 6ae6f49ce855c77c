-- A dead letter arrives, once: whoever brings it again finds that it did, until letter_forget.
--   ARGV    tag of a new queue, trip, id, posted, expires, client, checksum ('': none), body
--   returns OK, 1 if the queue is not listed yet, its tag | NOT_SEALED: the queue takes sealed bodies only
--   cost    O(log n)
local w = enter()
if w and call('HEXISTS', M, 'd' .. ARGV[3]) == 1 then return { OK, w.unlisted, w.tag } end
if w and settings(w)[8] == 1 and byte(ARGV[9]) ~= 1 then return { NOT_SEALED } end
if not w and not F then return { FENCE } end
w = w or create(ARGV[2])
local n, expires, forget = w.last + 1, tonumber(ARGV[6]), w.now + 604800000
local flags = FOREIGN + (ARGV[8] == '' and 0 or SUM)
call('HSET', M, n, pack(HEAD, tonumber(ARGV[5]), expires, 0, 0, 0, #ARGV[9], flags, ARGV[7]) .. ARGV[8] .. ARGV[4],
    'b' .. n, ARGV[9], 'f' .. ARGV[4], n, 'd' .. ARGV[3], '')
call('ZADD', Z, n, n)
call('ZADD', T, expires, n, forget, 'd' .. ARGV[3])
w.stirred, w.seldom = true, true
w.due = math.min(w.due, expires, forget)
w.last, w.bytes, w.letters = n, w.bytes + #ARGV[9], w.letters + 1
leave(w)
return { OK, w.unlisted, w.tag }
