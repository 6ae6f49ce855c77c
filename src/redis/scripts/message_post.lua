-- Adds messages, in order.
--   ARGV    tag of a new queue ('': do not make it), client, size of the request, default TTL and delay, maximum size
--           of a feed (0: unlimited), then for each message: TTL, delay (-1: not given), body, checksum ('': none)
--   returns OK, tag, number of the first message, 1 if the queue is unlisted, 1 if an idle subscription is due now
--   cost    O(messages)
--   memory  grows
local w = open_queue()
if not w then
    if ARGV[2] == '' then return { NOT_FOUND } end
    if not F then return { NEEDS_FENCE } end
    w = make_queue(ARGV[2])
end
local set = read_settings(w)
if set[1] >= 0 and tonumber(ARGV[4]) > set[1] then return { TOO_LARGE } end
if set[8] == 1 then
    for i = 10, #ARGV, 4 do
        if byte(ARGV[i]) ~= 1 then return { NOT_SEALED } end
    end
end
local listened = w.listeners > 0
if listened and not S then return { NEEDS_FEED } end
local ttl = set[2] >= 0 and set[2] or tonumber(ARGV[5])
local delay = set[3] >= 0 and set[3] or tonumber(ARGV[6])
local ch, client, now, first = changes(), ARGV[3], w.now, w.last + 1
local f, tells = listened and read_feed(w), 0
if f and #subscriptions_in(IDLE, IDLE + f.last + 1, 'LIMIT', 0, 1) > 0 then tells = 1 end
for i = 8, #ARGV, 4 do
    local own_ttl, own_delay = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
    local body, sum = ARGV[i + 2], ARGV[i + 3]
    local life = own_ttl >= 0 and own_ttl or ttl
    local expires = deadline(w, 1000 * life)
    local wait = own_delay >= 0 and own_delay or delay
    local ready = wait > 0 and math.min(deadline(w, 1000 * wait), expires) or 0
    local head = pack(HEAD, now, expires, ready, 0, 0, #body, sum == '' and 0 or HAS_CHECKSUM, client) .. sum
    append_message(w, ch, body, head, expires, ready, 0)
    if f then feed_append(f, expires, life, math.max(wait, 0), body, tonumber(ARGV[7])) end
end
commit(w, ch)
if f then save_feed(w, f) else save_queue(w) end
return { OK, w.tag, first, w.unlisted, tells }
