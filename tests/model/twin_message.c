/* The twin's operations on messages: docs/api.md 7.7 and 8, without a thought of cost. */
#include "model/twin_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------------- post */

/* The first value that is set. */
static int64_t
first_set(int64_t a, int64_t b, int64_t c)
{
    if (a != STORE_UNSET)
        return a;
    return b != STORE_UNSET ? b : c;
}

void
twin_message_name(const struct twin_queue *q, struct twin_message *m)
{
    snprintf(m->id.text, sizeof(m->id.text), "e%07" PRIx64 "%016" PRIx64,
             q->number & 0xfffffff, m->position);
}

static struct twin_message *
make_message(const struct twin *t, const struct twin_queue *q,
             const struct store_post *post, size_t i, int64_t now_ms)
{
    const struct store_draft *draft = &post->drafts[i];
    struct twin_message *m = twin_alloc(sizeof(*m));
    int64_t ttl_s =
        first_set(draft->ttl_s, q->settings.message_ttl_s, t->config.message_ttl_s);
    int64_t delay_s =
        first_set(draft->delay_s, q->settings.message_delay_s, t->config.message_delay_s);

    m->body = twin_copy(draft->body);
    m->body_len = draft->body.len;
    m->has_checksum = post->checksums != NULL;
    if (m->has_checksum)
        m->checksum = post->checksums[i];
    m->client = post->client;
    m->posted_ms = now_ms;
    m->expires_ms = twin_deadline_ms(t, now_ms, ttl_s);
    m->ready_ms = delay_s > 0 ? twin_deadline_ms(t, now_ms, delay_s) : now_ms;
    m->delay_s = delay_s;
    if (post->unique != NULL) {
        const struct store_details details = {.unique = *post->unique};

        twin_set_details(m, &details);
        if (post->ready_ms != 0)
            m->ready_ms = post->ready_ms;
    }
    return m;
}

enum status
twin_check_post(const struct twin *t, const struct twin_queue *q,
                const struct store_post *post)
{
    const struct store_settings none = STORE_SETTINGS_INIT;
    const struct store_settings *set = q == NULL ? &none : &q->settings;

    for (size_t i = 0; i < post->count; i++)
        if (first_set(post->drafts[i].delay_s, set->message_delay_s,
                      t->config.message_delay_s) >=
            first_set(post->drafts[i].ttl_s, set->message_ttl_s, t->config.message_ttl_s))
            return ST_NEVER_READY;
    if (q == NULL)
        return ST_OK;
    if ((q->settings.paused & STORE_PAUSE_POSTS) != 0)
        return ST_PAUSED;
    if (q->settings.max_post_bytes != STORE_UNSET &&
        post->request_bytes > (uint64_t)q->settings.max_post_bytes)
        return ST_TOO_LARGE;
    for (size_t i = 0; q->settings.encrypt && i < post->count; i++)
        if (!store_is_sealed(post->drafts[i].body))
            return ST_NOT_SEALED;
    return ST_OK;
}

void
twin_add_messages(struct twin *t, const struct store_queue *where,
                  const struct store_post *post, int64_t now_ms, struct store_id *ids)
{
    struct twin_queue *q = twin_find_queue(t, where);

    if (q == NULL)
        q = twin_add_queue(t, where, NULL);
    twin_forget(t, q, now_ms);
    for (size_t i = 0; i < post->count; i++) {
        struct twin_message *m = make_message(t, q, post, i, now_ms);

        twin_append(q, m);
        twin_message_name(q, m);
        ids[i] = m->id;
        twin_feed(t, q, m);
    }
}

/* The new message takes the place of m, the holder of its key (NULL: none). */
static enum status
replace_message(struct twin *t, struct twin_queue *q, const struct twin_message *m,
                const struct store_post *post, int64_t now_ms, struct store_id *ids)
{
    const struct store_queue where = {.project = bytes_of(q->project, q->project_len),
                                      .name = bytes_of(q->name, q->name_len),
                                      .kind = q->kind};
    size_t at = twin_find_message(q, post->replaces, now_ms);
    struct twin_message *old;

    if (m == NULL || at == q->message_count || q->messages[at] != m)
        return ST_CHANGED;
    old = twin_take_out(q, at);
    twin_add_messages(t, &where, post, now_ms, ids);
    twin_set_text(&q->messages[q->message_count - 1]->details.reason,
                  old->details.reason);
    twin_set_text(&q->messages[q->message_count - 1]->details.client,
                  old->details.client);
    q->messages[q->message_count - 1]->details.released_ms = old->details.released_ms;
    twin_free_message(old);
    return ST_OK;
}

enum status
twin_message_post(struct store *s, struct store_op *op, const struct store_queue *where,
                  const struct store_post *post, struct store_id *ids)
{
    struct twin *t = twin_of(s);
    struct twin_queue *q = twin_find_queue(t, where);
    const struct twin_message *m = NULL;
    enum status st;

    if (q == NULL && !post->create_queue)
        return ST_NOT_FOUND;
    st = twin_check_post(t, q, post);
    if (st != ST_OK)
        return st;
    if (q != NULL && post->unique != NULL)
        m = twin_find_key(q, post->unique->key, op->now_ms);
    if (bytes_present(post->replaces))
        return replace_message(t, q, m, post, op->now_ms, ids);
    op->existing = m != NULL;
    if (m != NULL)
        ids[0] = m->id;
    else
        twin_add_messages(t, where, post, op->now_ms, ids);
    return ST_OK;
}

/* ---------------------------------------------------------------------- show */

struct store_batch
twin_open_batch(const struct store *s, size_t capacity)
{
    struct store_batch out = STORE_BATCH_INIT;

    out.store = s;
    out.messages = twin_alloc(capacity * sizeof(*out.messages));
    return out;
}

void
twin_batch_release(const struct store *s, struct store_batch *batch)
{
    (void)s; /* everything shown is a copy */
    for (size_t i = 0; i < batch->count; i++)
        free(batch->messages[i].pin);
    free(batch->messages);
}

/* A copy of a text in *to, which moves behind it. */
static struct bytes
show_text(char **to, struct bytes text)
{
    char *copy = *to;

    if (text.len == 0)
        return BYTES_NONE;
    memcpy(copy, text.data, text.len);
    *to += text.len;
    return bytes_of(copy, text.len);
}

/* A copy of the details behind the texts of a view; NULL: there are none. */
static const struct store_details *
show_details(const struct store_details *d, struct store_details *copy, char **to)
{
    if (d->released_ms == 0 && d->dead_lettered_ms == 0 && d->unique.key.len == 0)
        return NULL;
    *copy = *d;
    copy->reason = show_text(to, d->reason);
    copy->client = show_text(to, d->client);
    copy->origin = show_text(to, d->origin);
    copy->unique.key = show_text(to, d->unique.key);
    return copy;
}

/* All that a view points to: in one block, with the texts behind it. */
struct shown {
    struct store_checksum checksum;
    struct store_details details;
    char text[];
};

/* Adds a copy of a message as it is now. */
void
twin_show(struct store_batch *out, const struct twin_queue *q,
          const struct twin_message *m, int64_t now_ms)
{
    struct store_message *view = &out->messages[out->count++];
    const struct twin_claim *c = twin_holder(q, m, now_ms);
    const struct store_details *d = &m->details;
    struct shown *all =
        twin_alloc(sizeof(*all) + m->body_len + store_details_bytes(d) + 1);
    char *to = all->text;

    *view = (struct store_message){.id = m->id, .pin = all};
    if (c != NULL)
        view->claim_id = c->id;
    view->body = bytes_of(to, m->body_len);
    memcpy(to, m->body, m->body_len);
    to += m->body_len;
    all->checksum = m->checksum;
    if (m->has_checksum)
        view->checksum = &all->checksum;
    view->details = show_details(d, &all->details, &to);
    view->ttl_s = (m->expires_ms - m->posted_ms) / 1000;
    view->age_s = (now_ms - m->posted_ms) / 1000;
    view->posted_ms = m->posted_ms;
    view->expires_ms = m->expires_ms;
    if (twin_message_delayed(m, now_ms))
        view->delayed_until_ms =
            m->ready_ms < m->expires_ms ? m->ready_ms : m->expires_ms;
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
    if (store_id_good(marker) &&
        sscanf(text, "e%7" SCNx64 "%16" SCNx64, &number, &position) == 2 &&
        number == q->number && position <= q->last_position)
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

enum status
twin_message_list(struct store *s, struct store_op *op, const struct store_queue *where,
                  const struct store_filter *filter, struct store_batch *out)
{
    const int64_t now_ms = op->now_ms;
    const struct twin_queue *q = twin_find_queue(twin_of(s), where);
    uint64_t behind;

    *out = twin_open_batch(s, filter->limit);
    if (q == NULL)
        return ST_OK;
    behind = marker_position(q, filter->marker, now_ms);
    for (size_t i = 0; i < q->message_count && out->count < filter->limit; i++) {
        const struct twin_message *m = q->messages[i];

        if (m->position <= behind || !listed(q, m, filter, now_ms))
            continue;
        twin_show(out, q, m, now_ms);
        snprintf(out->next.text, sizeof(out->next.text), "at_%" PRIu64, m->position);
    }
    return ST_OK;
}

enum status
twin_message_get(struct store *s, struct store_op *op, const struct store_queue *where,
                 const struct bytes *ids, size_t count, struct store_batch *out)
{
    const int64_t now_ms = op->now_ms;
    const struct twin_queue *q = twin_find_queue(twin_of(s), where);

    *out = twin_open_batch(s, count);
    for (size_t i = 0; q != NULL && i < count; i++) {
        size_t found = twin_find_message(q, ids[i], now_ms);

        if (found < q->message_count)
            twin_show(out, q, q->messages[found], now_ms);
    }
    return ST_OK;
}

enum status
twin_message_find(struct store *s, struct store_op *op, const struct store_queue *where,
                  struct bytes key, struct store_batch *out)
{
    const struct twin_queue *q = twin_find_queue(twin_of(s), where);
    const struct twin_message *m = q == NULL ? NULL : twin_find_key(q, key, op->now_ms);

    *out = twin_open_batch(s, 1);
    if (m != NULL)
        twin_show(out, q, m, op->now_ms);
    return ST_OK;
}

/* ---------------------------------------------------------------------- remove */

/* The table of docs/api.md 8.6. */
static enum status
may_delete(const struct twin_queue *q, const struct twin_message *m,
           const struct store_delete *which, int64_t now_ms)
{
    const struct twin_claim *holder = twin_holder(q, m, now_ms);
    bool any_live = false;

    if (which->rule == STORE_DELETE_ANY)
        return ST_OK;
    if (which->rule == STORE_DELETE_READY)
        return holder == NULL ? ST_OK : ST_CLAIMED;
    for (size_t i = 0; i < which->claim_count; i++) {
        const struct twin_claim *named = twin_find_claim(q, which->claim_ids[i], now_ms);

        if (named != NULL && named == holder)
            return ST_OK;
        any_live = any_live || named != NULL;
    }
    return any_live && holder != NULL ? ST_CLAIMED : ST_NOT_CLAIMED;
}

enum status
twin_message_delete(struct store *s, struct store_op *op, const struct store_queue *where,
                    const struct store_delete *which)
{
    const int64_t now_ms = op->now_ms;
    struct twin_queue *q = twin_find_queue(twin_of(s), where);
    enum status st = ST_OK;
    size_t found;

    for (size_t i = 0; q != NULL && st == ST_OK && i < which->count; i++) {
        found = twin_find_message(q, which->ids[i], now_ms);
        if (found < q->message_count)
            st = may_delete(q, q->messages[found], which, now_ms);
    }
    for (size_t i = 0; q != NULL && st == ST_OK && i < which->count; i++) {
        found = twin_find_message(q, which->ids[i], now_ms);
        if (found < q->message_count)
            twin_free_message(twin_take_out(q, found));
    }
    return st;
}

bool
twin_fits(const struct twin_queue *q, size_t from, size_t limit, int64_t now_ms,
          struct store_batch *out)
{
    size_t need = 0, count = 0;

    for (size_t i = from; i < q->message_count && count < limit; i++) {
        if (twin_ready(q, q->messages[i], now_ms)) {
            need += q->messages[i]->body_len;
            count++;
        }
    }
    if (out->capacity == 0 || need <= out->capacity)
        return true;
    out->capacity = need;
    return false;
}

static bool
shows(const struct store_batch *batch, const struct twin_message *m)
{
    for (size_t i = 0; i < batch->count; i++)
        if (strcmp(batch->messages[i].id.text, m->id.text) == 0)
            return true;
    return false;
}

bool
twin_opened(const struct store *s, const struct twin_queue *q, size_t from, size_t limit,
            int64_t now_ms, struct store_batch *out)
{
    struct store_batch would = twin_open_batch(s, limit);
    bool good = true;

    for (size_t i = from; i < q->message_count && would.count < limit; i++) {
        const struct twin_message *m = q->messages[i];

        if (!twin_ready(q, m, now_ms))
            continue;
        twin_show(&would, q, m, now_ms);
        if (out->opened != NULL && store_is_sealed(bytes_of(m->body, m->body_len)) &&
            !shows(out->opened, m))
            good = false;
    }
    if (good)
        twin_batch_release(s, &would);
    else
        *out = would;
    return good;
}

enum status
twin_message_pop(struct store *s, struct store_op *op, const struct store_queue *where,
                 size_t limit, struct store_batch *out)
{
    const int64_t now_ms = op->now_ms;
    struct twin_queue *q = twin_find_queue(twin_of(s), where);
    const size_t wants = limit;
    size_t i, share = twin_share(twin_of(s), op, where, &i);

    op->paused = q != NULL && twin_claims_paused(q);
    if (limit > share)
        limit = share;
    if (q != NULL && !twin_fits(q, i, limit, now_ms, out))
        return ST_OVER_CAPACITY;
    if (q != NULL && !twin_opened(s, q, i, limit, now_ms, out))
        return ST_SEALED;
    *out = twin_open_batch(s, limit);
    while (q != NULL && i < q->message_count && out->count < limit) {
        if (!twin_ready(q, q->messages[i], now_ms)) {
            i++;
            continue;
        }
        twin_show(out, q, q->messages[i], now_ms);
        twin_free_message(twin_take_out(q, i));
    }
    if (out->count == 0)
        twin_wait(twin_of(s), op, where, wants);
    else
        twin_served(twin_of(s), op);
    return ST_OK;
}
