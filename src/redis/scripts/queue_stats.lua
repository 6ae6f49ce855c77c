-- Counts the messages, and returns the oldest and the newest.
--   returns OK, now, tag, claimed, total, [number, head] of the oldest and of the newest
--   cost    O(log n)
--   changes nothing
local w = open_queue()
if not w then return { NOT_FOUND } end
if is_due(w) then return { EXPIRE_FIRST } end
local total = call('ZCARD', Z) - 1
if total == 0 then return { OK, w.now, w.tag, 0, 0 } end

-- Ready messages and the others are two separate ranges of Z.
local function first(command, from, to)
    local one = call(command, Z, from, to, 'LIMIT', 0, 1)
    return tonumber(one[1])
end

local function with_head(n)
    return n, call('HGET', M, n)
end

local free, other = first('ZRANGEBYSCORE', '(0', BELOW_UNREADY), first('ZRANGEBYSCORE', UNREADY_TEXT, '+inf')
local oldest = not other and free or not free and other or math.min(free, other)
free, other = first('ZREVRANGEBYSCORE', BELOW_UNREADY, '(0'), first('ZREVRANGEBYSCORE', '+inf', UNREADY_TEXT)
local newest = not other and free or not free and other or math.max(free, other)
local old_n, old_head = with_head(oldest)
local new_n, new_head = with_head(newest)
return { OK, w.now, w.tag, w.claimed, total, old_n, old_head, new_n, new_head }
