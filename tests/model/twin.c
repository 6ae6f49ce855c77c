/* The twin's operations on queues, and its life. */
#include "model/twin.h"
#include "model/twin_state.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------- queues */

static enum status
twin_queue_create(struct store *s, struct store_op *op, const struct store_queue *where,
                  const struct store_metadata *metadata, bool *created)
{
    struct twin *t = twin_of(s);

    (void)op; /* queues do not expire */
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
    if (bytes_present(q->settings.paused_by))
        view->metadata.settings.paused_by.data = twin_copy(q->settings.paused_by);
}

static struct store_queues
open_queues(const struct store *s, size_t capacity)
{
    struct store_queues out = STORE_QUEUES_INIT;

    out.store = s;
    out.queues = twin_alloc(capacity * sizeof(*out.queues));
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
        free((char *)(uintptr_t)queues->queues[i].metadata.settings.paused_by.data);
    }
    free(queues->queues);
}

static enum status
twin_queue_get(struct store *s, struct store_op *op, const struct store_queue *where,
               struct store_queues *out)
{
    const struct twin_queue *q = twin_find_queue(twin_of(s), where);

    (void)op; /* queues do not expire */
    if (q == NULL)
        return ST_NOT_FOUND;
    *out = open_queues(s, 1);
    show_queue(out, q);
    return ST_OK;
}

static enum status
twin_queue_update(struct store *s, struct store_op *op, const struct store_queue *where,
                  uint64_t version, const struct store_metadata *metadata)
{
    struct twin_queue *q = twin_find_queue(twin_of(s), where);

    if (q == NULL)
        return ST_NOT_FOUND;
    twin_forget(twin_of(s), q, op->now_ms); /* due claims end with the old settings */
    if (q->version != version)
        return ST_CHANGED;
    twin_set_metadata(twin_of(s), q, metadata);
    return ST_OK;
}

static enum status
twin_queue_delete(struct store *s, struct store_op *op, const struct store_queue *where)
{
    struct twin_queue *q = twin_find_queue(twin_of(s), where);

    (void)op; /* all of it goes, due or not */
    if (q != NULL) {
        twin_dismiss(twin_of(s), q);
        twin_remove_queue(twin_of(s), q);
    }
    return ST_OK;
}

static enum status
twin_queue_list(struct store *s, struct store_op *op, const struct store_page *page,
                struct store_queues *out)
{
    struct bytes project = page->project, marker = page->marker;
    size_t limit = page->limit;
    struct twin *t = twin_of(s);
    const struct twin_queue *q;
    struct bytes all = BYTES_NONE;

    (void)op; /* queues do not expire */
    /* Metadata is always there: showing more than requested is allowed. */
    *out = open_queues(s, limit);
    while (out->count < limit && (q = twin_queue_after(t, project, marker)) != NULL) {
        show_queue(out, q);
        marker = bytes_of(q->name, q->name_len);
    }
    out->more = out->count == limit;
    while ((q = twin_queue_after(t, project, all)) != NULL) {
        out->total++;
        all = bytes_of(q->name, q->name_len);
    }
    return ST_OK;
}

/* A queue of the first project behind the marker; NULL: there is none. */
static const struct twin_queue *
project_after(const struct twin *t, struct bytes marker)
{
    const struct twin_queue *least = NULL;

    for (size_t i = 0; i < t->queue_count; i++) {
        const struct twin_queue *q = t->queues[i];
        struct bytes project = bytes_of(q->project, q->project_len);

        if (bytes_present(marker) && bytes_compare(project, marker) <= 0)
            continue;
        if (least == NULL ||
            bytes_compare(project, bytes_of(least->project, least->project_len)) < 0)
            least = q;
    }
    return least;
}

static enum status
twin_project_list(struct store *s, struct store_op *op, const struct store_page *page,
                  struct store_queues *out)
{
    const struct twin *t = twin_of(s);
    struct bytes marker = page->marker, all = BYTES_NONE;
    const struct twin_queue *q;

    (void)op; /* queues do not expire */
    *out = open_queues(s, page->limit);
    while (out->count < page->limit && (q = project_after(t, marker)) != NULL) {
        marker = bytes_of(q->project, q->project_len);
        out->queues[out->count++] =
            (struct store_queue_view){.name = bytes_of(twin_copy(marker), marker.len)};
    }
    out->more = out->count == page->limit;
    while ((q = project_after(t, all)) != NULL) {
        out->total++;
        all = bytes_of(q->project, q->project_len);
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
twin_queue_stats(struct store *s, struct store_op *op, const struct store_queue *where,
                 struct store_stats *out)
{
    const int64_t now_ms = op->now_ms;
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
twin_queue_purge(struct store *s, struct store_op *op, const struct store_queue *where,
                 enum store_purge what)
{
    struct twin_queue *q = twin_find_queue(twin_of(s), where);
    bool messages = what != STORE_PURGE_SUBSCRIPTIONS;

    if (q != NULL) /* all messages go, due or not; those that are due expired */
        twin_forget(twin_of(s), q, op->now_ms);
    while (q != NULL && messages && q->message_count > 0)
        twin_free_message(twin_take_out(q, q->message_count - 1));
    if (q != NULL && what != STORE_PURGE_MESSAGES)
        twin_unsubscribe_all(q);
    return ST_OK;
}

/* ---------------------------------------------------------------------- life */

static enum status
twin_ping(struct store *s, struct store_op *op)
{
    (void)s; /* memory is always there */
    (void)op;
    return ST_OK;
}

static enum status
twin_totals(struct store *s, struct store_op *op, struct store_totals *out)
{
    const struct twin *t = twin_of(s);

    *out = (struct store_totals){0};
    for (size_t i = 0; i < t->queue_count; i++) {
        const struct twin_queue *q = t->queues[i];
        const struct store_queue where = {.project = bytes_of(q->project, q->project_len),
                                          .name = bytes_of(q->name, q->name_len)};
        struct store_stats stats;

        if (q->kind == STORE_SCHEDULES ||
            twin_queue_stats(s, op, &where, &stats) != ST_OK)
            continue;
        out->queues++;
        out->messages += stats.total;
        out->claimed += stats.claimed;
    }
    return ST_OK;
}

/* Does the claim hold anything any more? */
static bool
holds_something(const struct twin_queue *q, const struct twin_claim *c, int64_t now_ms)
{
    for (size_t i = 0; i < q->message_count; i++)
        if (twin_message_live(q->messages[i], now_ms) &&
            twin_holder(q, q->messages[i], now_ms) == c)
            return true;
    return false;
}

static void
count_message(const struct twin_queue *q, const struct twin_message *m, int64_t now_ms,
              struct store_queue_metrics *out)
{
    struct store_population *here = &out->here;

    here->dead_letters += m->dead_letter;
    here->bytes += m->body_len;
    if (twin_holder(q, m, now_ms) != NULL)
        here->claimed++;
    else if (twin_message_delayed(m, now_ms))
        here->delayed++;
    else if (here->ready++ == 0) {
        out->has_oldest = true;
        out->age_ms = now_ms - m->posted_ms;
        out->posted_ms = m->posted_ms;
    }
}

static void
measure_claim(const struct twin_claim *c, int64_t now_ms, struct store_queue_metrics *out)
{
    out->here.claims++;
    if (out->claimed_age_ms < now_ms - c->created_ms)
        out->claimed_age_ms = now_ms - c->created_ms;
}

static void
measure(const struct twin *t, struct twin_queue *q, int64_t now_ms,
        struct store_queue_metrics *out)
{
    twin_forget(t, q, now_ms);
    *out = (struct store_queue_metrics){.has_oldest = false};
    if (q->project_len <= STORE_METRICS_PROJECT && q->name_len <= STORE_METRICS_NAME) {
        memcpy(out->project, q->project, q->project_len);
        memcpy(out->name, q->name, q->name_len);
        out->project_len = q->project_len;
        out->name_len = q->name_len;
    }
    for (size_t i = 0; i < q->message_count; i++)
        if (twin_message_live(q->messages[i], now_ms))
            count_message(q, q->messages[i], now_ms, out);
    for (size_t i = 0; i < q->claim_count; i++)
        if (twin_claim_live(&q->claims[i], now_ms) &&
            holds_something(q, &q->claims[i], now_ms))
            measure_claim(&q->claims[i], now_ms, out);
    out->paused = q->settings.paused;
    out->expired = q->expired;
    out->subscriptions = q->subscription_count;
    if (bytes_present(q->settings.dead_letter)) {
        out->dead_letter_len = q->settings.dead_letter.len;
        memcpy(out->dead_letter, q->settings.dead_letter.data, out->dead_letter_len);
    }
    out->waiters = twin_waiters(
        t, &(struct store_queue){bytes_of(q->project, q->project_len),
                                 bytes_of(q->name, q->name_len), STORE_QUEUE});
}

void
twin_metrics_of(struct store *s, const struct store_queue *where, int64_t now_ms,
                struct store_queue_metrics *out)
{
    measure(twin_of(s), twin_find_queue(twin_of(s), where), now_ms, out);
}

/* Without counts: only what expired is counted, by queue. */
static enum status
twin_metrics(struct store *s, struct store_op *op, struct store_metrics *out)
{
    const struct twin *t = twin_of(s);

    *out = (struct store_metrics){.queues = t->queue_count};
    for (size_t i = 0; i < t->queue_count; i++) {
        struct store_queue_metrics q;

        measure(t, t->queues[i], op->now_ms, &q);
        out->all.ready += q.here.ready;
        out->all.claimed += q.here.claimed;
        out->all.delayed += q.here.delayed;
        out->all.dead_letters += q.here.dead_letters;
        out->all.claims += q.here.claims;
        out->all.bytes += q.here.bytes;
        out->subscriptions += q.subscriptions;
    }
    return ST_OK;
}

static enum status
twin_queue_metrics(struct store *s, struct store_op *op, size_t *at,
                   struct store_queue_metrics *out)
{
    const struct twin *t = twin_of(s);

    if (*at >= t->queue_count)
        return ST_NOT_FOUND;
    measure(t, t->queues[(*at)++], op->now_ms, out);
    return ST_OK;
}

/* All projects and queues, one by one, from the first behind the place on. */
static const struct twin_queue *
survey_next(struct twin *t, const struct store_survey *survey, struct bytes project,
            struct bytes name)
{
    const struct twin_queue *q;

    if (bytes_present(survey->project))
        return twin_queue_after(t, survey->project, name);
    q = bytes_present(project) ? twin_queue_after(t, project, name) : NULL;
    if (q != NULL)
        return q;
    q = project_after(t, project);
    return q == NULL
               ? NULL
               : twin_queue_after(t, bytes_of(q->project, q->project_len), BYTES_NONE);
}

static enum status
twin_queue_survey(struct store *s, struct store_op *op, struct store_survey *survey)
{
    struct bytes project = survey->after_project, name = survey->after_name;
    struct twin *t = twin_of(s);
    const struct twin_queue *q;

    survey->count = 0;
    survey->total = 0;
    survey->more = false;
    for (size_t i = 0; i < t->queue_count; i++)
        survey->total +=
            !bytes_present(survey->project) ||
            bytes_equal(survey->project,
                        bytes_of(t->queues[i]->project, t->queues[i]->project_len));
    while (!survey->more && (q = survey_next(t, survey, project, name)) != NULL) {
        survey->more = survey->count == survey->limit;
        if (!survey->more)
            measure(t, (struct twin_queue *)(uintptr_t)q, op->now_ms,
                    &survey->rows[survey->count++]);
        project = bytes_of(q->project, q->project_len);
        name = bytes_of(q->name, q->name_len);
    }
    return ST_OK;
}

/* Nothing is delivered. */
static void
twin_no_watch(struct store *s, struct store_listener *listener)
{
    (void)s, (void)listener;
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
    free(t->waiters);
    twin_free_keys(t);
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
            if (twin_find_claim(q, store_id_bytes(&q->claims[k].id), now_ms) != NULL)
                consider(q->claims[k].started_ms + q->claims[k].ttl_ms, now_ms, &next_ms);
        twin_consider_subscriptions(q, now_ms, &next_ms);
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

static const struct store_vtable twin_ops = {
    .queue_create = twin_queue_create,
    .queue_get = twin_queue_get,
    .queue_update = twin_queue_update,
    .queue_delete = twin_queue_delete,
    .queue_list = twin_queue_list,
    .project_list = twin_project_list,
    .queue_stats = twin_queue_stats,
    .queue_purge = twin_queue_purge,
    .message_post = twin_keyed_post,
    .message_list = twin_message_list,
    .message_get = twin_message_get,
    .message_find = twin_message_find,
    .message_delete = twin_message_delete,
    .message_pop = twin_keyed_pop,
    .claim_create = twin_keyed_claim,
    .claim_get = twin_claim_get,
    .claim_list = twin_claim_list,
    .claim_renew = twin_claim_renew,
    .claim_release = twin_claim_release,
    .claim_finish = twin_claim_finish,
    .redrive = twin_redrive,
    .subscription_create = twin_subscription_create,
    .subscription_get = twin_subscription_get,
    .subscription_list = twin_subscription_list,
    .subscription_update = twin_subscription_update,
    .subscription_delete = twin_subscription_delete,
    .subscription_confirm = twin_subscription_confirm,
    .delivery_next = twin_delivery_next,
    .delivery_done = twin_delivery_done,
    .delivery_watch = twin_no_watch,
    .waiter_leave = twin_waiter_leave,
    .ping = twin_ping,
    .totals = twin_totals,
    .metrics = twin_metrics,
    .queue_metrics = twin_queue_metrics,
    .queue_survey = twin_queue_survey,
    .housekeep = twin_housekeep,
    .next_ms = twin_next_ms,
    .audit = twin_audit,
    .close = twin_close,
    .batch_release = twin_batch_release,
    .queues_release = twin_queues_release,
    .subscriptions_release = twin_subscriptions_release,
};

enum status
twin_open(const struct engine_config *config, struct store **out)
{
    struct twin *t = twin_alloc(sizeof(*t));

    t->store.vtable = &twin_ops;
    t->store.state = &twin_state_ops;
    t->config = *config;
    *out = &t->store;
    return ST_OK;
}
