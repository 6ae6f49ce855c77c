-- Deletes a queue. Its transfers must have arrived first.
--   returns OK, tag if there was a queue | AGAIN, tag, [transfer, what is in it] ...
--   cost    O(1): Redis frees in the background
local w = open_queue()
if not w then return { OK } end
if w.in_transfer > 0 then return { AGAIN, w.tag, unpack(random_transfers()) } end
if w.feed == 1 and not S then return { NEEDS_FEED } end
call('SET', F, w.base + math.ceil((w.last_claim + 1) / 4096), 'PX', 604800000)
call('UNLINK', Q, Z, M, T, X)
if w.feed == 1 then call('UNLINK', S, U) end
if w.watched_until > w.now then publish('gone') end
return { OK, w.tag }
