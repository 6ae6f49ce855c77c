-- As claim_finish, with posts.
--   ARGV    as claim_finish
--   returns as claim_finish
--   keyed
--   cost    O(messages · log n)
--   memory  grows
return finish_claim()
