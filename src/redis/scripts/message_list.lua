-- Returns a page of messages, oldest first.
--   ARGV    marker (an id or a number; '': none), number to go on after instead (0: none), limit, 1: include claimed
--           ones, 1: include delayed ones, client whose messages are left out ('': none)
--   returns OK | AGAIN, now, tag, number of the last message examined, [number, head, body, claim id] ...
--   cost    O(messages examined, 1024 at most)
--   changes nothing
local w = open_queue()
if not w then return { OK, 0, '', 0 } end
if is_due(w) then return { EXPIRE_FIRST, 0, '', ARGV[3] } end
local at, limit = tonumber(ARGV[3]), tonumber(ARGV[4])
if at == 0 and ARGV[2] ~= '' then
    at = find_marker(w, ARGV[2])
end
local with_claimed, with_delayed, hidden = ARGV[5] == '1', ARGV[6] == '1', ARGV[7]
local out, found, examined = { OK, w.now, w.tag, at }, 0, 0
local done, known = false, {}

while found < limit and examined < 1024 and not done do
    local numbers
    numbers, done = numbers_behind(at, with_claimed or with_delayed, math.min(limit - found, 1024 - examined))
    if #numbers == 0 then break end
    local heads = call('HMGET', M, unpack(numbers))
    for i, n in ipairs(numbers) do
        local h = unpack_head(heads[i])
        at, examined = n, examined + 1
        if (with_claimed or h.claim == 0) and (with_delayed or h.ready == 0) and h.client ~= hidden then
            add_message(out, n, heads[i] .. details_text(n, h.posted), call('HGET', M, 'b' .. n), claim_id_of(known, h))
            found = found + 1
        end
    end
end
out[4] = at
if found == 0 and not done then out[1] = AGAIN end
return out
