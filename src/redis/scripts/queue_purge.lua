-- Removes all messages and claims, or all subscriptions, or both.
--   ARGV    1: messages, 2: subscriptions, 3: both
--   cost    O(1): Redis frees in the background
local w = enter()
if not w then return { OK } end
w.seldom = true
local messages, subscriptions = ARGV[2] ~= '2', ARGV[2] ~= '1' and w.feed == 1
if subscriptions and not S then return { FEED } end
if messages then
    call('UNLINK', Z, M, T)
    empty()
    w.due, w.held, w.delayed, w.bytes, w.claims, w.letters = math.huge, 0, 0, 0, 0, 0
end
if subscriptions then
    local f = feed_of(w)
    call('UNLINK', S, U)
    call('ZADD', U, 0, '')
    w.listeners, w.subscribers, f.first, f.bytes = 0, 0, f.last + 1, 0
    leave_feed(w, f)
else
    leave(w)
end
return { OK }
