-- Removes a queue with all it has. Dead letters that are on their way must have arrived first.
--   returns OK, tag if there was one | AGAIN, '', letters ...
--   cost    O(1): Redis frees in the background
local w = enter()
if not w then return { OK } end
if w.outgoing > 0 then return { AGAIN, w.tag, unpack(some_dead_letters()) } end
if w.feed == 1 and not S then return { FEED } end
call('SET', F, w.base + math.ceil((w.last_claim + 1) / 4096), 'PX', 604800000)
call('UNLINK', Q, Z, M, T, X)
if w.feed == 1 then call('UNLINK', S, U) end
if w.watched > w.now then say('gone') end
return { OK, w.tag }
