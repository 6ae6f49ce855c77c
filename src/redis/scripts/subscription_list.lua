-- Returns subscriptions in the order of creation.
--   ARGV    marker (an id or a number; '': none), limit, tag of the queue ('': any)
--   returns OK, now, the words of add_subscription_words() for each
--   cost    O(log subscriptions + those examined)
--   changes nothing
local w = open_queue()
if not w or w.feed == 0 or ARGV[4] ~= '' and ARGV[4] ~= w.tag then return { OK, 0 } end
if not S then return { NEEDS_FEED } end
local f, marker = read_feed(w), ARGV[2]
local behind = #marker == 24 and tonumber(sub(marker, 13), 16) or string.match(marker, '^%d+$') and tonumber(marker) or 0
if behind > f.subscribed then behind = 0 end
local out, found = { OK, w.now }, 0
local limit = tonumber(ARGV[3])
repeat
    local numbers = subscriptions_in(behind + 1, CURSORS, 'LIMIT', 0, limit - found)
    for _, text in ipairs(numbers) do
        behind = tonumber(text)
        local s = subscription_by_number(w, behind)
        if s then
            add_subscription_words(out, f, behind, s)
            found = found + 1
        end
    end
until #numbers == 0 or found == limit
return out
