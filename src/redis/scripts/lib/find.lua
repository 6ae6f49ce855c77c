-- find: messages by their ids. After messages.

-- The number that an id stands for, as a text, if it is one that was given here; else nil.
local function number_of(w, id)
    local number = #id == 24 and sub(id, 1, 8) == w.tag and tonumber(sub(id, 9), 16)
    return number and number <= w.last and digits(number) or nil
end

-- One that came with its id has no other.
local function is_foreign(text)
    return head_of(text).flags >= FOREIGN
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

-- Number and head of each of those that are there.
local function find_all(w, ids)
    local numbers, found = {}, {}
    for i, id in ipairs(ids) do numbers[i] = number_of(w, id) or '0' end
    local heads = fields_of(M, numbers)
    for i, id in ipairs(ids) do
        local n, text = numbers[i], heads[i]
        if not text or is_foreign(text) then n, text = find(w, id) end
        if n then found[#found + 1] = { n, text } end
    end
    return found
end

