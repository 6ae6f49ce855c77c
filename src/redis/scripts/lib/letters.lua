-- letters: messages that were claimed too often. After take.

-- A queue that is its own dead letter queue: they stand at its end at once.
local function bury_here(w, buried)
    local ch = changes()
    for _, m in ipairs(buried) do
        local h, n = m.head, w.last + 1
        put(ch.hset, n, pack(HEAD, h.posted, h.expires, 0, 0, 0, #m.body, FOREIGN + h.flags % 2, h.client) .. m.sum .. m.id)
        put(ch.hset, 'b' .. n, m.body)
        put(ch.hset, 'f' .. m.id, n)
        put(ch.zadd, n, n)
        put(ch.tadd, h.expires, n)
        w.last, w.bytes, w.letters, w.seldom = n, w.bytes + #m.body, w.letters + 1, true
    end
    commit(w, ch)
end

-- Takes the first of those that were claimed too often out of the queue, as many as there are in a row;
-- how many. Without them there may be less for who asks: it chooses anew. What they are goes into X and
-- into `letters`: they are on their way, but those that stay here (`own`: the name of the queue).
local function move_letters(w, set, taken, letters, own)
    local ch, moved, buried = changes(), 0, {}
    for i, n in ipairs(taken.numbers) do
        local h = head_of(taken.heads[i])
        if h.count >= set[4] and #letters < 128 then
            if set[5] >= 0 then
                h.posted, h.expires = w.now, w.now + 1000 * set[5]
            end
            local sum, id = h.flags % 2 == SUM and sub(h.rest, 1, 16) or '', id_of(w, n, h)
            remove(w, ch, n, h)
            if set[6] == own then
                buried[#buried + 1] = { head = h, id = id, sum = sum, body = taken.bodies[i] }
            else
                local trip = w.tag .. string.format('%016x', n)
                local letter = pack('<ddc8BB', h.posted, h.expires, h.client, #set[6], #sum) .. id .. set[6] ..
                    sum .. taken.bodies[i]
                call('HSET', X, trip, letter)
                put(letters, trip, letter)
                moved = moved + 1
            end
        elseif moved + #buried > 0 then
            break
        end
    end
    commit(w, ch)
    bury_here(w, buried)
    if moved > 0 then
        if w.outgoing == 0 then w.since = w.now end
        w.outgoing, w.sent, w.seldom = w.outgoing + moved, w.now, true
    end
    return moved + #buried
end

-- Those that are on their way for so long that whoever sent them must have gone, some of them.
local function old_letters(w, letters)
    if w.outgoing == 0 or w.now < w.sent + 5000 then return end
    w.sent, w.seldom = w.now, true
    leave(w)
    for _, word in ipairs(call('HSCAN', X, 0, 'COUNT', 64)[2]) do letters[#letters + 1] = word end
end
