-- Adds the messages of a post that was in transfer, once. Until some time after transfer_forget, the queue remembers
-- that they have arrived. It accepts them also while posts are paused.
--   ARGV    as message_post, with the transfer instead of the size
--   returns OK, tag, number of the first message, 1 if the queue is unlisted, 1 if an idle subscription is due now |
--           NOT_SEALED: the queue accepts encrypted bodies only
--   cost    O(messages)
local w, transfer = open_queue(), 'd' .. ARGV[4]
local arrived = w and call('HGET', M, transfer)
if arrived then return { OK, w.tag, arrived, w.unlisted, 0 } end
if not w and not F then return { NEEDS_FENCE } end
w = w or make_queue(ARGV[2])
local set, ch = read_settings(w), changes()
local refusal = post_refusal(w, set)
if refusal then return { refusal } end
add_words(ch, 'hset', transfer, digits(w.last + 1))
add_deadline(ch, w.now + 604800000, transfer)
local first, tells = post_messages(w, set, ch)
return { OK, w.tag, first, w.unlisted, tells }
