-- finish: ends the work on messages of a claim (claim_finish). Needs dead_letters.

local DELETE, RELEASE, DEAD_LETTER, ITEM_WORDS = 0, 1, 2, 6
local DEAD_LETTERS_MOST = 64

-- Gives a message back: delayed, then ready at its old place. `ready`: end of the delay; 0: `delay` seconds from now.
-- `most`: maximum TTL in ms.
local function release_message(w, ch, n, h, delay, ready, most, reason, client)
    if reason ~= '' then
        add_words(ch, 'hset', 'e' .. n, pack_details(details_with_reason(w, n, h, reason, client)))
        h.posted = floor(h.posted) + 0.5
    end
    count_messages(w, 'requeued', 1)
    claim_lose_message(w, ch, h.claim)
    h.claim, w.claimed = 0, w.claimed - 1
    if ready == 0 and delay > 0 then ready = deadline(w, 1000 * delay) end
    if ready > w.now then
        local last = deadline(w, most)
        if h.expires < last then h.expires = math.min(h.expires + 1000 * delay, last) end
        h.ready, w.delayed = math.min(ready, h.expires), w.delayed + 1
        add_deadline(ch, h.ready, n)
    else
        w.ready_changed = true
        add_words(ch, 'zadd', n, n)
    end
    add_words(ch, 'hset', n, pack_head(h))
end

-- The messages of the items from ARGV[from] on that the claim holds, by the number of the item: n, h as in
-- remove_message(). The second result is a list with a digit for each item, 1: it is held.
local function find_held(w, c, from, count)
    local found, held, fields, seen = {}, {}, {}, {}
    local function id(i) return ARGV[from + ITEM_WORDS * (i - 1) + 1] end
    for i = 1, count do fields[i] = number_of_id(w, id(i)) or '0' end
    local got = c and count > 0 and fields_of(M, fields) or {}
    for i = 1, count do
        local n, text = fields[i], got[i]
        if c and (not text or has_original_id(text)) then n, text = find_message(w, id(i)) end
        local h = c and text and unpack_head(text)
        held[i] = '0'
        if h and h.claim == c.number and not seen[n] then
            found[i], held[i], seen[n] = { n = n, h = h }, '1', true
        end
    end
    return found, held
end

-- The body of claim_finish and claim_finish_post.
local function finish_claim()
    local w, atomic, posts, client = open_queue(), ARGV[3] == '1', tonumber(ARGV[14]), ARGV[8]
    local from = 15 + posts
    local count = (#ARGV + 1 - from) / ITEM_WORDS
    local function item(i, k) return ARGV[from + ITEM_WORDS * (i - 1) + k] end
    if w and not expire_due(w) then return { EXPIRE_FIRST } end
    local ch, set = changes(), w and read_settings(w)
    local c = w and find_claim(ch, ARGV[2])
    local found, held = find_held(w or { tag = '' }, c, from, count)
    local all = table.concat(held)
    if atomic and string.find(all, '0', 1, true) then return { NOT_CLAIMED, all, '', 0, 0, 0 } end
    if not c then return { NOT_FOUND } end
    local left, letters = c.left, 0
    for i = 1, count do
        if tonumber(item(i, 0)) == DEAD_LETTER then
            if set[6] == '' and ARGV[4] == '0' then return { CONFLICT } end
            if found[i] then letters = letters + 1 end
        end
    end
    if letters > DEAD_LETTERS_MOST then return { TOO_LARGE } end
    if ARGV[4] == '1' then return { OK, all, '', 0, 0, 0 } end
    local most = attempts(set)
    for i = 1, count do -- released without an attempt left
        if found[i] and tonumber(item(i, 0)) == RELEASE and item(i, 4) == '0' and found[i].h.count >= most and
            letters < DEAD_LETTERS_MOST then
            held[i], letters = '2', letters + 1
        end
    end

    local first = w.last + 1
    for i = 1, posts do
        w.last = w.last + 1
        add_transfer(w, nil, w.last, ARGV[14 + i])
    end
    local out, words = { OK, table.concat(held), w.tag, 0, w.base, first }, {}
    letters = new_dead_letters(words, ARGV[5], tonumber(ARGV[6]))
    for i = 1, count do
        local m, action = found[i], tonumber(item(i, 0))
        if m then
            left = left - 1
            if action == DELETE then
                add_pair(out, w.now - c.started, m.h.count)
                count_messages(w, 'deleted', 1)
                remove_message(w, ch, m.n, m.h)
            elseif action == RELEASE and held[i] == '1' then
                m.h.count = math.max(0, m.h.count - tonumber(item(i, 4)))
                release_message(w, ch, m.n, m.h, tonumber(item(i, 2)), tonumber(item(i, 5)), tonumber(ARGV[7]), item(i, 3),
                    client)
            else
                add_dead_letter(w, ch, set, letters, m.n, m.h, action == RELEASE and cause.ATTEMPTS or cause.WORKER,
                    item(i, 3), client)
            end
        end
    end
    commit(w, ch)
    append_own_dead_letters(w, letters)
    if ARGV[9] == '1' and left > 0 then
        local ttl, life = read_terms(10)
        local again = changes()
        out[4] = c.number
        renew_claim(w, again, find_claim(again, ARGV[2]), ttl, life, ARGV[13])
    end
    save_queue(w)
    out[#out + 1] = ''
    for _, word in ipairs(words) do out[#out + 1] = word end
    return out
end
