-- dead_letters: messages that were claimed too often. Needs messages.

-- Moves dead letters to the end of a queue that is its own dead-letter queue.
local function append_own_dead_letters(w, own_dead_letters)
    local ch = changes()
    for _, m in ipairs(own_dead_letters) do
        local h = m.head
        h.ready, h.claim, h.count, h.flags, h.rest = 0, 0, 0, HAS_ID + h.flags % 2, m.sum .. m.id
        append_message(w, ch, m.body, pack_head(h), h.expires, 0, 0, m.id)
    end
    commit(w, ch)
end

-- The number of the first chosen message that was claimed too often; nil: there is none.
local function first_dead_letter(set, chosen)
    for i, n in ipairs(chosen.names) do
        if unpack_head(chosen.heads[i]).count >= set[4] then return n end
    end
end

-- Moves the first chosen message that was claimed too often out of the queue, and those directly after it, at most
-- 64. Returns how many. The caller then chooses again. The dead letters go into X and `dead_letters`, or to the end
-- of this queue (`own`: its name). `least`: minimum TTL in seconds if the queue sets no TTL for dead letters.
local function move_dead_letters(w, set, chosen, dead_letters, own, least)
    local first, ch, moved, own_dead_letters = first_dead_letter(set, chosen), changes(), 0, {}
    if not first then return 0 end
    for _, text in ipairs(call('ZRANGEBYSCORE', Z, first, BELOW_UNREADY, 'LIMIT', 0, 64)) do
        local n = tonumber(text)
        local m = call('HMGET', M, text, 'b' .. text)
        local h = unpack_head(m[1])
        if h.count < set[4] then break end
        if set[5] >= 0 then
            h.posted, h.expires = w.now, deadline(w, 1000 * set[5])
        else
            h.expires = math.max(h.expires, deadline(w, 1000 * least))
        end
        local sum, id = h.flags % 2 == HAS_CHECKSUM and sub(h.rest, 1, 16) or '', id_of(w, n, h)
        remove_message(w, ch, text, h)
        if set[6] == own then
            own_dead_letters[#own_dead_letters + 1] = { head = h, id = id, sum = sum, body = m[2] }
        else
            local transfer = w.tag .. string.format('%016x', n)
            local dead_letter = pack('<ddc8BB', h.posted, h.expires, h.client, #set[6], #sum) .. id .. set[6] .. sum .. m[2]
            call('HSET', X, transfer, dead_letter)
            dead_letters[#dead_letters + 1] = transfer
            dead_letters[#dead_letters + 1] = dead_letter
            moved = moved + 1
        end
    end
    commit(w, ch)
    append_own_dead_letters(w, own_dead_letters)
    if moved > 0 then
        if w.in_transfer == 0 then w.transfers_since, w.transferred_at = w.now, w.now end
        w.in_transfer, w.rare_changed = w.in_transfer + moved, true
    end
    return moved + #own_dead_letters
end

-- Adds some dead letters whose transfer began so long ago that its process may have ended.
local function lease_old_dead_letters(w, dead_letters)
    if w.in_transfer == 0 or w.now < w.transferred_at + 5000 then return end
    w.transferred_at, w.rare_changed = w.now, true
    save_queue(w)
    for _, word in ipairs(random_dead_letters()) do dead_letters[#dead_letters + 1] = word end
end
