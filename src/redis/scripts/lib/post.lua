-- post: adds messages to a queue. Needs subscriptions. ARGV as in message_post, from 3 on.

-- True if a delay is not shorter than its TTL, so that the message would expire before a worker could get it.
local function is_never_ready(set)
    local ttl = set[2] >= 0 and set[2] or tonumber(ARGV[5])
    local delay = set[3] >= 0 and set[3] or tonumber(ARGV[6])
    for i = 8, #ARGV, 4 do
        local own_ttl, own_delay = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
        if (own_delay >= 0 and own_delay or delay) >= (own_ttl >= 0 and own_ttl or ttl) then return true end
    end
    return false
end

-- Why the queue cannot take the messages now; nil: it can.
local function post_refusal(w, set)
    if set[8] == 1 then
        for i = 10, #ARGV, 4 do
            if byte(ARGV[i]) ~= 1 then return NOT_SEALED end
        end
    end
    return w.listeners > 0 and not S and NEEDS_FEED or nil
end

-- Adds the messages, with other changes that the caller has collected, and saves the queue. Returns the number of the
-- first message, and 1 if an idle subscription is due now.
local function post_messages(w, set, ch)
    local ttl = set[2] >= 0 and set[2] or tonumber(ARGV[5])
    local delay = set[3] >= 0 and set[3] or tonumber(ARGV[6])
    local client, now, first = ARGV[3], w.now, w.last + 1
    local f = w.listeners > 0 and read_feed(w)
    local tells = idle_subscription_due(f)
    for i = 8, #ARGV, 4 do
        local own_ttl, own_delay = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
        local body, sum = ARGV[i + 2], ARGV[i + 3]
        local life = own_ttl >= 0 and own_ttl or ttl
        local expires = deadline(w, 1000 * life)
        local wait = own_delay >= 0 and own_delay or delay
        local ready = wait > 0 and math.min(deadline(w, 1000 * wait), expires) or 0
        local head = pack(HEAD, now, expires, ready, 0, 0, #body, sum == '' and 0 or HAS_CHECKSUM, client) .. sum
        append_message(w, ch, body, head, expires, ready, 0)
        if f then feed_append(f, expires, life, math.max(wait, 0), body, tonumber(ARGV[7])) end
    end
    count_messages(w, 'posted', w.last - first + 1)
    commit(w, ch)
    if f then save_feed(w, f) else save_queue(w) end
    return first, tells
end
