-- take: the oldest messages, and whether they can be taken. After messages.

local function id_of(w, n, h)
    return h.flags >= FOREIGN and sub(h.rest, -24) or w.tag .. string.format('%016x', n)
end

-- The oldest ready messages behind those that are reserved for other waiters (names: their
-- numbers, as texts).
local function choose(w, limit, reserved)
    local names = call('ZRANGEBYSCORE', Z, '(0', BELOW_HELD, 'LIMIT', digits(reserved), digits(limit))
    local taken = { names = names, heads = {}, bodies = {} }
    if #names > 0 then
        local words = {}
        for i, n in ipairs(names) do
            words[2 * i - 1], words[2 * i] = n, 'b' .. n
        end
        local found = fields_of(M, words)
        for i = 1, #names do
            taken.heads[i], taken.bodies[i] = found[2 * i - 1], found[2 * i]
        end
    end
    return taken
end

-- Why they cannot be taken; nil: they can. ARGV has the ids that are opened, from here on.
local function refused(w, taken, room, from)
    local bytes = 0
    for _, body in ipairs(taken.bodies) do bytes = bytes + #body end
    if room > 0 and bytes > room then return { NO_ROOM, bytes } end
    if ARGV[from] == '-' then return nil end
    local opened = {}
    for i = from, #ARGV do opened[ARGV[i]] = true end
    for i, body in ipairs(taken.bodies) do
        if byte(body) == 1 and not opened[id_of(w, tonumber(taken.names[i]), head_of(taken.heads[i]))] then
            local out = { SEALED, w.now, w.tag }
            for k, n in ipairs(taken.names) do
                local at = #out
                out[at + 1], out[at + 2], out[at + 3], out[at + 4] = n, taken.heads[k], taken.bodies[k], ''
            end
            return out
        end
    end
    return nil
end

