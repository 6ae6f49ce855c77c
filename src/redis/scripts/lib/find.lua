-- find: messages by their ids. After messages.

-- The number of a message and its head, by its id; nil: there is none. One that came with its id has
-- no other.
local function find(w, id)
    if #id ~= 24 then return nil end
    local n = sub(id, 1, 8) == w.tag and tonumber(sub(id, 9), 16)
    local text = n and call('HGET', M, n)
    if text and head_of(text).flags < FOREIGN then return n, text end
    n = tonumber(call('HGET', M, 'f' .. id) or nil)
    if n then return n, call('HGET', M, n) end
    return nil
end

