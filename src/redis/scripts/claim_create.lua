-- Claims the oldest messages that are free, and takes dead letters out of its way.
--   ARGV    secret of a new claim, ttl and life of what it holds (ms), how many, how many are
--           reserved for other waiters, room for bodies (0: any), the queue's name, seconds that a dead letter
--           lives at least, ids that are opened ('-': as they are) ...
--   returns OK | NO_ROOM | SEALED | AGAIN, now, tag, number of the claim (0: none), base of numbers,
--           [number, head, body, ''] ..., '', [transfer, letter] ...; NO_ROOM: the number is how much they have
--   cost    O(messages · log n), 64 dead letters at most
local w = enter()
if not w then return { OK, 0, '', 0, 0 } end
if not settle(w) then return { AGAIN, 0, '', 0, 0 } end
local set, limit, reserved, letters = settings(w), tonumber(ARGV[5]), tonumber(ARGV[6]), {}
old_dead_letters(w, letters)
local taken = choose(w, limit, reserved)
if set[4] >= 0 and set[6] ~= '' then
    local slices, stirred = 0, false
    while move_dead_letters(w, set, taken, letters, ARGV[8], tonumber(ARGV[9])) > 0 do
        slices, stirred = slices + 1, true
        if #letters >= 128 or slices == 16 then
            leave(w)
            return { AGAIN, w.now, w.tag, 0, 0, '', unpack(letters) }
        end
        taken = choose(w, limit, reserved)
    end
    if stirred then leave(w) end
end

local function answer(status, number)
    local out = { status, w.now, w.tag, number, w.base }
    if status ~= NO_ROOM then
        for i, n in ipairs(taken.names) do
            local at = #out
            out[at + 1], out[at + 2], out[at + 3], out[at + 4] = n, taken.heads[i], taken.bodies[i], ''
        end
    end
    out[#out + 1] = ''
    for _, word in ipairs(letters) do out[#out + 1] = word end
    return out
end

local refusal = refused(w, taken, tonumber(ARGV[7]), 10)
if refusal then return answer(refusal[1], refusal[1] == NO_ROOM and refusal[2] or 0) end
if #taken.names == 0 then return answer(OK, 0) end
local ch, number = changes(), w.last_claim + 1
local ends, lives = deadline(w, tonumber(ARGV[3])), deadline(w, tonumber(ARGV[4]))
local numbers = {}
for i, n in ipairs(taken.names) do
    local old, at = taken.heads[i], tonumber(n)
    local posted, expires, ready, _, count, size, flags, client, rest = unpack_struct(HEAD, old)
    put(ch, 'zadd', digits(at + HELD), n)
    if expires < lives then
        expires = lives
        falls_due(ch, lives, n)
    end
    local head = pack(HEAD, posted, expires, ready, number, count + 1, size, flags, client) .. sub(old, rest)
    taken.heads[i], numbers[i] = head, pack('<d', at)
    put(ch, 'hset', n, head)
end
local name = 'c' .. digits(number)
put(ch, 'hset', name, pack(CLAIM, w.now, ends, #numbers, ARGV[2]) .. table.concat(numbers))
falls_due(ch, ends, name)
mark_created(ch, number, w.now)
w.last_claim, w.held, w.claims = number, w.held + #numbers, w.claims + 1
commit(w, ch)
leave(w)
return answer(OK, number)
