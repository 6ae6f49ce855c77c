-- Deletes the messages that exist, if the rule allows it for all of them.
--   ARGV    rule (store/store.h), number of named claims, their ids ..., ids of messages ...
--   returns OK, number of deleted messages; for each claimed one: ms since the claim, claim count
--   cost    O(ids · log n), one read for all messages and claims
local RULE_READY, RULE_HELD = 1, 2
local w = open_queue()
if not w then return { OK } end
if not expire_due(w) then return { EXPIRE_FIRST } end
local rule, claims, ch = tonumber(ARGV[2]), tonumber(ARGV[3]), changes()
local ids, fields, named, heads, found, any_live = {}, {}, {}, {}, {}, false
for i = 4 + claims, #ARGV do
    ids[#ids + 1] = ARGV[i]
    fields[#fields + 1] = number_of_id(w, ARGV[i]) or '0'
end
local numbers = {}
for i = 1, claims do
    numbers[i] = #ARGV[3 + i] == 24 and tonumber(sub(ARGV[3 + i], 13), 16) or 0
    fields[#fields + 1] = 'c' .. digits(numbers[i])
end
local got = fields_of(M, fields)
for i = 1, claims do
    parse_claim(ch, numbers[i], got[#ids + i])
    local c = got[#ids + i] and find_claim(ch, ARGV[3 + i])
    if c then named[c.number], any_live = true, true end
end
for i, id in ipairs(ids) do
    local n, text = fields[i], got[i]
    if not text or has_original_id(text) then n, text = find_message(w, id) end
    if n and not heads[n] then
        local h = unpack_head(text)
        if rule == RULE_READY and h.claim > 0 then return { CLAIMED } end
        if rule == RULE_HELD and (not any_live or h.claim == 0) then return { NOT_CLAIMED } end
        if rule == RULE_HELD and not named[h.claim] then return { CLAIMED } end
        found[#found + 1], heads[n] = n, h
    end
end
local out = { OK, #found }
for _, n in ipairs(found) do
    local h = heads[n]
    local claim = h.claim > 0 and read_claim(ch, h.claim)
    if claim then
        out[#out + 1] = w.now - claim.started
        out[#out + 1] = h.count
    end
    remove_message(w, ch, n, h)
end
if #found > 0 then
    count_messages(w, 'deleted', #found)
    commit(w, ch)
    save_queue(w)
end
return out
