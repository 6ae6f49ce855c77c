-- claims: what holds messages. After changes.

-- A claim out of what M has of it; nil: nothing.
local function keep_claim(ch, number, record)
    if not record then return nil end
    local started, ends, left, secret, at = unpack_struct(CLAIM, record)
    local c = { number = number, name = 'c' .. digits(number), started = started, ends = ends, left = left,
        secret = secret, numbers = sub(record, at) }
    ch.claims = ch.claims or {}
    ch.claims[number] = c
    return c
end

-- A claim, as it is being changed; nil: it is over.
local function claim_of(ch, number)
    local c = ch.claims and ch.claims[number] or keep_claim(ch, number, call('HGET', M, 'c' .. digits(number)))
    return c and c.left > 0 and c or nil
end

-- Remembers when the claim was created: a renewal does not change that.
local function mark_created(ch, number, ms)
    put(ch, 'tadd', digits(ms + HELD), 'k' .. digits(number))
end

-- When the oldest live claim was created; 0: there is none. An older program leaves the marks of claims
-- that are over.
local function oldest_claim()
    for _ = 1, SLICE do
        local mark = call('ZRANGEBYSCORE', T, HELD_TEXT, '(inf', 'LIMIT', 0, 1, 'WITHSCORES')
        if not mark[1] then return 0 end
        if call('HEXISTS', M, 'c' .. sub(mark[1], 2)) == 1 then return tonumber(mark[2]) - HELD end
        call('ZREM', T, mark[1])
    end
    return 0
end

-- Nothing more is held by it.
local function end_claim(w, ch, c)
    c.left, c.changed = 0, nil
    w.claims = w.claims - 1
    put(ch, 'hdel', c.name)
    put(ch, 'trem', c.name, 'k' .. sub(c.name, 2))
end

-- It holds one message less.
local function lose(w, ch, number)
    local c = claim_of(ch, number)
    if c then
        c.left, c.changed = c.left - 1, true
        if c.left == 0 then end_claim(w, ch, c) end
    end
end

-- The numbers that a claim was made with.
local function numbers_of(c)
    local numbers = {}
    for at = 1, #c.numbers, 8 do
        numbers[#numbers + 1] = unpack_struct('<d', c.numbers, at)
    end
    return numbers
end

