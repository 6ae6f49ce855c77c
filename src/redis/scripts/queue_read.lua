-- Returns a part of the state of a queue: its metadata, and messages with their claims.
--   ARGV    number to go on after, tag from the first part ('': this is the first part)
--   returns OK, now, tag, number to go on after (0: that is all), JSON, settings ..., [number, head, body, claim]
--   ...;
--           claim: '', or started and ends (packed) and its id
--   cost    O(256 messages)
--   changes nothing
local w = open_queue()
if not w or ARGV[3] ~= '' and ARGV[3] ~= w.tag then
    if ARGV[3] == '' then return { NOT_FOUND } end
    return { OK, 0, ARGV[3], 0 }
end
if is_due(w) then return { EXPIRE_FIRST } end
local numbers, done = numbers_behind(tonumber(ARGV[2]), true, 256)
local out, bytes, last = { OK, w.now, w.tag, 0, call('HGET', Q, 'j') }, 0, 0
for _, value in ipairs(read_settings(w)) do out[#out + 1] = tostring(value) end
add_pair(out, read_claim_defaults())
add_pair(out, read_pause(w))
for i, n in ipairs(numbers) do
    local m = call('HMGET', M, n, 'b' .. n)
    local h, holder = unpack_head(m[1]), ''
    if h.claim > 0 then
        local started, ends, _, secret = unpack_struct(CLAIM, call('HGET', M, 'c' .. h.claim))
        holder = pack('<dd', started, ends) .. secret .. string.format('%012x', h.claim)
    end
    add_message(out, n, m[1] .. details_text(n, h.posted), m[2], holder)
    bytes, last = bytes + #m[2], n
    if bytes > 65536 and i < #numbers then
        done = false
        break
    end
end
if not done then out[4] = last end
return out
