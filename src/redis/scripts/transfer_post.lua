-- Adds the messages of a post that was in transfer, once. Until some time after transfer_forget, the queue remembers
-- that they have arrived. It accepts them also while posts are paused.
--   ARGV    as message_post, with the transfer instead of the size. It takes the place of no message
--   returns OK, tag, number of the first message, 1 if the queue is unlisted, 1 if an idle subscription is due now [, id of
--           the message that held the key, so that the script has dropped that of the transfer] | NOT_SEALED: the queue
--           accepts encrypted bodies only
--   cost    O(messages)
local w, transfer = open_queue(), 'd' .. ARGV[4]
local arrived = w and call('HGET', M, transfer)
if arrived and #arrived == 24 then return { OK, w.tag, 0, w.unlisted, 0, arrived } end
if arrived then return { OK, w.tag, arrived, w.unlisted, 0 } end
if not w and not F then return { NEEDS_FENCE } end
w = w or make_queue(ARGV[2])
local set, ch = read_settings(w), changes()
local refusal = post_refusal(w, set)
if refusal then return { refusal } end
if ARGV[8] ~= '' and not expire_due(w) then return { EXPIRE_FIRST } end
local existing = existing_message(w)
add_words(ch, 'hset', transfer, existing or digits(w.last + 1))
add_deadline(ch, w.now + 604800000, transfer)
if existing then
    commit(w, ch)
    save_queue(w)
    return { OK, w.tag, 0, w.unlisted, 0, existing }
end
local first, tells = post_messages(w, set, ch)
return { OK, w.tag, first, w.unlisted, tells }
