-- Adds messages that were in transfer from another queue, each once. Until some time after transfer_forget, the queue
-- remembers that they have arrived. It refuses a message that is put back if another one holds its key. It remembers
-- that likewise, so that all processes that send the message get the same response.
--   ARGV    tag of a new queue; -1: they are dead letters; else: they are put back, and the default TTL (s);
--           maximum size of the feed (bytes); transfer, id, posted, expires, client, checksum ('': none), body, details
--           ('': none), claim count ...
--   returns OK, 1 if the queue is unlisted, its tag, 1 if an idle subscription is due now, refused transfers ... | NOT_SEALED: the queue accepts encrypted bodies only
--   cost    O(messages · log n)
local w, ttl, new, seen, refused, unique_new = open_queue(), tonumber(ARGV[3]), {}, {}, {}, {}
for i = 5, #ARGV, 9 do
    local transfer, details = ARGV[i], ARGV[i + 7]
    local arrived = w and call('HGET', M, 'd' .. transfer)
    if arrived == '-' then refused[#refused + 1] = transfer end
    if not seen[transfer] and not arrived then
        new[#new + 1] = i
        local d = ttl >= 0 and details ~= '' and unpack_details(details)
        if d and d.key ~= '' then unique_new[i] = d end
    end
    seen[transfer] = true
end
if #new == 0 then return { OK, w.unlisted, w.tag, 0, unpack(refused) } end
if w and next(unique_new) and not expire_due(w) then return { EXPIRE_FIRST } end
local set = w and read_settings(w)
for _, i in ipairs(new) do
    if set and set[8] == 1 and byte(ARGV[i + 6]) ~= 1 then return { NOT_SEALED } end
end
if w and w.listeners > 0 and not S then return { NEEDS_FEED } end
if not w and not F then return { NEEDS_FENCE } end
w = w or make_queue(ARGV[2])
local ch, accepted, taken = changes(), {}, {}
for _, i in ipairs(new) do
    local d = unique_new[i]
    local refuses = d and (taken[d.key] or unique.find(d.key) ~= nil)
    if d then taken[d.key] = true end
    if refuses then refused[#refused + 1] = ARGV[i] else accepted[#accepted + 1] = i end
    add_words(ch, 'hset', 'd' .. ARGV[i], refuses and '-' or '')
    add_deadline(ch, w.now + 604800000, 'd' .. ARGV[i])
end
if ttl >= 0 then
    if set and set[2] >= 0 then ttl = set[2] end
    if #accepted > 0 then count_returned(#accepted) end
end
local f = w.listeners > 0 and read_feed(w)
local tells = idle_subscription_due(f)
for _, i in ipairs(accepted) do
    local id, sum, body, details, d = ARGV[i + 1], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7], unique_new[i]
    if d then
        cause.forget(d)
        details = pack_details(d)
    end
    local posted, expires = tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
    local flags = HAS_ID + (sum == '' and 0 or HAS_CHECKSUM)
    if ttl >= 0 then
        flags, posted, expires = flags + RETURNED, w.now, math.max(expires, deadline(w, 1000 * ttl))
    end
    if f then feed_append(f, expires, floor((expires - posted) / 1000), 0, body, tonumber(ARGV[4])) end
    if details ~= '' then posted = posted + 0.5 end
    local head = pack(HEAD, posted, expires, 0, 0, tonumber(ARGV[i + 8]), #body, flags, ARGV[i + 4])
    local n = append_message(w, ch, body, head .. sum .. id, expires, 0, 0, id)
    if d then unique.add(ch, n, details) elseif details ~= '' then add_words(ch, 'hset', 'e' .. n, details) end
end
commit(w, ch)
if f then save_feed(w, f) else save_queue(w) end
return { OK, w.unlisted, w.tag, tells, unpack(refused) }
