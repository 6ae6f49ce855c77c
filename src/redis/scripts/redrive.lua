-- Puts back ready dead letters: those of one target, oldest first, at most 64.
--   ARGV    number to go on at, or index in the ids; limit, target ('': the queues from which they came), name of the
--           queue, 1: keep the claim counts, 1: only count, 1: only messages with the ids, ids ...
--   returns OK, target, number of messages, of those without an origin that were skipped, of dead letters left, where to
--           go on (-1: that is all); '', [transfer, what is in it] ... | CONFLICT: the target is the queue itself
--   cost    O(messages examined · log n), 1024 at most
local w = open_queue()
if not w then return { NOT_FOUND } end
if ARGV[4] == ARGV[5] then return { CONFLICT } end
if not expire_due(w) then return { EXPIRE_FIRST } end
local at, limit, to, own = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local keeps_count, dry, by_id = ARGV[6] == '1', ARGV[7] == '1', ARGV[8] == '1'
local left, done, names, heads, k = 1024, count_dead_letters(w, call('HGET', Q, 'p')) == 0, {}, {}, 1
local gone = {} -- numbers of moved messages, because an id may be there twice

local function skip()
    at, k, left = at + 1, k + 1, left - 1
end

-- The number, as a text, and the packed head of the message at `at`; nil: there is none. Moves `at` to the next ready
-- message if there is no list of ids.
local function message_here()
    if by_id then
        if at < #ARGV - 8 then return find_message(w, ARGV[9 + at]) end
        done = true
        return nil
    end
    if not names[k] then
        names, k = call('ZRANGEBYSCORE', Z, math.max(at, 1), BELOW_UNREADY, 'LIMIT', 0, 64), 1
        if #names == 0 then
            done = true
            return nil
        end
        heads = call('HMGET', M, unpack(names))
    end
    at = tonumber(names[k])
    return names[k], heads[k]
end

-- The next ready dead letter.
local function next_dead_letter()
    while left > 0 and not done do
        local n, text = message_here()
        local h = n and unpack_head(text)
        if h and h.claim == 0 and h.ready == 0 and is_dead_letter(h.flags) and not gone[n] then
            return n, h
        end
        if not done then skip() end
    end
end

local ch, words, target, moved, unknown, bytes = changes(), {}, '', 0, 0, 0
if not dry then lease_old_transfers(w, words) end -- before new ones join them
while moved < limit do
    local n, h = next_dead_letter()
    if not n then break end
    local d = read_details(n, h)
    local goal = to ~= '' and to or d.origin ~= own and d.origin or ''
    if goal == '' then
        unknown = unknown + 1
    else
        if target ~= '' and goal ~= target then break end
        if not dry and (moved == 64 or bytes >= 1048576) then break end
        target, moved = goal, moved + 1
        if not dry then
            local body, id, sum = call('HGET', M, 'b' .. n), id_of(w, tonumber(n), h), checksum_of(h)
            d.origin, d.dead, bytes, gone[n] = '', 0, bytes + #body, true
            remove_message(w, ch, n, h)
            if not keeps_count then h.count = 0 end
            transfer_message(w, words, BACK, target, n, h, id, sum, d.released > 0 and pack_details(d) or '', body)
        end
    end
    skip()
end
if moved > 0 and not dry then
    commit(w, ch)
    save_queue(w)
end
local out = { OK, target, moved, unknown, count_dead_letters(w, call('HGET', Q, 'p')), done and -1 or at, '' }
for _, word in ipairs(words) do out[#out + 1] = word end
return out
