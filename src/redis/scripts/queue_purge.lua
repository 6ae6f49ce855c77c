-- Needs: queue create
--
-- Removes all messages and claims.
--   cost    O(1): Redis frees in the background
local w = enter()
if not w then return { OK } end
call('UNLINK', Z, M, T)
empty()
w.due, w.held, w.delayed, w.bytes, w.claims, w.letters = math.huge, 0, 0, 0, 0, 0
leave(w)
return { OK }
