-- What the queue has, when the oldest message that can be claimed was posted, and when the oldest
-- claim was created.
--   returns OK, now, ready, held, delayed, dead letters, claims, bytes, ms (0: there is none), number of
--           subscriptions, bytes of the feed, ms since there are dead letters on their way, ms (0: no claim),
--           how many messages expired, unread ones, dead letters
--   cost    O(log n), and a slice of what is due
local w = enter()
if not w then return { NOT_FOUND } end
settle(w)
local oldest = call('ZRANGEBYSCORE', Z, '(0', BELOW_HELD, 'LIMIT', 0, 1)[1]
local expired = call('HMGET', Q, 'x', 'xu', 'xl')
local total = call('ZCARD', Z) - 1
return { OK, w.now, total - w.held - w.delayed, w.held, w.delayed, w.letters, w.claims, w.bytes,
    oldest and head_of(call('HGET', M, oldest)).posted or 0, w.subscribers, w.feed_bytes,
    w.outgoing > 0 and w.now - w.since or 0, w.claims > 0 and oldest_claim() or 0,
    expired[1] or 0, expired[2] or 0, expired[3] or 0 }
