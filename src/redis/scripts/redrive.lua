-- Puts back ready dead letters: those of one target, oldest first, at most 64.
--   ARGV    number to go on at, or index in the ids; limit, target ('': the queues from which they came), name of the
--           queue, 1: keep the claim counts, 1: only count, 1: only messages with the ids, target that was asked for keys
--           ('': none was), its response (unique_find), keys ...; ids ...
--   returns OK, target, number of messages, of those without an origin that were skipped, of those that were skipped because
--           their key is held, of dead letters left, where to go on (-1: that is all); '', [transfer, what is in it]
--           of each message, then of leased ones ... | AGAIN, likewise; keys for which the caller must ask the target
--           first ..., '' | CONFLICT: the target is the queue itself
--   cost    O(messages examined · log n), 1024 at most
local w = open_queue()
if not w then return { NOT_FOUND } end
if ARGV[4] == ARGV[5] then return { CONFLICT } end
if not expire_due(w) then return { EXPIRE_FIRST } end
local at, limit, to, own = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local keeps_count, dry, by_id = ARGV[6] == '1', ARGV[7] == '1', ARGV[8] == '1'
local left, done, names, heads, k = 1024, count_dead_letters(w, call('HGET', Q, 'p')) == 0, {}, {}, 1
local gone = {} -- numbers of chosen messages, because an id may be there twice
local ids = 11 + #ARGV[10]

local function skip()
    at, k, left = at + 1, k + 1, left - 1
end

-- The number, as a text, and the packed head of the message at `at`; nil: there is none. Moves `at` to the next ready
-- message if there is no list of ids.
local function message_here()
    if by_id then
        if ids + at <= #ARGV then return find_message(w, ARGV[ids + at]) end
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

local target, unknown, key_held, bytes, chosen, keys = '', 0, 0, 0, {}, {}
local asked, held = ARGV[9] ~= '' and ARGV[9], {} -- held: by key, also of chosen messages; nil: not known
for i = 1, #ARGV[10] do held[ARGV[10 + i]] = sub(ARGV[10], i, i) == '1' end

while #chosen < limit do
    local n, h = next_dead_letter()
    if not n then break end
    local d = read_details(n, h)
    local goal = to ~= '' and to or d.origin ~= own and d.origin or ''
    if goal == '' then
        unknown = unknown + 1
    else
        if target ~= '' and goal ~= target then break end
        local has_key = d.key ~= ''
        if asked and has_key and not (asked == goal and held[d.key] ~= nil) then break end -- for another call
        if not dry and (#chosen == 64 or bytes >= 1048576) then break end
        target = goal
        if has_key and held[d.key] then
            key_held = key_held + 1
        else
            chosen[#chosen + 1] = { n = n, h = h, d = d }
            bytes, gone[n] = bytes + h.size, true
            if has_key then held[d.key], keys[#keys + 1] = true, d.key end
        end
    end
    skip()
end

local function respond(status, moved, words)
    return { status, target, moved, unknown, key_held, count_dead_letters(w, call('HGET', Q, 'p')), done and -1 or at, unpack(words) }
end

keys[#keys + 1] = ''
if not asked and #keys > 1 then return respond(AGAIN, 0, keys) end
local ch, words, leased = changes(), { '' }, {}
if not dry then lease_old_transfers(w, leased) end -- before new ones join them
for _, m in ipairs(dry and {} or chosen) do
    local n, h, d = m.n, m.h, m.d
    local body, id, sum, kind = call('HGET', M, 'b' .. n), id_of(w, tonumber(n), h), checksum_of(h), BACK_UNIQUE
    remove_message(w, ch, n, h, d)
    if not keeps_count then h.count = 0 end
    if d.key == '' then
        cause.forget(d)
        kind = BACK
    end
    local details = (d.key ~= '' or d.released > 0) and pack_details(d) or ''
    transfer_message(w, words, kind, target, n, h, id, sum, details, body)
end
if #chosen > 0 and not dry then
    commit(w, ch)
    save_queue(w)
end
for _, word in ipairs(leased) do words[#words + 1] = word end
return respond(OK, #chosen, words)
