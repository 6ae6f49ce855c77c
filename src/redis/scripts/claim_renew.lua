-- Starts a claim anew.
--   ARGV    id, ttl, life of what it holds (ms)
--   returns OK, number, base
--   cost    O(messages of the claim · log n)
local w = enter()
if not w then return { NOT_FOUND } end
if not settle(w) then return { AGAIN } end
local ch = changes()
local c = find_claim(ch, ARGV[2])
if not c then return { NOT_FOUND } end
local lives = deadline(w, tonumber(ARGV[4]))
for _, number in ipairs(numbers_of(c)) do
    local n = digits(number)
    local text = call('HGET', M, n)
    local h = text and head_of(text)
    if h and h.claim == c.number and h.expires < lives then
        h.expires = lives
        put(ch, 'hset', n, text_of(h))
        falls_due(ch, lives, n)
    end
end
c.started, c.ends, c.changed = w.now, deadline(w, tonumber(ARGV[3])), true
falls_due(ch, c.ends, c.name)
commit(w, ch)
leave(w)
return { OK, c.number, w.base }
