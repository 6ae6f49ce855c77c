-- details: details of messages (struct store_details), as a text in the field eNUMBER of M. Needs queue.

local DETAILS = '<ddBB' -- when a worker gave the reason, when the dead letter came (0: does not apply), lengths of client
                        -- and origin; then client, origin, cause, key, reason
-- Why a dead letter is one (enum store_cause), and its delivery count before. MARK is added to the length of the origin
-- if they are there.
local cause = { FORM = '<BI4', MARK = 128, WORKER = 1, ATTEMPTS = 2, EXPIRED = 3 }
local HAS_KEY = 128 -- added to the length of the client: there is a key. It is 1 if the first claim frees it, or 0, and 2
                    -- more if a due time follows; its length, its text; the due time of the schedule that posted the
                    -- message, in ms. Otherwise there is nothing
local HAS_DUE = 2

-- True for a dead letter, until it is put back. A message that came with its id from elsewhere counts as one.
local function is_dead_letter(flags)
    return flags >= HAS_ID and flags < RETURNED
end

-- The details of a message with a packed head, as a text. '': it has none.
local function details_text(n, posted)
    return posted % 1 > 0 and call('HGET', M, 'e' .. n) or ''
end

local function unpack_details(text)
    local released, dead, client, origin, at = unpack_struct(DETAILS, text)
    local d = { released = released, dead = dead, cause = 0, attempts = 0, key = '', until_claimed = 0, due = 0 }
    local middle = at + client % HAS_KEY
    local rest = middle + origin % cause.MARK
    d.client, d.origin = sub(text, at, middle - 1), sub(text, middle, rest - 1)
    if origin >= cause.MARK then d.cause, d.attempts, rest = unpack_struct(cause.FORM, text, rest) end
    if client >= HAS_KEY then
        local kind, len = byte(text, rest, rest + 1)
        d.until_claimed, d.key = kind % HAS_DUE, sub(text, rest + 2, rest + 1 + len)
        rest = rest + 2 + len
        if kind >= HAS_DUE then d.due, rest = unpack_struct('<d', text, rest) end
    end
    d.reason = sub(text, rest)
    return d
end

local function read_details(n, h)
    local text = details_text(n, h.posted)
    if text ~= '' then return unpack_details(text) end
    local dead = is_dead_letter(h.flags) and floor(h.posted) or 0 -- the time was not kept
    return { released = 0, dead = dead, client = '', origin = '', cause = 0, attempts = 0, key = '', until_claimed = 0,
        due = 0, reason = '' }
end

local function pack_details(d)
    local client, key, origin, why = #d.client, '', #d.origin, ''
    if d.cause ~= 0 then origin, why = origin + cause.MARK, pack(cause.FORM, d.cause, d.attempts) end
    if d.key ~= '' then
        local kind, due = d.until_claimed, ''
        if d.due ~= 0 then kind, due = kind + HAS_DUE, pack('<d', d.due) end
        client, key = client + HAS_KEY, pack('<BB', kind, #d.key) .. d.key .. due
    end
    return pack(DETAILS, d.released, d.dead, client, origin) .. d.client .. d.origin .. why .. key .. d.reason
end

-- Makes details those of a message that is put back.
function cause.forget(d)
    d.origin, d.dead, d.cause, d.attempts = '', 0, 0, 0
    if d.released == 0 then d.client = '' end
end
