-- messages: heads, and taking messages out. After changes, claims.

-- A head in words, and back.
local function head_of(text)
    local posted, expires, ready, claim, count, size, flags, client, at = unpack_struct(HEAD, text)
    return { posted = posted, expires = expires, ready = ready, claim = claim, count = count, size = size,
        flags = flags, client = client, rest = sub(text, at) }
end

local function text_of(h)
    return pack(HEAD, h.posted, h.expires, h.ready, h.claim, h.count, h.size, h.flags, h.client) .. h.rest
end

-- Puts a message at the end of the queue; its number, as a text. The head is a text, and says expires,
-- ready and claim, too. `id`: it came with it; nil: with none.
local function place(w, ch, body, head, expires, ready, claim, id)
    local number = w.last + 1
    local n = digits(number)
    w.last, w.bytes = number, w.bytes + #body
    put(ch, 'hset', n, head)
    put(ch, 'hset', 'b' .. n, body)
    if id then
        put(ch, 'hset', 'f' .. id, n)
        w.letters, w.seldom = w.letters + 1, true
    end
    if claim > 0 then
        w.held = w.held + 1
        put(ch, 'zadd', digits(number + HELD), n)
        falls_due(ch, expires, n)
    elseif ready > 0 then
        w.delayed = w.delayed + 1
        put(ch, 'zadd', digits(number + HELD), n)
        falls_due(ch, ready, n)
    else
        w.stirred = true
        put(ch, 'zadd', n, n)
        falls_due(ch, expires, n)
    end
    return n
end

-- Takes a message out of the queue; `n`: its number, as a text.
local function remove(w, ch, n, h)
    put(ch, 'hdel', n, 'b' .. n)
    if h.flags >= FOREIGN then
        put(ch, 'hdel', 'f' .. sub(h.rest, -24))
        w.letters, w.seldom = w.letters - 1, true
    end
    put(ch, 'zrem', n)
    put(ch, 'trem', n)
    w.bytes = w.bytes - h.size
    if h.claim > 0 then
        w.held = w.held - 1
        lose(w, ch, h.claim)
    elseif h.ready > 0 then
        w.delayed = w.delayed - 1
    end
end

