-- messages: reads and changes messages and claims. Needs details.

-- Collects changes until commit(): lists of words for Z, M and T, the earliest new deadline (due), and claims by
-- number.
local function changes()
    return { due = math.huge }
end

-- The text of a number. Redis would convert numbers itself, but that takes longer than all other work on them.
local function digits(number)
    return format('%d', number)
end

local function add_words(ch, list, a, b)
    local words = ch[list]
    if not words then
        ch[list] = { a, b }
        return
    end
    local n = #words
    words[n + 1] = a
    if b then words[n + 2] = b end
end

local function add_pair(words, a, b)
    local n = #words
    words[n + 1], words[n + 2] = a, b
end

local function add_deadline(ch, ms, member)
    if ms < ch.due then ch.due = ms end
    add_words(ch, 'tadd', digits(ms), member)
end

-- Calls a command with any number of words, in parts.
local function call_all(command, key, words)
    if not words then return end
    for from = 1, #words, 4000 do
        call(command, key, unpack(words, from, math.min(from + 3999, #words)))
    end
end

-- The values of any number of fields of a hash, read in parts.
local function fields_of(key, fields)
    if #fields <= 1000 then return call('HMGET', key, unpack(fields)) end
    local found = {}
    for from = 1, #fields, 1000 do
        local some = call('HMGET', key, unpack(fields, from, math.min(from + 999, #fields)))
        for i = 1, math.min(1000, #fields - from + 1) do found[from + i - 1] = some[i] end
    end
    return found
end

local function commit(w, ch)
    for _, c in pairs(ch.claims or {}) do
        if c.changed then
            add_words(ch, 'hset', c.name, pack(CLAIM, c.started, c.ends, c.left, c.secret) .. c.numbers)
        end
    end
    if ch.due < w.due then w.due, w.ready_changed = ch.due, true end
    call_all('HSET', M, ch.hset)
    call_all('HDEL', M, ch.hdel)
    call_all('ZADD', Z, ch.zadd)
    call_all('ZREM', Z, ch.zrem)
    call_all('ZADD', T, ch.tadd)
    call_all('ZREM', T, ch.trem)
end

-- Parses the record of a claim and keeps it in the changes; nil: no record.
local function parse_claim(ch, number, record)
    if not record then return nil end
    local started, ends, left, secret, at = unpack_struct(CLAIM, record)
    local c = { number = number, name = 'c' .. digits(number), started = started, ends = ends, left = left,
        secret = secret, numbers = sub(record, at) }
    ch.claims = ch.claims or {}
    ch.claims[number] = c
    return c
end

-- The claim with this number, including uncommitted changes; nil: it has ended.
local function read_claim(ch, number)
    local c = ch.claims and ch.claims[number] or parse_claim(ch, number, call('HGET', M, 'c' .. digits(number)))
    return c and c.left > 0 and c or nil
end

-- How often a message may be claimed before it becomes a dead letter.
local function attempts(set)
    return set[4] >= 0 and set[6] ~= '' and set[4] or math.huge
end

-- Sets when a claim ends. `last`: one of its messages has no attempt left, so claimd has to look then.
local function set_claim_end(w, ch, ends, name, last)
    add_deadline(ch, ends, name)
    if last then mark_due(w, ends, ends) end
end

-- Stores when the claim was created, because a renewal changes when it started.
local function mark_created(ch, number, ms)
    add_words(ch, 'tadd', digits(ms + UNREADY), 'k' .. digits(number))
end

-- Stores the client that created or last renewed the claim, if it is known.
local function mark_holder(ch, number, client)
    if client ~= '' then add_words(ch, 'hset', 'h' .. digits(number), client) end
end

-- When the oldest live claim was created; 0: there is none. Removes marks of ended claims, which older versions left.
local function oldest_claim_created()
    for _ = 1, SLICE do
        local mark = call('ZRANGEBYSCORE', T, UNREADY_TEXT, '(inf', 'LIMIT', 0, 1, 'WITHSCORES')
        if not mark[1] then return 0 end
        if call('HEXISTS', M, 'c' .. sub(mark[1], 2)) == 1 then return tonumber(mark[2]) - UNREADY end
        call('ZREM', T, mark[1])
    end
    return 0
end

-- Removes a claim that holds no message any more.
local function end_claim(w, ch, c)
    c.left, c.changed = 0, nil
    w.claims = w.claims - 1
    add_words(ch, 'hdel', c.name, 'h' .. sub(c.name, 2))
    add_words(ch, 'trem', c.name, 'k' .. sub(c.name, 2))
end

-- The claim holds one message less.
local function claim_lose_message(w, ch, number)
    local c = read_claim(ch, number)
    if c then
        c.left, c.changed = c.left - 1, true
        if c.left == 0 then end_claim(w, ch, c) end
    end
end

-- The numbers of the messages that the claim was created with.
local function claim_numbers(c)
    local numbers = {}
    for at = 1, #c.numbers, 8 do
        numbers[#numbers + 1] = unpack_struct('<d', c.numbers, at)
    end
    return numbers
end

local function unpack_head(text)
    local posted, expires, ready, claim, count, size, flags, client, at = unpack_struct(HEAD, text)
    return { posted = posted, expires = expires, ready = ready, claim = claim, count = count, size = size,
        flags = flags, client = client, rest = sub(text, at) }
end

local function pack_head(h)
    return pack(HEAD, h.posted, h.expires, h.ready, h.claim, h.count, h.size, h.flags, h.client) .. h.rest
end

-- Keys that at most one message of the queue holds (store_message_post() in claimd/store/store.h). A table, because Lua
-- has at most 200 locals here.
local unique = {}

-- The number, as a text, and the head of the message that holds the key; nil: there is none. The
-- caller has expired all that is due.
function unique.find(key)
    local n = call('HGET', M, 'u' .. key)
    local text = n and call('HGET', M, n)
    if text then return n, unpack_head(text) end
end

-- A new message gets details, and holds their key if it may (store_holds_key()).
function unique.add(ch, n, text)
    add_words(ch, 'hset', 'e' .. n, text)
    local d = unpack_details(text)
    if d.key ~= '' and d.dead == 0 then add_words(ch, 'hset', 'u' .. d.key, n) end
end

-- A message with these details does not hold their key any more, if it did.
function unique.free(ch, n, d)
    if d.key ~= '' and call('HGET', M, 'u' .. d.key) == n then add_words(ch, 'hdel', 'u' .. d.key) end
end

-- Removes a key that is held until the first claim. Returns the details afterwards, as a text ('': none).
function unique.claim(text)
    local d = unpack_details(text)
    if d.until_claimed == 0 then return text end
    d.key, d.until_claimed, d.due = '', 0, 0
    return d.released == 0 and d.dead == 0 and d.origin == '' and '' or pack_details(d)
end

local function count_returned(by)
    call('HINCRBY', Q, 'p', by)
end

-- The number of dead letters. (An old claimd does not count messages that were put back.)
local function count_dead_letters(w, returned)
    return math.max(0, w.dead_letters - (returned or 0))
end

-- Adds a message at the end of the queue and returns its number, as a text. `head` is packed and contains expires,
-- ready and claim as well. `id`: the original id; or nil.
local function append_message(w, ch, body, head, expires, ready, claim, id)
    local number = w.last + 1
    local n = digits(number)
    w.last, w.bytes = number, w.bytes + #body
    add_words(ch, 'hset', n, head)
    add_words(ch, 'hset', 'b' .. n, body)
    if id then
        add_words(ch, 'hset', 'f' .. id, n)
        w.dead_letters, w.rare_changed = w.dead_letters + 1, true
    end
    if claim > 0 then
        w.claimed = w.claimed + 1
        add_words(ch, 'zadd', digits(number + UNREADY), n)
        add_deadline(ch, expires, n)
    elseif ready > 0 then
        w.delayed = w.delayed + 1
        add_words(ch, 'zadd', digits(number + UNREADY), n)
        add_deadline(ch, ready, n)
    else
        w.ready_changed = true
        add_words(ch, 'zadd', n, n)
        add_deadline(ch, expires, n)
    end
    return n
end

-- Removes a message. `n`: its number, as a text. `h`: its head. `d`: its details, if the caller has read them.
local function remove_message(w, ch, n, h, d)
    add_words(ch, 'hdel', n, 'b' .. n)
    if h.posted % 1 > 0 then
        unique.free(ch, n, d or read_details(n, h))
        add_words(ch, 'hdel', 'e' .. n)
    end
    if h.flags >= HAS_ID then
        add_words(ch, 'hdel', 'f' .. sub(h.rest, -24))
        w.dead_letters, w.rare_changed = w.dead_letters - 1, true
        if h.flags >= RETURNED then count_returned(-1) end
    end
    add_words(ch, 'zrem', n)
    add_words(ch, 'trem', n)
    w.bytes = w.bytes - h.size
    if h.claim > 0 then
        w.claimed = w.claimed - 1
        claim_lose_message(w, ch, h.claim)
    elseif h.ready > 0 then
        w.delayed = w.delayed - 1
    end
end

-- Ends a claim and requeues all messages that it holds. `less` is subtracted from their claim counts.
local function release_claim(w, ch, c, less)
    local numbers = claim_numbers(c)
    w.ready_changed = true
    local heads, before = fields_of(M, numbers), w.claimed
    for i, number in ipairs(numbers) do
        local h = heads[i] and unpack_head(heads[i])
        if h and h.claim == c.number then
            h.claim = 0
            h.count = h.count - less
            local n = digits(number)
            add_words(ch, 'hset', n, pack_head(h))
            add_words(ch, 'zadd', n, n)
            w.claimed = w.claimed - 1
        end
    end
    count_messages(w, 'requeued', before - w.claimed)
    end_claim(w, ch, c)
end

-- The TTL of a claim and the minimum lifetime of its messages (ms). Its terms begin at ARGV[at]: TTL and grace (s),
-- maximum lifetime (s). A negative TTL or grace is -1 minus the default of the server: that of the queue has priority.
local function read_terms(at)
    local ttl, grace = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
    if ttl < 0 or grace < 0 then
        local own_ttl, own_grace = read_claim_defaults()
        if ttl < 0 then ttl = own_ttl >= 0 and own_ttl or -1 - ttl end
        if grace < 0 then grace = own_grace >= 0 and own_grace or -1 - grace end
    end
    return 1000 * ttl, 1000 * math.min(ttl + grace, tonumber(ARGV[at + 2]))
end

-- Restarts a claim of this client for `ttl` ms. Its messages live for `life` ms at least. Commits the changes.
local function renew_claim(w, ch, c, ttl, life, client)
    local lives, most, last = deadline(w, life), attempts(read_settings(w)), false
    for _, number in ipairs(claim_numbers(c)) do
        local n = digits(number)
        local text = call('HGET', M, n)
        local h = text and unpack_head(text)
        if h and h.claim == c.number then
            last = last or h.count >= most
            if h.expires < lives then
                h.expires = lives
                add_words(ch, 'hset', n, pack_head(h))
                add_deadline(ch, lives, n)
            end
        end
    end
    c.started, c.ends, c.changed = w.now, deadline(w, ttl), true
    set_claim_end(w, ch, c.ends, c.name, last)
    mark_holder(ch, c.number, client)
    commit(w, ch)
end

-- Counts an expired message. counts: x all, xu unread ones, xl dead letters.
local function count_expired(w, counts, h)
    counts.x = counts.x + 1
    if h.count == 0 and w.listeners == 0 then counts.xu = counts.xu + 1 end
    if is_dead_letter(h.flags) then counts.xl = counts.xl + 1 end
end

-- The messages of an expired claim that are dead letters: n, h as in remove_message(). A message that expired before
-- its claim is none.
local function exhausted_messages(w, c)
    local most, found = attempts(read_settings(w)), {}
    if most == math.huge then return found end
    local numbers = claim_numbers(c)
    local heads = fields_of(M, numbers)
    for i, number in ipairs(numbers) do
        local h = heads[i] and unpack_head(heads[i])
        if h and h.claim == c.number and h.expires > c.ends and h.count >= most then
            found[#found + 1] = { n = digits(number), h = h }
        end
    end
    return found
end

-- Ends a claim that is due. `move` moves dead letters, and returns false if some are left. False: the claim has not
-- ended.
local function expire_claim(w, number, move)
    local ch = changes()
    local c = read_claim(ch, number)
    if not c then return true end -- its last message has just expired
    local dead = exhausted_messages(w, c)
    if #dead > 0 then
        if not (move and move(ch, dead)) then return false, c.ends end
        ch = changes()
        c = read_claim(ch, number)
    end
    if c then release_claim(w, ch, c, 0) end
    commit(w, ch)
    return true
end

-- Expires what is due, earliest first. False: more may be due, or dead letters have to move first. The caller returns
-- EXPIRE_FIRST then. `move`: as for expire_claim(); only queue_expire has it, because other scripts cannot return
-- transfers. nil: claims with dead letters do not end, and w.has_letters is true.
local function expire_due(w, move)
    if not is_due(w) then return true end
    local due = call('ZRANGEBYSCORE', T, '-inf', w.now, 'LIMIT', 0, SLICE)
    if #due > 0 then call('ZREM', T, unpack(due)) end -- first, so that a Redis without memory lets the script go on
    local counts = { x = 0, xu = 0, xl = 0 }
    for i, what in ipairs(due) do
        local ch = changes()
        if byte(what) == 99 then -- 'c': a claim
            local ended, ends = expire_claim(w, tonumber(sub(what, 2)), move)
            if not ended then
                -- It stays before what is left, so that a dead letter cannot expire meanwhile.
                local back = { digits(ends), what }
                for k = i + 1, #due do add_pair(back, digits(w.now), due[k]) end
                call('ZADD', T, unpack(back))
                w.has_letters = true
                break
            end
        elseif byte(what) == 100 then -- 'd': a transfer
            add_words(ch, 'hdel', what)
            add_words(ch, 'trem', what)
        else
            local text = call('HGET', M, what)
            local h = text and unpack_head(text)
            if not h then
                add_words(ch, 'trem', what) -- it was a dead letter of such a claim
            elseif h.expires <= w.now then
                count_expired(w, counts, h)
                remove_message(w, ch, what, h)
            else
                h.ready, w.ready_changed = 0, true
                w.delayed = w.delayed - 1
                add_words(ch, 'hset', what, pack_head(h))
                add_words(ch, 'zadd', what, what)
                add_deadline(ch, h.expires, what)
            end
        end
        commit(w, ch)
    end
    for field, count in pairs(counts) do
        if count > 0 then call('HINCRBY', Q, field, count) end
    end
    w.due = tonumber(call('ZRANGE', T, 0, 0, 'WITHSCORES')[2])
    save_queue(w)
    return #due < SLICE and not w.has_letters
end

-- The number in an id of this queue, as a text; nil: the id is of another queue, or not assigned yet.
local function number_of_id(w, id)
    local number = #id == 24 and sub(id, 1, 8) == w.tag and tonumber(sub(id, 9), 16)
    return number and number <= w.last and digits(number) or nil
end

local function has_original_id(text)
    return select(7, unpack_struct(HEAD, text)) >= HAS_ID
end

-- The number, as a text, and the head of the message with this id; nil: there is none. A message with an original id
-- is not found by its number.
local function find_message(w, id)
    local n = number_of_id(w, id)
    local text = n and call('HGET', M, n)
    if text and not has_original_id(text) then return n, text end
    n = #id == 24 and call('HGET', M, 'f' .. id)
    if n then return n, call('HGET', M, n) end
    return nil
end

-- The live claim with this id; nil: there is none.
local function find_claim(ch, id)
    if #id ~= 24 then return nil end
    local c = read_claim(ch, tonumber(sub(id, 13), 16) or 0)
    return c and c.secret == sub(id, 1, 12) and c or nil
end

-- The number that a marker stands for: an id of a message, also of a removed one, or a number. 0: no marker.
local function find_marker(w, text)
    local n
    if #text == 24 then
        n = tonumber(find_message(w, text) or number_of_id(w, text))
    elseif #text < 17 and string.match(text, '^%d+$') then
        n = tonumber(text)
    end
    return n and n <= w.last and n or 0
end

-- The next numbers after `at`, at most `count`. `others`: also claimed and delayed messages. The second result is
-- true if there are no more.
local function numbers_behind(at, others, count)
    local function some(base, to)
        return call('ZRANGEBYSCORE', Z, '(' .. string.format('%.0f', base + at), to, 'LIMIT', 0, count)
    end

    local free, other = some(0, BELOW_UNREADY), others and some(UNREADY, '+inf') or {}
    local numbers, i, k = {}, 1, 1
    while #numbers < count and (free[i] or other[k]) do
        local a, b = tonumber(free[i]), tonumber(other[k])
        if a and (not b or a < b) then
            numbers[#numbers + 1], i = a, i + 1
        else
            numbers[#numbers + 1], k = b, k + 1
        end
    end
    return numbers, #numbers < count
end

-- The id of the claim that holds the message; '': it is not claimed. `known` keeps the ids by number, because the
-- record of a claim is as long as its list of messages.
local function claim_id_of(known, h)
    if h.claim == 0 then return '' end
    local id = known[h.claim]
    if not id then
        local secret = select(4, unpack_struct(CLAIM, call('HGET', M, 'c' .. h.claim)))
        id = secret .. string.format('%012x', h.claim)
        known[h.claim] = id
    end
    return id
end

-- Adds number, head (with the details), body and claim id of a message to a response.
local function add_message(out, n, head, body, claim)
    local at = #out
    out[at + 1], out[at + 2], out[at + 3], out[at + 4] = n, head, body, claim
end

-- Adds the messages that a claim still holds, oldest first.
local function add_messages_of_claim(out, c)
    local words, id = {}, c.secret .. string.format('%012x', c.number)
    for _, number in ipairs(claim_numbers(c)) do
        local n = digits(number)
        add_pair(words, n, 'b' .. n)
    end
    local found = fields_of(M, words)
    for i = 1, #words, 2 do
        local h = found[i] and unpack_head(found[i])
        if h and h.claim == c.number then
            add_message(out, words[i], found[i] .. details_text(words[i], h.posted), found[i + 1], id)
        end
    end
end

-- Adds all chosen messages.
local function add_chosen(out, chosen)
    for i, n in ipairs(chosen.names) do add_message(out, n, chosen.heads[i], chosen.bodies[i], '') end
    return out
end

local function id_of(w, n, h)
    return h.flags >= HAS_ID and sub(h.rest, -24) or w.tag .. string.format('%016x', n)
end

-- The oldest ready messages after those that are reserved for other waiters: numbers as texts (names), heads, bodies.
local function choose_ready(w, limit, reserved)
    local names = call('ZRANGEBYSCORE', Z, '(0', BELOW_UNREADY, 'LIMIT', digits(reserved), digits(limit))
    local chosen = { names = names, heads = {}, bodies = {} }
    if #names > 0 then
        local words = {}
        for i, n in ipairs(names) do
            words[2 * i - 1], words[2 * i] = n, 'b' .. n
        end
        local found = fields_of(M, words)
        for i = 1, #names do
            chosen.heads[i], chosen.bodies[i] = found[2 * i - 1], found[2 * i]
        end
    end
    return chosen
end

-- The response that refuses the chosen messages; nil: they can be delivered. `capacity`: bytes of bodies that fit (0: any
-- number). ARGV has the ids of decrypted messages from `from` on, or '-': encrypted bodies are fine.
local function check_chosen(w, chosen, capacity, from)
    local bytes = 0
    for _, body in ipairs(chosen.bodies) do bytes = bytes + #body end
    if capacity > 0 and bytes > capacity then return { OVER_CAPACITY, bytes } end
    if ARGV[from] == '-' then return nil end
    local opened = {}
    for i = from, #ARGV do opened[ARGV[i]] = true end
    for i, body in ipairs(chosen.bodies) do
        if byte(body) == 1 and not opened[id_of(w, tonumber(chosen.names[i]), unpack_head(chosen.heads[i]))] then
            return add_chosen({ SEALED, w.now, w.tag }, chosen)
        end
    end
    return nil
end
