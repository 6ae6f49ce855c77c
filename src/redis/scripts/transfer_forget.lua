-- These dead letters have left X, so no process leases them any more. But a process that leased them before may still
-- post them. Sets when the queue forgets the transfers.
--   ARGV    ms from now, transfers ...
--   cost    O(transfers · log n)
local w = open_queue()
if not w then return { OK } end
local ch, forgotten = changes(), w.now + tonumber(ARGV[2])
for i = 3, #ARGV do
    if call('HEXISTS', M, 'd' .. ARGV[i]) == 1 then add_deadline(ch, forgotten, 'd' .. ARGV[i]) end
end
commit(w, ch)
save_queue(w)
return { OK }
