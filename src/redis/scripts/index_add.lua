-- Adds an entry to a list of the index.
--   KEYS    the list
--   ARGV    the entry
--   returns 0 (OK)
--   cost    O(log entries)
--   memory  grows
call('ZADD', KEYS[1], 0, ARGV[1])
return { 0 }
