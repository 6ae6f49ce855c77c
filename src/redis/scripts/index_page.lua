-- A page of a list.
--   KEYS    the list
--   ARGV    from where, as ZRANGEBYLEX has it, how many (0: none)
--   returns 0 (OK), how many there are in all, names ...
--   cost    O(log names + those of the page)
--   changes nothing
local count, page = call('ZCARD', KEYS[1]), {}
if ARGV[2] ~= '0' then page = call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2]) end
local out = { 0, count }
for i, name in ipairs(page) do out[i + 2] = name end
return out
