#include "crash/told.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a. */
uint64_t
told_hash(struct bytes text)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(1099511628211);
    return hash;
}

static void
copy_text(char *to, size_t cap, struct bytes from)
{
    if (from.len >= cap)
        abort(); /* the tests give shorter ones */
    if (from.len > 0)
        memcpy(to, from.data, from.len);
    to[from.len] = '\0';
}

void
told_metadata_copy(struct told_metadata *to, const struct store_metadata *from)
{
    memset(to, 0, sizeof(*to));
    copy_text(to->json, sizeof(to->json), from->json);
    copy_text(to->dead_letter, sizeof(to->dead_letter), from->settings.dead_letter);
    to->settings = from->settings;
    to->settings.dead_letter = BYTES_NONE;
}

bool
told_metadata_same(const struct told_metadata *a, const struct told_metadata *b)
{
    const struct store_settings *x = &a->settings, *y = &b->settings;

    return strcmp(a->json, b->json) == 0 && strcmp(a->dead_letter, b->dead_letter) == 0 &&
           x->max_post_bytes == y->max_post_bytes &&
           x->message_ttl_s == y->message_ttl_s &&
           x->message_delay_s == y->message_delay_s &&
           x->max_claim_count == y->max_claim_count &&
           x->dead_letter_ttl_s == y->dead_letter_ttl_s && x->transient == y->transient;
}

static void
copy_message(struct told_message *to, const struct store_message_record *from)
{
    *to = (struct told_message){.number = from->number,
                                .old_number = from->old_number,
                                .id = from->id,
                                .body = told_hash(from->body),
                                .body_len = from->body.len,
                                .summed = from->checksum != NULL,
                                .client = from->client,
                                .posted_ms = from->posted_ms,
                                .expires_ms = from->expires_ms,
                                .delayed_until_ms = from->delayed_until_ms,
                                .claim_count = from->claim_count};
    if (from->checksum != NULL)
        to->checksum = *from->checksum;
}

struct told *
told_copy(const struct store_change *change)
{
    struct told *t = calloc(1, sizeof(*t) + change->count * sizeof(t->messages[0]));
    struct store_change at = *change; /* next() moves in it */
    struct store_message_record message;

    if (t == NULL)
        abort();
    t->kind = change->kind;
    t->now_ms = change->now_ms;
    t->tag = change->tag;
    t->target_tag = change->target_tag;
    t->transient = change->transient;
    t->target_transient = change->target_transient;
    t->fence_base = change->fence_base;
    if (change->claim.id.text[0] != '\0')
        t->claim = store_id_number(&change->claim.id);
    t->claim_id = change->claim.id;
    t->started_ms = change->claim.started_ms;
    t->ends_ms = change->claim.ends_ms;
    copy_text(t->name, sizeof(t->name), change->queue.name);
    if (change->kind == STORE_CHANGE_QUEUE || change->kind == STORE_CHANGE_META)
        told_metadata_copy(&t->metadata, change->metadata);
    while (t->count < change->count && at.next(&at, &message))
        copy_message(&t->messages[t->count++], &message);
    return t;
}
