#include "crash/crash.h"

#include "claimd/engine/engine.h"
#include "crash/world.h"
#include "support/patient.h"
#include "support/store_fixture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

enum { STEPS_MAX = 10000, TRIES = 50 };

/* ---------------------------------------------------------------------- telling people */

void
world_note(struct world *w, const char *format, ...)
{
    char *line = w->trace[w->lines++ % WORLD_TRACE];
    int len = snprintf(line, WORLD_LINE, "%+12" PRId64 " ms  ", w->now_ms - START_MS);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line + len, (size_t)(WORLD_LINE - len), format, args);
    va_end(args);
}

_Noreturn void
world_fail(struct world *w, const char *format, ...)
{
    uint64_t first = w->lines > WORLD_TRACE ? w->lines - WORLD_TRACE : 0;
    va_list args;

    for (uint64_t i = first; i < w->lines; i++)
        printf("%s\n", w->trace[i % WORLD_TRACE]);
    printf("seed %" PRIu64 ": ", w->seed);
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    abort();
}

static const char *const end_texts[] = {
#define END_TEXT(name, text) text,
    CRASH_END_LIST(END_TEXT)
#undef END_TEXT
};

static const char *const fault_texts[] = {
#define FAULT_TEXT(name, text) text,
    CRASH_FAULT_LIST(FAULT_TEXT)
#undef FAULT_TEXT
};

void
crash_print(const struct crash_metrics *f, FILE *out)
{
    fprintf(out,
            "%" PRIu64 " seeds, %" PRIu64 " lives (%" PRIu64
            " cut short in a commit), %" PRIu64 " operations (%" PRIu64
            " refused, %" PRIu64 " of them for want of room)\n%" PRIu64
            " starts, %" PRIu64 " more failed, %" PRIu64
            " from a log with a torn end\n%" PRIu64 " commits, %" PRIu64
            " sweeps; %" PRIu64 " journals gave up\n%" PRIu64
            " changes that nobody was told of were lost, %" PRIu64 " were there again\n",
            f->seeds, f->lives, f->middle, f->operations, f->refused, f->full, f->starts,
            f->starts_failed, f->torn, f->commits, f->checkpoints, f->failures, f->lost,
            f->survived);
    for (int i = 0; i < CRASH_ENDS; i++)
        fprintf(out, "%10" PRIu64 " %s\n", f->ends[i], end_texts[i]);
    for (int i = 0; i < CRASH_FAULTS; i++)
        fprintf(out, "%10" PRIu64 " lives %s\n", f->faults[i], fault_texts[i]);
}

static void
failed(void *arg, const char *text, int error)
{
    struct world *w = arg;

    world_note(w, "the journal gives up: %s (%d)", text, error);
    w->failures++;
}

/* ---------------------------------------------------------------------- beginning */

static enum status
open_store(struct world *w)
{
    struct engine_config config;
    struct store *engine;
    enum status st;

    w->mem = mem_new(0);
    config = fixture_config(w->mem);
    config.shards = (size_t)1 << random_below(&w->r, 4);
    config.seed = random_next(&w->r);
    config.now_ms = w->now_ms;
    config.log = &w->observer;
    st = engine_open(&config, &engine);
    if (st != ST_OK)
        return st;
    w->store = patient_open(engine);
    return ST_OK;
}

/* The log is read; w->now_ms is what the wall clock says. */
static enum status
recover(struct world *w)
{
    struct journal_recovery recovery = {.now_ms = w->now_ms};
    struct journal_metrics metrics;
    struct store *engine = patient_inside(w->store);
    enum status st;

    world_begin_start(w);
    st = journal_recover(w->journal, engine, &recovery, w->error);
    if (st != ST_OK) {
        world_start_failed(w);
        return st;
    }
    journal_metrics(w->journal, &metrics);
    world_started(w, metrics.durable);
    if (recovery.now_ms < w->now_ms || recovery.now_ms < w->base.now_ms)
        world_fail(w, "time went back to %+" PRId64 " ms", recovery.now_ms - START_MS);
    w->now_ms = recovery.now_ms;
    w->metrics->torn += recovery.torn;
    return ST_OK;
}

static enum status
begin(struct world *w)
{
    struct journal_config config = {.segment_bytes = w->segment_bytes,
                                    .seeded = true,
                                    .seed = random_next(&w->r),
                                    .failed = failed,
                                    .failed_arg = w};
    enum status st;

    w->process = config.disk = sim_disk_open(w->disk);
    w->failures = 0;
    w->store = NULL;
    w->mem = NULL;
    st = journal_open(&config, &w->journal, w->error);
    if (st != ST_OK) {
        w->journal = NULL;
        return st;
    }
    world_observe(w);
    st = open_store(w);
    return st == ST_OK ? recover(w) : st;
}

/* The process is over, or tidies up. */
static void
stop(struct world *w)
{
    journal_close(w->journal);
    w->journal = NULL;
    if (w->store != NULL)
        store_close(w->store);
    if (w->mem != NULL && mem_used(w->mem) != 0)
        world_fail(w, "memory is left");
    mem_destroy(w->mem);
    w->mem = NULL;
    w->store = NULL;
}

static void
look(struct world *w, bool fresh)
{
    char why[JUDGE_TEXT_CAP];

    world_begin_operation(w);
    if (!judge(w->store, &w->live, w->now_ms, fresh, why))
        world_fail(w, "%s: %s", fresh ? "after a restart" : "before any crash", why);
    if (!store_audit(w->store))
        world_fail(w, "the store's invariants do not hold");
}

/* ---------------------------------------------------------------------- what goes wrong */

static void
arm(struct world *w)
{
    static const enum sim_op others[] = {SIM_OPEN,   SIM_WRITE,      SIM_ALLOCATE,
                                         SIM_RENAME, SIM_UNLINK,     SIM_SYNC_NAMES,
                                         SIM_READ,   SIM_FREE_BYTES, SIM_LIST};
    size_t other = (size_t)random_below(&w->r, sizeof(others) / sizeof(others[0]));
    uint64_t nth = 1 + random_below(&w->r, 12);

    switch (w->fault) {
    case FAULT_LYING:
        sim_disk_set_lying(w->disk, true);
        sim_disk_fail(w->disk, SIM_SYNC, nth, EIO);
        break;
    case FAULT_SYNC:
        sim_disk_fail(w->disk, SIM_SYNC, nth, EIO);
        break;
    case FAULT_OTHER:
        sim_disk_fail(w->disk, others[other], nth, EIO);
        w->names_fail = others[other] == SIM_SYNC_NAMES;
        break;
    case FAULT_DIES:
        sim_disk_die(w->disk, 1 + random_below(&w->r, 120));
        break;
    case FAULT_SHORT:
        sim_disk_set_short(w->disk, 40);
        break;
    case FAULT_FULL:
        sim_disk_set_room(w->disk, random_below(&w->r, 5 * w->segment_bytes));
        break;
    default:
        break;
    }
}

static bool
may_give_up(const struct world *w)
{
    return w->fault != FAULT_NONE && w->fault != FAULT_SHORT;
}

/* A disk that is sound begins with what is left of one that was not. */
static void
mend(struct world *w)
{
    sim_disk_mend(w->disk);
    w->fault = FAULT_NONE;
    w->names_fail = false;
}

/* ---------------------------------------------------------------------- ends */

static void
kill_process(struct world *w, enum crash_end how)
{
    if (w->names_fail && how == CRASH_KILL)
        how = CRASH_TORN;
    w->metrics->ends[how]++;
    if (how == CRASH_TORN)
        sim_disk_crash(w->disk);
    else if (how == CRASH_LOSING)
        sim_disk_crash_losing_all(w->disk);
    else
        sim_disk_kill(w->disk);
    world_note(w, "==== %s", end_texts[how]);
    stop(w);
}

/* All that was told is durable then. */
static void
end_in_peace(struct world *w)
{
    struct journal_metrics metrics;

    w->metrics->ends[CRASH_PEACE]++;
    journal_metrics(w->journal, &metrics);
    world_note(w, "==== %s", end_texts[CRASH_PEACE]);
    stop(w);
    if (w->failures == 0)
        w->acknowledged = metrics.lsn;
    disk_shut(w->process);
    if (w->names_fail && w->failures > 0) /* while it ended */
        sim_disk_crash(w->disk);
    else if (random_chance(&w->r, 50))
        sim_disk_crash_losing_all(w->disk);
}

/* Often while a commit is under way: between its write and its sync, say. */
static bool
stop_in_the_middle(struct world *w)
{
    if (w->failures > 0 || random_chance(&w->r, 40))
        return false;
    if (random_chance(&w->r, 20))
        journal_checkpoint(w->journal);
    sim_disk_die(w->disk, random_chance(&w->r, 70) ? 2 : 1 + random_below(&w->r, 12));
    while (w->failures == 0 && journal_step(w->journal))
        continue;
    world_ask(w);
    return true;
}

static void
end(struct world *w)
{
    enum crash_end how = (enum crash_end)random_below(&w->r, CRASH_ENDS);
    struct journal_metrics metrics;

    if (how != CRASH_PEACE && stop_in_the_middle(w))
        w->metrics->middle++;
    else if (w->failures > 0 && (!may_give_up(w) || w->fault == FAULT_FULL))
        world_fail(w, "the journal gave up with nothing wrong");
    journal_metrics(w->journal, &metrics);
    w->metrics->commits += metrics.commits;
    w->metrics->checkpoints += metrics.checkpoints;
    w->metrics->failures += w->failures;
    if (how == CRASH_PEACE && w->failures == 0)
        end_in_peace(w);
    else
        kill_process(w, how == CRASH_PEACE ? CRASH_KILL : how);
}

/* ---------------------------------------------------------------------- a life */

/* Starts, however often that takes: it may die while it starts, and again. */
static void
start(struct world *w)
{
    enum status st;

    for (int tries = 0;; tries++) {
        if (tries == TRIES)
            mend(w); /* it has been patient enough */
        st = begin(w);
        w->metrics->starts++;
        if (st == ST_OK)
            return;
        w->metrics->starts--;
        w->metrics->starts_failed++;
        if (st != ST_IO || !may_give_up(w))
            world_fail(w, "it does not start: %s, %s", status_name(st), w->error);
        kill_process(w, (enum crash_end)random_below(&w->r, CRASH_PEACE));
        mend(w);
        if (random_chance(&w->r, 30)) {
            w->fault = random_chance(&w->r, 50) ? FAULT_DIES : FAULT_SYNC;
            arm(w);
        }
    }
}

/* Often to the very instant when something ends, or beside it. */
static int64_t
some_deadline(struct world *w)
{
    const struct replica_queue *q;

    if (w->live.count == 0)
        return 0;
    q = &w->live.queues[random_below(&w->r, w->live.count)];
    if (q->claim_count > 0 && random_chance(&w->r, 50))
        return q->claims[random_below(&w->r, q->claim_count)].ends_ms;
    if (q->count > 0)
        return q->messages[random_below(&w->r, q->count)].expires_ms;
    return 0;
}

static void
move_time(struct world *w)
{
    int64_t deadline = random_chance(&w->r, 15) ? some_deadline(w) : 0;

    if (deadline > w->now_ms && deadline < w->now_ms + 86400000)
        w->now_ms = deadline - random_between(&w->r, 0, 1);
    else if (random_chance(&w->r, 80))
        w->now_ms += random_between(&w->r, 0, 50);
    else
        w->now_ms += random_between(&w->r, 0, random_once_in(&w->r, 10) ? 600000 : 5000);
}

static void
commit_some(struct world *w)
{
    int steps = random_chance(&w->r, 50) ? 1 : STEPS_MAX, n = 0;

    while (n < steps && journal_step(w->journal))
        n++;
    if (n == STEPS_MAX)
        world_fail(w, "the journal never comes to an end");
}

static void
work(struct world *w)
{
    if (random_chance(&w->r, 40))
        move_time(w);
    world_operate(w);
    if (random_chance(&w->r, w->fault == FAULT_FULL ? 8 : 30)) /* much at once */
        commit_some(w);
    if (random_chance(&w->r, 3))
        journal_seal(w->journal);
    if (random_chance(&w->r, w->checkpoint_percent))
        journal_checkpoint(w->journal);
    if (random_chance(&w->r, 20))
        world_ask(w);
    if (random_chance(&w->r, 2))
        look(w, false);
}

/* While it was down time went on, stood still, or was set back. */
static void
be_down(struct world *w)
{
    if (random_chance(&w->r, 20))
        w->now_ms -= random_between(&w->r, 0, 3600000);
    else if (random_chance(&w->r, 50))
        w->now_ms += random_between(&w->r, 0, 20000);
}

static void
live(struct world *w)
{
    uint64_t operations = random_below(&w->r, w->operations);
    bool early = random_chance(&w->r, 50);

    w->metrics->lives++;
    w->fault = random_chance(&w->r, 40)
                   ? FAULT_NONE
                   : (enum crash_fault)random_below(&w->r, CRASH_FAULTS);
    w->metrics->faults[w->fault]++;
    if (early)
        arm(w);
    start(w);
    look(w, true);
    if (!early)
        arm(w);
    for (uint64_t i = 0; i < operations && w->failures == 0; i++)
        work(w);
    world_ask(w);
    end(w);
    mend(w);
    be_down(w);
}

/* Each seed has other amounts of everything. */
static void
choose_amounts(struct world *w)
{
    static const uint64_t operations[] = {20, 60, 100, 400}, large[] = {3, 20, 100};
    static const unsigned checkpoints[] = {0, 2, 10}, lives[] = {4, 8, 8, 20};

    w->lives = lives[random_below(&w->r, 4)];
    w->segment_bytes = UINT64_C(65536) << random_below(&w->r, 3);
    w->operations = operations[random_below(&w->r, 4)];
    w->large_once_in = large[random_below(&w->r, 3)];
    w->checkpoint_percent = checkpoints[random_below(&w->r, 3)];
}

void
crash_run(uint64_t seed, struct crash_metrics *metrics)
{
    struct world *w = calloc(1, sizeof(*w));

    if (w == NULL)
        abort();
    w->r.state = w->seed = seed;
    w->metrics = metrics;
    w->now_ms = START_MS;
    choose_amounts(w);
    w->disk = sim_disk_new(random_next(&w->r));
    metrics->seeds++;
    for (unsigned i = 0; i < w->lives; i++)
        live(w);
    sim_disk_free(w->disk);
    world_tell_fini(w);
    free(w);
}
