-- post: adds messages to a queue. Needs subscriptions. ARGV as in message_post, from 3 on.

-- True if a delay is not shorter than its TTL, so that the message would expire before a worker could get it.
local function is_never_ready(set)
    local ttl = set[2] >= 0 and set[2] or tonumber(ARGV[5])
    local delay = set[3] >= 0 and set[3] or tonumber(ARGV[6])
    for i = 11, #ARGV, 4 do
        local own_ttl, own_delay = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
        if (own_delay >= 0 and own_delay or delay) >= (own_ttl >= 0 and own_ttl or ttl) then return true end
    end
    return false
end

-- Why the queue cannot take the messages now; nil: it can.
local function post_refusal(w, set)
    if set[8] == 1 then
        for i = 13, #ARGV, 4 do
            if byte(ARGV[i]) ~= 1 then return NOT_SEALED end
        end
    end
    return w.listeners > 0 and not S and NEEDS_FEED or nil
end

-- The message that holds the key of the post: its id, n and h as in remove_message(); nil: there is none. The caller has
-- expired all that is due.
local function existing_message(w)
    if ARGV[8] == '' then return nil end
    local n, h = unique.find(unpack_details(ARGV[8]).key)
    if n then return id_of(w, tonumber(n), h), n, h end
end

-- Removes the message whose place the post takes. The new one gets its reason.
local function remove_replaced(w, n, h)
    local ch, old, new = changes(), read_details(n, h), unpack_details(ARGV[8])
    new.reason, new.client, new.released = old.reason, old.client, old.released
    ARGV[8] = pack_details(new)
    remove_message(w, ch, n, h, old)
    count_messages(w, 'deleted', 1)
    commit(w, ch) -- before the new one gets the key
end

-- The end of the delay of a new message; 0: it is ready. `delay`: in seconds, if ARGV[10] does not say when it ends.
local function ready_time(w, delay)
    local ready = tonumber(ARGV[10])
    if ready ~= 0 then return ready > w.now and ready or 0 end
    return delay > 0 and deadline(w, 1000 * delay) or 0
end

-- Adds the messages, with other changes that the caller has collected, and saves the queue. Returns the number of the
-- first message, and 1 if an idle subscription is due now.
local function post_messages(w, set, ch)
    local ttl = set[2] >= 0 and set[2] or tonumber(ARGV[5])
    local delay = set[3] >= 0 and set[3] or tonumber(ARGV[6])
    local client, now, first = ARGV[3], w.now, w.last + 1
    local f = w.listeners > 0 and read_feed(w)
    local tells = idle_subscription_due(f)
    local posted = ARGV[8] == '' and now or now + 0.5
    for i = 11, #ARGV, 4 do
        local own_ttl, own_delay = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
        local body, sum = ARGV[i + 2], ARGV[i + 3]
        local life = own_ttl >= 0 and own_ttl or ttl
        local expires = deadline(w, 1000 * life)
        local wait = own_delay >= 0 and own_delay or delay
        local ready = math.min(ready_time(w, wait), expires)
        local head = pack(HEAD, posted, expires, ready, 0, 0, #body, sum == '' and 0 or HAS_CHECKSUM, client) .. sum
        local n = append_message(w, ch, body, head, expires, ready, 0)
        if ARGV[8] ~= '' then unique.add(ch, n, ARGV[8]) end
        if f then feed_append(f, expires, life, math.max(wait, 0), body, tonumber(ARGV[7])) end
    end
    count_messages(w, 'posted', w.last - first + 1)
    commit(w, ch)
    if f then save_feed(w, f) else save_queue(w) end
    return first, tells
end
