-- outbox: transfers to other queues (X). Needs messages.
--
-- A transfer has one of three formats:
--
--   a message    MARK; 1: it becomes a dead letter, 2: it is put back, 5: likewise, with a key; posted, expires, claim count,
--                client; lengths of name, checksum and details; id, name of the other queue, checksum, details, body.
--                5 has the details of the dead letter, because the other queue may refuse it (transfer_return)
--   a post       MARK; 3, or 4 with a key; written by claimd (outbox.h)
--   a dead letter of an older version
--                posted, expires, client, lengths of name and checksum; id, name, checksum, body
--
-- MARK is not a time, so that an older claimd skips what it does not know.
local MARK = '\255\255\255\255\255\255\255\255'
local TO_DEAD_LETTERS, BACK, BACK_UNIQUE = 1, 2, 5
local MESSAGE = '<BddI4c8BBI2' -- of a message, from the kind to the lengths

-- Some transfers: TRANSFER, what is in it ...
local function random_transfers()
    return call('HRANDFIELD', X, 64, 'WITHVALUES')
end

-- Adds a transfer with this number, and appends it to `transfers` (nil: does not).
local function add_transfer(w, transfers, number, content)
    local transfer = w.tag .. format('%016x', number)
    call('HSET', X, transfer, content)
    if w.in_transfer == 0 then w.transfers_since, w.transferred_at = w.now, w.now end
    w.in_transfer, w.rare_changed = w.in_transfer + 1, true
    if transfers then add_pair(transfers, transfer, content) end
end

-- Adds a message that the caller removes: `n` and `h` as in remove_message(), its original id, and its new details.
local function transfer_message(w, transfers, kind, name, n, h, id, sum, details, body)
    add_transfer(w, transfers, tonumber(n), MARK .. pack(MESSAGE, kind, floor(h.posted), h.expires, h.count,
        h.client, #name, #sum, #details) .. id .. name .. sum .. details .. body)
end

-- Adds some transfers that began so long ago that their process may have ended.
local function lease_old_transfers(w, transfers)
    if w.in_transfer == 0 or w.now < w.transferred_at + 5000 then return end
    w.transferred_at, w.rare_changed = w.now, true
    save_queue(w)
    for _, word in ipairs(random_transfers()) do transfers[#transfers + 1] = word end
end
