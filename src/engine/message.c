#include "engine/message.h"
#include "engine/claim.h"

#include <assert.h>

static_assert(offsetof(struct message, body) <= 96, "overhead of a queued message");

struct message *
message_new(struct mem *mem, struct bytes body, const struct store_checksum *checksum,
            uint64_t client)
{
    size_t size = offsetof(struct message, body) + body.len +
                  (checksum == NULL ? 0 : sizeof(*checksum));
    struct message *m;

    if (body.len > UINT32_MAX)
        return NULL;
    /* The body begins in the padding; setting the structure writes all of that. */
    m = mem_alloc(mem, size < sizeof(*m) ? sizeof(*m) : size);
    if (m == NULL)
        return NULL;
    *m = (struct message){.client = client,
                          .body_len = (uint32_t)body.len,
                          .has_checksum = checksum != NULL};
    atomic_init(&m->pins, 1);
    if (body.len > 0)
        memcpy(m->body, body.data, body.len);
    if (checksum != NULL)
        memcpy(m->body + body.len, checksum, sizeof(*checksum));
    return m;
}

void
message_pin(struct message *m)
{
    atomic_fetch_add_explicit(&m->pins, 1, memory_order_relaxed);
}

void
message_unpin(struct mem *mem, struct message *m)
{
    if (atomic_fetch_sub_explicit(&m->pins, 1, memory_order_acq_rel) == 1)
        mem_free(mem, m);
}

void
message_unpin_all(struct mem *mem, struct list *messages)
{
    struct list *link;

    while ((link = list_pop(messages)) != NULL)
        message_unpin(mem, container_of(link, struct message, due.link));
}

void
message_view(struct message *m, uint32_t tag, int64_t now_ms,
             const struct store_id *claim, struct store_message *out)
{
    struct ident own = {tag, m->seq};

    ident_write(&out->id, m->foreign == NULL ? own : m->foreign->id);
    out->claim_id = *claim;
    if (claim->text[0] == '\0' && m->claim != NULL)
        ident_write(&out->claim_id, claim_ident(m->claim));
    out->body = bytes_of(m->body, m->body_len);
    out->checksum =
        m->has_checksum ? (const struct store_checksum *)(m->body + m->body_len) : NULL;
    out->ttl_s = (m->expires_ms - m->posted_ms) / 1000;
    out->age_s = (now_ms - m->posted_ms) / 1000;
    out->claim_count = m->claim_count;
    out->pin = m;
    message_pin(m);
}
