-- A page of messages, oldest first.
--   ARGV    marker (an id or a number; '': none), number to go on behind instead (0: none), how many,
--           include held, include delayed, hide the client ('': none)
--   returns OK | AGAIN, now, tag, number of the last one looked at, [number, head, body] ...
--   cost    O(messages looked at, 1024 at most)
--   changes nothing
local w = enter()
if not w then return { OK, 0, '', 0 } end
if is_due(w) then return { SETTLE, 0, '', ARGV[3] } end
local at, limit = tonumber(ARGV[3]), tonumber(ARGV[4])
if at == 0 and ARGV[2] ~= '' then
    at = find_marker(w, ARGV[2])
end
local with_held, with_delayed, hidden = ARGV[5] == '1', ARGV[6] == '1', ARGV[7]
local out, found, looked = { OK, w.now, w.tag, at }, 0, 0
local done = false

while found < limit and looked < 1024 and not done do
    local numbers
    numbers, done = numbers_behind(at, with_held or with_delayed, math.min(limit - found, 1024 - looked))
    if #numbers == 0 then break end
    local heads = call('HMGET', M, unpack(numbers))
    for place, n in ipairs(numbers) do
        local h = head_of(heads[place])
        at, looked = n, looked + 1
        if (with_held or h.claim == 0) and (with_delayed or h.ready == 0) and h.client ~= hidden then
            out[#out + 1] = n
            out[#out + 1] = heads[place]
            out[#out + 1] = call('HGET', M, 'b' .. n)
            out[#out + 1] = holder_of(h)
            found = found + 1
        end
    end
end
out[4] = at
if found == 0 and not done then out[1] = AGAIN end
return out
