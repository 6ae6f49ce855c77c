-- Expires some of what is due, and moves dead letters of expired claims.
--   ARGV    name of the queue, minimum TTL of dead letters (s), 1: this is a look of claimd (mark_due())
--   returns OK, when the next look is (ms; -1: there is none), [transfer, what is in it] ...
--   cost    O(log n), 64 dead letters at most
local w, out = open_queue(), { OK, -1 }
if not w then return out end
if ARGV[4] == '1' then lease_old_transfers(w, out) end -- of a process that has ended; before new ones join them
local all = expire_due(w, letter_mover(w, out, ARGV[2], tonumber(ARGV[3])))
if ARGV[4] == '0' then return out end
local text = call('HGET', Q, 'y')
local last = text and select(2, unpack_struct('<dd', text)) or 0
local next = math.min(w.claims > 0 and last > w.now and w.due or math.huge,
    w.in_transfer > 0 and w.transferred_at + 5000 or math.huge)
if not all then
    next = w.now
elseif next < math.huge then
    next = math.max(next, w.now + 1000)
else
    call('HDEL', Q, 'y')
    return out
end
call('HSET', Q, 'y', pack('<dd', next, last))
out[2] = next
return out
