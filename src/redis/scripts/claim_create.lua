-- Claims the oldest ready messages, and moves dead letters out of their way.
--   ARGV    secret of the new claim, its terms (lib/messages.lua), limit of messages, number
--           of messages reserved for other waiters, bytes of bodies that fit (0: any), name of the queue, minimum TTL
--           of dead letters (s), Client-ID, ids of decrypted messages ... ('-': encrypted bodies are fine)
--   returns OK | OVER_CAPACITY | SEALED | AGAIN | PAUSED, now, tag, number of the claim (0: none), base, [number, head, body, '']
--   ..., '',
--           [transfer, what is in it] ...; with OVER_CAPACITY the number is the size of the bodies
--   keyed
--   cost    O(messages · log n), 64 dead letters at most
local w = open_queue()
if not w then return { OK, 0, '', 0, 0 } end
if not expire_due(w) then return { EXPIRE_FIRST } end
if claims_paused(w) then return { PAUSED } end
local set, limit, reserved, dead_letters = read_settings(w), tonumber(ARGV[6]), tonumber(ARGV[7]), {}
lease_old_transfers(w, dead_letters)
local chosen, most = choose_ready(w, limit, reserved), attempts(set)
if most < math.huge then
    local slices, moved = 0, false
    local come_back = set[6] == ARGV[9] and w.listeners > 0 -- they arrive after this script
    while move_dead_letters(w, set, chosen, dead_letters, ARGV[9], tonumber(ARGV[10])) > 0 do
        slices, moved = slices + 1, true
        if #dead_letters >= 128 or slices == 16 or come_back then
            save_queue(w)
            return { AGAIN, w.now, w.tag, 0, 0, '', unpack(dead_letters) }
        end
        chosen = choose_ready(w, limit, reserved)
    end
    if moved then save_queue(w) end
end

local function respond(status, number)
    local out = { status, w.now, w.tag, number, w.base }
    if status ~= OVER_CAPACITY then add_chosen(out, chosen) end
    out[#out + 1] = ''
    for _, word in ipairs(dead_letters) do out[#out + 1] = word end
    return out
end

local refusal = check_chosen(w, chosen, tonumber(ARGV[8]), 12)
if refusal then return respond(refusal[1], refusal[1] == OVER_CAPACITY and refusal[2] or 0) end
if #chosen.names == 0 then return respond(OK, 0) end
local ch, number = changes(), w.last_claim + 1
local ttl, life = read_terms(3)
local ends, lives = deadline(w, ttl), deadline(w, life)
local numbers, last = {}, false
for i, n in ipairs(chosen.names) do
    local old, at = chosen.heads[i], tonumber(n)
    local posted, expires, ready, _, count, size, flags, client, rest = unpack_struct(HEAD, old)
    add_words(ch, 'zadd', digits(at + UNREADY), n)
    if expires < lives then
        expires = lives
        add_deadline(ch, lives, n)
    end
    last = last or count + 1 >= most
    local details = details_text(n, posted)
    if details ~= '' then
        local claimed = unique.claim(details)
        if claimed ~= details then
            unique.free(ch, n, unpack_details(details))
            if claimed == '' then
                posted = floor(posted)
                add_words(ch, 'hdel', 'e' .. n)
            else
                add_words(ch, 'hset', 'e' .. n, claimed)
            end
            details = claimed
        end
    end
    local head = pack(HEAD, posted, expires, ready, number, count + 1, size, flags, client) .. sub(old, rest)
    chosen.heads[i], numbers[i] = details ~= '' and head .. details or head, pack('<d', at)
    add_words(ch, 'hset', n, head)
end
local name = 'c' .. digits(number)
add_words(ch, 'hset', name, pack(CLAIM, w.now, ends, #numbers, ARGV[2]) .. table.concat(numbers))
set_claim_end(w, ch, ends, name, last)
mark_created(ch, number, w.now)
mark_holder(ch, number, ARGV[11])
w.last_claim, w.claimed, w.claims = number, w.claimed + #numbers, w.claims + 1
count_messages(w, 'delivered', #numbers)
commit(w, ch)
save_queue(w)
return respond(OK, number)
