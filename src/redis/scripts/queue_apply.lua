-- Loads a part of a queue, all or nothing. Makes the queue, or adds to it.
--   ARGV    tag of the new queue ('': the queue must exist), JSON, settings ..., number of claims, then for each:
--           id ('': assign one), secret for a new id, started, ends;
--           1: subscriptions must be confirmed, number of subscriptions, then for each:
--           id ('': assign one), secret for a new id, subscriber, options, started, TTL (s), 1: confirmed,
--           1: confirmation pending, delivered, given up, dropped;
--           then for each message:
--           id ('': assign one), index of its claim (0: none), body, checksum ('': none), client, posted, expires,
--           end of the delay (0: none), claim count, details ('': none; lib/dead_letters.lua)
--   returns OK, tag | AGAIN: use another tag
--   cost    O(messages · log n)
--   memory  grows
local w = open_queue()
local tag, encrypts = ARGV[2], ARGV[11] == '1'
if tag ~= '' then
    if w then return { CONFLICT } end
else
    if not w then return { NOT_FOUND } end
    encrypts = read_settings(w)[8] == 1
end

local claim_count, claims, last = tonumber(ARGV[16]), {}, w and w.last_claim or 0
local subscribers = 17 + 4 * claim_count
local subscriber_count = tonumber(ARGV[subscribers + 1])
local from = subscribers + 2 + 11 * subscriber_count
if not S and (subscriber_count > 0 or w and w.feed == 1) then return { NEEDS_FEED } end
if w and w.feed == 1 then
    if #ARGV >= from and #subscriptions_in(1, CURSORS, 'LIMIT', 0, 1) > 0 then return { CONFLICT } end
    for i = subscribers + 2, from - 1, 11 do
        if subscription_by_subscriber(w, ARGV[i + 2]) then return { CONFLICT } end
        if ARGV[i] ~= '' and subscription_by_number(w, tonumber(sub(ARGV[i], 13), 16)) then return { CONFLICT } end
    end
end

-- Why the queue cannot take a message with these details; nil: it can.
local function key_refusal(details)
    local d = w and details ~= '' and unpack_details(details)
    if not d or d.key == '' or d.dead > 0 then return nil end
    if not expire_due(w) then return EXPIRE_FIRST end
    return unique.find(d.key) and CONFLICT
end

for i = from, #ARGV, 10 do
    local id = ARGV[i]
    local refusal = key_refusal(ARGV[i + 9])
    if refusal then return { refusal } end
    if encrypts and byte(ARGV[i + 2]) ~= 1 then return { NOT_SEALED } end
    if id ~= '' and sub(id, 1, 8) == (w and w.tag or tag) then return { w and CONFLICT or AGAIN } end
    if id ~= '' and w and find_message(w, id) then return { CONFLICT } end
end

local ch = changes()
for i = 1, claim_count do
    local at = 17 + 4 * (i - 1)
    local id = ARGV[at]
    local c = { secret = id == '' and ARGV[at + 1] or sub(id, 1, 12), started = tonumber(ARGV[at + 2]),
        ends = tonumber(ARGV[at + 3]), left = 0, numbers = {} }
    if id ~= '' then
        c.number = tonumber(sub(id, 13), 16)
        last = math.max(last, c.number)
        local old = w and read_claim(ch, c.number)
        if old then
            if old.secret ~= c.secret then return { CONFLICT } end
            c.numbers, c.left, c.goes_on = { old.numbers }, old.left, true
        end
    end
    claims[i] = c
end
for _, c in ipairs(claims) do
    if not c.number then
        last = last + 1
        c.number = last
    end
end

if not w then
    if not F then return { NEEDS_FENCE } end
    w = make_queue(tag)
    set_metadata(w, ARGV[3], 4)
end
local most = attempts(read_settings(w))
for i = from, #ARGV, 10 do
    local id, body, sum = ARGV[i], ARGV[i + 2], ARGV[i + 3]
    local c = claims[tonumber(ARGV[i + 1])]
    local expires, ready, claim = tonumber(ARGV[i + 6]), tonumber(ARGV[i + 7]), c and c.number or 0
    local flags = (sum == '' and 0 or HAS_CHECKSUM) + (id == '' and 0 or HAS_ID)
    local posted, details = tonumber(ARGV[i + 5]), ARGV[i + 9]
    if details ~= '' then
        local d = unpack_details(details)
        if id ~= '' and d.dead == 0 then
            flags = flags + RETURNED
            count_returned(1)
        end
        if c then details = unique.claim(details) end
        if d.released == 0 and d.dead == 0 and d.origin == '' and d.key == '' then details = '' end
        if details ~= '' then posted = posted + 0.5 end
    end
    local head = pack(HEAD, posted, expires, ready, claim, tonumber(ARGV[i + 8]), #body, flags, ARGV[i + 4])
    local n = append_message(w, ch, body, head .. sum .. id, expires, ready, claim, id ~= '' and id or nil)
    if details ~= '' then unique.add(ch, n, details) end
    if c then
        c.left = c.left + 1
        c.numbers[#c.numbers + 1] = pack('<d', tonumber(n))
    end
end
for _, c in ipairs(claims) do
    local name = 'c' .. digits(c.number)
    add_words(ch, 'hset', name, pack(CLAIM, c.started, c.ends, c.left, c.secret) .. table.concat(c.numbers))
    set_claim_end(w, ch, c.ends, name, most < math.huge)
    if not c.goes_on then
        w.claims = w.claims + 1
        mark_created(ch, c.number, c.started)
    end
end
w.last_claim = last
commit(w, ch)
if subscriber_count > 0 then
    local f, required = read_feed(w) or make_feed(w), ARGV[subscribers] == '1'
    for i = subscribers + 2, from - 1, 11 do
        if ARGV[i] ~= '' then f.subscribed = math.max(f.subscribed, tonumber(sub(ARGV[i], 13), 16)) end
    end
    for i = subscribers + 2, from - 1, 11 do
        local id, n = ARGV[i], nil
        if id ~= '' then
            n = tonumber(sub(id, 13), 16)
        else
            f.subscribed = f.subscribed + 1
            n = f.subscribed
        end
        add_subscription(w, f, n, init_subscription(f, { secret = id == '' and next_secret(ARGV[i + 1]) or sub(id, 1, 12),
            subscriber = ARGV[i + 2], options = ARGV[i + 3], started = tonumber(ARGV[i + 4]),
            ttl = tonumber(ARGV[i + 5]), confirmed = tonumber(ARGV[i + 6]),
            pending = ARGV[i + 7] == '1' and CONFIRM + 1 or 0, delivered = tonumber(ARGV[i + 8]),
            permanent_failures = tonumber(ARGV[i + 9]), dropped = tonumber(ARGV[i + 10]) }), required)
    end
    save_feed(w, f)
else
    save_queue(w)
end
return { OK, w.tag }
