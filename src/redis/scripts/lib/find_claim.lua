-- find_claim: claims by their ids. After claims.

-- The number of a live claim by its id; nil: there is none.
local function find_claim(ch, id)
    if #id ~= 24 then return nil end
    local c = claim_of(ch, tonumber(sub(id, 13), 16) or 0)
    return c and c.secret == sub(id, 1, 12) and c or nil
end

