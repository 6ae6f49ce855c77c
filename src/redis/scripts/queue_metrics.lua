-- Returns the metrics of a queue.
--   ARGV    1: also if dead letters of expired claims have not moved
--   returns OK, now, ready, claimed, delayed, dead letters, claims, bytes, when the oldest ready message was posted
--   (ms; 0:
--           none), subscriptions, bytes of the feed, ms since X has dead letters, when the oldest claim was created
--           (ms; 0: none), number of expired messages, of unread ones, of dead letters, dead-letter queue ('': none), what is paused, counters
--           (enum store_queue_counter)
--   cost    O(log n), and some expired messages
local w = open_queue()
if not w then return { NOT_FOUND } end
if not expire_due(w) and w.has_letters and ARGV[2] == '0' then return { EXPIRE_FIRST } end
local oldest = call('ZRANGEBYSCORE', Z, '(0', BELOW_UNREADY, 'LIMIT', 0, 1)[1]
local expired = call('HMGET', Q, 'x', 'xu', 'xl', 'p')
local total = call('ZCARD', Z) - 1
return { OK, w.now, total - w.claimed - w.delayed, w.claimed, w.delayed, count_dead_letters(w, expired[4]), w.claims, w.bytes,
    oldest and unpack_head(call('HGET', M, oldest)).posted or 0, w.subscribers, w.feed_bytes,
    w.in_transfer > 0 and w.now - w.transfers_since or 0, w.claims > 0 and oldest_claim_created() or 0,
    expired[1] or 0, expired[2] or 0, expired[3] or 0, read_settings(w)[6], w.paused, unpack(read_counts(w), 1, 5) }
