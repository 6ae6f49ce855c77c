#include "model/pair_private.h"

#include "model/twin.h"
#include "support/delete.h"
#include "support/patient.h"
#include "support/redis_server.h"
#include "support/store_fixture.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MANY 256 /* ids in one operation */

/* Plain, because pairs also run outside of Check: under a fuzzer. */
static void
require(bool holds)
{
    if (!holds)
        abort();
}

/* With CLAIMD_TEST_STORE=redis in the environment the other store is not the engine, but
 * on Redis. */
static bool
on_redis(void)
{
    const char *wanted = getenv("CLAIMD_TEST_STORE");

    return wanted != NULL && strcmp(wanted, "redis") == 0;
}

static void
open_other(struct pair *p, const struct engine_config *config)
{
    if (!on_redis()) {
        require(engine_open(config, &p->engine) == ST_OK);
        return;
    }
    p->redis = calloc(1, sizeof(*p->redis));
    require(p->redis != NULL);
    redis_server_start(p->redis);
    require(fixture_redis(config, p->redis->url, &p->engine) == ST_OK);
}

void
pair_open(struct pair *p, size_t shards, uint64_t seed, bool require_confirmation)
{
    struct engine_config config;

    *p = (struct pair){.now_ms = START_MS};
    p->mem = mem_new(0);
    require(p->mem != NULL);
    config = fixture_config(p->mem);
    config.shards = shards;
    config.seed = seed;
    config.max_message_ttl_s = 20 * 86400; /* within reach of long claims */
    config.dead_letter_ttl_s = seed & 2 ? 86400 : 0;
    config.shown_queues = 1000; /* more than a history makes */
    config.require_confirmation = require_confirmation;
    config.keys = 1000000;                                     /* Redis has no limit */
    config.round_up_ms = on_redis() ? 0 : (int64_t)(seed & 1); /* test_clock is exact */
    idmap_init(&p->ids);
    require(twin_open(&config, &p->twin) == ST_OK);
    kept_runs_init(&p->kept, seed);
    if (getenv("CLAIMD_TEST_UNLOAD") != NULL) {
        config.runs = &p->kept.runs;
        config.unload_all = true;
    }
    open_other(p, &config);
    p->engine = patient_open(p->engine);
    patient_between(p->engine, kept_runs_load, &p->kept);
}

void
pair_close(struct pair *p)
{
    for (size_t i = 0; i < PAIR_WAITERS; i++)
        pair_leave(p, &p->waiters[i]);
    while (p->leased_count > 0)
        pair_give(p, 0, STORE_OUTCOME_PERMANENT_FAILURE, 0);
    store_close(p->twin);
    kept_runs_load(&p->kept);
    store_close(p->engine);
    (void)kept_runs_fini(&p->kept);
    if (mem_used(p->mem) != 0)
        pair_fail(p, "memory is left after close");
    mem_destroy(p->mem);
    if (p->redis != NULL)
        redis_server_stop(p->redis);
    free(p->redis);
    idmap_fini(&p->ids);
}

/* ---------------------------------------------------------------------- failing */

_Noreturn void
pair_fail(const struct pair *p, const char *wrong)
{
    uint64_t first = p->steps > PAIR_TRACE ? p->steps - PAIR_TRACE : 0;

    for (uint64_t i = first; i < p->steps; i++)
        printf("%6" PRIu64 "  %s\n", i, p->trace[i % PAIR_TRACE]);
    printf("operation %" PRIu64 ": %s\n", p->steps - 1, wrong);
    fflush(stdout);
    abort();
}

__attribute__((format(printf, 3, 4))) void
pair_note(struct pair *p, const struct store_queue *queue, const char *format, ...)
{
    char *line = p->trace[p->steps++ % PAIR_TRACE];
    size_t cap = sizeof(p->trace[0]);
    va_list args;
    int len = 0;

    len = snprintf(line, cap, "%+12" PRId64 " ms  ", p->now_ms - START_MS);
    if (queue != NULL)
        len +=
            snprintf(line + len, cap - (size_t)len, "%.*s/%.*s ", (int)queue->project.len,
                     queue->project.data, (int)queue->name.len, queue->name.data);
    va_start(args, format);
    vsnprintf(line + len, cap - (size_t)len, format, args);
    va_end(args);
}

void
pair_agree(const struct pair *p, const char *what, int64_t twin, int64_t engine)
{
    char wrong[160];

    if (twin == engine)
        return;
    snprintf(wrong, sizeof(wrong), "%s: twin %" PRId64 ", engine %" PRId64, what, twin,
             engine);
    pair_fail(p, wrong);
}

enum status
pair_agree_status(const struct pair *p, enum status twin, enum status engine)
{
    char wrong[160];

    if (twin == engine)
        return twin;
    snprintf(wrong, sizeof(wrong), "status: twin %s, engine %s", status_name(twin),
             status_name(engine));
    pair_fail(p, wrong);
}

void
pair_agree_bytes(const struct pair *p, const char *what, struct bytes twin,
                 struct bytes engine)
{
    char wrong[300];

    if (bytes_equal(twin, engine))
        return;
    snprintf(wrong, sizeof(wrong), "%s: twin '%.*s', engine '%.*s'", what,
             (int)(twin.len > 100 ? 100 : twin.len), twin.data,
             (int)(engine.len > 100 ? 100 : engine.len), engine.data);
    pair_fail(p, wrong);
}

void
pair_agree_id(const struct pair *p, const char *what, const struct store_id *twin,
              const struct store_id *engine)
{
    char wrong[160];

    if (idmap_same(&p->ids, twin, engine))
        return;
    snprintf(wrong, sizeof(wrong), "%s: twin '%.31s', engine '%.31s'", what, twin->text,
             engine->text);
    pair_fail(p, wrong);
}

void
pair_learn(struct pair *p, const struct id_pair *pair)
{
    if (!idmap_learn(&p->ids, pair))
        pair_fail(p, "an id was given twice");
}

static void
agree_details(const struct pair *p, const struct store_details *twin,
              const struct store_details *engine)
{
    static const struct store_details none = {.released_ms = 0};

    twin = twin == NULL ? &none : twin;
    engine = engine == NULL ? &none : engine;
    pair_agree_bytes(p, "reason", twin->reason, engine->reason);
    pair_agree_bytes(p, "client", twin->client, engine->client);
    pair_agree_bytes(p, "origin", twin->origin, engine->origin);
    pair_agree(p, "released", twin->released_ms, engine->released_ms);
    pair_agree(p, "dead-lettered", twin->dead_lettered_ms, engine->dead_lettered_ms);
    pair_agree(p, "cause", twin->cause, engine->cause);
    pair_agree(p, "attempts", twin->attempts, engine->attempts);
    pair_agree_bytes(p, "unique key", twin->unique.key, engine->unique.key);
    pair_agree(p, "until claimed", twin->unique.until_claimed,
               engine->unique.until_claimed);
    pair_agree(p, "due", twin->unique.due_ms, engine->unique.due_ms);
}

/* The engine shows the messages of the twin from its first-th message on. */
static void
agree_part(const struct pair *p, const struct store_batch *twin, size_t first,
           const struct store_batch *engine)
{
    for (size_t i = 0; i < engine->count; i++) {
        const struct store_message *t = &twin->messages[first + i],
                                   *e = &engine->messages[i];

        pair_agree_id(p, "message id", &t->id, &e->id);
        pair_agree_id(p, "claim of a message", &t->claim_id, &e->claim_id);
        pair_agree_bytes(p, "body", t->body, e->body);
        pair_agree(p, "ttl", t->ttl_s, e->ttl_s);
        pair_agree(p, "age", t->age_s, e->age_s);
        pair_agree(p, "claim count", t->claim_count, e->claim_count);
        pair_agree(p, "posted", t->posted_ms, e->posted_ms);
        pair_agree(p, "expires", t->expires_ms, e->expires_ms);
        pair_agree(p, "delayed until", t->delayed_until_ms, e->delayed_until_ms);
        agree_details(p, t->details, e->details);
        pair_agree(p, "a checksum", t->checksum != NULL, e->checksum != NULL);
        if (t->checksum != NULL)
            pair_agree(p, "checksum", 0,
                       memcmp(t->checksum, e->checksum, sizeof(*t->checksum)));
    }
}

static void
agree_batch(const struct pair *p, const struct store_batch *twin,
            const struct store_batch *engine)
{
    pair_agree(p, "messages", (int64_t)twin->count, (int64_t)engine->count);
    agree_part(p, twin, 0, engine);
}

/* ---------------------------------------------------------------------- waiting */

static struct store_wakeup *
notified_by_engine(struct store_listener *listener, enum store_notification notification)
{
    struct pair_waiter *w = container_of(listener, struct pair_waiter, engine_listener);

    require(w->engine.waitqueue != NULL || notification == STORE_GONE);
    if (notification == STORE_GONE)
        w->gone = true;
    else
        w->notified = true;
    return NULL;
}

/* The contexts of an operation with a waiter, on both sides; NULL: with none. */
struct pair_ops {
    struct store_op twin, engine;
};

static struct pair_ops
ops_of(const struct pair *p, const struct store_queue *queue, struct pair_waiter *w)
{
    struct pair_ops v = {.twin = {.now_ms = p->now_ms}, .engine = {.now_ms = p->now_ms}};

    if (p->keyed)
        v.twin.key = v.engine.key = &p->key;
    if (w == NULL)
        return v;
    w->engine_listener.notify = notified_by_engine; /* the twin notifies no listener */
    w->twin.listener = &w->twin_listener;
    w->engine.listener = &w->engine_listener;
    w->notified = w->gone = false;
    w->queue = *queue;
    v.twin.waiter = &w->twin;
    v.engine.waiter = &w->engine;
    return v;
}

/* For the trace. */
static const char *
key_mark(struct pair *p)
{
    if (!p->keyed)
        return "";
    snprintf(p->key_text, sizeof(p->key_text), "[key %d, %d] ", (int)p->key.hash[0],
             (int)p->key.digest[0]);
    return p->key_text;
}

static void
agree_repeated(const struct pair *p, const struct pair_ops *v)
{
    pair_agree(p, "repeated", v->twin.repeated, v->engine.repeated);
}

static void
agree_waiting(const struct pair *p, enum status st, const struct pair_ops *v,
              struct pair_waiter *w)
{
    if (w == NULL)
        return;
    pair_agree(p, "waits", v->twin.waits, v->engine.waits);
    pair_agree(p, "in the wait queue", w->twin.waitqueue != NULL,
               w->engine.waitqueue != NULL);
    w->waits = w->twin.waitqueue != NULL;
    if (st != ST_OK)
        w->notified = true; /* a refusal changes nothing: it has to try again */
    if (!w->waits)
        w->engine.home = NULL; /* next time it may be for another queue */
}

/* Waiters of a queue that is gone have been notified. */
static void
see_who_is_gone(struct pair *p)
{
    for (size_t i = 0; i < PAIR_WAITERS; i++) {
        struct pair_waiter *w = &p->waiters[i];

        if (!w->waits)
            continue;
        pair_agree(p, "out of the wait queue", w->twin.waitqueue == NULL,
                   w->engine.waitqueue == NULL);
        pair_agree(p, "notified that the queue is gone", w->twin.waitqueue == NULL,
                   w->gone);
        w->waits = w->twin.waitqueue != NULL;
        if (!w->waits)
            w->engine.home = NULL;
    }
}

void
pair_leave(struct pair *p, struct pair_waiter *w)
{
    if (!w->waits)
        return;
    pair_note(p, &w->queue, "waiter %d leaves", (int)(w - p->waiters));
    store_waiter_leave(p->twin, &w->twin);
    store_waiter_leave(p->engine, &w->engine);
    w->waits = false;
    w->engine.home = NULL;
}

void
pair_expect_notified(struct pair *p)
{
    while (pair_housekeep(p) <= p->now_ms)
        continue;
    for (size_t i = 0; i < PAIR_WAITERS; i++) {
        const struct pair_waiter *w = &p->waiters[i];

        if (w->waits && !w->notified && twin_calls(p->twin, &w->twin, p->now_ms))
            pair_fail(p, "a waiter is left waiting");
    }
}

/* A number larger than all before it in the queue. */
static void
see_claim_number(struct pair *p, const struct store_queue *queue, uint64_t number)
{
    struct pair_fence *f = p->fences;
    char text[sizeof(f->queue)];

    snprintf(text, sizeof(text), "%.*s/%.*s", (int)queue->project.len,
             queue->project.data, (int)queue->name.len, queue->name.data);
    while (f < p->fences + p->fence_count && strcmp(f->queue, text) != 0)
        f++;
    if (f == p->fences + p->fence_count) {
        require(p->fence_count++ < PAIR_FENCES);
        memcpy(f->queue, text, sizeof(text));
    }
    if (number <= f->last)
        pair_fail(p, "a claim number that is not larger than those before it");
    f->last = number;
}

static void
release_both(struct store_batch *twin, struct store_batch *engine)
{
    store_batch_release(twin);
    store_batch_release(engine);
}

/* ---------------------------------------------------------------------- queues */

bool
pair_create(struct pair *p, const struct store_queue *queue,
            const struct store_metadata *metadata)
{
    bool twin = false, engine = false;

    pair_note(p, queue, "create count %" PRId64 " dead %.*s ttl %" PRId64,
              metadata->settings.max_claim_count, (int)metadata->settings.dead_letter.len,
              metadata->settings.dead_letter.data, metadata->settings.dead_letter_ttl_s);
    pair_agree_status(
        p, store_queue_create(p->twin, STORE_AT(p->now_ms), queue, metadata, &twin),
        store_queue_create(p->engine, STORE_AT(p->now_ms), queue, metadata, &engine));
    pair_agree(p, "created", twin, engine);
    return twin;
}

static void
agree_view(const struct pair *p, const struct store_queue_view *t,
           const struct store_queue_view *e, bool with_metadata)
{
    const struct store_settings *ts = &t->metadata.settings, *es = &e->metadata.settings;

    pair_agree_bytes(p, "name", t->name, e->name);
    if (!with_metadata)
        return;
    pair_agree_bytes(p, "metadata", t->metadata.json, e->metadata.json);
    pair_agree(p, "max_post_bytes", ts->max_post_bytes, es->max_post_bytes);
    pair_agree(p, "message_ttl_s", ts->message_ttl_s, es->message_ttl_s);
    pair_agree(p, "message_delay_s", ts->message_delay_s, es->message_delay_s);
    pair_agree(p, "claim_ttl_s", ts->claim_ttl_s, es->claim_ttl_s);
    pair_agree(p, "claim_grace_s", ts->claim_grace_s, es->claim_grace_s);
    pair_agree(p, "max_claim_count", ts->max_claim_count, es->max_claim_count);
    pair_agree(p, "dead_letter_ttl_s", ts->dead_letter_ttl_s, es->dead_letter_ttl_s);
    pair_agree_bytes(p, "dead_letter", ts->dead_letter, es->dead_letter);
    pair_agree(p, "paused", ts->paused, es->paused);
    pair_agree_bytes(p, "paused_by", ts->paused_by, es->paused_by);
}

bool
pair_show(struct pair *p, const struct store_queue *queue, struct version_pair *version)
{
    struct store_queues twin = STORE_QUEUES_INIT, engine = STORE_QUEUES_INIT;
    enum status st;

    pair_note(p, queue, "show");
    st = pair_agree_status(
        p, store_queue_get(p->twin, STORE_AT(p->now_ms), queue, &twin),
        store_queue_get(p->engine, STORE_AT(p->now_ms), queue, &engine));
    if (st != ST_OK)
        return false;
    agree_view(p, &twin.queues[0], &engine.queues[0], true);
    *version = (struct version_pair){twin.queues[0].version, engine.queues[0].version};
    store_queues_release(&twin);
    store_queues_release(&engine);
    return true;
}

void
pair_update(struct pair *p, const struct store_queue *queue, struct version_pair version,
            const struct store_metadata *metadata)
{
    pair_note(p, queue, "update count %" PRId64 " dead %.*s ttl %" PRId64 " paused %u",
              metadata->settings.max_claim_count, (int)metadata->settings.dead_letter.len,
              metadata->settings.dead_letter.data, metadata->settings.dead_letter_ttl_s,
              metadata->settings.paused);
    pair_agree_status(
        p,
        store_queue_update(p->twin, STORE_AT(p->now_ms), queue, version.twin, metadata),
        store_queue_update(p->engine, STORE_AT(p->now_ms), queue, version.engine,
                           metadata));
}

void
pair_delete_queue(struct pair *p, const struct store_queue *queue)
{
    pair_note(p, queue, "delete queue");
    pair_agree_status(p, store_queue_delete(p->twin, STORE_AT(p->now_ms), queue),
                      store_queue_delete(p->engine, STORE_AT(p->now_ms), queue));
    see_who_is_gone(p);
}

void
pair_list_queues(struct pair *p, struct bytes project, struct bytes marker, size_t limit,
                 bool with_metadata)
{
    struct store_queues twin = STORE_QUEUES_INIT, engine = STORE_QUEUES_INIT;

    pair_note(p, NULL, "list queues of %.*s behind %.*s limit %zu", (int)project.len,
              project.data, (int)marker.len, marker.data, limit);
    pair_agree_status(
        p,
        store_queue_list(p->twin, STORE_AT(p->now_ms),
                         &(struct store_page){.project = project,
                                              .marker = marker,
                                              .limit = limit,
                                              .with_metadata = with_metadata},
                         &twin),
        store_queue_list(p->engine, STORE_AT(p->now_ms),
                         &(struct store_page){.project = project,
                                              .marker = marker,
                                              .limit = limit,
                                              .with_metadata = with_metadata},
                         &engine));
    pair_agree(p, "queues", (int64_t)twin.count, (int64_t)engine.count);
    pair_agree(p, "all queues", (int64_t)twin.total, (int64_t)engine.total);
    pair_agree(p, "more queues", twin.more, engine.more);
    for (size_t i = 0; i < twin.count; i++)
        agree_view(p, &twin.queues[i], &engine.queues[i], with_metadata);
    store_queues_release(&twin);
    store_queues_release(&engine);
}

static void
agree_end(const struct pair *p, const struct store_end *twin,
          const struct store_end *engine)
{
    pair_agree_id(p, "end", &twin->id, &engine->id);
    pair_agree(p, "age", twin->age_s, engine->age_s);
    pair_agree(p, "created", twin->created_ms, engine->created_ms);
}

static void
pair_totals(struct pair *p)
{
    struct store_totals twin = {0}, engine = {0};

    pair_agree_status(p, store_totals(p->twin, STORE_AT(p->now_ms), &twin),
                      store_totals(p->engine, STORE_AT(p->now_ms), &engine));
    pair_agree(p, "queues", (int64_t)twin.queues, (int64_t)engine.queues);
    pair_agree(p, "all messages", (int64_t)twin.messages, (int64_t)engine.messages);
    pair_agree(p, "all claimed", (int64_t)twin.claimed, (int64_t)engine.claimed);
}

static void
agree_population(const struct pair *p, const struct store_population *twin,
                 const struct store_population *engine)
{
    pair_agree(p, "ready", (int64_t)twin->ready, (int64_t)engine->ready);
    pair_agree(p, "claimed", (int64_t)twin->claimed, (int64_t)engine->claimed);
    pair_agree(p, "delayed", (int64_t)twin->delayed, (int64_t)engine->delayed);
    pair_agree(p, "dead letters", (int64_t)twin->dead_letters,
               (int64_t)engine->dead_letters);
    pair_agree(p, "claims", (int64_t)twin->claims, (int64_t)engine->claims);
    pair_agree(p, "bytes", (int64_t)twin->bytes, (int64_t)engine->bytes);
}

/* Messages that are purged while they are due count as expired in the twin, and as
 * dropped elsewhere. */
static void
agree_expired(const struct pair *p, const struct store_expired *twin,
              const struct store_expired *engine)
{
    if (engine->messages > twin->messages || engine->dead_letters > twin->dead_letters ||
        engine->unread > engine->messages)
        pair_fail(p, "more messages expired than there were");
}

/* The queues that the engine shows one by one: all, since there are places enough. */
static uint64_t
pair_queue_metrics(struct pair *p)
{
    struct store_queue_metrics engine, twin;
    uint64_t count = 0;
    size_t at = 0;

    while (store_queue_metrics(p->engine, STORE_AT(p->now_ms), &at, &engine) == ST_OK) {
        const struct store_queue where = {
            .project = bytes_of(engine.project, engine.project_len),
            .name = bytes_of(engine.name, engine.name_len)};

        twin_metrics_of(p->twin, &where, p->now_ms, &twin);
        agree_population(p, &twin.here, &engine.here);
        pair_agree(p, "an oldest one", twin.has_oldest, engine.has_oldest);
        if (engine.here.unloaded == 0) /* else the oldest may be older ones of its run */
            pair_agree(p, "its age", twin.age_ms, engine.age_ms);
        pair_agree(p, "the age of the oldest claim", twin.claimed_age_ms,
                   engine.claimed_age_ms);
        agree_expired(p, &twin.expired, &engine.expired);
        count++;
    }
    return count;
}

/* The survey of all queues, in slices of another length from each. */
static void
pair_survey(struct pair *p, const struct store_queue *queue)
{
    enum { FEW = 3, LOTS = 2048 };
    static struct store_queue_metrics few[FEW], lots[LOTS];
    struct store_survey twin = {.rows = lots, .limit = LOTS};
    struct store_survey engine = {.rows = few, .limit = FEW, .whole = true};
    char project[STORE_METRICS_PROJECT], name[STORE_METRICS_NAME];
    size_t at = 0;

    if (p->redis != NULL && p->steps % 8 != 0)
        return; /* a row is a request there */
    if (p->steps % 2 == 0)
        twin.project = engine.project = queue->project;
    pair_agree_status(p, store_queue_survey(p->twin, STORE_AT(p->now_ms), &twin), ST_OK);
    require(!twin.more);
    do {
        pair_agree_status(p, store_queue_survey(p->engine, STORE_AT(p->now_ms), &engine),
                          ST_OK);
        pair_agree(p, "queues to survey", (int64_t)twin.total, (int64_t)engine.total);
        for (size_t i = 0; i < engine.count; i++, at++) {
            const struct store_queue_metrics *a = &lots[at], *b = &few[i];
            const struct store_queue of = store_queue_metrics_address(b);

            pair_agree(p, "a queue to survey", at < twin.count, true);
            pair_agree(p, "the same queue", !b->gone,
                       a->name_len == of.name.len &&
                           memcmp(a->name, of.name.data, of.name.len) == 0);
            agree_population(p, &a->here, &b->here);
            if (b->here.unloaded == 0)
                pair_agree(p, "the oldest one", a->posted_ms, b->posted_ms);
            pair_agree(p, "the age of the oldest claim", a->claimed_age_ms,
                       b->claimed_age_ms);
            if (p->redis == NULL)
                pair_agree(p, "waiters", (int64_t)a->waiters, (int64_t)b->waiters);
            pair_agree(p, "dead-letter queue", (int64_t)a->dead_letter_len,
                       (int64_t)b->dead_letter_len);
        }
        if (engine.count == 0)
            break;
        memcpy(project, few[engine.count - 1].project, few[engine.count - 1].project_len);
        memcpy(name, few[engine.count - 1].name, few[engine.count - 1].name_len);
        engine.after_project = bytes_of(project, few[engine.count - 1].project_len);
        engine.after_name = bytes_of(name, few[engine.count - 1].name_len);
    } while (engine.more);
    pair_agree(p, "queues surveyed", (int64_t)twin.count, (int64_t)at);
}

static void
pair_claims(struct pair *p, const struct store_queue *queue)
{
    enum { FEW = 2, LOTS = 256 };
    static struct store_claim_info few[FEW], lots[LOTS];
    struct store_claim_page twin = {.claims = lots, .limit = LOTS};
    struct store_claim_page engine = {.claims = few, .limit = FEW};
    struct store_id marker;
    size_t at = 0;
    enum status st = pair_agree_status(
        p, store_claim_list(p->twin, STORE_AT(p->now_ms), queue, &twin),
        store_claim_list(p->engine, STORE_AT(p->now_ms), queue, &engine));

    while (st == ST_OK && engine.count > 0) {
        for (size_t i = 0; i < engine.count; i++, at++) {
            pair_agree(p, "a claim", at < twin.count, true);
            pair_agree(p, "its age", lots[at].age_ms, few[i].age_ms);
            pair_agree(p, "what is left of it", lots[at].left_ms, few[i].left_ms);
            pair_agree(p, "its messages", (int64_t)lots[at].messages,
                       (int64_t)few[i].messages);
        }
        if (id_empty(engine.next))
            break;
        marker = engine.next;
        engine.marker = store_id_bytes(&marker);
        st = store_claim_list(p->engine, STORE_AT(p->now_ms), queue, &engine);
    }
    pair_agree(p, "claims", st == ST_OK ? (int64_t)twin.count : 0, (int64_t)at);
}

/* Posted messages are there, or are counted where they went. */
static void
agree_flow(const struct pair *p, const struct store_metrics *f)
{
    const struct store_population *all = &f->all;

    pair_agree(p, "messages that came, and that are or went",
               (int64_t)f->counts[STORE_COUNT_POSTED],
               (int64_t)(all->ready + all->claimed + all->delayed +
                         f->counts[STORE_COUNT_DELETED] + f->counts[STORE_COUNT_POPPED] +
                         f->counts[STORE_COUNT_EXPIRED] +
                         f->counts[STORE_COUNT_DROPPED]));
    pair_agree(p, "queues that came, and that are or went",
               (int64_t)f->counts[STORE_COUNT_QUEUES_MADE],
               (int64_t)(f->queues + f->counts[STORE_COUNT_QUEUES_GONE]));
}

/* Once everything that is due has been settled. */
static void
pair_metrics(struct pair *p)
{
    struct store_metrics twin, engine;

    pair_agree_status(p, store_metrics(p->twin, STORE_AT(p->now_ms), &twin),
                      store_metrics(p->engine, STORE_AT(p->now_ms), &engine));
    pair_agree(p, "queues", (int64_t)twin.queues, (int64_t)engine.queues);
    agree_population(p, &twin.all, &engine.all);
    pair_agree(p, "queues shown", (int64_t)engine.queues, (int64_t)pair_queue_metrics(p));
    if (p->redis == NULL) /* there what time does is not counted */
        agree_flow(p, &engine);
}

void
pair_stats(struct pair *p, const struct store_queue *queue)
{
    struct store_stats twin = {0}, engine = {0};

    pair_note(p, queue, "stats");
    pair_totals(p);
    pair_metrics(p);
    pair_survey(p, queue);
    pair_claims(p, queue);
    pair_agree_status(p, store_queue_stats(p->twin, STORE_AT(p->now_ms), queue, &twin),
                      store_queue_stats(p->engine, STORE_AT(p->now_ms), queue, &engine));
    pair_agree(p, "total", (int64_t)twin.total, (int64_t)engine.total);
    pair_agree(p, "claimed", (int64_t)twin.claimed, (int64_t)engine.claimed);
    if (twin.total == 0)
        return;
    agree_end(p, &twin.oldest, &engine.oldest);
    agree_end(p, &twin.newest, &engine.newest);
}

void
pair_purge(struct pair *p, const struct store_queue *queue, enum store_purge what)
{
    pair_note(p, queue, "purge %d", (int)what);
    pair_agree_status(p, store_queue_purge(p->twin, STORE_AT(p->now_ms), queue, what),
                      store_queue_purge(p->engine, STORE_AT(p->now_ms), queue, what));
}

/* ---------------------------------------------------------------------- messages */

bool
pair_post(struct pair *p, const struct store_queue *queue, const struct store_post *post,
          struct id_pair *ids)
{
    struct store_id twin[MANY], engine[MANY];
    struct pair_ops v = ops_of(p, queue, NULL);
    enum status st;

    require(post->count <= MANY);
    pair_note(p, queue, "%spost %zu%s%.*s%s: %.*s... ttl %" PRId64 " delay %" PRId64,
              key_mark(p), post->count, post->unique == NULL ? "" : " unique ",
              post->unique == NULL ? 0 : (int)post->unique->key.len,
              post->unique == NULL ? "" : post->unique->key.data,
              post->unique != NULL && post->unique->until_claimed ? " until claimed" : "",
              (int)(post->drafts[0].body.len > 8 ? 8 : post->drafts[0].body.len),
              post->drafts[0].body.data, post->drafts[0].ttl_s, post->drafts[0].delay_s);
    st = pair_agree_status(p, store_message_post(p->twin, &v.twin, queue, post, twin),
                           store_message_post(p->engine, &v.engine, queue, post, engine));
    agree_repeated(p, &v);
    pair_agree(p, "existing", v.twin.existing, v.engine.existing);
    for (size_t i = 0; st == ST_OK && i < post->count; i++) {
        ids[i] = (struct id_pair){twin[i], engine[i]};
        if (v.twin.repeated || v.twin.existing)
            pair_agree_id(p, "earlier id", &twin[i], &engine[i]);
        else
            pair_learn(p, &ids[i]);
    }
    return st == ST_OK && !v.twin.repeated && !v.twin.existing;
}

/*
 * True if the engine's marker stands behind the last message that it shows. A page that
 * ends early may lead on from behind others, which the filter left out this time.
 */
static bool
leads_on_from_last(const struct store_batch *engine)
{
    const char *digits =
        engine->messages[engine->count - 1].id.text + 8; /* of its number */

    return strtoull(digits, NULL, 16) == strtoull(engine->next.text, NULL, 10);
}

size_t
pair_list(struct pair *p, const struct store_queue *queue,
          const struct store_filter *filter, const struct id_pair *marker,
          struct id_pair *next)
{
    struct store_batch twin = STORE_BATCH_INIT, engine = STORE_BATCH_INIT;
    struct store_filter left = *filter, right = *filter;
    struct store_id at;
    size_t count;

    pair_note(
        p, queue, "list behind %s/%s limit %zu%s%s%s", marker->left.text,
        marker->right.text, filter->limit, filter->include_claimed ? " claimed" : "",
        filter->include_delayed ? " delayed" : "", filter->hide_client ? " others" : "");
    left.marker = store_id_bytes(&marker->left);
    right.marker = store_id_bytes(&marker->right);
    pair_agree_status(
        p, store_message_list(p->twin, STORE_AT(p->now_ms), queue, &left, &twin),
        store_message_list(p->engine, STORE_AT(p->now_ms), queue, &right, &engine));
    pair_agree(p, "a next marker", id_empty(twin.next), id_empty(engine.next));
    /* A page with something to show may end early, and leads on to the rest. */
    for (count = 0; engine.count > 0 && count + engine.count < twin.count;) {
        agree_part(p, &twin, count, &engine);
        count += engine.count;
        at = engine.next;
        store_batch_release(&engine);
        right.marker = store_id_bytes(&at);
        right.limit = filter->limit - count;
        require(store_message_list(p->engine, STORE_AT(p->now_ms), queue, &right,
                                   &engine) == ST_OK);
    }
    pair_agree(p, "messages", (int64_t)twin.count, (int64_t)(count + engine.count));
    agree_part(p, &twin, count, &engine);
    *next = (struct id_pair){twin.next, engine.next};
    if (twin.count < filter->limit && (engine.count == 0 || !leads_on_from_last(&engine)))
        *next = (struct id_pair){{""}, {""}};
    count = twin.count;
    release_both(&twin, &engine);
    return count;
}

/* The ids of one side. */
static void
one_side(struct bytes *out, const struct id_pair *ids, size_t count, bool right)
{
    require(count <= MANY);
    for (size_t i = 0; i < count; i++)
        out[i] = store_id_bytes(right ? &ids[i].right : &ids[i].left);
}

void
pair_get(struct pair *p, const struct store_queue *queue, const struct id_pair *ids,
         size_t count)
{
    struct store_batch twin = STORE_BATCH_INIT, engine = STORE_BATCH_INIT;
    struct bytes left[MANY], right[MANY];

    pair_note(p, queue, "get %zu: %s/%s...", count, ids[0].left.text, ids[0].right.text);
    one_side(left, ids, count, false);
    one_side(right, ids, count, true);
    pair_agree_status(
        p, store_message_get(p->twin, STORE_AT(p->now_ms), queue, left, count, &twin),
        store_message_get(p->engine, STORE_AT(p->now_ms), queue, right, count, &engine));
    agree_batch(p, &twin, &engine);
    release_both(&twin, &engine);
}

void
pair_delete(struct pair *p, const struct store_queue *queue, const struct id_pair *id,
            const struct id_pair *claim)
{
    struct bytes left = BYTES_NONE, right = BYTES_NONE;

    pair_note(p, queue, "delete %s/%s with %s", id->left.text, id->right.text,
              claim == NULL ? "no claim" : claim->left.text);
    if (claim != NULL) {
        left = store_id_bytes(&claim->left);
        right = store_id_bytes(&claim->right);
    }
    pair_agree_status(p,
                      delete_message(p->twin, STORE_AT(p->now_ms), queue,
                                     store_id_bytes(&id->left), left),
                      delete_message(p->engine, STORE_AT(p->now_ms), queue,
                                     store_id_bytes(&id->right), right));
}

void
pair_delete_many(struct pair *p, const struct store_queue *queue,
                 const struct id_pair *ids, size_t count, const struct id_pair *claims,
                 size_t claim_count)
{
    struct bytes left[MANY], right[MANY], left_claims[MANY], right_claims[MANY];

    pair_note(p, queue, "delete %zu: %s..., %zu claims%s", count, ids[0].left.text,
              claim_count, claims == NULL ? "" : ", strict");
    one_side(left, ids, count, false);
    one_side(right, ids, count, true);
    one_side(left_claims, claims, claim_count, false);
    one_side(right_claims, claims, claim_count, true);
    pair_agree_status(p,
                      delete_messages(p->twin, STORE_AT(p->now_ms), queue, left, count,
                                      claims == NULL ? NULL : left_claims, claim_count),
                      delete_messages(p->engine, STORE_AT(p->now_ms), queue, right, count,
                                      claims == NULL ? NULL : right_claims, claim_count));
}

void
pair_pop(struct pair *p, const struct store_queue *queue, size_t limit, size_t capacity,
         struct pair_waiter *w)
{
    struct store_batch twin = STORE_BATCH_INIT, engine = STORE_BATCH_INIT;
    struct pair_ops v = ops_of(p, queue, w);
    enum status st;

    pair_note(p, queue, "%spop %zu space %zu waiter %d", key_mark(p), limit, capacity,
              w == NULL ? -1 : (int)(w - p->waiters));
    twin.capacity = engine.capacity = capacity;
    st =
        pair_agree_status(p, store_message_pop(p->twin, &v.twin, queue, limit, &twin),
                          store_message_pop(p->engine, &v.engine, queue, limit, &engine));
    agree_repeated(p, &v);
    if (!v.twin.repeated)
        pair_agree(p, "capacity", (int64_t)twin.capacity, (int64_t)engine.capacity);
    if (!v.twin.repeated && st == ST_OK)
        pair_agree(p, "paused", v.twin.paused, v.engine.paused);
    agree_batch(p, &twin, &engine);
    agree_waiting(p, st, &v, w);
    release_both(&twin, &engine);
}

/* ---------------------------------------------------------------------- claims */

bool
pair_claim(struct pair *p, const struct store_queue *queue,
           const struct store_terms *terms, size_t limit, size_t capacity,
           struct pair_waiter *w, struct id_pair *claim)
{
    struct store_batch twin = STORE_BATCH_INIT, engine = STORE_BATCH_INIT;
    struct pair_ops v;
    enum status st;

    pair_pass_before_claim(p, queue, terms);
    v = ops_of(p, queue, w);
    pair_note(p, queue, "%sclaim %zu for %" PRId64 " + %" PRId64 " space %zu waiter %d",
              key_mark(p), limit, terms->ttl_s, terms->grace_s, capacity,
              w == NULL ? -1 : (int)(w - p->waiters));
    twin.capacity = engine.capacity = capacity;
    st = pair_agree_status(
        p, store_claim_create(p->twin, &v.twin, queue, terms, limit, &twin),
        store_claim_create(p->engine, &v.engine, queue, terms, limit, &engine));
    agree_repeated(p, &v);
    if (!v.twin.repeated)
        pair_agree(p, "capacity", (int64_t)twin.capacity, (int64_t)engine.capacity);
    if (!v.twin.repeated && st == ST_OK)
        pair_agree(p, "paused", v.twin.paused, v.engine.paused);
    pair_agree(p, "no claim", id_empty(twin.claim_id), id_empty(engine.claim_id));
    agree_waiting(p, st, &v, w);
    *claim = (struct id_pair){twin.claim_id, engine.claim_id};
    if (v.twin.repeated) {
        pair_agree_id(p, "repeated claim", &claim->left, &claim->right);
    } else if (!id_empty(claim->left)) {
        pair_learn(p, claim);
        see_claim_number(p, queue, engine.claim_number);
    }
    agree_batch(p, &twin, &engine);
    release_both(&twin, &engine);
    return !id_empty(claim->left);
}

void
pair_query(struct pair *p, const struct store_queue *queue, const struct id_pair *claim)
{
    struct store_batch twin = STORE_BATCH_INIT, engine = STORE_BATCH_INIT;

    pair_note(p, queue, "query %s/%s", claim->left.text, claim->right.text);
    pair_agree_status(p,
                      store_claim_get(p->twin, STORE_AT(p->now_ms), queue,
                                      store_id_bytes(&claim->left), &twin),
                      store_claim_get(p->engine, STORE_AT(p->now_ms), queue,
                                      store_id_bytes(&claim->right), &engine));
    agree_batch(p, &twin, &engine);
    pair_agree_id(p, "claim", &twin.claim_id, &engine.claim_id);
    pair_agree(p, "ttl of the claim", twin.claim_ttl_s, engine.claim_ttl_s);
    pair_agree(p, "age of the claim", twin.claim_age_s, engine.claim_age_s);
    release_both(&twin, &engine);
}

void
pair_renew(struct pair *p, const struct store_queue *queue, const struct id_pair *claim,
           const struct store_terms *terms)
{
    struct store_batch shown = STORE_BATCH_INIT;
    uint64_t number = 0, ignored;
    enum status st;

    pair_pass_before_claim(p, queue, terms);
    pair_note(p, queue, "renew %s/%s for %" PRId64 " + %" PRId64, claim->left.text,
              claim->right.text, terms->ttl_s, terms->grace_s);
    st = pair_agree_status(
        p,
        store_claim_renew(p->twin, STORE_AT(p->now_ms), queue,
                          store_id_bytes(&claim->left), terms, &ignored),
        store_claim_renew(p->engine, STORE_AT(p->now_ms), queue,
                          store_id_bytes(&claim->right), terms, &number));
    if (st != ST_OK)
        return;
    require(store_claim_get(p->engine, STORE_AT(p->now_ms), queue,
                            store_id_bytes(&claim->right), &shown) == ST_OK);
    pair_agree(p, "claim number shown and renewed", (int64_t)shown.claim_number,
               (int64_t)number);
    store_batch_release(&shown);
}

void
pair_release(struct pair *p, const struct store_queue *queue, const struct id_pair *claim)
{
    pair_note(p, queue, "release %s/%s", claim->left.text, claim->right.text);
    pair_agree_status(p,
                      store_claim_release(p->twin, STORE_AT(p->now_ms), queue,
                                          store_id_bytes(&claim->left), STORE_RELEASED),
                      store_claim_release(p->engine, STORE_AT(p->now_ms), queue,
                                          store_id_bytes(&claim->right), STORE_RELEASED));
}

void
pair_release_unsent(struct pair *p, const struct store_queue *queue,
                    const struct id_pair *claim, bool uncount)
{
    pair_note(p, queue, "release unsent %s/%s%s", claim->left.text, claim->right.text,
              uncount ? " uncounted" : "");
    pair_agree_status(p,
                      store_claim_release(p->twin, STORE_AT(p->now_ms), queue,
                                          store_id_bytes(&claim->left),
                                          uncount ? STORE_NOT_SEEN : STORE_NOT_SENT),
                      store_claim_release(p->engine, STORE_AT(p->now_ms), queue,
                                          store_id_bytes(&claim->right),
                                          uncount ? STORE_NOT_SEEN : STORE_NOT_SENT));
}

/* ---------------------------------------------------------------------- life */

/* An operation on the queue, or housekeeping, moves the dead letters of its expired
 * claims. */
static void
expire_letters(struct pair *p, const struct store_queue *queue)
{
    struct store_stats ignored;

    pair_note(p, queue, "dead letters");
    if (on_redis() || (p->now_ms & 1) != 0)
        require(store_queue_stats(p->engine, STORE_AT(p->now_ms), queue, &ignored) ==
                ST_OK);
    else
        while (pair_housekeep(p) <= p->now_ms)
            continue;
    twin_expire_letters(p->twin, queue, p->now_ms);
}

void
pair_pass(struct pair *p, int64_t until_ms)
{
    struct store_queue queue;
    int64_t next_ms;

    while ((next_ms = twin_next_letter(p->twin, p->now_ms, &queue)) <= until_ms) {
        p->now_ms = next_ms;
        expire_letters(p, &queue);
    }
    p->now_ms = until_ms;
}

void
pair_pass_before_claim(struct pair *p, const struct store_queue *queue,
                       const struct store_terms *terms)
{
    while (twin_claims_tie(p->twin, p->now_ms, queue, terms))
        pair_pass(p, p->now_ms + 1);
}

int64_t
pair_housekeep(struct pair *p)
{
    int64_t next_ms = 0;

    pair_note(p, NULL, "housekeep");
    store_housekeep(p->engine, p->now_ms, &next_ms);
    return next_ms;
}

void
pair_audit(struct pair *p)
{
    if (!store_audit(p->engine))
        pair_fail(p, "the engine's audit failed");
    /* Redis settles on the next operation; it is not the store that has to wake up. */
    if (p->redis == NULL &&
        store_next_ms(p->engine) > twin_next_deadline(p->twin, p->now_ms))
        pair_fail(p, "the engine would sleep past a deadline");
}
