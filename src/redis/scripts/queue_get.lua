-- The metadata of a queue.
--   returns OK, version, json, settings ...
--   cost    O(metadata)
local w = enter()
if not w then return { NOT_FOUND } end
local q = call('HMGET', Q, 'v', 'j')
return { OK, q[1], q[2], unpack(settings_texts(w)) }
