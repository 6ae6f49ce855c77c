-- Removes all messages and claims, or all subscriptions, or both.
--   ARGV    1: messages, 2: subscriptions, 3: both
--   cost    O(1): Redis frees in the background
local w = open_queue()
if not w then return { OK } end
w.rare_changed = true
local messages, subscriptions = ARGV[2] ~= '2', ARGV[2] ~= '1' and w.feed == 1
if subscriptions and not S then return { NEEDS_FEED } end
if messages then
    call('UNLINK', Z, M, T)
    make_empty()
    call('HDEL', Q, 'p')
    w.due, w.claimed, w.delayed, w.bytes, w.claims, w.dead_letters = math.huge, 0, 0, 0, 0, 0
end
if subscriptions then
    local f = read_feed(w)
    call('UNLINK', S, U)
    call('ZADD', U, 0, '')
    w.listeners, w.subscribers, f.first, f.bytes = 0, 0, f.last + 1, 0
    save_feed(w, f)
else
    save_queue(w)
end
return { OK }
