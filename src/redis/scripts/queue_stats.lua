-- How many messages there are, the oldest and the newest.
--   returns OK, now, tag, held, total, [number, head] of both ends
--   cost    O(log n), and a slice of what is due
--   changes nothing
local w = enter()
if not w then return { NOT_FOUND } end
if is_due(w) then return { SETTLE } end
local total = call('ZCARD', Z) - 1
if total == 0 then return { OK, w.now, w.tag, 0, 0 } end

-- Those that are free and those that are not are in an order of their own each.
local function first(command, from, to)
    local one = call(command, Z, from, to, 'LIMIT', 0, 1)
    return tonumber(one[1])
end

local function with_head(n)
    return n, call('HGET', M, n)
end

local free, other = first('ZRANGEBYSCORE', '(0', BELOW_HELD), first('ZRANGEBYSCORE', HELD_TEXT, '+inf')
local oldest = not other and free or not free and other or math.min(free, other)
free, other = first('ZREVRANGEBYSCORE', BELOW_HELD, '(0'), first('ZREVRANGEBYSCORE', '+inf', HELD_TEXT)
local newest = not other and free or not free and other or math.max(free, other)
local old_n, old_head = with_head(oldest)
local new_n, new_head = with_head(newest)
return { OK, w.now, w.tag, w.held, total, old_n, old_head, new_n, new_head }
