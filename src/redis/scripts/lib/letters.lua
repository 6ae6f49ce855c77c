-- letters: messages that were claimed too often. After take.

-- Takes those that were claimed too often out of the queue; how many. What they are goes into X and
-- into `letters`: they are on their way.
local function move_letters(w, set, taken, letters)
    local ch, moved = changes(), 0
    for i, n in ipairs(taken.numbers) do
        local h = head_of(taken.heads[i])
        if h.count >= set[4] and #letters < 128 then
            local id = id_of(w, n, h)
            if set[5] >= 0 then
                h.posted, h.expires = w.now, w.now + 1000 * set[5]
            end
            local sum = h.flags % 2 == SUM and sub(h.rest, 1, 16) or ''
            local letter = pack('<ddc8BB', h.posted, h.expires, h.client, #set[6], #sum) .. set[6] .. sum ..
                taken.bodies[i]
            remove(w, ch, n, h)
            call('HSET', X, id, letter)
            put(letters, id, letter)
            moved = moved + 1
        end
    end
    w.outgoing = w.outgoing + moved
    commit(w, ch)
    return moved
end

