-- Removes an entry from a list of the index.
--   KEYS    the list
--   ARGV    the entry
--   returns 0 (OK)
--   cost    O(log entries)
call('ZREM', KEYS[1], ARGV[1])
return { 0 }
