-- Renews a claim.
--   ARGV    id, TTL, minimum lifetime of its messages (ms), Client-ID
--   returns OK, number, base
--   cost    O(messages of the claim · log n)
local w = open_queue()
if not w then return { NOT_FOUND } end
if not expire_due(w) then return { AGAIN } end
local ch = changes()
local c = find_claim(ch, ARGV[2])
if not c then return { NOT_FOUND } end
local lives = deadline(w, tonumber(ARGV[4]))
for _, number in ipairs(claim_numbers(c)) do
    local n = digits(number)
    local text = call('HGET', M, n)
    local h = text and unpack_head(text)
    if h and h.claim == c.number and h.expires < lives then
        h.expires = lives
        add_words(ch, 'hset', n, pack_head(h))
        add_deadline(ch, lives, n)
    end
end
c.started, c.ends, c.changed = w.now, deadline(w, tonumber(ARGV[3])), true
add_deadline(ch, c.ends, c.name)
mark_holder(ch, c.number, ARGV[5])
commit(w, ch)
save_queue(w)
return { OK, c.number, w.base }
