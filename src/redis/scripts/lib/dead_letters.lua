-- dead_letters: messages that were claimed too often. After messages.

-- In a queue that is its own dead-letter queue they go to its end at once.
local function append_dead_letters(w, own_letters)
    local ch = changes()
    for _, m in ipairs(own_letters) do
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

-- Takes the first message that was claimed too often out of the queue, and all in a row behind it, 64 at most;
-- returns how many. The caller chooses anew then. They go into X and into `letters`: they are in transfer,
-- unless they stay here (`own`: the name of the queue). Without a TTL of its own a dead letter lives `least`
-- seconds or longer.
local function move_dead_letters(w, set, taken, letters, own, least)
    local first, ch, moved, own_letters = first_dead(set, taken), changes(), 0, {}
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
            own_letters[#own_letters + 1] = { head = h, id = id, sum = sum, body = m[2] }
        else
            local transfer = w.tag .. string.format('%016x', n)
            local letter = pack('<ddc8BB', h.posted, h.expires, h.client, #set[6], #sum) .. id .. set[6] .. sum .. m[2]
            call('HSET', X, transfer, letter)
            letters[#letters + 1] = transfer
            letters[#letters + 1] = letter
            moved = moved + 1
        end
    end
    commit(w, ch)
    append_dead_letters(w, own_letters)
    if moved > 0 then
        if w.outgoing == 0 then w.since, w.sent = w.now, w.now end
        w.outgoing, w.seldom = w.outgoing + moved, true
    end
    return moved + #own_letters
end

-- Some dead letters in transfer for so long that the process that posts them may have gone.
local function old_dead_letters(w, letters)
    if w.outgoing == 0 or w.now < w.sent + 5000 then return end
    w.sent, w.seldom = w.now, true
    leave(w)
    for _, word in ipairs(some_dead_letters()) do letters[#letters + 1] = word end
end
