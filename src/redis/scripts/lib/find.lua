-- find: messages by their ids. After messages.

-- The number that an id stands for, as a text, if it is one that was given here; else nil.
local function number_of(w, id)
    local number = #id == 24 and sub(id, 1, 8) == w.tag and tonumber(sub(id, 9), 16)
    return number and number <= w.last and digits(number) or nil
end

-- One that came with its id has no other.
local function is_foreign(text)
    return select(7, unpack_struct(HEAD, text)) >= FOREIGN
end

-- The number of a message, as a text, and its head, by its id; nil: there is none.
local function find(w, id)
    local n = number_of(w, id)
    local text = n and call('HGET', M, n)
    if text and not is_foreign(text) then return n, text end
    n = #id == 24 and call('HGET', M, 'f' .. id)
    if n then return n, call('HGET', M, n) end
    return nil
end

-- The same of many: their numbers, and their heads; false: there is none.
local function find_all(w, ids)
    local numbers = {}
    for i, id in ipairs(ids) do numbers[i] = number_of(w, id) or '0' end
    local heads = fields_of(M, numbers)
    for i, id in ipairs(ids) do
        if not heads[i] or is_foreign(heads[i]) then
            local n, text = find(w, id)
            numbers[i], heads[i] = n or false, text or false
        end
    end
    return numbers, heads
end

