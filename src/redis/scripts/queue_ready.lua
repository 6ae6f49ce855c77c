-- Counts the ready messages, as far as claims may have them.
--   ARGV    time for which the caller listens to the channel from now on (ms; 0: it does not)
--   returns OK, number, now, when a deadline may change the number (ms; 0: never)
--   cost    O(log n), and some expired messages
local w = open_queue()
if not w then return { OK, 0, 0, 0 } end
if not expire_due(w) then return { EXPIRE_FIRST } end
local listens = tonumber(ARGV[2])
if w.watched_until < w.now + listens / 2 then
    w.watched_until, w.rare_changed = w.now + listens, true
    save_queue(w)
end
return { OK, claims_paused(w) and 0 or call('ZCOUNT', Z, '(0', BELOW_UNREADY), w.now, w.due < math.huge and w.due or 0 }
