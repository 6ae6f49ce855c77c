-- Replaces the metadata of a queue if its version is unchanged.
--   ARGV    version, JSON, settings ...
--   cost    O(metadata)
--   memory  grows
local w = open_queue()
if not w then return { NOT_FOUND } end
local version = call('HGET', Q, 'v')
if version ~= ARGV[2] then return { CHANGED } end
set_metadata(ARGV[3], 4)
call('HSET', Q, 'v', string.format('%.0f', tonumber(version) + 1))
return { OK }
