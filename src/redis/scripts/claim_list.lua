-- Returns the live claims of the queue, oldest first.
--   ARGV    id ('': all claims); limit; creation (ms) and number of the claim behind which the page begins (0, 0: none)
--   returns OK, now, base, 1: there are more, [number, id, creation (ms), end (ms), number of messages, Client-ID] ...
--   cost    O(log claims + claims of the page)
--   changes nothing
local w = open_queue()
if not w then return { NOT_FOUND } end
if is_due(w) then return { EXPIRE_FIRST } end
local out, limit, created = { OK, w.now, w.base, 0 }, tonumber(ARGV[3]), tonumber(ARGV[4])

local function add_claim(c, ms)
    local id = c.secret .. format('%012x', c.number)
    for _, word in ipairs({ c.number, id, ms, c.ends, c.left, call('HGET', M, 'h' .. digits(c.number)) or '' }) do
        out[#out + 1] = word
    end
end

if ARGV[2] ~= '' then
    local c = find_claim(changes(), ARGV[2])
    if c then add_claim(c, (tonumber(call('ZSCORE', T, 'k' .. digits(c.number))) or c.started + UNREADY) - UNREADY) end
    return out
end
local behind, found, numbers, ms = tonumber(ARGV[5]), 0, {}, 0

-- Adds the claims of one millisecond. True: the page is full, and there are more.
local function add_claims()
    table.sort(numbers)
    for _, number in ipairs(numbers) do
        local c = (ms > created or number > behind) and read_claim(changes(), number)
        if c and found == limit then return true end
        if c then
            add_claim(c, ms)
            found = found + 1
        end
    end
    numbers = {}
    return false
end

local at = 0
repeat
    local marks = call('ZRANGEBYSCORE', T, digits(created + UNREADY), '(inf', 'LIMIT', at, limit + 1, 'WITHSCORES')
    for i = 1, #marks, 2 do
        local next_ms = tonumber(marks[i + 1]) - UNREADY
        if next_ms ~= ms and add_claims() then
            out[4] = 1
            return out
        end
        ms = next_ms
        numbers[#numbers + 1] = tonumber(sub(marks[i], 2))
    end
    at = at + limit + 1
until #marks <= 2 * limit
if add_claims() then out[4] = 1 end
return out
