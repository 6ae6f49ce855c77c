/* The twin's operations, each written down from the contract without a thought of cost.
 */
#include "model/twin.h"
#include "model/twin_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static struct twin *
twin_of(struct store *s)
{
    return (struct twin *)s;
}

/* ---------------------------------------------------------------------- queues */

static enum status
twin_queue_create(struct store *s, int64_t now_ms, const struct store_queue *where,
                  const struct store_metadata *metadata, bool *created)
{
    struct twin *t = twin_of(s);

    (void)now_ms; /* queues do not expire */
    *created = twin_find_queue(t, where) == NULL;
    if (*created)
        twin_add_queue(t, where, metadata);
    return ST_OK;
}

/* Adds a copy of all there is to see of a queue. */
static void
show_queue(struct store_queues *out, const struct twin_queue *q)
{
    struct store_queue_view *view = &out->queues[out->count++];

    *view = (struct store_queue_view){.version = q->version};
    view->name = bytes_of(twin_copy(bytes_of(q->name, q->name_len)), q->name_len);
    view->metadata.settings = q->settings;
    view->metadata.json =
        bytes_of(twin_copy(bytes_of(q->json, q->json_len)), q->json_len);
    if (bytes_present(q->settings.dead_letter))
        view->metadata.settings.dead_letter.data = twin_copy(q->settings.dead_letter);
}

static struct store_queues
open_queues(const struct store *s, size_t room)
{
    struct store_queues out = STORE_QUEUES_INIT;

    out.store = s;
    out.queues = twin_alloc(room * sizeof(*out.queues));
    return out;
}

static void
twin_queues_release(const struct store *s, struct store_queues *queues)
{
    (void)s; /* everything shown is a copy */
    for (size_t i = 0; i < queues->count; i++) {
        free((char *)(uintptr_t)queues->queues[i].name.data);
        free((char *)(uintptr_t)queues->queues[i].metadata.json.data);
        free((char *)(uintptr_t)queues->queues[i].metadata.settings.dead_letter.data);
    }
    free(queues->queues);
}

static enum status
twin_queue_get(struct store *s, int64_t now_ms, const struct store_queue *where,
               struct store_queues *out)
{
    const struct twin_queue *q = twin_find_queue(twin_of(s), where);

    (void)now_ms; /* queues do not expire */
    if (q == NULL)
        return ST_NOT_FOUND;
    *out = open_queues(s, 1);
    show_queue(out, q);
    return ST_OK;
}

static enum status
twin_queue_update(struct store *s, int64_t now_ms, const struct store_queue *where,
                  uint64_t version, const struct store_metadata *metadata)
{
    struct twin_queue *q = twin_find_queue(twin_of(s), where);

    (void)now_ms; /* queues do not expire */
    if (q == NULL)
        return ST_NOT_FOUND;
    if (q->version != version)
        return ST_CHANGED;
    twin_set_metadata(twin_of(s), q, metadata);
    return ST_OK;
}

static enum status
twin_queue_delete(struct store *s, int64_t now_ms, const struct store_queue *where)
{
    struct twin_queue *q = twin_find_queue(twin_of(s), where);

    (void)now_ms; /* all of it goes, due or not */
    if (q != NULL)
        twin_remove_queue(twin_of(s), q);
    return ST_OK;
}

static enum status
twin_queue_list(struct store *s, int64_t now_ms, struct bytes project,
                struct bytes marker, size_t limit, bool with_metadata,
                struct store_queues *out)
{
    struct twin *t = twin_of(s);
    const struct twin_queue *q;
    struct bytes all = BYTES_NONE;

    (void)now_ms;        /* queues do not expire */
    (void)with_metadata; /* showing more than asked for is allowed */
    *out = open_queues(s, limit);
    while (out->count < limit && (q = twin_queue_after(t, project, marker)) != NULL) {
        show_queue(out, q);
        marker = bytes_of(q->name, q->name_len);
    }
    while ((q = twin_queue_after(t, project, all)) != NULL) {
        out->total++;
        all = bytes_of(q->name, q->name_len);
    }
    return ST_OK;
}

static void
show_end(const struct twin_message *m, int64_t now_ms, struct store_end *out)
{
    out->id = m->id;
    out->age_s = (now_ms - m->posted_ms) / 1000;
    out->created_ms = m->posted_ms;
}

static enum status
twin_queue_stats(struct store *s, int64_t now_ms, const struct store_queue *where,
                 struct store_stats *out)
{
    const struct twin_queue *q = twin_find_queue(twin_of(s), where);

    *out = (struct store_stats){0};
    if (q == NULL)
        return ST_NOT_FOUND;
    for (size_t i = 0; i < q->message_count; i++) {
        const struct twin_message *m = q->messages[i];

        if (!twin_message_live(m, now_ms))
            continue;
        if (out->total++ == 0)
            show_end(m, now_ms, &out->oldest);
        show_end(m, now_ms, &out->newest);
        if (twin_holder(q, m, now_ms) != NULL)
            out->claimed++;
    }
    return ST_OK;
}

static enum status
twin_queue_purge(struct store *s, int64_t now_ms, const struct store_queue *where)
{
    struct twin_queue *q = twin_find_queue(twin_of(s), where);

    (void)now_ms; /* all messages go, due or not */
    while (q != NULL && q->message_count > 0)
        twin_free_message(twin_take_out(q, q->message_count - 1));
    return ST_OK;
}

/* ---------------------------------------------------------------------- post */

/* The first value that is set. */
static int64_t
first_set(int64_t a, int64_t b, int64_t c)
{
    if (a != STORE_UNSET)
        return a;
    return b != STORE_UNSET ? b : c;
}

static struct twin_message *
make_message(const struct twin *t, const struct twin_queue *q,
             const struct store_draft *draft, uint64_t client, int64_t now_ms)
{
    struct twin_message *m = twin_alloc(sizeof(*m));
    int64_t ttl_s =
        first_set(draft->ttl_s, q->settings.message_ttl_s, t->config.message_ttl_s);
    int64_t delay_s =
        first_set(draft->delay_s, q->settings.message_delay_s, t->config.message_delay_s);

    m->body = twin_copy(draft->body);
    m->body_len = draft->body.len;
    m->client = client;
    m->posted_ms = now_ms;
    m->expires_ms = now_ms + ttl_s * 1000;
    m->ready_ms = now_ms + delay_s * 1000;
    return m;
}

static enum status
twin_message_post(struct store *s, int64_t now_ms, const struct store_queue *where,
                  const struct store_post *post, struct store_id *ids)
{
    struct twin *t = twin_of(s);
    struct twin_queue *q = twin_find_queue(t, where);

    if (q == NULL && !post->create_queue)
        return ST_NOT_FOUND;
    if (q == NULL)
        q = twin_add_queue(t, where, NULL);
    if (q->settings.max_post_bytes != STORE_UNSET &&
        post->request_bytes > (uint64_t)q->settings.max_post_bytes)
        return ST_TOO_LARGE;
    twin_forget(q, now_ms);
    for (size_t i = 0; i < post->count; i++) {
        struct twin_message *m =
            make_message(t, q, &post->drafts[i], post->client, now_ms);

        twin_append(q, m);
        snprintf(m->id.text, sizeof(m->id.text), "m%" PRIu64 "_%" PRIu64, q->number,
                 m->position);
        ids[i] = m->id;
    }
    return ST_OK;
}

/* ---------------------------------------------------------------------- show */

static struct store_batch
open_batch(const struct store *s, size_t room)
{
    struct store_batch out = STORE_BATCH_INIT;

    out.store = s;
    out.messages = twin_alloc(room * sizeof(*out.messages));
    return out;
}

static void
twin_batch_release(const struct store *s, struct store_batch *batch)
{
    (void)s; /* everything shown is a copy */
    for (size_t i = 0; i < batch->count; i++)
        free(batch->messages[i].pin);
    free(batch->messages);
}

/* Adds a copy of a message as it is now. */
static void
show(struct store_batch *out, const struct twin_queue *q, const struct twin_message *m,
     int64_t now_ms)
{
    struct store_message *view = &out->messages[out->count++];
    const struct twin_claim *c = twin_holder(q, m, now_ms);

    *view = (struct store_message){.id = m->id};
    if (c != NULL)
        view->claim_id = c->id;
    view->pin = twin_copy(bytes_of(m->body, m->body_len));
    view->body = bytes_of(view->pin, m->body_len);
    view->ttl_s = (m->expires_ms - m->posted_ms) / 1000;
    view->age_s = (now_ms - m->posted_ms) / 1000;
    view->claim_count = m->claim_count;
}

/* The position a listing goes on behind; 0: from the head. */
static uint64_t
marker_position(const struct twin_queue *q, struct bytes marker, int64_t now_ms)
{
    size_t i = twin_find_message(q, marker, now_ms);
    uint64_t number = 0, position = 0;
    char text[STORE_ID_CAP] = "";

    if (i < q->message_count)
        return q->messages[i]->position;
    if (!bytes_present(marker) || marker.len >= sizeof(text))
        return 0;
    memcpy(text, marker.data, marker.len);
    if (sscanf(text, "at_%" SCNu64, &position) == 1 && position <= q->last_position)
        return position;
    if (sscanf(text, "m%" SCNu64 "_%" SCNu64, &number, &position) == 2 &&
        number == q->number)
        return position;
    return 0;
}

static bool
listed(const struct twin_queue *q, const struct twin_message *m,
       const struct store_filter *filter, int64_t now_ms)
{
    if (!twin_message_live(m, now_ms))
        return false;
    if (!filter->include_claimed && twin_holder(q, m, now_ms) != NULL)
        return false;
    if (!filter->include_delayed && twin_message_delayed(m, now_ms))
        return false;
    return !filter->hide_client || m->client != filter->client;
}

static enum status
twin_message_list(struct store *s, int64_t now_ms, const struct store_queue *where,
                  const struct store_filter *filter, struct store_batch *out)
{
    const struct twin_queue *q = twin_find_queue(twin_of(s), where);
    uint64_t behind;

    *out = open_batch(s, filter->limit);
    if (q == NULL)
        return ST_OK;
    behind = marker_position(q, filter->marker, now_ms);
    for (size_t i = 0; i < q->message_count && out->count < filter->limit; i++) {
        const struct twin_message *m = q->messages[i];

        if (m->position <= behind || !listed(q, m, filter, now_ms))
            continue;
        show(out, q, m, now_ms);
        snprintf(out->next.text, sizeof(out->next.text), "at_%" PRIu64, m->position);
    }
    return ST_OK;
}

static enum status
twin_message_get(struct store *s, int64_t now_ms, const struct store_queue *where,
                 const struct bytes *ids, size_t count, struct store_batch *out)
{
    const struct twin_queue *q = twin_find_queue(twin_of(s), where);

    *out = open_batch(s, count);
    for (size_t i = 0; q != NULL && i < count; i++) {
        size_t found = twin_find_message(q, ids[i], now_ms);

        if (found < q->message_count)
            show(out, q, q->messages[found], now_ms);
    }
    return ST_OK;
}

/* ---------------------------------------------------------------------- remove */

/* The table of API.md 6.7. */
static enum status
may_delete(const struct twin_queue *q, const struct twin_message *m,
           struct bytes claim_id, int64_t now_ms)
{
    const struct twin_claim *holder = twin_holder(q, m, now_ms);
    const struct twin_claim *named;

    if (!bytes_present(claim_id))
        return holder == NULL ? ST_OK : ST_CLAIMED;
    named = twin_find_claim(q, claim_id, now_ms);
    if (named == NULL || holder == NULL)
        return ST_NOT_CLAIMED;
    return named == holder ? ST_OK : ST_CLAIMED;
}

static enum status
twin_message_delete(struct store *s, int64_t now_ms, const struct store_queue *where,
                    struct bytes id, struct bytes claim_id)
{
    struct twin_queue *q = twin_find_queue(twin_of(s), where);
    enum status st;
    size_t i;

    if (q == NULL)
        return ST_OK;
    i = twin_find_message(q, id, now_ms);
    if (i == q->message_count)
        return ST_OK;
    st = may_delete(q, q->messages[i], claim_id, now_ms);
    if (st == ST_OK)
        twin_free_message(twin_take_out(q, i));
    return st;
}

static bool
held_by_one(const struct twin_queue *q, const struct twin_message *m, int64_t now_ms,
            const struct bytes *claim_ids, size_t claim_count)
{
    const struct twin_claim *holder = twin_holder(q, m, now_ms);

    for (size_t i = 0; holder != NULL && i < claim_count; i++)
        if (bytes_equal(store_id_bytes(&holder->id), claim_ids[i]))
            return true;
    return false;
}

static enum status
twin_message_delete_many(struct store *s, int64_t now_ms, const struct store_queue *where,
                         const struct bytes *ids, size_t count,
                         const struct bytes *claim_ids, size_t claim_count)
{
    struct twin_queue *q = twin_find_queue(twin_of(s), where);
    size_t found;

    for (size_t i = 0; q != NULL && claim_ids != NULL && i < count; i++) {
        found = twin_find_message(q, ids[i], now_ms);
        if (found < q->message_count &&
            !held_by_one(q, q->messages[found], now_ms, claim_ids, claim_count))
            return ST_CLAIMED;
    }
    for (size_t i = 0; q != NULL && i < count; i++) {
        found = twin_find_message(q, ids[i], now_ms);
        if (found < q->message_count)
            twin_free_message(twin_take_out(q, found));
    }
    return ST_OK;
}

static enum status
twin_message_pop(struct store *s, int64_t now_ms, const struct store_queue *where,
                 size_t limit, struct store_batch *out)
{
    struct twin_queue *q = twin_find_queue(twin_of(s), where);
    size_t i = 0;

    *out = open_batch(s, limit);
    while (q != NULL && i < q->message_count && out->count < limit) {
        if (!twin_claimable(q, q->messages[i], now_ms)) {
            i++;
            continue;
        }
        show(out, q, q->messages[i], now_ms);
        twin_free_message(twin_take_out(q, i));
    }
    return ST_OK;
}

/* ---------------------------------------------------------------------- claims */

static bool
is_dead_letter(const struct twin_queue *q, const struct twin_message *m)
{
    return q->settings.max_claim_count != STORE_UNSET &&
           bytes_present(q->settings.dead_letter) &&
           m->claim_count >= q->settings.max_claim_count;
}

/* Moves the i-th message of q to the end of its dead letter queue (API.md 8). */
static void
move_dead_letter(struct twin *t, struct twin_queue *q, size_t i, int64_t now_ms)
{
    struct store_queue where = {bytes_of(q->project, q->project_len),
                                q->settings.dead_letter};
    struct twin_queue *target = twin_find_queue(t, &where);
    struct twin_message *m = twin_take_out(q, i);

    if (target == NULL)
        target = twin_add_queue(t, &where, NULL);
    m->claim_count = 0;
    m->claim = 0;
    if (q->settings.dead_letter_ttl_s != STORE_UNSET) {
        m->posted_ms = now_ms;
        m->expires_ms = now_ms + q->settings.dead_letter_ttl_s * 1000;
        m->ready_ms = now_ms;
    }
    twin_append(target, m);
}

/* expires = max(expires, now + min(ttl + grace, max_message_ttl)): API.md 7.3. */
static void
lengthen(const struct twin *t, struct twin_message *m, const struct store_terms *terms,
         int64_t now_ms)
{
    int64_t life_s = terms->ttl_s + terms->grace_s;

    if (life_s > t->config.max_message_ttl_s)
        life_s = t->config.max_message_ttl_s;
    if (m->expires_ms < now_ms + life_s * 1000)
        m->expires_ms = now_ms + life_s * 1000;
}

static enum status
twin_claim_create(struct store *s, int64_t now_ms, const struct store_queue *where,
                  const struct store_terms *terms, size_t limit, struct store_batch *out)
{
    struct twin *t = twin_of(s);
    struct twin_queue *q = twin_find_queue(t, where);
    const struct twin_claim *c = NULL;
    size_t i = 0;

    *out = open_batch(s, limit);
    if (q == NULL)
        return ST_OK;
    twin_forget(q, now_ms);
    while (i < q->message_count && out->count < limit) {
        struct twin_message *m = q->messages[i];

        if (!twin_claimable(q, m, now_ms)) {
            i++;
        } else if (is_dead_letter(q, m)) {
            move_dead_letter(t, q, i, now_ms);
        } else {
            if (c == NULL)
                c = twin_add_claim(t, q, terms, now_ms);
            m->claim = c->number;
            m->claim_count++;
            lengthen(t, m, terms, now_ms);
            show(out, q, m, now_ms);
            i++;
        }
    }
    if (c != NULL)
        out->claim_id = c->id;
    return ST_OK;
}

static enum status
twin_claim_get(struct store *s, int64_t now_ms, const struct store_queue *where,
               struct bytes claim_id, struct store_batch *out)
{
    const struct twin_queue *q = twin_find_queue(twin_of(s), where);
    const struct twin_claim *c = q == NULL ? NULL : twin_find_claim(q, claim_id, now_ms);

    if (c == NULL)
        return ST_NOT_FOUND;
    *out = open_batch(s, q->message_count);
    for (size_t i = 0; i < q->message_count; i++)
        if (twin_message_live(q->messages[i], now_ms) &&
            twin_holder(q, q->messages[i], now_ms) == c)
            show(out, q, q->messages[i], now_ms);
    out->claim_id = c->id;
    out->claim_ttl_s = c->ttl_ms / 1000;
    out->claim_age_s = (now_ms - c->started_ms) / 1000;
    return ST_OK;
}

static enum status
twin_claim_renew(struct store *s, int64_t now_ms, const struct store_queue *where,
                 struct bytes claim_id, const struct store_terms *terms)
{
    struct twin *t = twin_of(s);
    struct twin_queue *q = twin_find_queue(t, where);
    struct twin_claim *c = q == NULL ? NULL : twin_find_claim(q, claim_id, now_ms);

    if (c == NULL)
        return ST_NOT_FOUND;
    for (size_t i = 0; i < q->message_count; i++)
        if (twin_message_live(q->messages[i], now_ms) &&
            twin_holder(q, q->messages[i], now_ms) == c)
            lengthen(t, q->messages[i], terms, now_ms);
    c->started_ms = now_ms;
    c->ttl_ms = terms->ttl_s * 1000;
    return ST_OK;
}

static enum status
twin_claim_release(struct store *s, int64_t now_ms, const struct store_queue *where,
                   struct bytes claim_id)
{
    struct twin_queue *q = twin_find_queue(twin_of(s), where);
    struct twin_claim *c = q == NULL ? NULL : twin_find_claim(q, claim_id, now_ms);

    if (c != NULL)
        twin_remove_claim(q, c);
    return ST_OK;
}

/* ---------------------------------------------------------------------- life */

static enum status
twin_ping(struct store *s, int64_t now_ms)
{
    (void)s; /* memory is always there */
    (void)now_ms;
    return ST_OK;
}

static void
twin_housekeep(struct store *s, int64_t now_ms, int64_t *next_ms)
{
    (void)s; /* everything is compared with now when it is looked at */
    (void)now_ms;
    *next_ms = INT64_MAX;
}

static int64_t
twin_next_ms(struct store *s)
{
    (void)s; /* there is no housekeeping to wait for */
    return INT64_MAX;
}

static bool
twin_audit(struct store *s)
{
    const struct twin *t = twin_of(s);

    for (size_t i = 0; i < t->queue_count; i++) {
        const struct twin_queue *q = t->queues[i];

        for (size_t k = 1; k < q->message_count; k++)
            if (q->messages[k - 1]->position >= q->messages[k]->position)
                return false;
    }
    return true;
}

static void
twin_close(struct store *s)
{
    struct twin *t = twin_of(s);

    while (t->queue_count > 0)
        twin_remove_queue(t, t->queues[t->queue_count - 1]);
    free(t->queues);
    free(t);
}

/* Lowers *next to due if that lies behind now. */
static void
consider(int64_t due_ms, int64_t now_ms, int64_t *next_ms)
{
    if (due_ms > now_ms && due_ms < *next_ms)
        *next_ms = due_ms;
}

int64_t
twin_next_deadline(const struct store *s, int64_t now_ms)
{
    const struct twin *t = (const struct twin *)s;
    int64_t next_ms = INT64_MAX;

    for (size_t i = 0; i < t->queue_count; i++) {
        const struct twin_queue *q = t->queues[i];

        for (size_t k = 0; k < q->message_count; k++) {
            if (!twin_message_live(q->messages[k], now_ms))
                continue;
            consider(q->messages[k]->expires_ms, now_ms, &next_ms);
            consider(q->messages[k]->ready_ms, now_ms, &next_ms);
        }
        for (size_t k = 0; k < q->claim_count; k++)
            consider(q->claims[k].started_ms + q->claims[k].ttl_ms, now_ms, &next_ms);
    }
    return next_ms;
}

size_t
twin_total(const struct store *s, int64_t now_ms)
{
    const struct twin *t = (const struct twin *)s;
    size_t total = 0;

    for (size_t i = 0; i < t->queue_count; i++)
        for (size_t k = 0; k < t->queues[i]->message_count; k++)
            total += twin_message_live(t->queues[i]->messages[k], now_ms);
    return total;
}

static const struct store_ops twin_ops = {
    .queue_create = twin_queue_create,
    .queue_get = twin_queue_get,
    .queue_update = twin_queue_update,
    .queue_delete = twin_queue_delete,
    .queue_list = twin_queue_list,
    .queue_stats = twin_queue_stats,
    .queue_purge = twin_queue_purge,
    .message_post = twin_message_post,
    .message_list = twin_message_list,
    .message_get = twin_message_get,
    .message_delete = twin_message_delete,
    .message_delete_many = twin_message_delete_many,
    .message_pop = twin_message_pop,
    .claim_create = twin_claim_create,
    .claim_get = twin_claim_get,
    .claim_renew = twin_claim_renew,
    .claim_release = twin_claim_release,
    .ping = twin_ping,
    .housekeep = twin_housekeep,
    .next_ms = twin_next_ms,
    .audit = twin_audit,
    .close = twin_close,
    .batch_release = twin_batch_release,
    .queues_release = twin_queues_release,
};

enum status
twin_open(const struct engine_config *config, struct store **out)
{
    struct twin *t = twin_alloc(sizeof(*t));

    t->store.ops = &twin_ops;
    t->config = *config;
    *out = &t->store;
    return ST_OK;
}
