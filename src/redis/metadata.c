#include "redis/metadata.h"

void
metadata_add(struct call *c, const struct store_metadata *metadata)
{
    const struct store_settings unset = STORE_SETTINGS_INIT;
    const struct store_settings *set = metadata == NULL ? &unset : &metadata->settings;

    call_word(c, metadata == NULL ? BYTES_NONE : metadata->json);
    call_number(c, set->max_post_bytes);
    call_number(c, set->message_ttl_s);
    call_number(c, set->message_delay_s);
    call_number(c, set->max_claim_count);
    call_number(c, set->dead_letter_ttl_s);
    call_word(c, set->dead_letter);
    call_number(c, set->transient);
    call_number(c, set->encrypt);
}

void
metadata_read(const struct call *c, size_t at, struct store_metadata *out)
{
    enum { POST = 1, TTL, DELAY, CLAIMS, LETTER_TTL, LETTERS, TRANSIENT, ENCRYPT };
    struct store_settings *set = &out->settings;

    *set = (struct store_settings)STORE_SETTINGS_INIT;
    out->json = call_item(c, at);
    set->max_post_bytes = call_integer(c, at + POST);
    set->message_ttl_s = call_integer(c, at + TTL);
    set->message_delay_s = call_integer(c, at + DELAY);
    set->max_claim_count = call_integer(c, at + CLAIMS);
    set->dead_letter_ttl_s = call_integer(c, at + LETTER_TTL);
    if (call_item(c, at + LETTERS).len > 0)
        set->dead_letter = call_item(c, at + LETTERS);
    set->transient = call_integer(c, at + TRANSIENT) != 0;
    set->encrypt = call_integer(c, at + ENCRYPT) != 0;
}
