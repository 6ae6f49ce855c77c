-- Adds messages, in order.
--   ARGV    tag of a new queue ('': do not make it), client, size of the request, default TTL and delay, maximum size
--           of a feed (0: unlimited), then for each message: TTL, delay (-1: not given), body, checksum ('': none)
--   returns OK, tag, number of the first message, 1 if the queue is unlisted, 1 if an idle subscription is due now | PAUSED |
--           NEVER_READY: a delay is not shorter than its TTL
--   keyed
--   cost    O(messages)
--   memory  grows
local w = open_queue()
local set = read_settings(w)
if not w and ARGV[2] == '' then return { NOT_FOUND } end
if is_never_ready(set) then return { NEVER_READY } end
if not w then
    if not F then return { NEEDS_FENCE } end
    w = make_queue(ARGV[2])
end
if posts_paused(w) then return { PAUSED } end
if set[1] >= 0 and tonumber(ARGV[4]) > set[1] then return { TOO_LARGE } end
local refusal = post_refusal(w, set)
if refusal then return { refusal } end
local first, tells = post_messages(w, set, changes())
return { OK, w.tag, first, w.unlisted, tells }
