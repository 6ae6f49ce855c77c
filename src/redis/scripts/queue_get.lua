-- Returns the metadata of a queue.
--   returns OK, version, JSON, settings ...
--   cost    O(metadata)
--   changes nothing
local w = open_queue()
if not w then return { NOT_FOUND } end
local q = call('HMGET', Q, 'v', 'j')
local set = read_settings(w)
for i, value in ipairs(set) do set[i] = tostring(value) end
set[9], set[10] = read_claim_defaults()
set[11], set[12] = read_pause(w)
return { OK, q[1], q[2], unpack(set) }
