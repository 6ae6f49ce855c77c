-- settle: what is due happens. After messages.

-- Gives back all that a claim holds; `less` is taken off the counts.
local function release(w, ch, c, less)
    local numbers = numbers_of(c)
    w.stirred = true
    local heads = fields_of(M, numbers)
    for i, number in ipairs(numbers) do
        local h = heads[i] and head_of(heads[i])
        if h and h.claim == c.number then
            h.claim = 0
            h.count = h.count - less
            local n = digits(number)
            put(ch, 'hset', n, text_of(h))
            put(ch, 'zadd', n, n)
            w.held = w.held - 1
        end
    end
    end_claim(w, ch, c)
end

-- Counts a message that expires: `counts` has all, unread ones and dead letters.
local function count_expired(w, counts, h)
    counts.x = counts.x + 1
    if h.count == 0 and w.listeners == 0 then counts.xu = counts.xu + 1 end
    if h.flags >= FOREIGN then counts.xl = counts.xl + 1 end
end

-- Makes happen what is due, the earliest first. False: there may be more; the caller leaves, and
-- answers AGAIN.
local function settle(w)
    if not is_due(w) then return true end
    local due = call('ZRANGEBYSCORE', T, '-inf', w.now, 'LIMIT', 0, SLICE)
    if #due > 0 then call('ZREM', T, unpack(due)) end -- first: a Redis without memory lets who removes go on
    local counts = { x = 0, xu = 0, xl = 0 }
    for _, what in ipairs(due) do
        local ch = changes()
        if byte(what) == 99 then -- 'c'
            release(w, ch, claim_of(ch, tonumber(sub(what, 2))), 0)
        elseif byte(what) == 100 then -- 'd'
            put(ch, 'hdel', what)
            put(ch, 'trem', what)
        else
            local h = head_of(call('HGET', M, what))
            if h.expires <= w.now then
                count_expired(w, counts, h)
                remove(w, ch, what, h)
            else
                h.ready, w.stirred = 0, true
                w.delayed = w.delayed - 1
                put(ch, 'hset', what, text_of(h))
                put(ch, 'zadd', what, what)
                falls_due(ch, h.expires, what)
            end
        end
        commit(w, ch)
    end
    for field, count in pairs(counts) do
        if count > 0 then call('HINCRBY', Q, field, count) end
    end
    w.due = tonumber(call('ZRANGE', T, 0, 0, 'WITHSCORES')[2])
    leave(w)
    return #due < SLICE
end

