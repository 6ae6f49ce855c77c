-- What is there in the queue, and when the oldest message that can be claimed was posted.
--   returns OK, now, ready, held, delayed, dead letters, claims, bytes, ms (0: there is none), who is
--           subscribed, bytes of the feed, ms since there are dead letters on their way
--   cost    O(log n), and a slice of what is due
local w = enter()
if not w then return { NOT_FOUND } end
settle(w)
local oldest = call('ZRANGEBYSCORE', Z, '(0', BELOW_HELD, 'LIMIT', 0, 1)[1]
local total = call('ZCARD', Z) - 1
return { OK, w.now, total - w.held - w.delayed, w.held, w.delayed, w.letters, w.claims, w.bytes,
    oldest and head_of(call('HGET', M, oldest)).posted or 0, w.subscribers, w.feed_bytes,
    w.outgoing > 0 and w.now - w.since or 0 }
