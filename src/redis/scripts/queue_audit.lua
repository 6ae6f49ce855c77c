-- Checks that all data of the queue is consistent. For tests.
--   returns OK, and the first inconsistency, if there is one
--   cost    O(everything)
--   changes nothing
local w = open_queue()
if not w then return { NOT_FOUND } end
local ch, seen = changes(), { claimed = 0, delayed = 0, bytes = 0, dead_letters = 0, messages = 0, transfers = 0,
    details = 0, returned = 0, keys = 0 }
local of_claim, least = {}, math.huge

local function differs(what, a, b)
    if tostring(a) ~= tostring(b) then
        error({ what .. ': ' .. tostring(a) .. ' and ' .. tostring(b) })
    end
end

local function look()
    for i, what in ipairs(call('ZRANGE', T, 0, -1, 'WITHSCORES')) do
        if i % 2 == 0 then least = math.min(least, tonumber(what)) end
        if i % 2 == 1 and byte(what) == 100 then seen.transfers = seen.transfers + 1 end
    end
    local numbers = call('ZRANGE', Z, 0, -1, 'WITHSCORES')
    for i = 1, #numbers, 2 do
        local n = numbers[i]
        if n ~= '' then
            local m = call('HMGET', M, n, 'b' .. n)
            local h = unpack_head(m[1])
            seen.messages, seen.bytes = seen.messages + 1, seen.bytes + #m[2]
            differs('size of ' .. n, h.size, #m[2])
            differs('number ' .. n .. ' is later', tonumber(n) <= w.last, true)
            local apart = h.claim > 0 or h.ready > 0
            differs('place of ' .. n, tonumber(numbers[i + 1]), tonumber(n) + (apart and UNREADY or 0))
            differs('deadline of ' .. n, tonumber(call('ZSCORE', T, n)),
                h.claim == 0 and h.ready > 0 and h.ready or h.expires)
            if h.claim > 0 then
                seen.claimed = seen.claimed + 1
                of_claim[h.claim] = (of_claim[h.claim] or 0) + 1
            elseif h.ready > 0 then
                seen.delayed = seen.delayed + 1
            end
            if h.flags >= HAS_ID then
                seen.dead_letters = seen.dead_letters + 1
                differs('id of ' .. n, call('HGET', M, 'f' .. sub(h.rest, -24)), n)
            end
            differs('length of the head of ' .. n, #h.rest, (h.flags % 2) * 16 + (h.flags >= HAS_ID and 24 or 0))
            differs('flags of ' .. n, h.flags < 4 or h.flags == 6 or h.flags == 7, true)
            if h.flags >= RETURNED then seen.returned = seen.returned + 1 end
            local details = call('HGET', M, 'e' .. n)
            differs('details of ' .. n, details and true, h.posted % 1 == 0.5)
            if details then
                local d = read_details(n, h)
                seen.details = seen.details + 1
                differs('details of ' .. n .. ' as a text', pack_details(d), details)
                differs(n .. ' is a dead letter', d.dead > 0, is_dead_letter(h.flags))
                if d.key ~= '' and d.dead == 0 then
                    seen.keys = seen.keys + 1
                    differs('holder of the key of ' .. n, call('HGET', M, 'u' .. d.key), n)
                end
            end
        end
    end
    local claims, holders = 0, 0
    for number, claimed in pairs(of_claim) do
        local c = read_claim(ch, number)
        differs('claim ' .. number, c and c.left, claimed)
        differs('end of claim ' .. number, tonumber(call('ZSCORE', T, 'c' .. number)), c.ends)
        differs('claim ' .. number .. ' is created before it starts',
            tonumber(call('ZSCORE', T, 'k' .. number)) <= c.started + UNREADY, true)
        claims, holders = claims + 1, holders + call('HEXISTS', M, 'h' .. number)
    end
    differs('claims', w.claims, claims)
    for _, what in ipairs({ 'claimed', 'delayed', 'bytes', 'dead_letters' }) do differs(what, w[what], seen[what]) end
    differs('put back', tonumber(call('HGET', Q, 'p') or 0), seen.returned)
    differs('in transfer', w.in_transfer, call('HLEN', X) - 1)
    differs('fields', call('HLEN', M),
        1 + 2 * seen.messages + seen.details + seen.dead_letters + seen.keys + claims + holders + seen.transfers)
    differs('deadlines', call('ZCARD', T), 1 + seen.messages + 2 * claims + seen.transfers)
    differs('nothing is due before it should be', w.due <= least, true)
end

local good, why = pcall(look)
if good then return { OK } end
return { OK, type(why) == 'table' and why[1] or tostring(why) }
