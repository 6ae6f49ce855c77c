-- messages: heads, and taking messages out. After changes, claims.

-- A head in words, and back.
local function head_of(text)
    local h = {}
    local at
    h.posted, h.expires, h.ready, h.claim, h.count, h.size, h.flags, h.client, at =
        unpack_struct(HEAD, text)
    h.rest = sub(text, at)
    return h
end

local function text_of(h)
    return pack(HEAD, h.posted, h.expires, h.ready, h.claim, h.count, h.size, h.flags, h.client) .. h.rest
end

-- Takes a message out of the queue.
local function remove(w, ch, n, h)
    put(ch.hdel, n, 'b' .. n)
    if h.flags >= FOREIGN then
        put(ch.hdel, 'f' .. sub(h.rest, -24))
        w.letters, w.seldom = w.letters - 1, true
    end
    put(ch.zrem, n)
    put(ch.trem, n)
    w.bytes = w.bytes - h.size
    if h.claim > 0 then
        w.held = w.held - 1
        lose(w, ch, h.claim)
    elseif h.ready > 0 then
        w.delayed = w.delayed - 1
    end
end

