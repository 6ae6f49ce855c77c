/*
 * Body files as the offline readers see them: verify, salvage, log and backup of a
 * journal whose store unloads every message that it can, also with damaged and missing
 * files. A start refuses these.
 */
#include "claimd/journal/inspect.h"

#include "journal/journal_private.h"
#include "model/same.h"
#include "support/journalled.h"
#include "support/patient.h"
#include "support/store_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEGMENT = 64 * 1024 };

struct world {
    struct sim_disk *disk;
    struct journalled p;
    struct fixture f;
};

/* The records and the damage that were reported. */
struct seen {
    struct journal_callbacks callbacks;
    struct journal_findings found;
    unsigned damages, runs, states, files_gone;
    char name[DISK_NAME_CAP], what[1024]; /* of the last damage */
};

/* ------------------------------------------------------------------ a journal */

static void
start(struct world *w)
{
    journalled_start(&w->p, w->f.now_ms);
    w->f.mem = w->p.mem;
    w->f.store = w->p.store;
}

static void
begin_at(struct world *w, struct sim_disk *disk, int64_t now_ms)
{
    *w = (struct world){
        .disk = disk,
        .p = {.disk = disk, .segment_bytes = SEGMENT, .unload = true, .seed = 1},
        .f = {.now_ms = now_ms,
              .queue = {.project = bytes_str("p"), .name = bytes_str("q")},
              .projects = {"p"}}};
    start(w);
}

static void
begin(struct world *w, struct sim_disk *disk)
{
    begin_at(w, disk, START_MS);
}

static void
stop(struct world *w)
{
    store_batch_release(&w->f.seen);
    journalled_stop(&w->p);
}

static void
close_world(struct world *w)
{
    stop(w);
    sim_disk_free(w->disk);
}

/* Writes what can be unloaded, logs that, and removes files without runs. */
static void
unload(struct world *w)
{
    for (int i = 0; i < 4; i++) {
        journalled_commit(&w->p);
        while (journal_load_run(w->p.journal))
            continue;
        journal_idle(w->p.journal);
        (void)housekeep(&w->f);
        wait_s(&w->f, 1);
    }
    journalled_commit(&w->p);
}

/* Two queues with unloaded messages, of which some are claimed. A RUN can be logged after
 * the first frame of a segment that permits it. */
static void
unloaded_messages(struct world *w)
{
    begin(w, sim_disk_new(1));
    post(&w->f, 150);
    use(&w->f, "other");
    post(&w->f, 69);
    journalled_commit(&w->p);
    post(&w->f, 1);
    unload(w);
    use(&w->f, "q");
    (void)take(&w->f, 3);
    journalled_commit(&w->p);
}

struct files {
    uint32_t first, count;
};

static void
note_file(void *arg, const char *name)
{
    struct files *files = arg;
    const uint32_t number = body_file_number(name);

    if (number == 0)
        return;
    files->count++;
    if (files->first == 0 || number < files->first)
        files->first = number;
}

static uint32_t
body_files(struct sim_disk *disk, char name[DISK_NAME_CAP])
{
    struct files files = {0};

    ck_assert_int_eq(disk_list(sim_disk_open(disk), note_file, &files), 0);
    if (name != NULL)
        body_file_name(name, files.first);
    return files.count;
}

/* ------------------------------------------------------------------ readers */

static void
see_damage(void *arg, const struct journal_damage *damage)
{
    struct seen *seen = arg;

    seen->damages++;
    (void)snprintf(seen->name, sizeof(seen->name), "%s", damage->name);
    (void)snprintf(seen->what, sizeof(seen->what), "%s", damage->what);
}

static bool
see_entry(void *arg, const struct journal_entry *entry)
{
    struct seen *seen = arg;

    seen->runs += entry->change != NULL && entry->change->kind == STORE_CHANGE_RUN &&
                  entry->change->run->stored != 0;
    seen->states += entry->change != NULL && entry->change->kind == STORE_CHANGE_STATE;
    seen->files_gone += entry->file > 0;
    return true;
}

static void
init_seen(struct seen *seen, int64_t now_ms)
{
    *seen = (struct seen){.callbacks = {NULL, see_damage, see_entry, seen},
                          .found.now_ms = now_ms};
}

/* A store that was opened for a verification. */
struct verified {
    struct mem *mem;
    struct journal_bodies *bodies;
    struct store *store;
    struct seen seen;
};

static void
load_all(void *bodies)
{
    char error[JOURNAL_ERROR_CAP];

    ck_assert_status(journal_bodies_load(bodies, error), ST_OK);
}

static enum status
verify_status(struct verified *v, struct sim_disk *disk, int64_t now_ms,
              char error[JOURNAL_ERROR_CAP])
{
    struct engine_config config;
    struct store *store;
    enum status st;

    init_seen(&v->seen, now_ms);
    v->mem = mem_new(0);
    config = fixture_config(v->mem);
    ck_assert_status(journal_bodies_open(sim_disk_open(disk), &v->bodies), ST_OK);
    config.runs = journal_bodies_runs(v->bodies);
    config.backlog_memory = UINT64_MAX;
    ck_assert_status(engine_open(&config, &store), ST_OK);
    st = journal_verify(v->bodies, store, &v->seen.callbacks, &v->seen.found, error);
    ck_assert_uint_eq(v->seen.damages, v->seen.found.damages);
    v->store = patient_open(store);
    patient_between(v->store, load_all, v->bodies);
    return st;
}

static void
verify(struct verified *v, struct sim_disk *disk, int64_t now_ms)
{
    char error[JOURNAL_ERROR_CAP] = "";

    ck_assert_msg(verify_status(v, disk, now_ms, error) == ST_OK, "%s", error);
    ck_assert(v->seen.found.replayed);
}

static uint64_t
messages_of(struct store *store, int64_t now_ms)
{
    struct store_totals totals;

    ck_assert_status(store_totals(store, STORE_AT(now_ms), &totals), ST_OK);
    return totals.messages;
}

static void
end_verify(struct verified *v)
{
    journal_bodies_close(v->bodies);
    store_close(v->store);
    mem_destroy(v->mem);
}

static void
salvage(struct sim_disk *from, struct sim_disk *to, struct seen *seen)
{
    char error[JOURNAL_ERROR_CAP] = "";

    init_seen(seen, START_MS);
    ck_assert_msg(journal_salvage(sim_disk_open(from), sim_disk_open(to), SEGMENT,
                                  &seen->callbacks, &seen->found, error) == ST_OK,
                  "%s", error);
    ck_assert_uint_eq(seen->damages, seen->found.damages);
    sim_disk_crash_losing_all(to);
}

static void
back_up(struct world *w, struct sim_disk *to, const struct journal_linker *linker,
        struct journal_backup_result *made)
{
    char error[JOURNAL_ERROR_CAP] = "";

    ck_assert_msg(journal_backup(sim_disk_open(w->disk), sim_disk_open(to), linker, made,
                                 error) == ST_OK,
                  "%s", error);
    sim_disk_crash_losing_all(to);
}

static void
show(struct sim_disk *disk, struct seen *seen)
{
    char error[JOURNAL_ERROR_CAP] = "";

    init_seen(seen, START_MS);
    ck_assert_msg(journal_show(sim_disk_open(disk), true, 0, &seen->callbacks,
                               &seen->found, error) == ST_OK,
                  "%s", error);
}

/* A claimd starts with this disk, which it takes, and has the same as the other one. */
static void
expect_starts_same(struct world *w, struct sim_disk *disk)
{
    struct world copy;

    begin_at(&copy, disk, w->f.now_ms);
    (void)expect_same(w->p.store, copy.p.store, w->f.now_ms, w->f.projects);
    close_world(&copy);
}

#define WORLD_TEST(id)                                                                   \
    FIXTURE_TEST_AS(id, struct world, w, unloaded_messages(w), close_world(w))

/* ------------------------------------------------------------------ whole ones */

WORLD_TEST(a_journal_with_body_files_is_good_and_is_not_changed)
{
    const uint64_t written = sim_disk_stats(w->disk)->bytes_written;
    const size_t files = sim_disk_files(w->disk);
    struct verified v;

    ck_assert_uint_eq(body_files(w->disk, NULL), 1);
    verify(&v, w->disk, w->f.now_ms);
    ck_assert_uint_eq(v.seen.damages, 0);
    ck_assert_uint_eq(messages_of(v.store, w->f.now_ms), 220);
    (void)expect_same(w->p.store, v.store, w->f.now_ms, w->f.projects);
    end_verify(&v);
    ck_assert_uint_eq(sim_disk_stats(w->disk)->bytes_written, written);
    ck_assert_uint_eq(sim_disk_files(w->disk), files);
}

WORLD_TEST(the_log_shows_runs_and_files_that_are_gone)
{
    struct seen seen;

    purge(&w->f);
    use(&w->f, "other");
    purge(&w->f);
    unload(w);
    ck_assert_uint_eq(body_files(w->disk, NULL), 0);
    show(w->disk, &seen);
    ck_assert_uint_ge(seen.runs, 4);
    ck_assert_uint_eq(seen.files_gone, 1);
}

WORLD_TEST(a_salvage_puts_the_messages_into_segments)
{
    struct sim_disk *out = sim_disk_new(2);
    struct segment_head head;
    struct seen seen;
    uint8_t *bytes;
    size_t len;

    salvage(w->disk, out, &seen);
    ck_assert_uint_eq(seen.damages, 0);
    ck_assert_uint_eq(body_files(out, NULL), 0);
    bytes = sim_disk_get(out, "0000000000000001.log", &len);
    ck_assert_int_eq(segment_head_read(bytes, &head), SEGMENT_GOOD);
    ck_assert_uint_eq(head.required, 0);
    free(bytes);
    expect_starts_same(w, out);
}

/* A RUN of a checkpoint repeats what the copy has already, and later changes stay. */
WORLD_TEST(a_salvage_copies_a_repeated_run_once)
{
    struct sim_disk *out = sim_disk_new(2);
    struct journal_metrics metrics;
    struct seen before, seen;

    show(w->disk, &before);
    do {
        journal_checkpoint(w->p.journal);
        unload(w);
        journal_metrics(w->p.journal, &metrics);
    } while (metrics.checkpoints == 0);
    (void)take(&w->f, 2);
    journalled_commit(&w->p);
    show(w->disk, &seen);
    ck_assert_uint_ge(seen.runs, before.runs + 5);
    salvage(w->disk, out, &seen);
    ck_assert_uint_eq(seen.damages, 0);
    show(out, &seen);
    ck_assert_uint_ge(seen.states, 220);
    ck_assert_uint_lt(seen.states, 300);
    expect_starts_same(w, out);
}

/* 0: its messages were purged. 1: they expired, which no record says. */
LOOP_TEST(a_file_that_is_gone_is_no_damage, 2)
{
    struct sim_disk *out = sim_disk_new(2);
    struct verified v;
    struct seen seen;
    struct world w;

    unloaded_messages(&w);
    if (_i == 1)
        wait_s(&w.f, 4000);
    purge(&w.f);
    use(&w.f, "other");
    if (_i == 0)
        purge(&w.f);
    unload(&w);
    ck_assert_uint_eq(body_files(w.disk, NULL), 0);
    for (int i = 0; i < 5; i++) {
        post(&w.f, 1); /* a later search finds the block of the first one */
        unload(&w);
    }
    ck_assert_uint_eq(body_files(w.disk, NULL), 1);
    verify(&v, w.disk, w.f.now_ms);
    ck_assert_msg(v.seen.damages == 0, "%s", v.seen.what);
    ck_assert_uint_eq(messages_of(v.store, w.f.now_ms), 5);
    end_verify(&v);
    salvage(w.disk, out, &seen);
    ck_assert_uint_eq(seen.damages, 0);
    expect_starts_same(&w, out);
    close_world(&w);
}

/* ------------------------------------------------------------------ damaged ones */

enum { MISSING, SHORTENED, FLIPPED, FOREIGN, HEADLESS, DAMAGES };

static const char *const flaws[DAMAGES] = {
    [MISSING] = "is missing",          [SHORTENED] = "ends too early",
    [FLIPPED] = "has a damaged frame", [FOREIGN] = "belongs to another journal",
    [HEADLESS] = "has no valid head",
};

static void
damage_file(struct sim_disk *disk, const char *name, int damage)
{
    struct segment_head head;
    size_t len, one_run;
    uint8_t *bytes = sim_disk_get(disk, name, &len);

    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(segment_head_read(bytes, &head), SEGMENT_GOOD);
    one_run = SEGMENT_HEAD_BYTES + frame_size(bytes + SEGMENT_HEAD_BYTES);
    if (damage == FLIPPED)
        bytes[SEGMENT_HEAD_BYTES + 200] ^= 4;
    if (damage == HEADLESS)
        bytes[40] ^= 4;
    head.journal[3] ^= 1;
    if (damage == FOREIGN)
        segment_head_write(bytes, &head);
    if (damage == MISSING)
        ck_assert_int_eq(disk_unlink(sim_disk_open(disk), name), 0);
    else
        sim_disk_put(disk, name, bytes, damage == SHORTENED ? one_run : len);
    free(bytes);
}

/* A shortened file keeps its first run, a flipped byte costs that, and the other damages
 * cost all messages of the file. */
LOOP_TEST(a_damaged_file_is_reported_and_the_rest_is_kept, DAMAGES)
{
    struct sim_disk *out = sim_disk_new(2), *disk;
    char name[DISK_NAME_CAP], text[64];
    struct verified v;
    struct seen seen;
    struct world w;
    uint64_t left;

    unloaded_messages(&w);
    disk = sim_disk_copy(w.disk, 3);
    sim_disk_kill(disk);
    ck_assert_uint_eq(body_files(disk, name), 1);
    damage_file(disk, name, _i);
    verify(&v, disk, w.f.now_ms);
    left = messages_of(v.store, w.f.now_ms);
    (void)expect_same(v.store, v.store, w.f.now_ms, w.f.projects);
    ck_assert_uint_eq(v.seen.damages, _i == FLIPPED ? 1 : 2);
    ck_assert_str_eq(v.seen.name, name);
    ck_assert_ptr_nonnull(strstr(v.seen.what, flaws[_i]));
    ck_assert_uint_eq(left, 220 - v.seen.found.lost_messages);
    ck_assert_uint_gt(v.seen.found.lost_messages, 0);
    if (_i == SHORTENED || _i == FLIPPED)
        ck_assert_uint_gt(left, 50);
    (void)snprintf(text, sizeof(text), "queue %s of the project p",
                   strstr(v.seen.what, "other of") != NULL ? "other" : "q");
    ck_assert_msg(strstr(v.seen.what, text) != NULL, "%s", v.seen.what);
    salvage(disk, out, &seen);
    ck_assert_uint_ge(seen.damages, 1);
    ck_assert_ptr_nonnull(strstr(seen.what, flaws[_i]));
    end_verify(&v);
    sim_disk_free(disk);
    close_world(&w);
    begin(&w, out);
    /* The posts of the damaged runs are still in the log. */
    ck_assert_uint_ge(messages_of(w.p.store, w.f.now_ms), left);
    close_world(&w);
}

/* A claimd does not start with less than it had. */
LOOP_TEST(a_start_refuses_a_damaged_file, DAMAGES)
{
    char error[JOURNAL_ERROR_CAP] = "", name[DISK_NAME_CAP];
    struct journal_recovery recovery = {.now_ms = START_MS, .accept_clock = true};
    struct journal_config config = {.segment_bytes = SEGMENT, .seeded = true, .seed = 9};
    struct engine_config engine;
    struct journal *journal;
    struct store *store;
    struct mem *mem;
    struct world w;

    unloaded_messages(&w);
    sim_disk_kill(w.disk);
    stop(&w);
    ck_assert_uint_eq(body_files(w.disk, name), 1);
    damage_file(w.disk, name, _i);
    config.disk = sim_disk_open(w.disk);
    ck_assert_status(journal_open(&config, &journal, error), ST_OK);
    mem = mem_new(0);
    engine = fixture_config(mem);
    engine.log = journal_log(journal);
    engine.runs = journal_runs(journal);
    engine.backlog_memory = UINT64_MAX;
    ck_assert_status(engine_open(&engine, &store), ST_OK);
    /* A flipped byte is found when its run is read: here because a message of it is
     * claimed. */
    ck_assert_status(journal_recover(journal, store, &recovery, error), ST_BAD_VALUE);
    ck_assert_msg(strstr(error, name) != NULL, "%s", error);
    ck_assert_ptr_nonnull(strstr(error, "claimd verify DIR --salvage OUT"));
    journal_close(journal);
    store_close(store);
    mem_destroy(mem);
    sim_disk_free(w.disk);
}

/* ------------------------------------------------------------------ backup */

WORLD_TEST(a_backup_has_the_body_files)
{
    const struct journal_linker none = {.link = NULL};
    struct sim_disk *out = sim_disk_new(2);
    struct journal_backup_result made;

    back_up(w, out, &none, &made);
    ck_assert_uint_eq(made.restarts, 0);
    ck_assert_uint_eq(made.bodies, 1);
    ck_assert_uint_eq(body_files(out, NULL), 1);
    expect_starts_same(w, out);
}

/* Changes between the steps of a backup: at these pauses, the first one is 1. */
struct traffic {
    struct world *w;
    unsigned pauses, grow_at, remove_at;
};

static void
work(void *arg)
{
    static const char *const queues[] = {"q", "other", "more"};
    struct traffic *t = arg;
    struct world *w = t->w;

    t->pauses++;
    if (t->pauses == t->grow_at) {
        use(&w->f, "more");
        post(&w->f, 100);
        unload(w);
    }
    if (t->pauses != t->remove_at)
        return;
    for (size_t i = 0; i < 3; i++) {
        use(&w->f, queues[i]);
        if (i < 2 || t->grow_at <= t->remove_at)
            purge(&w->f);
    }
    unload(w);
    ck_assert_uint_eq(body_files(w->disk, NULL), 0);
    post(&w->f, 30);
    unload(w);
    ck_assert_uint_eq(body_files(w->disk, NULL), 1);
}

/* Backs up a journal that changes meanwhile. The copy starts, with all messages of a
 * moment. Returns the restarts. */
static unsigned
back_up_changing(unsigned grow_at, unsigned remove_at, bool restarted, unsigned *pauses)
{
    struct traffic traffic = {.grow_at = grow_at, .remove_at = remove_at};
    const struct journal_linker linker = {.pause = work, .arg = &traffic};
    struct sim_disk *out = sim_disk_new(2);
    struct journal_backup_result made;
    struct world w, copy;
    struct verified v;
    uint64_t total;

    unloaded_messages(&w);
    if (restarted) {
        stop(&w);
        start(&w);
    }
    traffic.w = &w;
    back_up(&w, out, &linker, &made);
    verify(&v, out, w.f.now_ms);
    ck_assert_msg(v.seen.damages == 0, "%s", v.seen.what);
    end_verify(&v);
    begin(&copy, out);
    total = messages_of(copy.p.store, w.f.now_ms);
    ck_assert_msg(total == 220 || total == 320 || total == 30 || total == 130 ||
                      total == 0,
                  "%" PRIu64 " messages", total);
    close_world(&copy);
    close_world(&w);
    *pauses = traffic.pauses;
    return made.restarts;
}

/* Whenever a body file grows, is removed or is created, the copy has what its log needs.
 * 1: the RUN records of the first file are in a segment that does not change any more. */
LOOP_TEST(a_backup_is_whole_although_body_files_change, 2)
{
    unsigned restarts = 0, pauses = 10;

    for (unsigned grow = 1; grow <= pauses; grow++) {
        ck_assert_uint_eq(back_up_changing(grow, 0, _i == 1, &pauses), 0);
        for (unsigned gone = 1; gone <= pauses; gone++) {
            const unsigned tries = back_up_changing(grow, gone, _i == 1, &pauses);

            ck_assert_uint_le(tries, 2);
            restarts += tries;
        }
    }
    if (_i == 0) /* else the last segment of the copy permits no RUN */
        ck_assert_uint_gt(restarts, 0);
}

WORLD_TEST(a_backup_of_a_damaged_journal_ends)
{
    const struct journal_linker none = {.link = NULL};
    struct sim_disk *disk = sim_disk_copy(w->disk, 3), *out = sim_disk_new(2);
    char error[JOURNAL_ERROR_CAP], name[DISK_NAME_CAP];
    struct journal_backup_result made;
    struct verified v;

    sim_disk_kill(disk);
    ck_assert_uint_eq(body_files(disk, name), 1);
    damage_file(disk, name, MISSING);
    ck_assert_status(
        journal_backup(sim_disk_open(disk), sim_disk_open(out), &none, &made, error),
        ST_OK);
    ck_assert_uint_eq(made.restarts, 1);
    verify(&v, out, w->f.now_ms);
    ck_assert_uint_ge(v.seen.damages, 1);
    end_verify(&v);
    sim_disk_free(disk);
    sim_disk_free(out);
}

/* ------------------------------------------------------------------ disks that fail */

static enum status
verify_and_copy(struct sim_disk *disk, struct sim_disk *out, bool backup,
                char error[JOURNAL_ERROR_CAP])
{
    const struct journal_linker none = {.link = NULL};
    struct journal_backup_result made;
    struct verified v;
    enum status st = verify_status(&v, disk, START_MS, error);

    ck_assert_uint_eq(v.seen.damages, 0);
    if (st == ST_OK)
        (void)messages_of(v.store, START_MS);
    end_verify(&v);
    if (st != ST_OK)
        return st;
    if (backup)
        return journal_backup(sim_disk_open(disk), sim_disk_open(out), &none, &made,
                              error);
    init_seen(&v.seen, START_MS);
    st = journal_salvage(sim_disk_open(disk), sim_disk_open(out), SEGMENT,
                         &v.seen.callbacks, &v.seen.found, error);
    ck_assert_uint_eq(v.seen.damages, 0);
    return st;
}

/* Each operation fails in turn, of the disk that is read (0, 1) or written (2, 3). */
LOOP_TEST(a_disk_that_fails_is_no_damage, 4)
{
    char error[JOURNAL_ERROR_CAP];
    enum status st = ST_IO;
    struct world w;
    uint64_t n = 0;

    unloaded_messages(&w);
    while (st != ST_OK) {
        struct sim_disk *disk = sim_disk_copy(w.disk, 3), *out = sim_disk_new(2);

        error[0] = '\0';
        sim_disk_kill(disk);
        sim_disk_die(_i < 2 ? disk : out, ++n);
        st = verify_and_copy(disk, out, _i % 2 == 0, error);
        if (st != ST_OK) {
            ck_assert_status(st, ST_IO);
            ck_assert_msg(strstr(error, "Input/output error") != NULL, "%s", error);
        }
        sim_disk_free(disk);
        sim_disk_free(out);
    }
    ck_assert_uint_ge(n, 5);
    close_world(&w);
}

/* The file can be read during the verification, but not later. */
WORLD_TEST(a_load_that_fails_is_an_error)
{
    char error[JOURNAL_ERROR_CAP] = "", name[DISK_NAME_CAP];
    struct store_records records = STORE_RECORDS_INIT;
    struct sim_disk *disk = sim_disk_copy(w->disk, 3);
    struct store_op op = {.now_ms = START_MS};
    struct verified v;

    sim_disk_kill(disk);
    verify(&v, disk, START_MS);
    load_all(v.bodies); /* closes the file */
    ck_assert_uint_eq(body_files(disk, name), 1);
    damage_file(disk, name, MISSING);
    while (store_read(patient_inside(v.store), &op, &w->f.queue, &records) == ST_OK) {
        struct store_records rest = STORE_RECORDS_INIT;

        ck_assert(records.more);
        memcpy(rest.resume, records.resume, sizeof(rest.resume));
        store_records_release(&records);
        records = rest;
    }
    ck_assert(op.loads);
    ck_assert_status(journal_bodies_load(v.bodies, error), ST_IO);
    ck_assert_ptr_nonnull(strstr(error, name));
    store_records_release(&records);
    end_verify(&v);
    sim_disk_free(disk);
}
