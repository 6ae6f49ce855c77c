-- Needs: queue create settings
--
-- A dead letter arrives, once: whoever brings it again finds it there.
--   ARGV    tag of a new queue, id, posted, expires, client, checksum ('': none), body
--   returns OK, 1 if the queue is new, its tag | NOT_SEALED: the queue takes sealed bodies only
--   cost    O(log n)
local w = enter()
local made = 0
if not w then w, made = create(ARGV[2]), 1 end
if call('HEXISTS', M, 'f' .. ARGV[3]) == 1 then return { OK, made, w.tag } end
if settings(w)[8] == 1 and byte(ARGV[8]) ~= 1 then return { NOT_SEALED } end
local n, expires = w.last + 1, tonumber(ARGV[5])
local flags = FOREIGN + (ARGV[7] == '' and 0 or SUM)
call('HSET', M, n, pack(HEAD, tonumber(ARGV[4]), expires, 0, 0, 0, #ARGV[8], flags, ARGV[6]) .. ARGV[7] .. ARGV[3],
    'b' .. n, ARGV[8], 'f' .. ARGV[3], n)
call('ZADD', Z, n, n)
call('ZADD', T, expires, n)
w.due = math.min(w.due, expires)
w.last, w.bytes, w.letters = n, w.bytes + #ARGV[8], w.letters + 1
leave(w)
return { OK, made, w.tag }
