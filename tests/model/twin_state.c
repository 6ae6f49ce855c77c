#include "model/twin_state.h"

#include <stdio.h>
#include <stdlib.h>

void *
twin_grow(void *block, size_t size)
{
    void *grown = realloc(block, size == 0 ? 1 : size);

    if (grown == NULL)
        abort();
    return grown;
}

void *
twin_alloc(size_t size)
{
    return memset(twin_grow(NULL, size), 0, size);
}

char *
twin_copy(struct bytes text)
{
    char *copy = twin_alloc(text.len + 1);

    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    return copy;
}

/* ------------------------------------------------------------------ at a moment */

struct twin_claim *
twin_holder(const struct twin_queue *q, const struct twin_message *m, int64_t now_ms)
{
    if (m->claim == 0)
        return NULL;
    for (size_t i = 0; i < q->claim_count; i++)
        if (q->claims[i].number == m->claim && twin_claim_live(&q->claims[i], now_ms))
            return &q->claims[i];
    return NULL;
}

bool
twin_ready(const struct twin_queue *q, const struct twin_message *m, int64_t now_ms)
{
    return twin_message_live(m, now_ms) && !twin_message_delayed(m, now_ms) &&
           twin_holder(q, m, now_ms) == NULL;
}

/* ------------------------------------------------------------------ queues */

struct twin_queue *
twin_find_queue(const struct twin *t, const struct store_queue *where)
{
    for (size_t i = 0; i < t->queue_count; i++) {
        struct twin_queue *q = t->queues[i];

        if (q->kind == where->kind &&
            bytes_equal(bytes_of(q->name, q->name_len), where->name) &&
            bytes_equal(bytes_of(q->project, q->project_len), where->project))
            return q;
    }
    return NULL;
}

void
twin_set_metadata(struct twin *t, struct twin_queue *q,
                  const struct store_metadata *metadata)
{
    char *json = NULL, *dead_letter = NULL, *paused_by = NULL;
    struct store_settings settings = STORE_SETTINGS_INIT;
    size_t json_len = 0;

    if (metadata != NULL) {
        json = twin_copy(metadata->json);
        json_len = metadata->json.len;
        settings = metadata->settings;
    }
    if (bytes_present(settings.dead_letter)) {
        dead_letter = twin_copy(settings.dead_letter);
        settings.dead_letter.data = dead_letter;
    }
    if (bytes_present(settings.paused_by)) {
        paused_by = twin_copy(settings.paused_by);
        settings.paused_by.data = paused_by;
    }
    free(q->json);
    free(q->dead_letter);
    free(q->paused_by);
    q->json = json;
    q->json_len = json_len;
    q->dead_letter = dead_letter;
    q->paused_by = paused_by;
    q->settings = settings;
    q->version = ++t->versions;
}

struct twin_queue *
twin_add_queue(struct twin *t, const struct store_queue *where,
               const struct store_metadata *metadata)
{
    struct twin_queue *q = twin_alloc(sizeof(*q));

    q->project = twin_copy(where->project);
    q->project_len = where->project.len;
    q->name = twin_copy(where->name);
    q->name_len = where->name.len;
    q->kind = where->kind;
    q->number = ++t->queues_made;
    twin_set_metadata(t, q, metadata);
    t->queues = twin_grow(t->queues, (t->queue_count + 1) * sizeof(*t->queues));
    t->queues[t->queue_count++] = q;
    return q;
}

void
twin_remove_queue(struct twin *t, struct twin_queue *q)
{
    size_t i = 0;

    while (t->queues[i] != q)
        i++;
    t->queues[i] = t->queues[--t->queue_count];
    while (q->message_count > 0)
        twin_free_message(twin_take_out(q, q->message_count - 1));
    twin_unsubscribe_all(q);
    free(q->messages);
    free(q->claims);
    free(q->json);
    free(q->dead_letter);
    free(q->paused_by);
    free(q->project);
    free(q->name);
    free(q);
}

struct twin_queue *
twin_queue_after(const struct twin *t, struct bytes project, struct bytes marker)
{
    struct twin_queue *least = NULL;
    struct bytes least_name = BYTES_NONE;

    for (size_t i = 0; i < t->queue_count; i++) {
        struct twin_queue *q = t->queues[i];
        struct bytes name = bytes_of(q->name, q->name_len);

        if (!bytes_equal(bytes_of(q->project, q->project_len), project))
            continue;
        if (bytes_present(marker) && bytes_compare(name, marker) <= 0)
            continue;
        if (least == NULL || bytes_compare(name, least_name) < 0) {
            least = q;
            least_name = name;
        }
    }
    return least;
}

/* ------------------------------------------------------------------ messages, claims */

void
twin_append(struct twin_queue *q, struct twin_message *m)
{
    m->position = ++q->last_position;
    q->messages =
        twin_grow(q->messages, (q->message_count + 1) * sizeof(struct twin_message *));
    q->messages[q->message_count++] = m;
}

struct twin_message *
twin_take_out(struct twin_queue *q, size_t i)
{
    struct twin_message *m = q->messages[i];

    q->message_count--;
    memmove(&q->messages[i], &q->messages[i + 1],
            (q->message_count - i) * sizeof(struct twin_message *));
    return m;
}

void
twin_free_message(struct twin_message *m)
{
    static const struct store_details none;

    twin_set_details(m, &none);
    free(m->body);
    free(m);
}

void
twin_set_text(struct bytes *owned, struct bytes text)
{
    const struct bytes copy =
        text.len == 0 ? BYTES_NONE : bytes_of(twin_copy(text), text.len);

    free((char *)(uintptr_t)owned->data);
    *owned = copy;
}

void
twin_set_details(struct twin_message *m, const struct store_details *d)
{
    m->details.released_ms = d->released_ms;
    m->details.dead_lettered_ms = d->dead_lettered_ms;
    m->details.cause = d->cause;
    m->details.attempts = d->attempts;
    twin_set_text(&m->details.reason, d->reason);
    twin_set_text(&m->details.client, d->client);
    twin_set_text(&m->details.origin, d->origin);
    twin_set_text(&m->details.unique.key, d->unique.key);
    m->details.unique.until_claimed = d->unique.until_claimed;
    m->details.unique.due_ms = d->unique.due_ms;
}

void
twin_note_reason(struct twin_message *m, struct bytes reason, struct bytes client,
                 int64_t now_ms)
{
    if (reason.len == 0)
        return;
    if (m->dead_letter && m->details.dead_lettered_ms == 0)
        m->details.dead_lettered_ms = m->posted_ms; /* when it came is not known */
    twin_set_text(&m->details.reason, reason);
    twin_set_text(&m->details.client, client);
    m->details.released_ms = now_ms;
}

size_t
twin_find_message(const struct twin_queue *q, struct bytes id, int64_t now_ms)
{
    for (size_t i = 0; i < q->message_count; i++)
        if (bytes_equal(store_id_bytes(&q->messages[i]->id), id) &&
            twin_message_live(q->messages[i], now_ms))
            return i;
    return q->message_count;
}

/* A claim that holds nothing any more is over. */
static bool
holds_something(const struct twin_queue *q, const struct twin_claim *c, int64_t now_ms)
{
    for (size_t i = 0; i < q->message_count; i++)
        if (twin_message_live(q->messages[i], now_ms) &&
            twin_holder(q, q->messages[i], now_ms) == c)
            return true;
    return false;
}

struct twin_claim *
twin_find_claim(const struct twin_queue *q, struct bytes id, int64_t now_ms)
{
    for (size_t i = 0; i < q->claim_count; i++)
        if (bytes_equal(store_id_bytes(&q->claims[i].id), id) &&
            twin_claim_live(&q->claims[i], now_ms) &&
            holds_something(q, &q->claims[i], now_ms))
            return &q->claims[i];
    return NULL;
}

struct twin_claim *
twin_add_claim(struct twin *t, struct twin_queue *q, const struct store_terms *terms,
               int64_t now_ms)
{
    struct twin_claim *c;

    q->claims = twin_grow(q->claims, (q->claim_count + 1) * sizeof(struct twin_claim));
    c = &q->claims[q->claim_count++];
    *c = (struct twin_claim){.number = ++t->claims_made,
                             .started_ms = now_ms,
                             .created_ms = now_ms,
                             .ttl_ms = twin_deadline_ms(t, 0, terms->ttl_s)};
    snprintf(c->id.text, sizeof(c->id.text), "f%011d%012llx", 0,
             (unsigned long long)c->number);
    return c;
}

void
twin_remove_claim(struct twin_queue *q, struct twin_claim *c)
{
    *c = q->claims[--q->claim_count];
}

/* Does a subscriber get what is posted? */
static bool
has_listener(const struct twin *t, const struct twin_queue *q, int64_t now_ms)
{
    for (size_t i = 0; i < q->subscription_count; i++) {
        const struct twin_subscription *s = q->subscriptions[i];

        if ((s->confirmed || !t->config.require_confirmation) &&
            now_ms < s->started_ms + s->ttl_s * 1000)
            return true;
    }
    return false;
}

static void
count_expired(const struct twin *t, struct twin_queue *q, const struct twin_message *m,
              int64_t now_ms)
{
    q->expired.messages++;
    q->expired.unread += m->claim_count == 0 && !has_listener(t, q, now_ms);
    q->expired.dead_letters += m->dead_letter;
}

void
twin_forget(const struct twin *t, struct twin_queue *q, int64_t now_ms)
{
    size_t i = 0;

    while (i < q->message_count) {
        if (twin_message_live(q->messages[i], now_ms)) {
            i++;
            continue;
        }
        count_expired(t, q, q->messages[i], now_ms);
        twin_free_message(twin_take_out(q, i));
    }
    i = 0;
    while (i < q->claim_count) {
        if (twin_claim_live(&q->claims[i], now_ms))
            i++;
        else
            twin_remove_claim(q, &q->claims[i]);
    }
}
