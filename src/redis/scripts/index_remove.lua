-- A queue is gone.
--   KEYS    the names of the project's queues
--   ARGV    name, NUL, tag
--   returns 0 (OK)
--   cost    O(log queues)
call('ZREM', KEYS[1], ARGV[1])
return { 0 }
