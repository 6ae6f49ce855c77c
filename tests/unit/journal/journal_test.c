/* A store with its journal, on a disk that the test owns. */
#include "claimd/journal/journal.h"

#include "journal/frame.h"
#include "journal/record.h"
#include "journal/segment.h"
#include "support/finishing.h"
#include "support/sim_disk.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEGMENT = 64 * 1024 };

struct world {
    struct sim_disk *disk;
    struct journal *journal;
    struct journal_recovery recovery;
    struct fixture f;
    char error[JOURNAL_ERROR_CAP];
    unsigned failures; /* that the journal has reported of */
    uint64_t starts;
};

static void
failed(void *arg, const char *text, int error)
{
    struct world *w = arg;

    ck_assert_uint_gt(strlen(text), 0);
    ck_assert_ptr_nonnull(strstr(text, strerror(error)));
    w->failures++;
}

/* A process begins with this journal. Its error is left in w->error. */
static enum status
begin(struct world *w, const struct journal_config *config)
{
    struct engine_config engine;
    enum status st = journal_open(config, &w->journal, w->error);

    if (st != ST_OK) {
        w->journal = NULL;
        return st;
    }
    w->f.mem = mem_new(0);
    engine = fixture_config(w->f.mem);
    engine.seed = w->starts;
    engine.log = journal_log(w->journal);
    ck_assert_status(engine_open(&engine, &w->f.store), ST_OK);
    w->recovery = (struct journal_recovery){.now_ms = w->f.now_ms};
    st = journal_recover(w->journal, w->f.store, &w->recovery, w->error);
    if (st == ST_OK)
        w->f.now_ms = w->recovery.now_ms;
    return st;
}

static enum status
start(struct world *w)
{
    struct journal_config config = {.disk = sim_disk_open(w->disk),
                                    .segment_bytes = SEGMENT,
                                    .seeded = true,
                                    .seed = ++w->starts,
                                    .failed = failed,
                                    .failed_arg = w};

    return begin(w, &config);
}

/* It ends, in peace or because its disk is dead. */
static void
stop(struct world *w)
{
    journal_close(w->journal);
    w->journal = NULL;
    store_batch_release(&w->f.seen);
    store_close(w->f.store);
    mem_destroy(w->f.mem);
}

static void
open_world(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof(*w));
    w->disk = sim_disk_new(seed);
    w->f.now_ms = START_MS;
    w->f.queue = (struct store_queue){.project = bytes_str("p"), .name = bytes_str("q")};
    ck_assert_status(start(w), ST_OK);
}

static void
close_world(struct world *w)
{
    stop(w);
    sim_disk_free(w->disk);
}

#define WORLD_TEST(id)                                                                   \
    FIXTURE_TEST_AS(id, struct world, w, open_world(w, 1), close_world(w))

static void
commit_all(struct world *w)
{
    while (journal_step(w->journal))
        continue;
}

/* A power cut that leaves only what is durable, and another start. */
static enum status
cut(struct world *w)
{
    sim_disk_crash_losing_all(w->disk);
    stop(w);
    return start(w);
}

WORLD_TEST(committed_changes_are_recovered)
{
    struct store_id claim;

    post(&w->f, 3);
    claim = take(&w->f, 2);
    ck_assert_status(delete_claimed(&w->f, 1, claim), ST_OK);
    commit_all(w);
    post(&w->f, 1); /* this is not */
    ck_assert_status(cut(w), ST_OK);
    list_all(&w->f);
    expect(&w->f, 2, 3);
    ck_assert_status(query(&w->f, claim), ST_OK);
    expect(&w->f, 2);
    wait_s(&w->f, 301);
    list_ready(&w->f);
    expect(&w->f, 2, 3);
}

WORLD_TEST(a_peaceful_end_commits_what_is_left)
{
    post(&w->f, 2);
    stop(w);
    ck_assert_status(start(w), ST_OK);
    list_all(&w->f);
    expect(&w->f, 1, 2);
}

/* Counts the notifications of commits, and the wake-ups. */
struct witness {
    struct store_listener listener;
    struct store_wakeup wakeup;
    unsigned notified, woken;
};

static void
count_wakeup(struct store_wakeup *wakeup)
{
    container_of(wakeup, struct witness, wakeup)->woken++;
}

static struct store_wakeup *
count_commit(struct store_listener *listener, enum store_notification notification)
{
    struct witness *witness = container_of(listener, struct witness, listener);

    ck_assert_int_eq(notification, STORE_READY);
    return ++witness->notified == 1 ? &witness->wakeup : NULL;
}

WORLD_TEST(each_commit_notifies_and_wakes_listeners)
{
    struct witness witness = {.listener.notify = count_commit,
                              .wakeup.fire = count_wakeup};

    commit_all(w);
    store_log_listen(journal_log(w->journal), &witness.listener);
    for (unsigned i = 1; i < 3; i++) {
        post(&w->f, 1);
        ck_assert_uint_eq(witness.notified, i - 1);
        commit_all(w);
        ck_assert_uint_eq(witness.notified, i);
        ck_assert_uint_eq(witness.woken, 1);
    }
    store_log_unlisten(journal_log(w->journal), &witness.listener);
    post(&w->f, 1);
    commit_all(w);
    ck_assert_uint_eq(witness.notified, 2);
}

WORLD_TEST(nothing_is_durable_before_it_is)
{
    struct store_op op = {.now_ms = START_MS};

    commit_all(w);
    post(&w->f, 1);
    ck_assert_status(
        store_queue_stats(w->f.store, &op, &w->f.queue, &(struct store_stats){0}), ST_OK);
    ck_assert_uint_gt(op.lsn, 0);
    ck_assert_int_eq(store_log_durability(journal_log(w->journal), op.lsn),
                     STORE_PENDING);
    ck_assert(journal_step(w->journal));
    ck_assert_int_eq(store_log_durability(journal_log(w->journal), op.lsn),
                     STORE_DURABLE);
    ck_assert(!journal_step(w->journal)); /* there is no more */
}

WORLD_TEST(after_a_sync_that_failed_nothing_is_durable_any_more)
{
    struct store_op op = {.now_ms = START_MS};

    post(&w->f, 1);
    commit_all(w);
    post(&w->f, 1);
    (void)store_queue_stats(w->f.store, &op, &w->f.queue, &(struct store_stats){0});
    sim_disk_fail(w->disk, SIM_SYNC, 1, EIO);
    ck_assert(!journal_step(w->journal));
    ck_assert_uint_eq(w->failures, 1);
    ck_assert_int_eq(store_log_durability(journal_log(w->journal), op.lsn), STORE_LOST);
    ck_assert(!journal_step(w->journal)); /* it is not tried again */
    ck_assert_int_eq(store_log_durability(journal_log(w->journal), op.lsn), STORE_LOST);
    ck_assert_status(cut(w), ST_OK);
    list_all(&w->f);
    expect(&w->f, 1);
}

/* Also while its first segments are made: the caller reports the failure, and ends. */
LOOP_TEST(a_start_that_fails_reports_one_error_and_commits_nothing, 2)
{
    enum status st = ST_IO;
    uint64_t operations;
    struct world w;

    for (uint64_t nth = 1; st != ST_OK; nth++) {
        open_world(&w, nth);
        post(&w.f, 1);
        stop(&w);
        if (_i == 1) { /* a new journal */
            sim_disk_free(w.disk);
            w.disk = sim_disk_new(nth);
        }
        sim_disk_die(w.disk, nth);
        st = start(&w);
        operations = sim_disk_stats(w.disk)->operations;
        if (st == ST_OK)
            sim_disk_mend(w.disk);
        else
            ck_assert_ptr_nonnull(strstr(w.error, "Input/output error"));
        if (w.journal != NULL)
            stop(&w);
        ck_assert_uint_eq(w.failures, 0);
        if (st != ST_OK)
            ck_assert_uint_eq(sim_disk_stats(w.disk)->operations, operations);
        sim_disk_free(w.disk);
    }
}

/* Posts until a segment is begun, or nothing becomes durable any more. */
static void
post_a_segment(struct world *w)
{
    for (int i = 0; i < SEGMENT / 100 && w->failures == 0; i++) {
        w->f.posted = 1;
        post(&w->f, 1);
        commit_all(w);
    }
}

/* A second process may have locked another file of that name meanwhile. */
LOOP_TEST(a_journal_whose_lock_file_is_gone_begins_no_segment, 2)
{
    struct journal_metrics metrics;
    struct world w, other;

    open_world(&w, 1);
    commit_all(&w);
    ck_assert_int_eq(disk_unlink(sim_disk_open(w.disk), "lock"), 0);
    memset(&other, 0, sizeof(other));
    other.disk = w.disk;
    ck_assert_status(start(&other), ST_UNAVAILABLE); /* the directory is locked, too */
    ck_assert_ptr_nonnull(strstr(other.error, "another process"));
    if (_i == 0) /* that start has made a new one */
        ck_assert_int_eq(disk_unlink(sim_disk_open(w.disk), "lock"), 0);
    post_a_segment(&w);
    ck_assert_uint_eq(w.failures, 1);
    journal_metrics(w.journal, &metrics);
    ck_assert(metrics.lost);
    ck_assert_uint_eq(metrics.segments, 1);
    sim_disk_kill(w.disk);
    stop(&w);
    ck_assert_status(start(&w), ST_OK);
    close_world(&w);
}

/* The disk after a power cut while the oldest segment goes; NULL: it has not gone. */
static struct {
    const struct disk_vtable *real;
    struct sim_disk *from, *kept;
} unlinking;

static int
keep_and_unlink(struct disk *d, const char *name)
{
    if (unlinking.kept == NULL && strstr(name, ".log") != NULL) {
        unlinking.kept = sim_disk_copy(unlinking.from, 7);
        sim_disk_crash_losing_all(unlinking.kept);
        ck_assert_int_eq(disk_unlink(sim_disk_open(unlinking.kept), name), 0);
    }
    return unlinking.real->unlink(d, name);
}

/* A checkpoint without its end is not enough, after any power cut. */
START_TEST(the_oldest_segment_goes_when_the_end_of_the_checkpoint_is_durable)
{
    struct journal_metrics metrics;
    struct world w, after;
    struct disk_vtable ops;
    struct disk *disk;

    open_world(&w, 1);
    post(&w.f, 1); /* it stays in the oldest segment */
    commit_all(&w);
    do {
        w.f.posted = 1;
        post(&w.f, 1);
        ck_assert_status(delete_unclaimed(&w.f, 2), ST_OK);
        commit_all(&w);
        journal_metrics(w.journal, &metrics);
    } while (metrics.segments < 3);
    stop(&w);
    sim_disk_kill(w.disk);
    disk = sim_disk_open(w.disk);
    unlinking.real = disk->vtable;
    unlinking.from = w.disk;
    ops = *disk->vtable;
    ops.unlink = keep_and_unlink;
    disk->vtable = &ops;
    ck_assert_status(begin(&w, &(struct journal_config){.disk = disk,
                                                        .segment_bytes = SEGMENT,
                                                        .seeded = true,
                                                        .seed = ++w.starts,
                                                        .failed = failed,
                                                        .failed_arg = &w}),
                     ST_OK);
    journal_checkpoint(w.journal);
    commit_all(&w);
    ck_assert_ptr_nonnull(unlinking.kept);
    journal_metrics(w.journal, &metrics);
    ck_assert_uint_le(metrics.bytes, metrics.segments * SEGMENT);
    after = (struct world){.disk = unlinking.kept, .starts = 100, .f.now_ms = START_MS};
    after.f.queue = w.f.queue;
    ck_assert_msg(start(&after) == ST_OK, "%s", after.error);
    ck_assert_uint_eq(stats(&after.f).total, 1);
    close_world(&after);
    close_world(&w);
}

/* A full disk goes on with the spares: others would have their space. */
WORLD_TEST(spares_that_a_start_takes_over_outlive_a_power_cut)
{
    uint64_t bytes, spares = 0;
    char name[] = "spare.0";

    post(&w->f, 1);
    commit_all(w);
    stop(w);
    for (; name[6] < '2'; name[6]++) { /* as if killed before they were synced */
        struct disk *disk = sim_disk_open(w->disk);
        struct disk_file *file = NULL;

        ck_assert_int_eq(disk_unlink(disk, name), 0);
        ck_assert_int_eq(disk_sync_names(disk), 0);
        ck_assert_int_eq(disk_file_open(disk, name, DISK_NEW, &file), 0);
        ck_assert_int_eq(disk_allocate(disk, file, SEGMENT), 0);
        ck_assert_int_eq(disk_sync_names(disk), 0);
        disk_close(disk, file);
    }
    sim_disk_kill(w->disk);
    ck_assert_status(start(w), ST_OK);
    for (name[6] = '0'; name[6] < '2'; name[6]++) {
        ck_assert(sim_disk_durable_size(w->disk, name, &bytes));
        spares += bytes == SEGMENT;
    }
    ck_assert_uint_eq(spares, 2);
}

/* The unused rest of the last segment is less than a segment. */
START_TEST(a_start_on_a_full_disk_without_spares_makes_a_smaller_segment)
{
    enum { LARGE = 4 * SEGMENT };
    struct world w = {.disk = sim_disk_new(1), .f.now_ms = START_MS};
    struct journal_config config = {.disk = sim_disk_open(w.disk),
                                    .segment_bytes = LARGE};
    struct journal_metrics metrics;
    char name[DISK_NAME_CAP];

    w.f.queue = (struct store_queue){.project = bytes_str("p"), .name = bytes_str("q")};
    ck_assert_status(begin(&w, &config), ST_OK);
    post(&w.f, 1);
    commit_all(&w);
    stop(&w);
    config.disk = sim_disk_open(w.disk);
    for (unsigned i = 0; i < SEGMENT_SPARES_MOST; i++) {
        (void)snprintf(name, sizeof(name), "spare.%u", i);
        (void)disk_unlink(config.disk, name);
    }
    ck_assert_int_eq(disk_sync_names(config.disk), 0);
    sim_disk_set_space(w.disk, 0);
    ck_assert_msg(begin(&w, &config) == ST_OK, "%s", w.error);
    journal_metrics(w.journal, &metrics);
    ck_assert_uint_eq(metrics.segments, 2);
    ck_assert_uint_le(metrics.bytes, LARGE);
    ck_assert_uint_eq(stats(&w.f).total, 1);
    commit_all(&w);
    ck_assert_uint_eq(w.failures, 0);
    close_world(&w);
}

START_TEST(only_one_process_has_the_directory)
{
    struct world w, other;

    open_world(&w, 1);
    memset(&other, 0, sizeof(other));
    other.disk = w.disk;
    ck_assert_status(start(&other), ST_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(other.error, "another process"));
    close_world(&w);
}

/* One message stays, the others come and go. */
WORLD_TEST(an_old_message_holds_no_old_segments)
{
    struct journal_metrics metrics;

    post(&w->f, 1);
    commit_all(w);
    for (int i = 0; i < 20000; i++) {
        w->f.posted = 1; /* the fixture has space for so many only */
        post(&w->f, 1);
        ck_assert_status(delete_unclaimed(&w->f, 2), ST_OK);
        if (i % 5 == 0)
            commit_all(w);
        journal_metrics(w->journal, &metrics);
        ck_assert_uint_le(metrics.segments, 8);
    }
    ck_assert_uint_ge(metrics.checkpoints, 5);
    ck_assert_int_ge(metrics.checkpoint_ms, START_MS);
    ck_assert_uint_le(sim_disk_files(w->disk),
                      8 + SEGMENT_SPARES_MOST + 1); /* the lock */
    commit_all(w);
    ck_assert_status(cut(w), ST_OK);
    list_all(&w->f);
    expect(&w->f, 1);
}

WORLD_TEST(restarts_take_no_space_for_good)
{
    uint64_t before;

    post(&w->f, 1);
    commit_all(w);
    ck_assert_status(cut(w), ST_OK);
    before = sim_disk_bytes(w->disk);
    for (int i = 0; i < 10; i++)
        ck_assert_status(cut(w), ST_OK);
    ck_assert_uint_le(sim_disk_bytes(w->disk), before + 10 * 8192);
    list_all(&w->f);
    expect(&w->f, 1);
}

/* The size of the segments of a new journal where there is so much space. */
static uint64_t
segment_for(uint64_t space, uint64_t max_bytes, size_t change_bytes)
{
    struct sim_disk *sd = sim_disk_new(1);
    struct world w = {.disk = sd, .f.now_ms = START_MS};
    struct journal_config config = {
        .disk = sim_disk_open(sd), .max_bytes = max_bytes, .change_bytes = change_bytes};
    uint64_t bytes = 0;

    sim_disk_set_space(sd, space);
    ck_assert_status(begin(&w, &config), ST_OK);
    ck_assert(sim_disk_durable_size(sd, "0000000000000001.log", &bytes));
    stop(&w);
    sim_disk_free(sd);
    return bytes;
}

START_TEST(segments_suit_the_space_that_there_is)
{
    const uint64_t mib = 1 << 20;

    ck_assert_uint_eq(segment_for(SIM_NO_LIMIT, 0, 0), 8 * mib);
    ck_assert_uint_eq(segment_for(128 * mib, 0, 0), 8 * mib);
    ck_assert_uint_eq(segment_for(127 * mib, 0, 0), 4 * mib);
    ck_assert_uint_eq(segment_for(20 * mib, 0, 0), 4 * mib);
    ck_assert_uint_eq(segment_for(SIM_NO_LIMIT, 100 * mib, 0), 4 * mib);
    ck_assert_uint_eq(segment_for(200 * mib, 0, 6 * mib), 16 * mib);
    ck_assert_uint_eq(segment_for(SIM_NO_LIMIT, 0, 15 * mib), 32 * mib);
    ck_assert_uint_eq(segment_for(SIM_NO_LIMIT, 0, 99 * mib), 64 * mib);
}

START_TEST(segments_do_not_shrink_with_the_space)
{
    struct sim_disk *sd = sim_disk_new(1);
    struct world w = {.disk = sd, .f.now_ms = START_MS};
    struct journal_config config = {.disk = sim_disk_open(sd)};
    struct journal_metrics metrics;

    ck_assert_status(begin(&w, &config), ST_OK);
    stop(&w);
    sim_disk_kill(sd);
    sim_disk_set_space(sd, 10 << 20);
    config.disk = sim_disk_open(sd);
    ck_assert_status(begin(&w, &config), ST_OK);
    journal_metrics(w.journal, &metrics);
    ck_assert_uint_eq(metrics.segments, 2);
    ck_assert_uint_gt(metrics.bytes, 8 << 20);
    stop(&w);
    sim_disk_free(sd);
}

WORLD_TEST(a_torn_end_is_no_damage_but_a_hole_is)
{
    char name[] = "0000000000000001.log";

    for (int i = 0; i < 5; i++) {
        post(&w->f, 1);
        commit_all(w);
    }
    sim_disk_crash_losing_all(w->disk);
    stop(w);
    sim_disk_flip(w->disk, name, 4096 + 64 + 40, 3); /* in the first frame */
    ck_assert_status(start(w), ST_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(w->error, "damaged"));
    stop(w);
    sim_disk_flip(w->disk, name, 4096 + 64 + 40, 3); /* and back */
    ck_assert_status(start(w), ST_OK);
    list_all(&w->f);
    expect(&w->f, 1, 2, 3, 4, 5);
}

START_TEST(a_full_disk_refuses_posts_and_lets_go)
{
    struct store_op op = {.now_ms = START_MS};
    struct store_draft draft = {bytes_str("1"), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    const struct store_record record = {.kind = STORE_RECORD_MESSAGE,
                                        .message = {.body = draft.body,
                                                    .posted_ms = START_MS,
                                                    .expires_ms = START_MS + 1000}};
    struct store_id id;
    enum status st = ST_OK;
    struct world w;

    open_world(&w, 1);
    post(&w.f, 1);
    commit_all(&w);
    sim_disk_set_space(w.disk, 3 * SEGMENT);
    for (int i = 0; st == ST_OK && i < 100000; i++) {
        st = store_message_post(w.f.store, &op, &w.f.queue, &one, &id);
        if (i % 100 == 0)
            commit_all(&w);
    }
    ck_assert_status(st, ST_FULL);
    ck_assert_uint_eq(w.failures, 0);
    ck_assert_status(store_apply(w.f.store, &op, &w.f.queue, &record, 1), ST_FULL);
    ck_assert_status(delete_unclaimed(&w.f, 1), ST_OK); /* deletions go on */
    commit_all(&w);
    sim_disk_set_space(w.disk, SIM_NO_LIMIT);
    ck_assert_status(delete_unclaimed(&w.f, 1), ST_OK);
    (void)store_queue_purge(w.f.store, &op, &w.f.queue, STORE_PURGE_MESSAGES);
    commit_all(&w);
    ck_assert_status(store_message_post(w.f.store, &op, &w.f.queue, &one, &id), ST_OK);
    commit_all(&w);
    ck_assert_status(cut(&w), ST_OK);
    ck_assert_uint_eq(stats(&w.f).total, 1);
    close_world(&w);
}

START_TEST(a_full_disk_refuses_larger_metadata_and_lets_a_queue_resume_and_pause)
{
    const struct store_metadata larger = {bytes_str("{}"), STORE_SETTINGS_INIT};
    struct store_op op = {.now_ms = START_MS};
    struct store_draft draft = {bytes_str("1"), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct store_queues found = STORE_QUEUES_INIT;
    struct store_id id;
    enum status st = ST_OK;
    struct world w;

    open_world(&w, 1);
    post(&w.f, 1);
    pause_queue(&w.f, STORE_PAUSE_CLAIMS);
    commit_all(&w);
    sim_disk_set_space(w.disk, 3 * SEGMENT);
    for (int i = 0; st == ST_OK && i < 100000; i++) {
        st = store_message_post(w.f.store, &op, &w.f.queue, &one, &id);
        if (i % 100 == 0)
            commit_all(&w);
    }
    ck_assert_status(st, ST_FULL);
    ck_assert_status(store_queue_get(w.f.store, &op, &w.f.queue, &found), ST_OK);
    ck_assert_status(
        store_queue_update(w.f.store, &op, &w.f.queue, found.queues[0].version, &larger),
        ST_FULL);
    store_queues_release(&found);
    pause_queue(&w.f, 0);
    pause_queue(&w.f, STORE_PAUSE_CLAIMS); /* needs more bytes, and is possible, too */
    pause_queue(&w.f, 0);
    take(&w.f, 1);
    expect(&w.f, 1);
    commit_all(&w);
    ck_assert_uint_eq(w.failures, 0);
    ck_assert_status(cut(&w), ST_OK);
    ck_assert_uint_eq(stats(&w.f).claimed, 1);
    pop(&w.f, 1);
    ck_assert_uint_eq(w.f.seen.count, 1);
    close_world(&w);
}

START_TEST(a_journal_at_its_limit_refuses_posts_and_names_the_option)
{
    struct store_op op = {.now_ms = START_MS};
    struct store_draft draft = {bytes_str("1"), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct world w = {.disk = sim_disk_new(1), .f.now_ms = START_MS};
    struct journal_config config = {.disk = sim_disk_open(w.disk),
                                    .segment_bytes = SEGMENT,
                                    .max_bytes = 8 * SEGMENT};
    struct store_id id;
    enum status st = ST_OK;

    w.f.queue = (struct store_queue){.project = bytes_str("p"), .name = bytes_str("q")};
    ck_assert_status(begin(&w, &config), ST_OK);
    for (int i = 0; st == ST_OK && i < 100000; i++) {
        st = store_message_post(w.f.store, &op, &w.f.queue, &one, &id);
        if (i % 100 == 0)
            commit_all(&w);
    }
    ck_assert_status(st, ST_JOURNAL_LIMIT);
    ck_assert_ptr_nonnull(strstr(status_text(st), "journal_max_bytes"));
    close_world(&w);
}

START_TEST(a_post_beyond_what_a_frame_holds_is_refused_for_that)
{
    enum { MANY = 1000 };
    struct store_op op = {.now_ms = START_MS};
    static struct store_draft drafts[MANY];
    static struct store_id ids[MANY];
    struct store_post all = {.drafts = drafts, .count = MANY, .create_queue = true};
    struct world w;

    for (int i = 0; i < MANY; i++)
        drafts[i] = (struct store_draft){bytes_str("1"), 3600, 0};
    open_world(&w, 1);
    post(&w.f, 1);
    ck_assert_status(store_message_post(w.f.store, &op, &w.f.queue, &all, ids),
                     ST_BEYOND_LOG);
    ck_assert_uint_lt(op.log_most, SEGMENT / 2);
    ck_assert_uint_gt(op.log_most, SEGMENT / 2 - 4096);
    ck_assert_uint_eq(stats(&w.f).total, 1);
    all.count = (op.log_most - 500) / (STORE_LOG_EACH + 1);
    ck_assert_status(store_message_post(w.f.store, &op, &w.f.queue, &all, ids), ST_OK);
    commit_all(&w);
    ck_assert_status(cut(&w), ST_OK);
    ck_assert_uint_eq(stats(&w.f).total, 1 + all.count);
    close_world(&w);
}

/* ------------------------------------------------------------------ groups */

/* Records in the frames of a log. */
struct frames {
    size_t count;      /* of frames */
    size_t with_group; /* of them, with the records of a finish */
    bool beside;       /* one of those has another record, too */
};

/* A finish of the group test logs one record of each of these. */
static void
look_at_frame(struct frames *seen, const uint8_t *bytes, size_t len)
{
    size_t types[RECORD_TYPES] = {0}, all = 0;

    for (size_t at = 0; at < len; at += record_size(bytes + at, len - at), all++) {
        struct record record;

        ck_assert_status(record_read(bytes + at, len - at, &record), ST_OK);
        types[record.type]++;
    }
    seen->count++;
    ck_assert_uint_eq(types[STORE_CHANGE_DELETE], types[STORE_CHANGE_RETRY]);
    ck_assert_uint_eq(types[STORE_CHANGE_DELETE], types[STORE_CHANGE_DETAILS]);
    ck_assert_uint_eq(types[STORE_CHANGE_DELETE], types[STORE_CHANGE_RENEW]);
    if (types[STORE_CHANGE_DELETE] == 0)
        return;
    ck_assert_uint_eq(types[STORE_CHANGE_DELETE], 1);
    seen->with_group++;
    seen->beside = all > 4;
}

static struct frames
look_at_log(struct world *w, const char *name)
{
    struct frames seen = {.count = 0};
    struct segment_head head;
    struct frame frame;
    size_t len;
    uint8_t *bytes = sim_disk_get(w->disk, name, &len);

    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(segment_head_read(bytes, &head), SEGMENT_GOOD);
    for (size_t at = SEGMENT_HEAD_BYTES;
         frame_read(bytes + at, len - at, head.nonce, &frame);
         at += FRAME_HEAD_BYTES + frame.length)
        if (frame.length > 0)
            look_at_frame(&seen, bytes + at + FRAME_HEAD_BYTES, frame.length);
    free(bytes);
    return seen;
}

/* A message fills a frame but for some hundred bytes, and so many more. */
static void
post_filler(struct world *w, size_t left)
{
    enum { FRAME = (SEGMENT - SEGMENT_HEAD_BYTES) / SEGMENT_FRAMES };
    static char body[FRAME];
    struct store_draft draft = {bytes_of(body, FRAME - 1000 - left), 3600, 0};
    const struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct store_queue where = w->f.queue;
    struct store_id id;

    memset(body, '1', sizeof(body));
    where.name = bytes_str("filler");
    ck_assert_status(
        store_message_post(w->f.store, STORE_AT(w->f.now_ms), &where, &one, &id), ST_OK);
}

/* The records of a finish are in one frame, after any records. */
START_TEST(a_group_is_in_one_frame)
{
    static char reason[STORE_REASON_MAX + 1];
    size_t alone = 0, beside = 0;
    struct finishing g;
    struct world w;

    memset(reason, 'r', STORE_REASON_MAX);
    for (size_t left = 0; left <= 8000; left += 50) {
        struct frames seen;

        open_world(&w, 1);
        post(&w.f, 3);
        g = finishing_of(&w.f, take(&w.f, 3));
        then_delete(&g, 1);
        then_release(&g, 2, 30, reason);
        then_renew(&g, 500, 60);
        commit_all(&w);
        post_filler(&w, left);
        ck_assert_status(finish(&w.f, &g), ST_OK);
        commit_all(&w);
        seen = look_at_log(&w, "0000000000000001.log");
        ck_assert_uint_eq(seen.with_group, 1);
        beside += seen.beside;
        alone += !seen.beside;
        ck_assert_status(cut(&w), ST_OK);
        ck_assert_status(query(&w.f, g.claim), ST_OK);
        expect(&w.f, 3);
        list_ready(&w.f);
        expect_nothing(&w.f);
        expect_details(&w.f, 2, reason, "worker", 0, NULL, -1);
        close_world(&w);
    }
    ck_assert_uint_gt(alone, 10);
    ck_assert_uint_gt(beside, 10);
}

/* A power cut in the middle of a frame leaves nothing of a finish. */
WORLD_TEST(a_finish_that_is_torn_has_not_happened)
{
    struct finishing g;

    make_dead_lettering(&w->f, "q", 3, "failed", STORE_UNSET);
    post(&w->f, 4);
    g = finishing_of(&w->f, take(&w->f, 4));
    then_delete(&g, 1);
    then_release(&g, 2, 30, "busy");
    then_dead_letter(&g, 3, "bad");
    then_post(&g, "next", 1);
    then_renew(&g, 500, 60);
    commit_all(w);
    ck_assert_status(finish(&w->f, &g), ST_OK);
    ck_assert_status(cut(w), ST_OK);
    ck_assert_status(query(&w->f, g.claim), ST_OK);
    expect(&w->f, 1, 2, 3, 4);
    ck_assert_int_eq(w->f.seen.claim_ttl_s, 300);
    expect_details(&w->f, 2, NULL, NULL, -1, NULL, -1);
}

START_TEST(a_finish_beyond_what_a_frame_holds_is_refused_and_changes_nothing)
{
    static char reason[STORE_REASON_MAX + 1], body[10000];
    struct store_op op = {.now_ms = START_MS};
    struct finishing g;
    struct world w;

    memset(reason, 'r', STORE_REASON_MAX);
    open_world(&w, 1);
    post(&w.f, 40);
    g = finishing_of(&w.f, take(&w.f, 40));
    for (int i = 1; i <= 40; i++)
        then_release(&g, i, 0, reason);
    g.request.claim_id = store_id_bytes(&g.claim);
    g.request.items = g.items;
    ck_assert_status(store_claim_finish(w.f.store, &op, &w.f.queue, &g.request),
                     ST_BEYOND_LOG);
    ck_assert_uint_gt(op.log_most, SEGMENT / 2 - 4096);
    ck_assert_uint_eq(stats(&w.f).claimed, 40);
    expect_details(&w.f, 1, NULL, NULL, -1, NULL, -1);
    g.request.count = 20;
    then_post(&g, "next", 1); /* each of them fits */
    memset(body, '1', sizeof(body));
    g.drafts[0][0].body = bytes_of(body, sizeof(body));
    ck_assert_status(finish(&w.f, &g), ST_BEYOND_LOG);
    ck_assert_uint_eq(stats(&w.f).claimed, 40);
    g.request.post_count = 0;
    ck_assert_status(finish(&w.f, &g), ST_OK);
    ck_assert_uint_eq(stats(&w.f).claimed, 20);
    close_world(&w);
}

/* More than one frame holds moves in several pieces. */
START_TEST(many_large_dead_letters_move_there_and_back)
{
    enum { MANY = 40 };
    static char body[2000];
    struct store_draft draft = {bytes_of(body, sizeof(body)), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct store_id id;
    struct world w;

    memset(body, '1', sizeof(body));
    open_world(&w, 1);
    make_dead_lettering(&w.f, "q", 1, "failed", STORE_UNSET);
    for (int i = 0; i < MANY; i++)
        ck_assert_status(
            store_message_post(w.f.store, STORE_AT(w.f.now_ms), &w.f.queue, &one, &id),
            ST_OK);
    commit_all(&w);
    wear_out(&w.f, MANY, 1);
    (void)take(&w.f, 1);
    ck_assert_uint_eq(w.f.seen.count, 0);
    use(&w.f, "failed");
    ck_assert_uint_eq(stats(&w.f).total, MANY);
    ck_assert_uint_eq(redrive_all(&w.f).moved, MANY);
    commit_all(&w);
    ck_assert_status(cut(&w), ST_OK);
    ck_assert_uint_eq(stats(&w.f).total, 0);
    use(&w.f, "q");
    ck_assert_uint_eq(stats(&w.f).total, MANY);
    close_world(&w);
}

START_TEST(jobs_are_finished_on_a_full_disk)
{
    struct store_op op = {.now_ms = START_MS};
    struct store_draft draft = {bytes_str("1"), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct finishing g;
    struct store_id id;
    enum status st = ST_OK;
    struct world w;

    open_world(&w, 1);
    make_dead_lettering(&w.f, "q", 3, "failed", STORE_UNSET);
    use(&w.f, "failed");
    post(&w.f, 1);
    use(&w.f, "q");
    post(&w.f, 3); /* 2 3 4 */
    g = finishing_of(&w.f, take(&w.f, 3));
    commit_all(&w);
    sim_disk_set_space(w.disk, 3 * SEGMENT);
    for (int i = 0; st == ST_OK && i < 100000; i++) {
        st = store_message_post(w.f.store, &op, &w.f.queue, &one, &id);
        if (i % 100 == 0)
            commit_all(&w);
    }
    ck_assert_status(st, ST_FULL);
    then_delete(&g, 2);
    then_release(&g, 3, 0, "busy");
    then_dead_letter(&g, 4, "bad");
    ck_assert_status(finish(&w.f, &g), ST_OK);
    use(&w.f, "failed");
    ck_assert_uint_eq(redrive_all(&w.f).moved, 1);
    sim_disk_set_space(w.disk, SIM_NO_LIMIT);
    commit_all(&w);
    close_world(&w);
}

START_TEST(metrics_and_checkpoints_may_be_requested_during_a_commit)
{
    enum { SWEEPS = 3, TURNS_MOST = 1000000, BEHIND_MOST = 50 };
    struct store_op op = {.now_ms = START_MS};
    struct store_draft draft = {bytes_str("1"), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct journal_metrics seen = {0}, before;
    struct store_id id;
    struct world w;
    int turn;

    open_world(&w, 1);
    ck_assert_status(journal_start(w.journal), ST_OK);
    for (turn = 0; seen.checkpoints < SWEEPS && turn < TURNS_MOST; turn++) {
        before = seen;
        journal_metrics(w.journal, &seen);
        ck_assert_uint_ge(seen.durable, before.durable);
        ck_assert_uint_ge(seen.commits, before.commits);
        ck_assert_uint_ge(seen.checkpoints, before.checkpoints);
        ck_assert_uint_ge(seen.segments, 1);
        if (seen.lsn > seen.durable + BEHIND_MOST) {
            (void)sched_yield(); /* it catches up */
            continue;
        }
        ck_assert_status(store_message_post(w.f.store, &op, &w.f.queue, &one, &id),
                         ST_OK);
        journal_checkpoint(w.journal);
        store_log_flush(journal_log(w.journal));
    }
    ck_assert_uint_ge(seen.checkpoints, SWEEPS);
    close_world(&w);
}

/* Without a wake-up each commit would wait for a second. */
START_TEST(a_flush_wakes_the_committer)
{
    enum { ROUNDS = 2000 };
    struct store_draft draft = {bytes_str("1"), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct world w;

    open_world(&w, 1);
    ck_assert_status(journal_start(w.journal), ST_OK);
    for (int i = 0; i < ROUNDS; i++) {
        struct store_op op = {.now_ms = START_MS};
        struct store_id id;

        ck_assert_status(store_message_post(w.f.store, &op, &w.f.queue, &one, &id),
                         ST_OK);
        store_log_flush(journal_log(w.journal));
        while (store_log_durability(journal_log(w.journal), op.lsn) == STORE_PENDING)
            (void)sched_yield();
    }
    close_world(&w);
}

WORLD_TEST(time_goes_on_from_the_log_and_a_leap_is_ignored)
{
    post(&w->f, 1);
    commit_all(w);
    stop(w);
    w->f.now_ms = START_MS - 3600 * 1000; /* the clock was set back */
    ck_assert_status(start(w), ST_OK);
    ck_assert_int_eq(w->f.now_ms, START_MS);
    stop(w);
    w->f.now_ms = START_MS + JOURNAL_LIFE_MAX_MS + 24 * 3600 * 1000;
    ck_assert_status(start(w), ST_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(w->error, "claimd was down for 15 days"));
}

/* No producer can know it before the segment is there: else a body could be a frame. */
WORLD_TEST(every_segment_has_a_nonce_of_its_own)
{
    enum { NONCE_AT = 48, NONCE = 16 };
    char names[2][32] = {"0000000000000001.log", ""};
    struct journal_metrics metrics;
    void *heads[2];
    size_t len;

    post(&w->f, 3);
    commit_all(w);
    journal_metrics(w->journal, &metrics);
    ck_assert_status(cut(w), ST_OK);
    snprintf(names[1], sizeof(names[1]), "%016" PRIx64 ".log", metrics.lsn + 1);
    for (int i = 0; i < 2; i++) {
        heads[i] = sim_disk_get(w->disk, names[i], &len);
        ck_assert_ptr_nonnull(heads[i]);
        ck_assert_uint_ge(len, NONCE_AT + NONCE);
    }
    ck_assert_mem_ne((char *)heads[0] + NONCE_AT, (char *)heads[1] + NONCE_AT, NONCE);
    free(heads[0]);
    free(heads[1]);
}

/* Posts at most so many messages, 16 of which fill a segment, to a disk without space
 * for more than the least spare segments. Returns how many were accepted. */
static int
post_to_small_disk(struct world *w, int most)
{
    static char body[SEGMENT / 16];
    struct store_op op = {.now_ms = START_MS};
    struct store_draft draft = {bytes_of(body, sizeof(body)), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    enum status st = ST_OK;
    int count = 0;

    memset(body, '1', sizeof(body));
    sim_disk_set_space(w->disk, 24 * SEGMENT);
    while (st == ST_OK && count < most) {
        struct store_id *id = &w->f.ids[count + 1];

        st = store_message_post(w->f.store, &op, &w->f.queue, &one, id);
        count += st == ST_OK;
        commit_all(w);
    }
    return count;
}

/* Others fill the disk. Then only the spare segments are left, into which a checkpoint
 * does not fit until most messages are deleted. */
static void
delete_all_on_a_full_disk(struct world *w, int count)
{
    struct journal_metrics metrics;

    sim_disk_set_space(w->disk, 0);
    for (int number = 1; number <= count; number++) {
        ck_assert_status(delete_unclaimed(&w->f, number), ST_OK);
        commit_all(w);
        ck_assert_uint_eq(w->failures, 0);
    }
    journal_metrics(w->journal, &metrics);
    ck_assert_uint_ge(metrics.checkpoints, 1);
    ck_assert_uint_le(metrics.segments, 4);
    ck_assert_status(cut(w), ST_OK);
    ck_assert_uint_eq(stats(&w->f).total, 0);
}

WORLD_TEST(a_checkpoint_that_does_not_fit_leaves_space_for_deletions)
{
    delete_all_on_a_full_disk(w, post_to_small_disk(w, 400));
}

WORLD_TEST(a_checkpoint_stops_when_others_fill_the_disk)
{
    const int count = post_to_small_disk(w, 120);
    struct journal_metrics metrics;

    journal_checkpoint(w->journal);
    (void)journal_step(w->journal);
    journal_metrics(w->journal, &metrics);
    ck_assert_uint_eq(metrics.checkpoints, 0); /* it has only begun */
    delete_all_on_a_full_disk(w, count);
}

START_TEST(accepted_changes_fit_on_a_full_disk)
{
    static char body[4000];
    struct store_op op = {.now_ms = START_MS};
    struct store_draft draft = {bytes_of(body, sizeof(body)), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    enum status st = ST_OK;
    struct store_id id;
    struct world w;
    int taken = 0;

    memset(body, '1', sizeof(body));
    open_world(&w, 1);
    commit_all(&w);
    sim_disk_set_space(w.disk, 0);
    for (int round = 0; round < 10 && st != ST_FULL; round++) {
        while ((st = store_message_post(w.f.store, &op, &w.f.queue, &one, &id)) == ST_OK)
            ck_assert_int_lt(++taken, 1000);
        commit_all(&w);
        ck_assert_uint_eq(w.failures, 0);
    }
    ck_assert_status(st, ST_FULL);
    ck_assert_int_ge(taken, 10);
    ck_assert_status(store_queue_purge(w.f.store, &op, &w.f.queue, STORE_PURGE_MESSAGES),
                     ST_OK);
    commit_all(&w);
    ck_assert_uint_eq(w.failures, 0);
    close_world(&w);
}
