-- Subscriptions in the order of creation.
--   ARGV    marker (an id or a number; '': none), how many, tag of the queue ('': whichever it is)
--   returns OK, now, what lib/subscriptions.lua shows, of each
--   cost    O(log subscriptions + those looked at)
--   changes nothing
local w = enter()
if not w or w.feed == 0 or ARGV[4] ~= '' and ARGV[4] ~= w.tag then return { OK, 0 } end
if not S then return { FEED } end
local f, marker = feed_of(w), ARGV[2]
local behind = #marker == 24 and tonumber(sub(marker, 13), 16) or string.match(marker, '^%d+$') and tonumber(marker) or 0
if behind > f.subscribed then behind = 0 end
local out, found = { OK, w.now }, 0
local limit = tonumber(ARGV[3])
repeat
    local numbers = range(behind + 1, CURSORS, 'LIMIT', 0, limit - found)
    for _, text in ipairs(numbers) do
        behind = tonumber(text)
        local s = subscription(w, behind)
        if s then
            show_subscription(out, f, behind, s)
            found = found + 1
        end
    end
until #numbers == 0 or found == limit
return out
