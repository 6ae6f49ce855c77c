-- keys: the Idempotency-Key of a call (claimd/store/key.h). A script whose head says "keyed" has a second function,
-- NAME_keyed. Its last key is a string K in the slot of the queue, which ends with the window:
--
--   K  string      kind, digest, tag of the queue, time; then the result
--
-- Its last arguments are the digest and the window in ms. So the effect and its key are one change. Needs messages.

local KEY = '<Bc16c8d'

-- For each script: its kind (enum store_key_kind), what its result keeps of the response (nil: it had no effect), and
-- the response made of that.
local keyed_scripts = {
    message_post = {
        kind = 1,
        keep = function(out) return pack('<d', out[3]) end,
        again = function(w, kept) return { REPEATED, w.tag, (unpack_struct('<d', kept)), w.unlisted, 0 } end,
    },
    claim_create = {
        kind = 2,
        keep = function(out) return out[4] > 0 and ARGV[2] .. string.format('%012x', out[4]) or nil end,
        again = function(w, kept)
            if not expire_due(w) then return { EXPIRE_FIRST } end
            local c = find_claim(changes(), kept)
            if not c then return { KEY_ENDED } end
            local out = { REPEATED, w.now, w.tag, c.number, w.base }
            add_messages_of_claim(out, c)
            return out
        end,
    },
    claim_finish = {
        kind = 4,
        keep = function(out) return ARGV[4] == '0' and pack('<dd', out[4], out[6]) .. out[2] or nil end,
        again = function(w, kept)
            local number, first, at = unpack_struct('<dd', kept)
            return { REPEATED, sub(kept, at), w.tag, number, w.base, first }
        end,
    },
    message_pop = {
        kind = 3,
        keep = function(out) return #out > 3 and cmsgpack.pack(out) or nil end,
        again = function(w, kept)
            local out = cmsgpack.unpack(kept)
            out[1], out[2] = REPEATED, w.now -- the messages have grown older
            return out
        end,
    },
}

keyed_scripts.claim_finish_post = keyed_scripts.claim_finish

local function run_keyed(name, script)
    local own, n = keyed_scripts[name], #ARGV
    local digest, window = ARGV[n - 1], tonumber(ARGV[n])
    ARGV[n], ARGV[n - 1] = nil, nil
    local old = call('GET', K)
    local w = old and open_queue()
    if w then
        local kind, first_digest, tag, made, at = unpack_struct(KEY, old)
        if tag == w.tag and w.now < made + window then
            if kind ~= own.kind or digest ~= first_digest then return { KEY_REUSED } end
            -- A change, because from Redis 7.2 on WAIT is only for the changes of its own connection. So the replicas
            -- confirm the effect, too.
            call('SET', K, old, 'PX', digits(made + window - w.now))
            return own.again(w, sub(old, at))
        end
    end
    local out = script()
    local kept = out[1] == OK and own.keep(out)
    if kept then
        w = open_queue()
        call('SET', K, pack(KEY, own.kind, digest, w.tag, w.now) .. kept, 'PX', digits(window))
    end
    return out
end

-- Like make_callback().
local function make_keyed_callback(name, script)
    local callback = make_callback(function() return run_keyed(name, script) end)
    return function(keys, arguments)
        K = table.remove(keys)
        return callback(keys, arguments)
    end
end
