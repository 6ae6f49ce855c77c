#include "engine/message.h"

#include "claimd/base/invariant.h"

#include <assert.h> /* static_assert */

static_assert(offsetof(struct message, body) <= 96, "overhead of a queued message");

struct message *
message_make(struct mem *mem, size_t body_len, const struct store_checksum *checksum,
             uint64_t client)
{
    size_t size = offsetof(struct message, body) + body_len +
                  (checksum == NULL ? 0 : sizeof(*checksum));
    struct message *m;

    if (body_len > UINT32_MAX)
        return NULL;
    /* The body begins in the padding of the structure, all of which the assignment
     * writes. */
    m = mem_alloc(mem, size < sizeof(*m) ? sizeof(*m) : size);
    if (m == NULL)
        return NULL;
    *m = (struct message){.client = client,
                          .body_len = (uint32_t)body_len,
                          .has_checksum = checksum != NULL};
    atomic_init(&m->pins, 1);
    if (checksum != NULL)
        memcpy(m->body + body_len, checksum, sizeof(*checksum));
    return m;
}

struct message *
message_new(struct mem *mem, struct bytes body, const struct store_checksum *checksum,
            uint64_t client)
{
    struct message *m = message_make(mem, body.len, checksum, client);

    if (m != NULL && body.len > 0)
        memcpy(m->body, body.data, body.len);
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
    uint32_t pins = atomic_fetch_sub_explicit(&m->pins, 1, memory_order_acq_rel);

    ENSURE(pins > 0);
    if (pins != 1)
        return;
    if (m->extra != NULL && m->extra->details != NULL)
        details_unpin(mem, m->extra->details);
    mem_free(mem, m->extra);
    mem_free(mem, m);
}

void
message_unpin_all(struct mem *mem, struct list *messages)
{
    struct list *link;

    while ((link = list_pop(messages)) != NULL)
        message_unpin(mem, container_of(link, struct message, due.link));
}

enum status
message_ensure_extra(struct mem *mem, struct message *m)
{
    if (m->extra != NULL)
        return ST_OK;
    m->extra = mem_alloc(mem, sizeof(*m->extra));
    if (m->extra == NULL)
        return ST_NO_MEMORY;
    *m->extra = (struct extra){.message = m};
    return ST_OK;
}

enum status
message_set_original(struct mem *mem, struct message *m, const struct store_id *text)
{
    struct ident id;

    if (!ident_read(store_id_bytes(text), &id))
        return ST_BAD_VALUE;
    if (message_ensure_extra(mem, m) != ST_OK)
        return ST_NO_MEMORY;
    m->extra->id = id;
    m->extra->has_id = true;
    return ST_OK;
}

/* An empty text becomes absent. */
static struct bytes
copy_text(char **to, struct bytes text)
{
    return text.len > 0 ? bytes_copy_to(to, text) : BYTES_NONE;
}

/* A copy of details without those after the first claim. */
static struct details *
copy_details(struct mem *mem, const struct store_details *view)
{
    struct details *d = mem_alloc(mem, sizeof(*d) + store_details_bytes(view));
    char *to;

    if (d == NULL)
        return NULL;
    *d = (struct details){.view = *view};
    atomic_init(&d->pins, 1);
    to = d->text;
    d->view.reason = copy_text(&to, view->reason);
    d->view.client = copy_text(&to, view->client);
    d->view.origin = copy_text(&to, view->origin);
    d->view.unique.key = copy_text(&to, view->unique.key);
    return d;
}

struct details *
details_new(struct mem *mem, const struct store_details *view)
{
    struct details *d = copy_details(mem, view);
    struct store_details claimed = *view;

    if (d == NULL || view->unique.key.len == 0 || !view->unique.until_claimed)
        return d;
    claimed.unique = (struct store_unique){.key = BYTES_NONE};
    d->claimed = copy_details(mem, &claimed);
    if (d->claimed != NULL)
        return d;
    mem_free(mem, d);
    return NULL;
}

void
details_unpin(struct mem *mem, struct details *d)
{
    uint32_t pins = atomic_fetch_sub_explicit(&d->pins, 1, memory_order_acq_rel);

    ENSURE(pins > 0);
    if (pins != 1)
        return;
    mem_free(mem, d->claimed); /* which has no other pin */
    mem_free(mem, d);
}

enum status
message_copy_details(struct mem *mem, struct message *m, const struct store_details *view)
{
    struct details *d = details_new(mem, view);

    if (d == NULL)
        return ST_NO_MEMORY;
    if (message_ensure_extra(mem, m) != ST_OK) {
        details_unpin(mem, d);
        return ST_NO_MEMORY;
    }
    message_set_details(mem, m, d);
    return ST_OK;
}

void
message_set_details(struct mem *mem, struct message *m, struct details *details)
{
    struct details *old = m->extra->details;

    m->extra->details = details;
    if (old != NULL)
        details_unpin(mem, old);
}
