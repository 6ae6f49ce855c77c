-- settings: what a queue was told.

-- Settings: max_post_bytes, message_ttl, message_delay, max_claim_count, dead_letter_ttl (-1: not
-- set), dead letter queue ('': none), transient, encrypt.
local function settings(w)
    return w.settings ~= '' and cmsgpack.unpack(w.settings) or { -1, -1, -1, -1, -1, '', 0, 0 }
end

