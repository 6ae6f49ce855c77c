/*
 * Messages that leave memory, on a simulated disk: what happens to them without a read
 * and on a full disk, and which of them stay. The twin and the simulation have the rest.
 */
#include "journal/journal_private.h"
#include "support/journalled.h"
#include "support/patient.h"
#include "support/store_fixture.h"

enum { MANY = 20000, BATCH = 500, SEGMENT = 1 << 20 };

struct world {
    struct sim_disk *disk;
    struct journalled p;
    int64_t now_ms;
    struct store_queue queue;
    struct bytes body; /* of each message */
};

static void
open_world(struct world *w)
{
    *w = (struct world){.disk = sim_disk_new(1),
                        .now_ms = START_MS,
                        .body = BYTES_LIT("\"a body of some bytes\""),
                        .queue = {.project = BYTES_LIT("p"),
                                  .name = BYTES_LIT("q"),
                                  .kind = STORE_QUEUE}};
    w->p = (struct journalled){
        .disk = w->disk, .segment_bytes = SEGMENT, .unload = true, .seed = 1};
    journalled_start(&w->p, w->now_ms);
}

static void
close_world(struct world *w)
{
    journalled_stop(&w->p);
    sim_disk_free(w->disk);
}

#define WORLD_TEST(id) FIXTURE_TEST_AS(id, struct world, w, open_world(w), close_world(w))

static void
restart(struct world *w)
{
    journalled_stop(&w->p);
    sim_disk_crash(w->disk);
    journalled_start(&w->p, w->now_ms);
}

static enum status
post_bodies(struct world *w, size_t count, struct bytes body, int64_t ttl_s)
{
    struct store_draft drafts[BATCH];
    const struct store_post request = {
        .drafts = drafts, .count = count, .create_queue = true};
    static struct store_id ids[BATCH];

    for (size_t i = 0; i < count; i++)
        drafts[i] = (struct store_draft){body, ttl_s, 0};
    return store_message_post(w->p.store, STORE_AT(w->now_ms), &w->queue, &request, ids);
}

static enum status
post_batch(struct world *w, int64_t ttl_s)
{
    return post_bodies(w, BATCH, w->body, ttl_s);
}

/* Gives the writer and the store their turns. */
static void
unload(struct world *w)
{
    int64_t next_ms;

    for (int i = 0; i < 100; i++) {
        journalled_commit(&w->p);
        w->now_ms += 10;
        store_housekeep(w->p.store, w->now_ms, &next_ms);
    }
}

static struct store_population
population(struct world *w)
{
    struct store_metrics metrics;

    ck_assert_status(store_metrics(w->p.store, STORE_AT(w->now_ms), &metrics), ST_OK);
    return metrics.all;
}

/* Posts MANY messages, nearly all of which are unloaded then. */
static void
fill(struct world *w, int64_t ttl_s)
{
    for (int i = 0; i < MANY / BATCH; i++) {
        ck_assert_status(post_batch(w, ttl_s), ST_OK);
        journalled_commit(&w->p);
    }
    unload(w);
    ck_assert_uint_eq(population(w).ready, MANY);
    ck_assert_uint_gt(population(w).unloaded, MANY * 9 / 10);
}

static uint64_t
loads(const struct world *w)
{
    return store_log_loaded(journal_log(w->p.journal));
}

static size_t
body_files(const struct world *w)
{
    return w->p.journal->bodies.count;
}

/* A search for messages to unload begins again after ten seconds. */
static void
unload_again(struct world *w)
{
    for (int i = 0; i < 3; i++) {
        w->now_ms += 11000;
        ck_assert_status(post_batch(w, 3600), ST_OK);
        unload(w);
        while (journal_load_run(w->p.journal))
            continue;
    }
}

TEST_CASE("without a read");

WORLD_TEST(all_messages_of_a_queue_expire_at_once)
{
    int64_t next_ms;

    fill(w, 60);
    w->now_ms += 70000;
    do
        store_housekeep(w->p.store, w->now_ms, &next_ms);
    while (next_ms <= w->now_ms);
    ck_assert_uint_eq(population(w).ready, 0);
    ck_assert_uint_eq(population(w).bytes, 0);
    ck_assert_uint_eq(loads(w), 0);
    unload(w);
    ck_assert_uint_le(body_files(w), 1);
}

WORLD_TEST(a_purge_takes_all_and_frees_the_files)
{
    fill(w, 3600);
    ck_assert_status(store_queue_purge(w->p.store, STORE_AT(w->now_ms), &w->queue,
                                       STORE_PURGE_MESSAGES),
                     ST_OK);
    ck_assert_uint_eq(population(w).ready, 0);
    unload(w);
    ck_assert_uint_eq(population(w).unloaded, 0);
    ck_assert_uint_eq(loads(w), 0);
    ck_assert_uint_le(body_files(w), 1);
}

WORLD_TEST(a_checkpoint_and_a_start_read_no_bodies)
{
    uint64_t unloaded;

    fill(w, 3600);
    journal_checkpoint(w->p.journal);
    journalled_commit(&w->p);
    unloaded = population(w).unloaded;
    restart(w);
    ck_assert_uint_eq(population(w).ready, MANY);
    ck_assert_uint_ge(population(w).unloaded, unloaded);
    ck_assert_uint_eq(loads(w), 0);
}

WORLD_TEST(statistics_read_only_the_ends)
{
    struct store_stats stats;

    fill(w, 3600);
    ck_assert_status(
        store_queue_stats(w->p.store, STORE_AT(w->now_ms), &w->queue, &stats), ST_OK);
    ck_assert_uint_eq(stats.total, MANY);
    ck_assert_uint_le(loads(w), 2);
}

TEST_CASE("the space of body files");

/* Reads the runs of sparse files, and logs their messages whole. */
static void
checkpoint(struct world *w)
{
    journal_checkpoint(w->p.journal);
    unload(w);
    while (journal_load_run(w->p.journal))
        continue;
}

WORLD_TEST(a_file_with_few_messages_left_is_removed)
{
    const struct bytes first = w->queue.name;
    uint32_t old;

    fill(w, 3600);
    w->queue.name = bytes_str("few");
    ck_assert_status(post_batch(w, 3600), ST_OK);
    unload(w);
    w->queue.name = first;
    ck_assert_status(store_queue_purge(w->p.store, STORE_AT(w->now_ms), &w->queue,
                                       STORE_PURGE_MESSAGES),
                     ST_OK);
    unload(w);
    restart(w); /* later runs go to another file */
    ck_assert_uint_ge(population(w).unloaded, BATCH * 9 / 10);
    old = w->p.journal->bodies.files[0].number;
    for (int i = 0; i < 3; i++)
        checkpoint(w);
    ck_assert(body_files(w) == 0 || w->p.journal->bodies.files[0].number > old);
    ck_assert_uint_gt(loads(w), 0);
    restart(w);
    ck_assert_uint_eq(population(w).ready, BATCH);
}

WORLD_TEST(a_file_with_many_messages_stays)
{
    fill(w, 3600);
    restart(w);
    for (int i = 0; i < 3; i++)
        checkpoint(w);
    ck_assert_uint_eq(loads(w), 0);
}

/* The space for a body file is kept back before it begins. */
WORLD_TEST(journal_max_bytes_counts_body_files)
{
    static const char body[900] = "[";
    const uint64_t most = 80 << 20;
    enum status st = ST_OK;
    uint64_t posted = 0;

    journalled_stop(&w->p);
    w->p.max_bytes = most;
    w->body = bytes_of(body, sizeof(body)); /* a store does not look into it */
    journalled_start(&w->p, w->now_ms);
    while (st == ST_OK) {
        st = post_batch(w, 3600);
        posted += st == ST_OK ? BATCH : 0;
        journalled_commit(&w->p);
        if (posted % (20 * BATCH) == 0)
            unload(w);
        ck_assert_uint_le(atomic_load(&w->p.journal->bodies.bytes) +
                              w->p.journal->segments.bytes,
                          most);
    }
    ck_assert_status(st, ST_JOURNAL_LIMIT);
    ck_assert_uint_gt(population(w).unloaded, 0);
    restart(w);
    ck_assert_uint_eq(population(w).ready, posted);
}

TEST_CASE("metrics");

WORLD_TEST(metrics_have_the_body_files_and_each_read)
{
    struct journal_metrics metrics;
    struct store_stats stats;
    uint64_t measured = 0;

    fill(w, 3600);
    ck_assert_status(
        store_queue_stats(w->p.store, STORE_AT(w->now_ms), &w->queue, &stats), ST_OK);
    journal_metrics(w->p.journal, &metrics);
    ck_assert_uint_gt(metrics.body_files, 0);
    ck_assert_uint_eq(metrics.body_files, body_files(w));
    ck_assert_uint_gt(metrics.loads, 0);
    ck_assert_uint_eq(metrics.loads, loads(w));
    for (size_t i = 0; i <= disk_bounds_us.count; i++)
        measured += counter_read(&metrics.loads_us.counts[i]);
    ck_assert_uint_eq(measured, metrics.loads);
}

/* Its runs are requested together, and no others. */
WORLD_TEST(a_listing_waits_once)
{
    const struct store_filter filter = {.limit = 300};
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_op op = {.now_ms = 0};
    struct store *store = patient_inside(w->p.store);

    fill(w, 3600);
    op.now_ms = w->now_ms;
    ck_assert_status(store_message_list(store, &op, &w->queue, &filter, &batch),
                     ST_AGAIN);
    ck_assert(op.loads);
    while (journal_load_run(w->p.journal))
        continue;
    ck_assert_status(store_message_list(store, &op, &w->queue, &filter, &batch), ST_OK);
    ck_assert_uint_eq(batch.count, 300);
    ck_assert_uint_le(loads(w), 300 / 64 + 2);
    store_batch_release(&batch);
}

TEST_CASE("changes and crashes");

/* Claims the oldest messages. Returns the delivery count of the first one. */
static uint32_t
claim(struct world *w, size_t limit, struct store_id *id)
{
    const struct store_terms terms = {600, 60};
    struct store_batch batch = STORE_BATCH_INIT;
    uint32_t count;

    ck_assert_status(store_claim_create(w->p.store, STORE_AT(w->now_ms), &w->queue,
                                        &terms, limit, &batch),
                     ST_OK);
    ck_assert_uint_eq(batch.count, limit);
    count = batch.messages[0].claim_count;
    *id = batch.claim_id;
    store_batch_release(&batch);
    return count;
}

/* Its body file has it as it was before. */
WORLD_TEST(a_message_that_was_released_leaves_memory_with_its_count)
{
    struct store_id id;

    fill(w, 3600);
    for (uint32_t n = 1; n < 4; n++) {
        ck_assert_uint_eq(claim(w, 1, &id), n);
        ck_assert_status(store_claim_release(w->p.store, STORE_AT(w->now_ms), &w->queue,
                                             store_id_bytes(&id), STORE_RELEASED),
                         ST_OK);
        w->now_ms += 11000; /* a search begins again */
        ck_assert_status(post_batch(w, 3600), ST_OK);
        unload(w);
    }
}

/* The other messages of their run are read for that. */
WORLD_TEST(released_messages_leave_memory_with_the_rest_of_their_run)
{
    struct store_id id;

    fill(w, 3600);
    (void)claim(w, 80, &id);
    ck_assert_status(store_claim_release(w->p.store, STORE_AT(w->now_ms), &w->queue,
                                         store_id_bytes(&id), STORE_RELEASED),
                     ST_OK);
    ck_assert_uint_ge(population(w).ready - population(w).unloaded, 80);
    unload_again(w);
    unload_again(w);
    ck_assert_uint_le(population(w).ready - population(w).unloaded, 64); /* the newest */
}

/* 1 to 63 are a run, which is written again. */
WORLD_TEST(unloaded_messages_that_were_delivered_expire_as_such)
{
    struct store_queue_metrics row;
    struct store_survey survey = {.rows = &row, .limit = 1};
    struct store_id id;
    int64_t next_ms;

    unload_again(w);
    (void)claim(w, 63, &id);
    ck_assert_status(store_claim_release(w->p.store, STORE_AT(w->now_ms), &w->queue,
                                         store_id_bytes(&id), STORE_RELEASED),
                     ST_OK);
    unload_again(w);
    ck_assert_uint_ge(population(w).unloaded, 5 * BATCH);
    w->now_ms += 3700000;
    do
        store_housekeep(w->p.store, w->now_ms, &next_ms);
    while (next_ms <= w->now_ms);
    ck_assert_status(store_queue_survey(w->p.store, STORE_AT(w->now_ms), &survey), ST_OK);
    ck_assert_uint_eq(row.expired.messages, 6 * BATCH);
    ck_assert_uint_eq(row.expired.unread, 6 * BATCH - 63);
}

/* kill -9 at the nth operation of the disk, and a start. False: it came too late. */
static bool
commit_until_killed(struct world *w, uint64_t n)
{
    bool lost;

    sim_disk_die(w->disk, n);
    while (journal_step(w->p.journal)) /* in turns, as its threads do */
        while (journal_write_runs(w->p.journal))
            continue;
    unload(w);
    lost = atomic_load(&w->p.journal->lost);
    journalled_stop(&w->p);
    sim_disk_kill(w->disk);
    sim_disk_mend(w->disk);
    journalled_start(&w->p, w->now_ms);
    return lost;
}

/* No record says that the messages have expired. */
START_TEST(a_body_file_is_there_until_its_end_is_in_the_log)
{
    struct world w;
    uint64_t n = 0;
    bool killed;

    do {
        open_world(&w);
        for (int i = 0; i < 2; i++) { /* the first segment permits no body files */
            ck_assert_status(post_batch(&w, 60), ST_OK);
            unload(&w);
        }
        ck_assert_uint_eq(body_files(&w), 1);
        w.now_ms += 70000;
        unload(&w);
        w.queue.name = bytes_str("other"); /* a commit, after which the file goes */
        ck_assert_status(post_batch(&w, 60), ST_OK);
        killed = commit_until_killed(&w, ++n);
        ck_assert(population(&w).ready == 0 || population(&w).ready == BATCH);
        close_world(&w);
    } while (killed);
    ck_assert_uint_ge(n, 5);
}

/* It repeats the runs before it has what has changed since. */
START_TEST(a_crash_in_a_checkpoint_keeps_changes_of_runs)
{
    struct world w;
    struct store_id id;
    uint64_t n = 0;
    bool killed;

    do {
        open_world(&w);
        fill(&w, 3600);
        ck_assert_uint_eq(claim(&w, 3, &id), 1);
        journalled_commit(&w.p);
        journal_checkpoint(w.p.journal);
        killed = commit_until_killed(&w, ++n);
        ck_assert_uint_eq(population(&w).claimed, 3);
        ck_assert_uint_eq(population(&w).ready, MANY - 3);
        close_world(&w);
    } while (killed);
    ck_assert_uint_ge(n, 5);
}

TEST_CASE("a full disk");

/* The bodies are in the journal anyway, so nothing is lost if a body file cannot be
 * written. */
WORLD_TEST(messages_stay_in_memory_until_there_is_space)
{
    fill(w, 3600);
    sim_disk_set_space(w->disk, 0);
    ck_assert_status(post_batch(w, 3600), ST_OK); /* into the prepared segments */
    unload(w);
    ck_assert(!atomic_load(&w->p.journal->lost));
    ck_assert_uint_eq(population(w).ready, MANY + BATCH);
    ck_assert_uint_ge(population(w).ready - population(w).unloaded, BATCH);
    sim_disk_set_space(w->disk, SIM_NO_LIMIT);
    for (int i = 0; i < 3; i++) { /* a search begins again after ten seconds */
        w->now_ms += 11000;
        ck_assert_status(post_batch(w, 3600), ST_OK);
        unload(w);
    }
    ck_assert_uint_eq(population(w).ready, MANY + 4 * BATCH);
    ck_assert_uint_gt(population(w).unloaded, (MANY + 4 * BATCH) * 9 / 10);
}

TEST_CASE("the usual limits");

/* Posts MANY messages to a store that needs its memory for them only above this. Returns
 * how many are still in memory. */
static uint64_t
fill_usual(struct world *w, uint64_t backlog_memory)
{
    close_world(w);
    *w = (struct world){.disk = sim_disk_new(1), .now_ms = START_MS, .queue = w->queue};
    w->p = (struct journalled){.disk = w->disk,
                               .segment_bytes = SEGMENT,
                               .backlog_memory = backlog_memory,
                               .seed = 1};
    journalled_start(&w->p, w->now_ms);
    for (int i = 0; i < MANY / BATCH; i++) {
        ck_assert_status(post_batch(w, 3600), ST_OK);
        unload(w);
    }
    return population(w).ready - population(w).unloaded;
}

/* The next messages are read before they are needed, and each run once. */
WORLD_TEST(a_drain_does_not_wait_for_the_disk)
{
    const uint64_t kept = fill_usual(w, 2 << 20);
    const struct store_terms terms = {300, 60};
    struct store_batch batch = STORE_BATCH_INIT;

    ck_assert_uint_ge(kept, 4096);
    ck_assert_uint_le(kept, 4096 + 3 * 64);
    for (size_t got = 0; got < MANY; got += 100) {
        ck_assert_status(store_claim_create(patient_inside(w->p.store),
                                            STORE_AT(w->now_ms), &w->queue, &terms, 100,
                                            &batch),
                         ST_OK);
        ck_assert_uint_eq(batch.count, 100);
        store_batch_release(&batch);
        if (got < 1000)
            ck_assert_uint_eq(loads(w), 0);
        while (journal_load_run(w->p.journal))
            continue;
        journalled_commit(&w->p);
    }
    ck_assert_uint_le(loads(w), (MANY - kept) / 64 + 2);
}

/* Even the head of a queue leaves memory, but for the messages of the next claims. */
WORLD_TEST(short_memory_keeps_few_messages)
{
    const uint64_t kept = fill_usual(w, 1);

    ck_assert_uint_ge(kept, 2 * 64);
    ck_assert_uint_le(kept, 3 * 64);
}

/* The same with so many messages of 16 KB instead. */
static uint64_t
fill_with_large(struct world *w, uint64_t backlog_memory, size_t count)
{
    static char body[16384];

    (void)fill_usual(w, backlog_memory);
    ck_assert_status(store_queue_purge(w->p.store, STORE_AT(w->now_ms), &w->queue,
                                       STORE_PURGE_MESSAGES),
                     ST_OK);
    memset(body, '1', sizeof(body));
    for (size_t i = 0; i < count / 20; i++) {
        ck_assert_status(post_bodies(w, 20, bytes_of(body, sizeof(body)), 3600), ST_OK);
        unload(w);
    }
    return population(w).ready - population(w).unloaded;
}

WORLD_TEST(large_messages_stay_while_they_have_few_bytes)
{
    const uint64_t kept = fill_with_large(w, 10 << 20, 1000);

    ck_assert_uint_ge(kept, 256);
    ck_assert_uint_le(kept, 256 + 3 * 64);
}

static void
list_whole_queue(struct world *w, size_t count)
{
    struct store_filter filter = {.limit = 100};
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_id last;
    size_t seen = 0;

    do {
        store_batch_release(&batch);
        ck_assert_status(store_message_list(w->p.store, STORE_AT(w->now_ms), &w->queue,
                                            &filter, &batch),
                         ST_OK);
        if (batch.count > 0)
            last = batch.messages[batch.count - 1].id;
        filter.marker = store_id_bytes(&last);
        seen += batch.count;
    } while (batch.count > 0);
    store_batch_release(&batch);
    ck_assert_uint_ge(seen, count);
}

/* So several readers of a listing share a read. */
WORLD_TEST(loaded_messages_stay_for_a_while)
{
    uint64_t loaded;

    (void)fill_usual(w, 1);
    list_whole_queue(w, MANY);
    loaded = loads(w);
    ck_assert_uint_ge(loaded, MANY / 64 - 4);
    ck_assert_status(post_batch(w, 3600), ST_OK); /* it looks for messages to unload */
    list_whole_queue(w, MANY);
    ck_assert_uint_eq(loads(w), loaded);
}

/* After a second, without another post. */
WORLD_TEST(loaded_messages_leave_memory_again)
{
    uint64_t unloaded;

    (void)fill_with_large(w, 1, 2000);
    unloaded = population(w).unloaded;
    list_whole_queue(w, 2000);
    ck_assert_uint_lt(population(w).unloaded, unloaded / 2);
    unload(w);
    unload(w);
    ck_assert_uint_ge(population(w).unloaded, unloaded);
    list_whole_queue(w, 2000);
}
