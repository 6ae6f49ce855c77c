/*
 * Idempotency-Keys over crashes and compaction (promise "one key, one effect"): after a
 * crash at any operation of the disk, a repeated request has one effect together with the
 * first.
 */
#include "model/logbook.h"
#include "support/journalled.h"
#include "support/store_fixture.h"

#include <stdio.h>

enum { SEGMENT = 64 * 1024, BODY = 1000 };

struct world {
    struct sim_disk *disk;
    struct journalled p;
    int64_t later_ms; /* after START_MS */
};

static const struct store_queue queue = {{"p", 1}, {"q", 1}, STORE_QUEUE};

static void
world_open(struct world *w, uint64_t seed)
{
    *w = (struct world){.disk = sim_disk_new(seed)};
    w->p = (struct journalled){.disk = w->disk, .segment_bytes = SEGMENT, .seed = seed};
    journalled_start(&w->p, START_MS);
}

static void
world_close(struct world *w)
{
    journalled_stop(&w->p);
    sim_disk_free(w->disk);
}

#define WORLD_TEST(id, open) FIXTURE_TEST_AS(id, struct world, w, open, world_close(w))

/* hash: 0: without a key. */
static enum status
post_keyed(struct world *w, uint64_t hash, size_t count, struct store_id *ids)
{
    static char body[BODY];
    const struct store_key key = {.hash = {hash, 1}, .digest = {count, 0}};
    struct store_op op = {.now_ms = START_MS + w->later_ms,
                          .key = hash == 0 ? NULL : &key};
    struct store_draft drafts[8];
    const struct store_post post = {
        .drafts = drafts, .count = count, .create_queue = true};

    memset(body, '1', sizeof(body));
    for (size_t i = 0; i < count; i++)
        drafts[i] = (struct store_draft){bytes_of(body, sizeof(body)), 3600, 0};
    return store_message_post(w->p.store, &op, &queue, &post, ids);
}

static enum status
pop_keyed(struct world *w, uint64_t hash, size_t limit, struct store_batch *out)
{
    const struct store_key key = {.hash = {hash, 1}, .digest = {limit, 0}};
    struct store_op op = {.now_ms = START_MS + w->later_ms,
                          .key = hash == 0 ? NULL : &key};

    *out = STORE_BATCH_INIT;
    return store_message_pop(w->p.store, &op, &queue, limit, out);
}

static enum status
claim_keyed(struct world *w, uint64_t hash, struct store_id *id)
{
    const struct store_key key = {.hash = {hash, 1}};
    const struct store_terms terms = {3600, 60};
    struct store_op op = {.now_ms = START_MS, .key = &key};
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st = store_claim_create(w->p.store, &op, &queue, &terms, 1, &batch);

    *id = batch.claim_id;
    store_batch_release(&batch);
    return st;
}

static uint64_t
total(struct world *w)
{
    struct store_totals totals;

    ck_assert_status(store_totals(w->p.store, STORE_AT(START_MS), &totals), ST_OK);
    return totals.messages;
}

/* Posts, pops and claims with keys. The id of the claim may be that of an earlier
 * round. */
static void
operate(struct world *w, struct store_id *claim)
{
    struct store_batch popped;
    struct store_id ids[4];

    /* On a dead disk they may be refused. */
    (void)post_keyed(w, 1, 4, ids);
    if (pop_keyed(w, 2, 2, &popped) == ST_OK)
        store_batch_release(&popped);
    (void)claim_keyed(w, 3, claim);
}

TEST_CASE("keys over crashes");

START_TEST(after_a_crash_anywhere_a_repeated_request_has_one_effect)
{
    enum { PLACES = 60 };

    for (uint64_t place = 1; place <= PLACES; place++) {
        struct store_id first, again;
        struct world w;
        bool durable;

        world_open(&w, place);
        journalled_commit(&w.p);
        sim_disk_die(w.disk, place);
        operate(&w, &first);
        journalled_commit(&w.p);
        durable = place > PLACES / 2; /* by then the disk has done all */
        sim_disk_crash(w.disk);
        journalled_stop(&w.p);
        sim_disk_mend(w.disk);
        journalled_start(&w.p, START_MS);
        operate(&w, &again);
        ck_assert_uint_eq(total(&w), 2);
        if (durable)
            ck_assert_str_eq(first.text, again.text);
        operate(&w, &first);
        ck_assert_uint_eq(total(&w), 2);
        ck_assert_str_eq(first.text, again.text);
        ck_assert(store_audit(w.p.store));
        world_close(&w);
    }
}

WORLD_TEST(keys_survive_the_compaction_of_the_journal, world_open(w, 7))
{
    struct store_id ids[4], again[4], claim, same;
    struct store_batch batch;
    struct journal_metrics metrics;

    ck_assert_status(post_keyed(w, 1, 4, ids), ST_OK);
    ck_assert_status(pop_keyed(w, 2, 2, &batch), ST_OK);
    store_batch_release(&batch);
    ck_assert_status(claim_keyed(w, 3, &claim), ST_OK);
    for (int i = 0; i < 100;
         i++) { /* several segments; each checkpoint frees the old ones */
        ck_assert_status(post_keyed(w, 0, 8, (struct store_id[8]){{""}}), ST_OK);
        ck_assert_status(pop_keyed(w, 0, 8, &batch), ST_OK);
        store_batch_release(&batch);
        if (i % 10 == 0)
            journal_checkpoint(w->p.journal);
        journalled_commit(&w->p);
    }
    journal_metrics(w->p.journal, &metrics);
    ck_assert_uint_ge(metrics.checkpoints, 2);
    ck_assert_uint_lt(metrics.bytes, 800000); /* of more that was written */
    journalled_stop(&w->p);
    sim_disk_crash_losing_all(w->disk);
    journalled_start(&w->p, START_MS);
    ck_assert_status(post_keyed(w, 1, 4, again), ST_OK);
    ck_assert_str_eq(ids[3].text, again[3].text);
    ck_assert_status(pop_keyed(w, 2, 2, &batch), ST_OK);
    ck_assert_uint_eq(batch.count, 2);
    ck_assert_str_eq(batch.messages[1].id.text, ids[1].text);
    ck_assert_uint_eq(batch.messages[1].body.len, BODY);
    store_batch_release(&batch);
    ck_assert_status(claim_keyed(w, 3, &same), ST_OK);
    ck_assert_str_eq(claim.text, same.text);
}

WORLD_TEST(a_restart_knows_when_keys_end, world_open(w, 1))
{
    struct store_batch batch;
    struct store_id id[1];

    ck_assert_status(post_keyed(w, 1, 1, id), ST_OK);
    ck_assert_status(pop_keyed(w, 0, 1, &batch), ST_OK); /* no other deadline is left */
    store_batch_release(&batch);
    journalled_commit(&w->p);
    journalled_stop(&w->p);
    journalled_start(&w->p, START_MS);
    ck_assert_int_le(store_next_ms(w->p.store), START_MS + FIXTURE_KEY_S * 1000 + 1000);
}

START_TEST(a_pop_whose_key_is_larger_than_a_frame_is_refused_and_changes_nothing)
{
    enum { MANY = 48 };

    struct store_batch batch;
    struct store_id ids[8];
    struct world w;

    world_open(&w, 1);
    for (int i = 0; i < MANY / 8; i++)
        ck_assert_status(post_keyed(&w, 0, 8, ids), ST_OK);
    journalled_commit(&w.p);
    ck_assert_status(pop_keyed(&w, 1, MANY, &batch), ST_BEYOND_LOG);
    ck_assert_uint_eq(batch.count, 0);
    ck_assert_uint_eq(total(&w), MANY);
    ck_assert_status(pop_keyed(&w, 1, MANY / 4, &batch), ST_OK); /* it kept no key */
    ck_assert_uint_eq(batch.count, MANY / 4);
    store_batch_release(&batch);
    ck_assert(store_audit(w.p.store));
    world_close(&w);
}

/* ------------------------------------------------------------------ keys in a log */

/* An engine with a log in memory. */
static void
logged_open(struct world *w, struct logbook **log)
{
    struct engine_config config;

    *w = (struct world){.disk = NULL};
    *log = logbook_new(1);
    w->p.mem = mem_new(0);
    config = fixture_config(w->p.mem);
    config.log = &(*log)->observer;
    config.keys = 10000;
    ck_assert_status(engine_open(&config, &w->p.store), ST_OK);
}

static void
logged_close(struct world *w, struct logbook *log)
{
    ck_assert(store_audit(w->p.store));
    store_close(w->p.store);
    ck_assert_uint_eq(mem_used(w->p.mem), 0);
    mem_destroy(w->p.mem);
    logbook_free(log);
}

/* Reads slices of a checkpoint until it has so many keys more, or is complete. */
static bool
checkpoint_keys(struct world *w, const struct logbook *log, uint64_t keys)
{
    const uint64_t before = log->recorded[STORE_CHANGE_KEY];
    bool done = false;

    while (!done && log->recorded[STORE_CHANGE_KEY] - before < keys)
        ck_assert_status(store_checkpoint(w->p.store, &done), ST_OK);
    return done;
}

START_TEST(keys_that_end_during_a_checkpoint_are_left_out)
{
    enum { OLD = 400, YOUNG = 300 };

    struct store_batch batch;
    struct store_id id[8];
    struct logbook *log;
    int64_t next_ms;
    uint64_t recorded;
    struct world w;

    logged_open(&w, &log);
    for (uint64_t i = 1; i <= OLD + YOUNG; i++) {
        w.later_ms = i <= OLD ? 0 : 1000;
        ck_assert_status(post_keyed(&w, i, 1, id), ST_OK);
        ck_assert_status(pop_keyed(&w, 0, 1, &batch), ST_OK);
        store_batch_release(&batch);
    }
    recorded = log->recorded[STORE_CHANGE_KEY];
    store_checkpoint_begin(w.p.store);
    ck_assert(!checkpoint_keys(&w, log, 1)); /* it is among the old ones */
    ck_assert_uint_lt(log->recorded[STORE_CHANGE_KEY] - recorded, OLD);
    do
        store_housekeep(w.p.store, START_MS + FIXTURE_KEY_S * 1000, &next_ms);
    while (next_ms <= START_MS + FIXTURE_KEY_S * 1000);
    recorded = log->recorded[STORE_CHANGE_KEY];
    ck_assert(checkpoint_keys(&w, log, UINT64_MAX));
    ck_assert_uint_eq(log->recorded[STORE_CHANGE_KEY] - recorded, YOUNG);
    logged_close(&w, log);
}

START_TEST(a_change_and_its_key_are_one_group_or_refused)
{
    enum { LARGEST = 16384 };

    size_t done = 0, refused = 0;
    struct store_batch batch;
    struct store_id ids[8];
    struct logbook *log;
    struct world w;

    logged_open(&w, &log);
    log->observer.largest = LARGEST;
    for (size_t limit = 8; limit <= 24; limit++) {
        const size_t groups = log->group_count;
        enum status st;

        for (int i = 0; i < 3; i++)
            ck_assert_status(post_keyed(&w, 0, 8, ids), ST_OK);
        st = pop_keyed(&w, limit, limit, &batch);
        done += st == ST_OK;
        refused += st == ST_BEYOND_LOG;
        ck_assert_uint_eq(done + refused, limit - 7);
        ck_assert_uint_eq(log->group_count - groups, st == ST_OK);
        store_batch_release(&batch);
    }
    ck_assert(done > 0 && refused > 0);
    logged_close(&w, log);
}

START_TEST(keys_of_a_transient_queue_are_not_logged)
{
    struct store_metadata metadata = {.settings = STORE_SETTINGS_INIT};
    struct store_batch batch;
    struct store_id id[8];
    struct logbook *log;
    struct world w;
    uint64_t recorded;
    size_t len;
    bool made;

    logged_open(&w, &log);
    metadata.settings.transient = true;
    ck_assert_status(
        store_queue_create(w.p.store, STORE_AT(START_MS), &queue, &metadata, &made),
        ST_OK);
    ck_assert_status(post_keyed(&w, 1, 2, id), ST_OK); /* may reserve numbers */
    len = log->len;
    ck_assert_status(post_keyed(&w, 2, 2, id), ST_OK);
    ck_assert_status(pop_keyed(&w, 3, 2, &batch), ST_OK);
    store_batch_release(&batch);
    ck_assert_status(claim_keyed(&w, 4, id), ST_OK);
    ck_assert_uint_eq(log->len, len);
    recorded = log->recorded[STORE_CHANGE_KEY];
    store_checkpoint_begin(w.p.store);
    ck_assert(checkpoint_keys(&w, log, 1));
    ck_assert_uint_eq(log->recorded[STORE_CHANGE_KEY], recorded);
    logged_close(&w, log);
}

START_TEST(a_hundred_thousand_keys)
{
    enum { MANY = 100000 };

    struct engine_config config;
    struct store_id first[8], id[8];
    struct store_batch batch;
    size_t before;
    struct world w = {.disk = NULL};

    w.p.mem = mem_new(0);
    config = fixture_config(w.p.mem);
    config.keys = 2 * MANY;
    ck_assert_status(engine_open(&config, &w.p.store), ST_OK);
    ck_assert_status(post_keyed(&w, 1, 1, first), ST_OK);
    before = mem_used(w.p.mem);
    for (uint64_t i = 2; i <= MANY; i++) {
        ck_assert_status(post_keyed(&w, i, 1, id), ST_OK);
        ck_assert_status(pop_keyed(&w, 0, 1, &batch), ST_OK);
        store_batch_release(&batch);
    }
    ck_assert_status(post_keyed(&w, MANY + 1, 1, id), ST_KEYS_FULL);
    ck_assert_status(post_keyed(&w, 1, 1, id), ST_OK);
    ck_assert_str_eq(first[0].text, id[0].text);
    printf("%zu bytes a key\n", (mem_used(w.p.mem) - before) / MANY);
    ck_assert_uint_lt((mem_used(w.p.mem) - before) / MANY, 160);
    ck_assert(store_audit(w.p.store));
    store_close(w.p.store);
    ck_assert_uint_eq(mem_used(w.p.mem), 0);
    mem_destroy(w.p.mem);
}
