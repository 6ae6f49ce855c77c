-- letters: messages that were claimed too often. After take.

-- A queue that is its own dead letter queue: they stand at its end at once.
local function bury_here(w, buried)
    local ch = changes()
    for _, m in ipairs(buried) do
        local h = m.head
        h.ready, h.claim, h.count, h.flags, h.rest = 0, 0, 0, FOREIGN + h.flags % 2, m.sum .. m.id
        place(w, ch, m.body, text_of(h), h.expires, 0, 0, m.id)
    end
    commit(w, ch)
end

-- The number of the first of those messages that was claimed too often; nil: none was.
local function first_dead(set, taken)
    for i, n in ipairs(taken.names) do
        if head_of(taken.heads[i]).count >= set[4] then return n end
    end
end

-- Takes the first of those that were claimed too often out of the queue, and all that stand in a row
-- behind it, 64 at most; how many. Without them there may be less for who asks: it chooses anew. What
-- they are goes into X and into `letters`: they are on their way, but those that stay here (`own`: the
-- name of the queue). Without a TTL of its own such a letter lives `least` seconds or longer.
local function move_letters(w, set, taken, letters, own, least)
    local first, ch, moved, buried = first_dead(set, taken), changes(), 0, {}
    if not first then return 0 end
    for _, text in ipairs(call('ZRANGEBYSCORE', Z, first, BELOW_HELD, 'LIMIT', 0, 64)) do
        local n = tonumber(text)
        local m = call('HMGET', M, text, 'b' .. text)
        local h = head_of(m[1])
        if h.count < set[4] then break end
        if set[5] >= 0 then
            h.posted, h.expires = w.now, deadline(w, 1000 * set[5])
        else
            h.expires = math.max(h.expires, deadline(w, 1000 * least))
        end
        local sum, id = h.flags % 2 == SUM and sub(h.rest, 1, 16) or '', id_of(w, n, h)
        remove(w, ch, text, h)
        if set[6] == own then
            buried[#buried + 1] = { head = h, id = id, sum = sum, body = m[2] }
        else
            local trip = w.tag .. string.format('%016x', n)
            local letter = pack('<ddc8BB', h.posted, h.expires, h.client, #set[6], #sum) .. id .. set[6] .. sum .. m[2]
            call('HSET', X, trip, letter)
            letters[#letters + 1] = trip
            letters[#letters + 1] = letter
            moved = moved + 1
        end
    end
    commit(w, ch)
    bury_here(w, buried)
    if moved > 0 then
        if w.outgoing == 0 then w.since, w.sent = w.now, w.now end
        w.outgoing, w.seldom = w.outgoing + moved, true
    end
    return moved + #buried
end

-- Those that are on their way for so long that whoever sent them may have gone, some of them.
local function old_letters(w, letters)
    if w.outgoing == 0 or w.now < w.sent + 5000 then return end
    w.sent, w.seldom = w.now, true
    leave(w)
    for _, word in ipairs(some_letters()) do letters[#letters + 1] = word end
end
