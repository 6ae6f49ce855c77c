-- Replaces the metadata of a queue if its version is unchanged.
--   ARGV    version, JSON, settings ...
--   cost    O(metadata)
--   memory  grows
return update_queue(true)
