-- Deletes those of the messages that are there; if claims are named, all must be held by one of them.
--   ARGV    how many claims (-1: none are named), their ids ..., ids of messages ...
--   returns OK, how many were there; of each that was claimed, ms since then and how often it was
--   cost    O(ids · log n)
local w = enter()
if not w then return { OK } end
if not settle(w) then return { AGAIN } end
local claims, ch = tonumber(ARGV[2]), changes()
local named, ids, found, heads = {}, {}, {}, {}
for i = 3, 2 + math.max(claims, 0) do
    local c = find_claim(ch, ARGV[i])
    if c then named[c.number] = true end
end
for i = 3 + math.max(claims, 0), #ARGV do
    ids[#ids + 1] = ARGV[i]
end
local numbers, texts = find_all(w, ids)
for i, n in ipairs(numbers) do
    if n and not heads[n] then
        local h = head_of(texts[i])
        if claims >= 0 and not named[h.claim] then return { CLAIMED } end
        found[#found + 1], heads[n] = n, h
    end
end
local out = { OK, #found }
for _, n in ipairs(found) do
    local h = heads[n]
    local claim = h.claim > 0 and claim_of(ch, h.claim)
    if claim then
        out[#out + 1] = w.now - claim.started
        out[#out + 1] = h.count
    end
    remove(w, ch, n, h)
end
if #found > 0 then
    commit(w, ch)
    leave(w)
end
return out
