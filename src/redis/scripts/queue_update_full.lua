-- As queue_update, if the metadata does not grow. Redis runs it also when it is full.
--   ARGV    as queue_update
--   returns as queue_update | TOO_LARGE
--   cost    O(metadata)
return update_queue(false)
