-- Returns a page of a list of the index.
--   KEYS    the list
--   ARGV    start, as for ZRANGEBYLEX; limit (0: none)
--   returns 0 (OK), number of all entries, entries ...
--   cost    O(log entries + entries of the page)
--   changes nothing
local count, page = call('ZCARD', KEYS[1]), {}
if ARGV[2] ~= '0' then page = call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2]) end
local out = { 0, count }
for i, name in ipairs(page) do out[i + 2] = name end
return out
