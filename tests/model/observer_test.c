/*
 * A store appends each change to its log once and in order (store/log.h), so a replica
 * made of these changes is at any time what the store shows. A change that the log
 * refuses has not happened. An operation waits for the changes that it has seen.
 */
#include "model/replica.h"
#include "support/finishing.h"
#include "support/patient.h"

#include <inttypes.h>

struct history {
    struct story story;
    struct replica r;
    unsigned fail_memory; /* percent */
};

static void
step(struct history *h)
{
    struct store_op op;
    size_t queue = story_below(&h->story, STORY_QUEUES);
    uint64_t changes = h->r.changes, moves = h->r.recorded[STORE_CHANGE_MOVE];
    enum status st;

    story_move_time(&h->story); /* dead letters may move */
    replica_end_step(&h->r, false);
    op = (struct store_op){.now_ms = h->story.f.now_ms};
    if (random_chance(&h->story.random, h->fail_memory))
        replica_fail_nth(&h->r, 1 + story_below(&h->story, 12));
    st = story_operate(&h->story, &op, queue);
    replica_fail_nth(&h->r, 0);
    ck_assert(store_audit(h->story.f.store));
    if (st == ST_UNAVAILABLE)
        ck_assert(h->r.refused);
    /* But for dead letters, which may have moved, a refusal changes nothing. */
    if (st != ST_OK && moves == h->r.recorded[STORE_CHANGE_MOVE])
        ck_assert_uint_eq(changes, h->r.changes);
    ck_assert_uint_le(op.lsn, h->r.lsn);
    if (st != ST_NO_MEMORY) /* which it may have said before it saw anything */
        ck_assert_msg(op.lsn >= h->r.seen[queue],
                      "at %" PRIu64 " it has seen %" PRIu64 ": %s", op.lsn,
                      h->r.seen[queue], status_name(st));
    replica_end_step(&h->r, st != ST_OK);
}

static void
open_observed(struct history *h, uint64_t seed)
{
    struct engine_config config;

    memset(&h->story, 0, sizeof(h->story));
    h->fail_memory = 0;
    h->story.f.now_ms = START_MS;
    h->story.f.mem = mem_new(0);
    config = fixture_config(h->story.f.mem);
    config.log = &h->r.observer;
    h->story.random.state = seed;
    replica_init(&h->r, &h->story.random, h->story.f.mem);
    ck_assert_status(engine_open(&config, &h->story.f.store), ST_OK);
    h->story.f.store = patient_open(h->story.f.store);
    h->story.f.queue = story_queue(0);
}

/* The first kind of change that no history had; STORE_CHANGE_KINDS: they had all. STATE
 * and FEED are left out: only checkpoints have them. */
static size_t
missing_kind(const uint64_t recorded[STORE_CHANGE_KINDS])
{
    for (size_t i = STORE_CHANGE_QUEUE; i < STORE_CHANGE_KINDS; i++) {
        if (i == STORE_CHANGE_STATE)
            i = STORE_CHANGE_RETRY;
        if (i == STORE_CHANGE_LOGGED)
            i = STORE_CHANGE_EXPIRED;
        if (recorded[i] == 0)
            return i;
    }
    return STORE_CHANGE_KINDS;
}

/* Plays histories, and a few more if they did not have all kinds of changes by chance. */
static void
run(const char *test, unsigned refuse, unsigned fail_memory)
{
    enum { HISTORY = 2000, MORE = 20 };

    struct random seeds = {random_seed(test)};
    const uint64_t operations = random_operations(6000);
    static struct history h;
    uint64_t recorded[STORE_CHANGE_KINDS] = {0}, recorded_transient = 0;

    for (uint64_t done = 0;
         done < operations ||
         ((missing_kind(recorded) < STORE_CHANGE_KINDS || recorded_transient == 0) &&
          done < operations + MORE * HISTORY);) {
        open_observed(&h, random_next(&seeds));
        h.r.refuse = refuse;
        h.fail_memory = fail_memory;
        for (uint64_t i = 1; i <= HISTORY; i++, done++) {
            step(&h);
            if (i % 10 == 0)
                replica_compare(&h.story.f, &h.r);
        }
        replica_compare(&h.story.f, &h.r);
        for (size_t i = 0; i < STORE_CHANGE_KINDS; i++)
            recorded[i] += h.r.recorded[i];
        if (refuse == 0)
            ck_assert_uint_eq(h.r.lone_keys, 0);
        recorded_transient += h.r.recorded_transient;
        fixture_close(&h.story.f);
    }
    ck_assert_msg(missing_kind(recorded) == STORE_CHANGE_KINDS,
                  "no history had a change of kind %zu", missing_kind(recorded));
    ck_assert_uint_gt(recorded_transient, 0);
}

START_TEST(a_replica_of_the_changes_is_what_the_engine_shows)
{
    run("observer", 0, 0);
}

START_TEST(a_change_refused_by_the_observer_has_not_happened)
{
    run("observer that refuses", 20, 0);
}

START_TEST(changes_refused_for_memory_are_not_observed)
{
    run("observer without memory", 5, 20);
}

/* A finish that deletes, moves a message after its last attempt, and posts. True if its
 * nth allocation exists, and fails. */
static bool
finish_without_memory(struct history *h, uint64_t nth, struct finishing *g,
                      enum status *st)
{
    struct fixture *f = &h->story.f;
    bool failed;

    open_observed(h, 1);
    make_dead_lettering(f, "a", 1, "b", STORE_UNSET);
    post(f, 2);
    *g = finishing_of(f, take(f, 2));
    then_delete(g, 1);
    then_release(g, 2, 0, "busy");
    then_post(g, "c", 1);
    replica_end_step(&h->r, false);
    replica_fail_nth(&h->r, nth);
    nth += mem_attempts(f->mem);
    *st = finish(f, g);
    failed = mem_attempts(f->mem) >= nth;
    replica_fail_nth(&h->r, 0);
    replica_end_step(&h->r, *st != ST_OK);
    replica_compare(f, &h->r);
    fixture_close(f);
    return failed;
}

START_TEST(a_finish_that_begins_again_reserves_only_what_it_changes)
{
    static struct history h;
    struct finishing g;
    size_t again = 0;
    enum status st;

    for (uint64_t nth = 1; finish_without_memory(&h, nth, &g, &st); nth++)
        again += st == ST_OK && !g.items[1].exhausted;
    ck_assert_uint_gt(again, 0);
    ck_assert_status(st, ST_OK);
    ck_assert(g.items[1].exhausted);
}

/* Posts small messages, and removes them. */
static void
use_numbers(struct fixture *f, size_t count)
{
    static struct store_draft drafts[1024];
    static struct store_id ids[1024];

    for (size_t i = 0; i < 1024; i++)
        drafts[i] = (struct store_draft){.body = bytes_str("1"), .ttl_s = 60};
    while (count > 0) {
        const struct store_post post = {.drafts = drafts,
                                        .count = count < 1024 ? count : 1024};

        ck_assert_status(
            store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &post, ids),
            ST_OK);
        ck_assert_status(store_queue_purge(f->store, STORE_AT(f->now_ms), &f->queue,
                                           STORE_PURGE_MESSAGES),
                         ST_OK);
        count -= post.count;
    }
}

/* A queue in memory gets 2^20 numbers at once. `left` of them are left when a finish
 * posts a message to it and moves one there. */
LOOP_TEST(a_finish_reserves_the_numbers_of_its_post_and_of_its_dead_letters, 2)
{
    static struct history h;
    struct fixture *f = &h.story.f;
    struct store_settings set = STORE_SETTINGS_INIT;
    const size_t left = (size_t)_i;
    struct finishing g;

    open_observed(&h, 1);
    set.transient = true;
    use(f, "c");
    make_queue(f, &set);
    use_numbers(f, (1 << 20) - left);
    make_dead_lettering(f, "a", 1, "c", STORE_UNSET);
    post(f, 1);
    g = finishing_of(f, take(f, 1));
    then_release(&g, 1, 0, "busy");
    then_post(&g, "c", 1);
    replica_end_step(&h.r, false);
    ck_assert_status(finish(f, &g), ST_OK);
    ck_assert(g.items[0].exhausted);
    replica_end_step(&h.r, false);
    fixture_close(f);
}

START_TEST(a_list_of_queues_waits_for_what_it_shows)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_page page = {.project = bytes_str("p"), .limit = 10};
    static struct history h;
    struct store_op op;

    open_observed(&h, 1);
    for (int i = 0; i < 4; i++) {
        h.story.f.queue = story_queue((size_t)i);
        make_queue(&h.story.f, NULL);
        op = (struct store_op){.now_ms = h.story.f.now_ms};
        ck_assert_status(store_queue_list(h.story.f.store, &op, &page, &queues), ST_OK);
        ck_assert_uint_eq(queues.count, (size_t)i + 1);
        ck_assert_uint_eq(op.lsn, h.r.lsn);
        store_queues_release(&queues);
    }
    delete_queue(&h.story.f); /* that something has gone is seen, too */
    op = (struct store_op){.now_ms = h.story.f.now_ms};
    ck_assert_status(store_queue_list(h.story.f.store, &op, &page, &queues), ST_OK);
    ck_assert_uint_eq(op.lsn, h.r.lsn);
    store_queues_release(&queues);
    post(&h.story.f, 1);
    op = (struct store_op){.now_ms = h.story.f.now_ms};
    ck_assert_status(store_totals(h.story.f.store, &op, &(struct store_totals){0}),
                     ST_OK);
    ck_assert_uint_eq(op.lsn, h.r.lsn);
    fixture_close(&h.story.f);
}

START_TEST(an_operation_flushes_unless_the_caller_does_it_later)
{
    struct store_draft draft = {bytes_str("1"), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct store_op op;
    struct store_id id;
    static struct history h;

    open_observed(&h, 1);
    h.story.f.queue = story_queue(0);
    op = (struct store_op){.now_ms = h.story.f.now_ms, .flush_later = true};
    ck_assert_status(
        store_message_post(h.story.f.store, &op, &h.story.f.queue, &one, &id), ST_OK);
    ck_assert_uint_eq(op.lsn, 2);
    ck_assert_uint_eq(h.r.flushed, 0);
    store_log_flush(&h.r.observer);
    ck_assert_uint_eq(h.r.flushed, 2);
    op.flush_later = false;
    ck_assert_status(
        store_message_post(h.story.f.store, &op, &h.story.f.queue, &one, &id), ST_OK);
    ck_assert_uint_eq(h.r.flushed, 3);
    fixture_close(&h.story.f);
}

START_TEST(an_operation_without_changes_waits_for_no_commit)
{
    struct store_op op;
    static struct history h;

    open_observed(&h, 1);
    h.story.f.queue = story_queue(0);
    op = (struct store_op){.now_ms = h.story.f.now_ms};
    ck_assert_status(store_queue_stats(h.story.f.store, &op, &h.story.f.queue,
                                       &(struct store_stats){0}),
                     ST_NOT_FOUND);
    ck_assert_uint_eq(op.lsn, 0);
    post(&h.story.f, 1);
    h.story.f.queue = story_queue(1); /* another one */
    make_queue(&h.story.f, NULL);
    h.story.f.queue = story_queue(0);
    op = (struct store_op){.now_ms = h.story.f.now_ms};
    ck_assert_status(store_queue_stats(h.story.f.store, &op, &h.story.f.queue,
                                       &(struct store_stats){0}),
                     ST_OK);
    ck_assert_uint_eq(op.lsn, 2); /* the queue, and its message */
    fixture_close(&h.story.f);
}
