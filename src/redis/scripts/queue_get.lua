-- The metadata of a queue.
--   returns OK, version, json, settings ...
--   cost    O(metadata)
--   changes nothing
local w = enter()
if not w then return { NOT_FOUND } end
local q = call('HMGET', Q, 'v', 'j')
local set = settings(w)
for i, value in ipairs(set) do set[i] = tostring(value) end
return { OK, q[1], q[2], unpack(set) }
