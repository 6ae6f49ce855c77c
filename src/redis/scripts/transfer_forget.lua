-- These dead letters are leased no more: the queue that they came from knows that they have arrived. But a
-- process that leased them before may still post them.
--   ARGV    for how long (ms), transfers ...
--   cost    O(transfers · log n)
local w = enter()
if not w then return { OK } end
local ch, forgotten = changes(), w.now + tonumber(ARGV[2])
for i = 3, #ARGV do
    if call('HEXISTS', M, 'd' .. ARGV[i]) == 1 then falls_due(ch, forgotten, 'd' .. ARGV[i]) end
end
commit(w, ch)
leave(w)
return { OK }
