-- dead_letters: messages that go to the dead-letter queue. Needs outbox.

local function checksum_of(h)
    return h.flags % 2 == HAS_CHECKSUM and sub(h.rest, 1, 16) or ''
end

-- The details of a message that a worker gives back with a reason ('': none).
local function details_with_reason(w, n, h, reason, client)
    local d = read_details(n, h)
    if reason ~= '' then d.reason, d.client, d.released = reason, client, w.now end
    return d
end

-- The dead letters that a script moves out of the queue: words for the response, and those whose dead-letter queue is
-- this one. (If it has subscribers, they take the way through X, and dead_letter_post adds them to the feed.) `own`: the name of this queue. `least`: minimum TTL in seconds if the queue sets no TTL for dead letters.
local function new_dead_letters(words, own, least)
    return { words = words, own = own, least = least, stay = {}, count = 0 }
end

-- Removes a message and adds it to the dead letters. `n` and `h` as in remove_message(). Without a reason, the details
-- have the client that holds the message.
local function add_dead_letter(w, ch, set, letters, n, h, why, reason, client)
    local body, d = call('HGET', M, 'b' .. n), details_with_reason(w, n, h, reason, client)
    local id, sum = id_of(w, tonumber(n), h), checksum_of(h)
    if d.origin == '' then d.origin = letters.own end
    if d.released == 0 then d.client = h.claim ~= 0 and call('HGET', M, 'h' .. digits(h.claim)) or '' end
    d.dead, d.cause, d.attempts = w.now, why, h.count
    remove_message(w, ch, n, h, d)
    if set[5] >= 0 then
        h.posted, h.expires = w.now, deadline(w, 1000 * set[5])
    else
        h.expires = math.max(h.expires, deadline(w, 1000 * letters.least))
    end
    h.count, letters.count = 0, letters.count + 1
    count_messages(w, 'dead_lettered', 1)
    if set[6] == letters.own and w.listeners == 0 then
        letters.stay[#letters.stay + 1] = { head = h, id = id, sum = sum, body = body, details = pack_details(d) }
    else
        transfer_message(w, letters.words, TO_DEAD_LETTERS, set[6], n, h, id, sum, pack_details(d), body)
    end
end

-- Moves dead letters to the end of a queue that is its own dead-letter queue. Comes after the commit().
local function append_own_dead_letters(w, letters)
    local ch = changes()
    for _, m in ipairs(letters.stay) do
        local h = m.head
        h.posted, h.ready, h.claim, h.flags, h.rest = floor(h.posted) + 0.5, 0, 0, HAS_ID + h.flags % 2, m.sum .. m.id
        local n = append_message(w, ch, m.body, pack_head(h), h.expires, 0, 0, m.id)
        add_words(ch, 'hset', 'e' .. n, m.details)
    end
    commit(w, ch)
end

-- Moves dead letters of expired claims, as many as one response may have. As `move` of expire_claim(). Parameters as
-- new_dead_letters().
local function letter_mover(w, words, own, least)
    local count, bytes, set = 0, 0, read_settings(w)
    return function(ch, dead)
        local letters = new_dead_letters(words, own, least)
        for _, m in ipairs(dead) do
            if count == 64 or bytes >= 1048576 then break end
            count, bytes = count + 1, bytes + m.h.size
            add_dead_letter(w, ch, set, letters, m.n, m.h, cause.EXPIRED, '', '')
        end
        commit(w, ch)
        append_own_dead_letters(w, letters)
        return letters.count == #dead
    end
end

-- The number of the first chosen message that was claimed too often; nil: there is none.
local function first_dead_letter(set, chosen)
    local most = attempts(set)
    for i, n in ipairs(chosen.names) do
        if unpack_head(chosen.heads[i]).count >= most then return n end
    end
end

-- Moves the first chosen message that was claimed too often out of the queue, and those directly after it, at most
-- 64. Returns how many. The caller then chooses again. Further parameters as new_dead_letters().
local function move_dead_letters(w, set, chosen, words, own, least)
    local first = first_dead_letter(set, chosen)
    if not first then return 0 end
    local ch, letters, most = changes(), new_dead_letters(words, own, least), attempts(set)
    local names = call('ZRANGEBYSCORE', Z, first, BELOW_UNREADY, 'LIMIT', 0, 64)
    local heads = fields_of(M, names)
    for i, n in ipairs(names) do
        local h = unpack_head(heads[i])
        if h.count < most then break end
        add_dead_letter(w, ch, set, letters, n, h, cause.ATTEMPTS, '', '')
    end
    commit(w, ch)
    append_own_dead_letters(w, letters)
    return letters.count
end
