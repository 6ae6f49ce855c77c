-- pages: messages in their order, whether they are free or not.

-- The next numbers behind one, so many at most, `others` too: those that are held or delayed. Whether
-- there are none behind them.
local function numbers_behind(at, others, count)
    local function some(base, to)
        return call('ZRANGEBYSCORE', Z, '(' .. string.format('%.0f', base + at), to, 'LIMIT', 0, count)
    end

    local free, other = some(0, BELOW_HELD), others and some(HELD, '+inf') or {}
    local numbers, i, k = {}, 1, 1
    while #numbers < count and (free[i] or other[k]) do
        local a, b = tonumber(free[i]), tonumber(other[k])
        if a and (not b or a < b) then
            numbers[#numbers + 1], i = a, i + 1
        else
            numbers[#numbers + 1], k = b, k + 1
        end
    end
    return numbers, #numbers < count
end

