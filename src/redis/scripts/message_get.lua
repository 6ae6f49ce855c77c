-- The messages with these ids.
--   ARGV    ids ...
--   returns OK, now, tag, [number, head, body, claim id] ...
--   cost    O(ids)
--   changes nothing
local w = enter()
if not w then return { OK, 0, '' } end
if is_due(w) then return { SETTLE } end
local out = { OK, w.now, w.tag }
for i = 2, #ARGV do
    local n = find(w, ARGV[i])
    if n then show(out, n) end
end
return out
