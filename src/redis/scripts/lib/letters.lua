-- letters: messages that were claimed too often. After take.

-- Takes those that were claimed too often out of the queue; how many. What they are goes into X and
-- into `letters`: they are on their way.
local function move_letters(w, set, taken, letters)
    local ch, moved = changes(), 0
    for i, n in ipairs(taken.numbers) do
        local h = head_of(taken.heads[i])
        if h.count >= set[4] and #letters < 128 then
            local trip = w.tag .. string.format('%016x', n)
            if set[5] >= 0 then
                h.posted, h.expires = w.now, w.now + 1000 * set[5]
            end
            local sum = h.flags % 2 == SUM and sub(h.rest, 1, 16) or ''
            local letter = pack('<ddc8BB', h.posted, h.expires, h.client, #set[6], #sum) .. id_of(w, n, h) .. set[6] ..
                sum .. taken.bodies[i]
            remove(w, ch, n, h)
            call('HSET', X, trip, letter)
            put(letters, trip, letter)
            moved = moved + 1
        end
    end
    if w.outgoing == 0 then w.since = w.now end
    w.outgoing, w.sent, w.seldom = w.outgoing + moved, w.now, true
    commit(w, ch)
    return moved
end


-- Those that are on their way for so long that whoever sent them must have gone, some of them.
local function old_letters(w, letters)
    if w.outgoing == 0 or w.now < w.sent + 5000 then return end
    w.sent, w.seldom = w.now, true
    leave(w)
    for _, word in ipairs(call('HSCAN', X, 0, 'COUNT', 64)[2]) do letters[#letters + 1] = word end
end
