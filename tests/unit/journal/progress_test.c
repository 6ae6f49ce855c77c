/* The progress that a recovery reports, with a stopwatch that moves with each change
 * that it replays. */
#include "claimd/ds/list.h"
#include "claimd/journal/journal.h"

#include "journal/segment.h"
#include "support/sim_disk.h"
#include "support/store_fixture.h"

/* SEGMENT: its bytes. A life posts so many messages, each in a frame of its own. */
enum { SEGMENT = 64 * 1024, LIVES = 3, POSTS = 5, REPORTED_MAX = 32 };

/* A store that takes its time. */
struct slow {
    struct store store;
    struct store *inner; /* borrowed */
    struct clock stopwatch;
    int64_t step_ms; /* that a change takes */
};

struct world {
    struct sim_disk *disk;
    struct journal *journal;
    struct fixture f;
    struct slow slow;
    uint64_t lives;
    struct journal_progress reported[REPORTED_MAX];
    size_t count; /* of them */
};

static struct slow *
slow_of(struct store *s)
{
    return container_of(s, struct slow, store);
}

static enum status
replay(struct store *s, struct store_change *change)
{
    clock_advance(&slow_of(s)->stopwatch, slow_of(s)->step_ms);
    return store_replay(slow_of(s)->inner, change);
}

static void
replay_marks(struct store *s, const struct store_marks *marks)
{
    store_replay_marks(slow_of(s)->inner, marks);
}

static enum status
replay_end(struct store *s, int64_t now_ms)
{
    return store_replay_end(slow_of(s)->inner, now_ms);
}

static void
marks(struct store *s, struct store_marks *out)
{
    store_used_marks(slow_of(s)->inner, out);
}

static void
live(struct store *s, struct store_live *out)
{
    store_live(slow_of(s)->inner, out);
}

/* The log has few segments: nothing is in a checkpoint. */
static const struct store_state_vtable slow_state_ops = {.replay = replay,
                                                         .replay_marks = replay_marks,
                                                         .replay_end = replay_end,
                                                         .marks = marks,
                                                         .live = live};

static void
note(void *arg, const struct journal_progress *progress)
{
    struct world *w = arg;

    ck_assert_uint_lt(w->count, REPORTED_MAX);
    w->reported[w->count++] = *progress;
}

/* A process begins, whose recovery takes step_ms for each change. */
static void
start(struct world *w, int64_t step_ms)
{
    struct journal_config config = {.disk = sim_disk_open(w->disk),
                                    .segment_bytes = SEGMENT,
                                    .seeded = true,
                                    .seed = ++w->lives,
                                    .progress = note,
                                    .progress_arg = w,
                                    .stopwatch = &w->slow.stopwatch};
    struct journal_recovery recovery = {.now_ms = START_MS};
    char error[JOURNAL_ERROR_CAP];
    struct engine_config engine;

    w->slow = (struct slow){.store.state = &slow_state_ops, .step_ms = step_ms};
    clock_init_manual(&w->slow.stopwatch, START_MS);
    w->count = 0;
    ck_assert_status(journal_open(&config, &w->journal, error), ST_OK);
    w->f.mem = mem_new(0);
    engine = fixture_config(w->f.mem);
    engine.seed = w->lives;
    engine.log = journal_log(w->journal);
    ck_assert_status(engine_open(&engine, &w->f.store), ST_OK);
    w->slow.inner = w->f.store;
    ck_assert_status(journal_recover(w->journal, &w->slow.store, &recovery, error),
                     ST_OK);
}

static void
stop(struct world *w)
{
    journal_close(w->journal);
    store_batch_release(&w->f.seen);
    store_close(w->f.store);
    mem_destroy(w->f.mem);
}

/* A journal of LIVES segments is there, and not in use. */
static void
open_world(struct world *w)
{
    memset(w, 0, sizeof(*w));
    w->disk = sim_disk_new(1);
    w->f.now_ms = START_MS;
    w->f.queue = (struct store_queue){.project = bytes_str("p"), .name = bytes_str("q")};
    for (int life = 0; life < LIVES; life++) {
        start(w, 0);
        for (int i = 0; i < POSTS; i++) {
            post(&w->f, 1);
            while (journal_step(w->journal))
                continue;
        }
        stop(w);
    }
}

static void
close_world(struct world *w)
{
    stop(w);
    sim_disk_free(w->disk);
}

START_TEST(a_replay_reports_its_progress_once_a_second)
{
    uint64_t of_bytes;
    struct world w;

    open_world(&w);
    of_bytes = sim_disk_bytes(w.disk) - SEGMENT_SPARES_MOST * SEGMENT - DURABLE_LSN_BYTES;
    start(&w, 400); /* the queue and 15 posts: 6.4 s */
    ck_assert_uint_eq(w.count, 5);
    for (size_t i = 0; i < w.count; i++) {
        const struct journal_progress *p = &w.reported[i];
        uint64_t changes = 3 * (i + 1); /* the first is the queue */

        ck_assert_int_eq(p->elapsed_ms, 400 * (int64_t)changes);
        ck_assert_uint_eq(p->messages, changes - 1);
        ck_assert_uint_eq(p->segments, (p->messages - 1) / POSTS);
        ck_assert_uint_eq(p->of_segments, LIVES);
        ck_assert_uint_gt(p->bytes, i == 0 ? 0 : w.reported[i - 1].bytes);
        ck_assert_uint_lt(p->bytes, p->of_bytes);
        ck_assert_uint_eq(p->of_bytes, of_bytes);
        /* A mark in front of them in each segment, and one at its end. */
        ck_assert_uint_eq(p->records, changes + p->segments * 2 + 1);
    }
    close_world(&w);
}

START_TEST(the_remaining_time_is_estimated_by_bytes)
{
    const struct journal_progress *p;
    struct world w;

    open_world(&w);
    start(&w, 400);
    ck_assert_uint_eq(w.count, 5);
    for (p = w.reported; p < w.reported + w.count; p++) {
        double all_ms = (double)p->elapsed_ms * (double)p->of_bytes / (double)p->bytes;

        ck_assert_int_gt(p->left_ms, 0);
        ck_assert_double_eq_tol((double)(p->elapsed_ms + p->left_ms), all_ms, 1.0);
    }
    close_world(&w);
}

START_TEST(a_recovery_under_a_second_is_not_logged)
{
    struct world w;

    open_world(&w);
    start(&w, 62); /* 992 ms */
    ck_assert_uint_eq(w.count, 0);
    close_world(&w);
}
