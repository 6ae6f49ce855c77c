-- Replaces the metadata of a queue if its version is unchanged.
--   ARGV    version, JSON, settings ...
--   cost    O(metadata)
--   memory  grows
local w = open_queue()
if not w then return { NOT_FOUND } end
local version = call('HGET', Q, 'v')
if version ~= ARGV[2] then return { CHANGED } end
local was_paused = claims_paused(w)
set_metadata(w, ARGV[3], 4)
call('HSET', Q, 'v', string.format('%.0f', tonumber(version) + 1))
if was_paused and not claims_paused(w) then
    w.ready_changed = true
    save_queue(w)
end
return { OK }
