-- A queue is one of its project.
--   KEYS    the names of the project's queues
--   ARGV    name, NUL, tag
--   returns 0 (OK)
--   cost    O(log queues)
--   memory  grows
call('ZADD', KEYS[1], 0, ARGV[1])
return { 0 }
