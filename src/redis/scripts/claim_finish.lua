-- Deletes, releases and dead-letters messages of a claim, and renews it. All or nothing if `atomic`.
--   ARGV    id, 1: atomic, 1: only check, name of the queue, minimum TTL of dead letters (s), maximum TTL of a message
--           (ms), client for reasons, TTL of the renewed claim (ms; -1: do not renew), minimum lifetime of its messages
--           (ms), its Client-ID, number of posts, the posts (lib/outbox.lua) ...; for each message: action (enum
--           store_finish_action), id, delay (s), reason ('': none), 1: the delivery does not count
--   returns OK | NOT_CLAIMED, a digit for each message (1: held), tag, number (0: not renewed), base, number of
--           the first transfer of the posts; [ms since the claim, claim count] of each deleted message ...; '', [transfer, what is
--           in it] of each dead letter ...
--   cost    O(messages · log n)
return finish_claim()
