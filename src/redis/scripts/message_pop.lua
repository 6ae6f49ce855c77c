-- Removes and returns the oldest ready messages.
--   ARGV    limit, number of messages reserved for other waiters, bytes of bodies that fit (0: any), ids of decrypted
--           messages ... ('-': encrypted bodies are fine)
--   returns OK, now, tag, [number, head, body, ''] ... | OVER_CAPACITY, size of the bodies | SEALED, as OK | PAUSED
--   keyed
--   cost    O(messages · log n)

-- The response that refuses the chosen messages; nil: they can be delivered.
local function refuse_chosen(w, chosen, capacity)
    local bytes = 0
    for _, body in ipairs(chosen.bodies) do bytes = bytes + #body end
    if capacity > 0 and bytes > capacity then return { OVER_CAPACITY, bytes } end
    if ARGV[5] == '-' then return nil end
    local opened = {}
    for i = 5, #ARGV do opened[ARGV[i]] = true end
    for i, body in ipairs(chosen.bodies) do
        if byte(body) == 1 and not opened[id_of(w, tonumber(chosen.names[i]), unpack_head(chosen.heads[i]))] then
            return add_chosen({ SEALED, w.now, w.tag }, chosen)
        end
    end
    return nil
end

local w = open_queue()
if not w then return { OK, 0, '' } end
if not expire_due(w) then return { EXPIRE_FIRST } end
if claims_paused(w) then return { PAUSED } end
local chosen = choose_ready(w, tonumber(ARGV[2]), tonumber(ARGV[3]))
local refusal = refuse_chosen(w, chosen, tonumber(ARGV[4]))
if refusal then return refusal end
local ch = changes()
for i, n in ipairs(chosen.names) do
    local h = unpack_head(chosen.heads[i])
    if h.posted % 1 > 0 then chosen.heads[i] = chosen.heads[i] .. details_text(n, h.posted) end
    remove_message(w, ch, n, h)
end
if #chosen.names > 0 then
    count_messages(w, 'deleted', #chosen.names)
    commit(w, ch)
    save_queue(w)
end
return add_chosen({ OK, w.now, w.tag }, chosen)
