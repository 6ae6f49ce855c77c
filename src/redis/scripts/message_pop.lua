-- Removes and returns the oldest ready messages.
--   ARGV    limit, number of messages reserved for other waiters, bytes of bodies that fit (0: any), ids of decrypted
--           messages ... ('-': encrypted bodies are fine)
--   returns OK, now, tag, [number, head, body, ''] ... | OVER_CAPACITY, size of the bodies | SEALED, as OK | PAUSED
--   keyed
--   cost    O(messages · log n)
local w = open_queue()
if not w then return { OK, 0, '' } end
if not expire_due(w) then return { EXPIRE_FIRST } end
if claims_paused(w) then return { PAUSED } end
local chosen = choose_ready(w, tonumber(ARGV[2]), tonumber(ARGV[3]))
local refusal = check_chosen(w, chosen, tonumber(ARGV[4]), 5)
if refusal then return refusal end
local ch = changes()
for i, n in ipairs(chosen.names) do
    local h = unpack_head(chosen.heads[i])
    local details = details_text(n, h.posted)
    chosen.heads[i] = chosen.heads[i] .. details
    remove_message(w, ch, n, h, details ~= '' and unpack_details(details) or nil)
end
if #chosen.names > 0 then
    count_messages(w, 'deleted', #chosen.names)
    commit(w, ch)
    save_queue(w)
end
return add_chosen({ OK, w.now, w.tag }, chosen)
