-- marker: where a listing goes on. After find.

-- A number to go on behind: of a message that is there, or was, or as it stands.
local function find_marker(w, text)
    local n
    if #text == 24 then
        n = tonumber(find(w, text) or number_of(w, text))
    elseif #text < 17 and string.match(text, '^%d+$') then
        n = tonumber(text)
    end
    return n and n <= w.last and n or 0
end

