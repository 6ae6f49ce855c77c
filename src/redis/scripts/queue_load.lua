-- Loads a piece of a queue, all or nothing: makes the queue, or goes on behind what it has.
--   ARGV    tag of the new queue ('': it must be there), json, settings ..., how many claims, then for
--           each: id ('': it gets one), what it is known by, started, ends; 1: subscriptions must be
--           confirmed, how many, then for each: id ('': likewise), what it is known by, subscriber,
--           options, started, ttl (s), 1: confirmed, 1: it was asked, delivered, given up, fallen out;
--           then for each message:
--           id ('': likewise), place of its claim (0: free), body, checksum ('': none), client, posted,
--           expires, delayed until (0: it is not), count
--   returns OK, tag | AGAIN: another tag must be tried
--   cost    O(messages · log n)
--   memory  grows
local w = enter()
local tag, encrypts = ARGV[2], ARGV[11] == '1'
if tag ~= '' then
    if w then return { CONFLICT } end
else
    if not w then return { NOT_FOUND } end
    encrypts = settings(w)[8] == 1
end

local claim_count, claims, last = tonumber(ARGV[12]), {}, w and w.last_claim or 0
local subscribers = 13 + 4 * claim_count -- where that stands
local subscriber_count = tonumber(ARGV[subscribers + 1])
local from = subscribers + 2 + 11 * subscriber_count
if not S and (subscriber_count > 0 or w and w.feed == 1) then return { FEED } end
if w and w.feed == 1 then
    if #ARGV >= from and #range(1, CURSORS, 'LIMIT', 0, 1) > 0 then return { CONFLICT } end
    for i = subscribers + 2, from - 1, 11 do
        if subscription_of(w, ARGV[i + 2]) then return { CONFLICT } end
        if ARGV[i] ~= '' and subscription(w, tonumber(sub(ARGV[i], 13), 16)) then return { CONFLICT } end
    end
end
for i = from, #ARGV, 9 do
    local id = ARGV[i]
    if encrypts and byte(ARGV[i + 2]) ~= 1 then return { NOT_SEALED } end
    if id ~= '' and sub(id, 1, 8) == (w and w.tag or tag) then return { w and CONFLICT or AGAIN } end
    if id ~= '' and w and find(w, id) then return { CONFLICT } end
end

local ch = changes()
for i = 1, claim_count do
    local at = 13 + 4 * (i - 1)
    local id = ARGV[at]
    local c = { secret = id == '' and ARGV[at + 1] or sub(id, 1, 12), started = tonumber(ARGV[at + 2]),
        ends = tonumber(ARGV[at + 3]), left = 0, numbers = {} }
    if id ~= '' then
        c.number = tonumber(sub(id, 13), 16)
        last = math.max(last, c.number)
        local old = w and claim_of(ch, c.number)
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
    if not F then return { FENCE } end
    w = create(tag)
    set_metadata(ARGV[3], 4)
end
for i = from, #ARGV, 9 do
    local id, body, sum = ARGV[i], ARGV[i + 2], ARGV[i + 3]
    local c = claims[tonumber(ARGV[i + 1])]
    local expires, ready, claim = tonumber(ARGV[i + 6]), tonumber(ARGV[i + 7]), c and c.number or 0
    local flags = (sum == '' and 0 or SUM) + (id == '' and 0 or FOREIGN)
    local head = pack(HEAD, tonumber(ARGV[i + 5]), expires, ready, claim, tonumber(ARGV[i + 8]), #body, flags, ARGV[i + 4])
    local n = place(w, ch, body, head .. sum .. id, expires, ready, claim, id ~= '' and id or nil)
    if c then
        c.left = c.left + 1
        c.numbers[#c.numbers + 1] = pack('<d', tonumber(n))
    end
end
for _, c in ipairs(claims) do
    local name = 'c' .. digits(c.number)
    put(ch, 'hset', name, pack(CLAIM, c.started, c.ends, c.left, c.secret) .. table.concat(c.numbers))
    falls_due(ch, c.ends, name)
    if not c.goes_on then
        w.claims = w.claims + 1
        mark_created(ch, c.number, c.started)
    end
end
w.last_claim = last
commit(w, ch)
if subscriber_count > 0 then
    local f, required = feed_of(w) or feed_make(w), ARGV[subscribers] == '1'
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
        subscribe(w, f, n, new_subscription(f, { secret = id == '' and next_secret(ARGV[i + 1]) or sub(id, 1, 12),
            subscriber = ARGV[i + 2], options = ARGV[i + 3], started = tonumber(ARGV[i + 4]),
            ttl = tonumber(ARGV[i + 5]), confirmed = tonumber(ARGV[i + 6]),
            pending = ARGV[i + 7] == '1' and CONFIRM + 1 or 0, delivered = tonumber(ARGV[i + 8]),
            given_up = tonumber(ARGV[i + 9]), fallen = tonumber(ARGV[i + 10]) }), required)
    end
    leave_feed(w, f)
else
    leave(w)
end
return { OK, w.tag }
