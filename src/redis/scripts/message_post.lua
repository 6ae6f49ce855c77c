-- Adds messages, in order.
--   ARGV    tag of a new queue ('': do not make it), client, size of the request, default TTL and delay, maximum size
--           of a feed (0: unlimited), details with the key of the only message ('': it has none), id of the message with
--           this key whose place it takes ('': none), end of its delay (ms; 0: by its delay), then for each message:
--           TTL, delay (-1: not given), body, checksum ('': none)
--   returns OK, tag, number of the first message, 1 if the queue is unlisted, 1 if an idle subscription is due now [, id of
--           the message that holds the key: the script has added none] | PAUSED | NEVER_READY: a delay is not shorter
--           than its TTL | CHANGED: the message whose place it takes does not hold the key
--   keyed
--   cost    O(messages)
--   memory  grows
local w, replaces = open_queue(), ARGV[9]
local set = read_settings(w)
if not w and replaces ~= '' then return { CHANGED } end
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
if ARGV[8] ~= '' and not expire_due(w) then return { EXPIRE_FIRST } end
local existing, n, h = existing_message(w)
if replaces ~= '' then
    if existing ~= replaces then return { CHANGED } end
    remove_replaced(w, n, h)
elseif existing then
    return { OK, w.tag, 0, w.unlisted, 0, existing }
end
local first, tells = post_messages(w, set, changes())
return { OK, w.tag, first, w.unlisted, tells }
