-- A claim, and what it still holds, oldest first.
--   ARGV    id
--   returns OK, now, tag, number, base, started, ends, [number, head, body, claim id] ...
--   cost    O(messages of the claim)
--   changes nothing
local w = enter()
if not w then return { NOT_FOUND } end
if is_due(w) then return { SETTLE } end
local c = find_claim(changes(), ARGV[2])
if not c then return { NOT_FOUND } end
local out = { OK, w.now, w.tag, c.number, w.base, c.started, c.ends }
for _, n in ipairs(numbers_of(c)) do
    local text = call('HGET', M, n)
    if text and head_of(text).claim == c.number then show(out, n) end
end
return out
