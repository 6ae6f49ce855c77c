-- show: messages and who holds them. After messages.

-- The id of the claim that holds a message; '': it is free.
local function holder_of(h)
    if h.claim == 0 then return '' end
    local secret = select(4, unpack_struct(CLAIM, call('HGET', M, 'c' .. h.claim)))
    return secret .. string.format('%012x', h.claim)
end

-- Adds number, head, body and claim of a message, if it is there.
local function show(out, n)
    local m = call('HMGET', M, n, 'b' .. n)
    if m[1] then
        local at = #out
        out[at + 1], out[at + 2], out[at + 3], out[at + 4] = n, m[1], m[2], holder_of(head_of(m[1]))
    end
end

