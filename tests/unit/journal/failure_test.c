/*
 * Allocations and calls of the disk that fail, each in its turn: every caller that has to
 * do with a journal says so, or does without, and what was durable is there afterwards.
 */
#include "claimd/journal/inspect.h"

#include "support/sim_disk.h"
#include "support/store_fixture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* LIVES of the process, with so many POSTS each: a RUN is logged with the fourth one. */
enum { LIVES = 3, POSTS = 4 };

enum { SEGMENT = 64 * 1024 };

/* ------------------------------------------------------------------ the system */

/* Replacements for malloc(), calloc() and realloc() (linked so by CMake). */
static struct {
    bool armed;
    bool from_then_on; /* all that follow fail as well */
    uint64_t nth, seen;
} memory;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);

static bool
is_refused(void)
{
    if (!memory.armed)
        return false;
    memory.seen++;
    return memory.seen == memory.nth || (memory.from_then_on && memory.seen > memory.nth);
}

void *
__wrap_malloc(size_t size)
{
    return is_refused() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
    return is_refused() ? NULL : __real_calloc(count, size);
}

void *
__wrap_realloc(void *block, size_t size)
{
    return is_refused() ? NULL : __real_realloc(block, size);
}

/* ------------------------------------------------------------------ a disk of its own */

/* The simulated disk, whose own memory is not what is tested. */
struct aside {
    struct disk disk;
    struct disk *inside;
};

static struct disk *
inside_of(struct disk *d)
{
    return container_of(d, struct aside, disk)->inside;
}

/* Calls a function of the disk inside, whose memory never fails. */
#define ASIDE(name, parameters, ...)                                                     \
    static int aside_##name parameters                                                   \
    {                                                                                    \
        bool armed = memory.armed;                                                       \
        int error;                                                                       \
                                                                                         \
        memory.armed = false;                                                            \
        error = inside_of(d)->vtable->name(inside_of(d), __VA_ARGS__);                   \
        memory.armed = armed;                                                            \
        return error;                                                                    \
    }

#define FILE_OF struct disk *d, struct disk_file *f

ASIDE(open,
      (struct disk * d, const char *name, enum disk_mode mode, struct disk_file **out),
      name, mode, out)
ASIDE(read, (FILE_OF, uint64_t offset, void *to, size_t len, size_t *got), f, offset, to,
      len, got)
ASIDE(write, (FILE_OF, uint64_t offset, const void *from, size_t len, size_t *done), f,
      offset, from, len, done)
ASIDE(sync, (FILE_OF), f)
ASIDE(allocate, (FILE_OF, uint64_t size), f, size)
ASIDE(cut, (FILE_OF, uint64_t size), f, size)
ASIDE(size, (FILE_OF, uint64_t *out), f, out)
ASIDE(rename, (struct disk * d, const char *from, const char *to), from, to)
ASIDE(unlink, (struct disk * d, const char *name), name)
ASIDE(list, (struct disk * d, void (*each)(void *arg, const char *name), void *arg), each,
      arg)
ASIDE(lock, (struct disk * d, const char *name, struct disk_file **out), name, out)
ASIDE(check_lock, (struct disk * d, const char *name, const struct disk_file *f), name, f)
ASIDE(free_bytes, (struct disk * d, uint64_t *out), out)

static int
aside_sync_names(struct disk *d)
{
    bool armed = memory.armed;
    int error;

    memory.armed = false;
    error = inside_of(d)->vtable->sync_names(inside_of(d));
    memory.armed = armed;
    return error;
}

static void
aside_close(struct disk *d, struct disk_file *f)
{
    inside_of(d)->vtable->close(inside_of(d), f);
}

static void
aside_forget(struct disk *d, struct disk_file *f)
{
    inside_of(d)->vtable->forget(inside_of(d), f);
}

static const struct disk_vtable aside_ops = {
    .open = aside_open,
    .close = aside_close,
    .read = aside_read,
    .write = aside_write,
    .sync = aside_sync,
    .allocate = aside_allocate,
    .cut = aside_cut,
    .size = aside_size,
    .forget = aside_forget,
    .rename = aside_rename,
    .unlink = aside_unlink,
    .list = aside_list,
    .sync_names = aside_sync_names,
    .lock = aside_lock,
    .check_lock = aside_check_lock,
    .free_bytes = aside_free_bytes,
};

static struct aside
open_aside(struct sim_disk *sd)
{
    bool armed = memory.armed;
    struct aside aside = {.disk = {&aside_ops}};

    memory.armed = false;
    aside.inside = sim_disk_open(sd);
    memory.armed = armed;
    return aside;
}

/* ------------------------------------------------------------------ deeds */

/* Operations on a journal, and their results. */
struct deed {
    struct sim_disk *disk, *other; /* the journal's; an empty one */
    uint64_t seed;
    char error[JOURNAL_ERROR_CAP];
    uint64_t posted; /* messages that a response would have acknowledged */
    uint64_t total;  /* messages that were there, if it is known */
};

typedef enum status deed_fn(struct deed *deed);

static const struct store_queue queue_q = {.project = {"p", 1}, .name = {"q", 1}};

/* Posts and claims and deletes; counts what is durable. */
static void
use_store(struct deed *deed, struct store *store, struct journal *j)
{
    struct store_draft draft = {bytes_str("\"another\""), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct store_terms terms = {.ttl_s = 300, .grace_s = 60};

    for (int i = 0; i < POSTS; i++) {
        struct store_op op = {.now_ms = START_MS + 10 * i};
        struct store_batch batch = STORE_BATCH_INIT;
        struct store_id id;
        bool posted = store_message_post(store, &op, &queue_q, &one, &id) == ST_OK;

        if (i == 0) /* so others can be unloaded */
            (void)store_claim_create(store, STORE_AT(op.now_ms), &queue_q, &terms, 2,
                                     &batch);
        store_batch_release(&batch);
        if (i == 1)
            journal_checkpoint(j);
        while (journal_write_runs(j))
            continue;
        while (journal_step(j))
            continue;
        deed->posted +=
            posted && store_log_durability(journal_log(j), op.lsn) == STORE_DURABLE;
    }
}

static enum status
run_store(struct deed *deed, struct journal *j, struct store *store)
{
    struct journal_recovery recovery = {.now_ms = START_MS, .accept_clock = true};
    struct store_totals totals = {.messages = 0};
    enum status st = journal_recover(j, store, &recovery, deed->error);

    if (st != ST_OK)
        return st;
    if (store_totals(store, STORE_AT(START_MS), &totals) == ST_OK)
        deed->total = totals.messages;
    use_store(deed, store, j);
    return ST_OK;
}

static enum status
run_journal(struct deed *deed, struct journal *j)
{
    struct mem *mem = mem_new(0);
    struct engine_config config;
    struct store *store;
    enum status st;

    if (mem == NULL) {
        journal_close(j);
        return ST_NO_MEMORY;
    }
    config = fixture_config(mem);
    config.seed = deed->seed;
    config.log = journal_log(j);
    config.runs = journal_runs(j);
    config.unload_all = true;
    st = engine_open(&config, &store);
    if (st == ST_OK)
        st = run_store(deed, j, store);
    else
        store = NULL;
    journal_close(j);
    store_close(store);
    mem_destroy(mem);
    return st;
}

/* A process: it starts, works and ends. */
static enum status
serve(struct deed *deed)
{
    struct aside aside = open_aside(deed->disk);
    struct journal_config config = {.disk = &aside.disk,
                                    .segment_bytes = SEGMENT,
                                    .seeded = true,
                                    .seed = ++deed->seed};
    struct journal *j;
    enum status st = journal_open(&config, &j, deed->error);

    return st == ST_OK ? run_journal(deed, j) : st;
}

static enum status
verify(struct deed *deed)
{
    struct aside aside = open_aside(deed->disk);
    struct journal_callbacks callbacks = {.arg = NULL};
    struct journal_findings found = {.now_ms = START_MS};
    struct mem *mem = mem_new(0);
    struct engine_config config;
    struct journal_bodies *bodies;
    struct store *store = NULL;
    enum status st;

    if (mem == NULL)
        return ST_NO_MEMORY;
    config = fixture_config(mem);
    st = journal_bodies_open(&aside.disk, &bodies);
    if (st == ST_OK) {
        config.runs = journal_bodies_runs(bodies);
        config.backlog_memory = UINT64_MAX;
        st = engine_open(&config, &store);
    }
    if (st == ST_OK)
        st = journal_verify(bodies, store, &callbacks, &found, deed->error);
    journal_bodies_close(bodies);
    store_close(store);
    mem_destroy(mem);
    return st;
}

static enum status
show(struct deed *deed)
{
    struct aside aside = open_aside(deed->disk);
    struct journal_callbacks callbacks = {.arg = NULL};
    struct journal_findings found;

    return journal_show(&aside.disk, false, 0, &callbacks, &found, deed->error);
}

static enum status
salvage(struct deed *deed)
{
    struct aside from = open_aside(deed->disk);
    struct aside to = open_aside(deed->other);
    struct journal_callbacks callbacks = {.arg = NULL};
    struct journal_findings found;

    return journal_salvage(&from.disk, &to.disk, SEGMENT, &callbacks, &found,
                           deed->error);
}

static enum status
backup(struct deed *deed)
{
    struct aside from = open_aside(deed->disk);
    struct aside to = open_aside(deed->other);
    struct journal_linker linker = {.arg = NULL};
    struct journal_backup_result metrics;

    return journal_backup(&from.disk, &to.disk, &linker, &metrics, deed->error);
}

/* Whether the other disk has a journal afterwards that is whole. */
static const struct {
    deed_fn *run;
    bool copies;
} deeds[] = {
    {serve, false}, {verify, false}, {show, false}, {salvage, true}, {backup, true}};

enum { DEEDS = sizeof(deeds) / sizeof(deeds[0]) };

/* ------------------------------------------------------------------ the tests */

static bool
count_run(void *arg, const struct journal_entry *entry)
{
    *(unsigned *)arg += entry->change != NULL && entry->change->kind == STORE_CHANGE_RUN;
    return true;
}

/* A journal of some segments, with a body file. */
static struct sim_disk *
make_journal(uint64_t *total)
{
    struct deed deed = {.disk = sim_disk_new(1)};
    unsigned runs = 0;
    struct journal_callbacks callbacks = {.entry = count_run, .arg = &runs};
    struct journal_findings found;

    for (int life = 0; life < LIVES; life++)
        ck_assert_status(serve(&deed), ST_OK);
    ck_assert_uint_eq(deed.posted, LIVES * POSTS);
    ck_assert_status(
        journal_show(sim_disk_open(deed.disk), false, 0, &callbacks, &found, deed.error),
        ST_OK);
    ck_assert_uint_gt(runs, 0);
    *total = deed.posted;
    return deed.disk;
}

/* The messages that a start finds. */
static uint64_t
messages_of(struct sim_disk *disk)
{
    struct deed deed = {.disk = disk, .seed = 1000};

    ck_assert_msg(serve(&deed) == ST_OK, "%s", deed.error);
    return deed.total;
}

static void
begin(struct deed *deed, struct sim_disk *journal, uint64_t seed)
{
    *deed = (struct deed){
        .disk = sim_disk_copy(journal, seed), .other = sim_disk_new(seed), .seed = seed};
}

/* It did what it should, or said why not; and nothing is lost. */
static void
judge(struct deed *deed, size_t i, enum status st, uint64_t total, uint64_t nth)
{
    uint64_t most = total + (deeds[i].run == serve ? POSTS : 0), found;

    sim_disk_mend(deed->disk);
    sim_disk_mend(deed->other);
    if (st != ST_OK)
        ck_assert_uint_gt(strlen(deed->error), 0);
    sim_disk_crash_losing_all(deed->disk);
    found = messages_of(deed->disk);
    ck_assert_msg(found >= total + deed->posted && found <= most,
                  "deed %zu, %" PRIu64 ": %" PRIu64 " messages", i, nth, found);
    if (deeds[i].copies && st == ST_OK) {
        sim_disk_crash_losing_all(deed->other);
        ck_assert_uint_eq(messages_of(deed->other), total);
    }
    sim_disk_free(deed->disk);
    sim_disk_free(deed->other);
}

/* Fails one allocation after the other; returns how often that was reported. */
static uint64_t
without_memory(struct sim_disk *journal, size_t i, uint64_t total)
{
    uint64_t reported = 0;
    bool reached = true;

    for (uint64_t nth = 1; reached; nth++) {
        struct deed deed;
        enum status st;

        begin(&deed, journal, nth);
        memory.nth = nth;
        memory.seen = 0;
        memory.armed = true;
        st = deeds[i].run(&deed);
        memory.armed = false;
        reached = memory.seen >= nth;
        ck_assert_msg(reached || st == ST_OK, "deed %zu: %s", i, deed.error);
        /* It is no damage of the journal. */
        ck_assert_msg(st == ST_OK || st == ST_NO_MEMORY || st == ST_IO,
                      "deed %zu: %s: %s", i, status_name(st), deed.error);
        if (st != ST_OK)
            (void)snprintf(deed.error, sizeof(deed.error), "%s", status_text(st));
        reported += st != ST_OK;
        judge(&deed, i, st, total, nth);
    }
    return reported;
}

START_TEST(each_allocation_may_fail)
{
    uint64_t total;
    struct sim_disk *journal = make_journal(&total);

    for (size_t i = 0; i < DEEDS; i++) {
        memory.from_then_on = false;
        ck_assert_uint_gt(without_memory(journal, i, total), 0);
        memory.from_then_on = true;
        ck_assert_uint_gt(without_memory(journal, i, total), 0);
    }
    sim_disk_free(journal);
}

/* Fails one call of this kind after the other; returns how many there were. */
static uint64_t
without_disk(struct sim_disk *journal, size_t i, uint64_t total, enum sim_op op,
             int error, bool other)
{
    uint64_t nth = 0, before, calls;

    do {
        struct deed deed;
        struct sim_disk *disk;
        enum status st;

        begin(&deed, journal, ++nth);
        disk = other ? deed.other : deed.disk;
        before = sim_disk_stats(disk)->ops[op];
        sim_disk_fail(disk, op, nth, error);
        st = deeds[i].run(&deed);
        calls = sim_disk_stats(disk)->ops[op] - before;
        ck_assert_msg(calls >= nth || st == ST_OK, "deed %zu: %s", i, deed.error);
        judge(&deed, i, st, total, nth);
    } while (calls >= nth);
    return nth - 1;
}

LOOP_TEST(each_call_of_the_disk_may_fail, 2)
{
    static const int errors[] = {ENOSPC, EIO};
    uint64_t total, failed[SIM_OPS] = {0};
    struct sim_disk *journal = make_journal(&total);

    for (size_t i = 0; i < DEEDS; i++) {
        for (enum sim_op op = 0; op < SIM_OPS; op++) {
            failed[op] += without_disk(journal, i, total, op, errors[_i], false);
            if (deeds[i].copies)
                failed[op] += without_disk(journal, i, total, op, errors[_i], true);
        }
    }
    for (enum sim_op op = 0; op < SIM_OPS; op++)
        ck_assert_msg(failed[op] > 0, "no call of kind %d has failed", (int)op);
    sim_disk_free(journal);
}
