/* Looking at journals, whole and damaged ones, on a disk that the test owns. */
#include "claimd/journal/inspect.h"

#include "journal/frame.h"
#include "journal/segment.h"
#include "support/random.h"
#include "support/sim_disk.h"
#include "support/store_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEGMENT = 64 * 1024 };

static const char first[] = "0000000000000001.log";

struct world {
    struct sim_disk *disk;
    struct journal *journal;
    struct fixture f;
    uint64_t starts;
    char error[JOURNAL_ERROR_CAP];
};

/* The records and errors that the inspection reported. */
struct seen {
    struct journal_callbacks eyes;
    struct journal_findings found;
    unsigned segments, damages, entries, named;
    struct journal_damage last; /* its name is not kept */
    uint64_t first_end;         /* of the first segment */
    char text[DISK_NAME_CAP];   /* the name of the last damage's file */
};

/* ------------------------------------------------------------------ a journal */

static enum status
start(struct world *w)
{
    const struct journal_config config = {.disk = sim_disk_open(w->disk),
                                          .segment_bytes = SEGMENT,
                                          .seeded = true,
                                          .seed = ++w->starts};
    struct journal_recovery recovery = {.now_ms = w->f.now_ms};
    struct engine_config engine;

    ck_assert_status(journal_open(&config, &w->journal, w->error), ST_OK);
    w->f.mem = mem_new(0);
    engine = fixture_config(w->f.mem);
    engine.log = journal_log(w->journal);
    ck_assert_status(engine_open(&engine, &w->f.store), ST_OK);
    return journal_recover(w->journal, w->f.store, &recovery, w->error);
}

static void
stop(struct world *w)
{
    journal_close(w->journal);
    store_batch_release(&w->f.seen);
    store_close(w->f.store);
    mem_destroy(w->f.mem);
}

static void
init_world(struct world *w, struct sim_disk *disk)
{
    memset(w, 0, sizeof(*w));
    w->disk = disk;
    w->f.now_ms = START_MS;
    w->f.queue = (struct store_queue){.project = bytes_str("p"), .name = bytes_str("q")};
}

static void
commit(struct world *w)
{
    while (journal_step(w->journal))
        continue;
}

/*
 * Frames of the first segment: OPENED; QUEUE and POST of 1; POST of 2 ... of 5, and no
 * end in peace. LSNs: 1; 2 and 3; 4 ... 7.
 */
static void
five_posts(struct world *w)
{
    init_world(w, sim_disk_new(1));
    ck_assert_status(start(w), ST_OK);
    commit(w);
    for (int i = 0; i < 5; i++) {
        post(&w->f, 1);
        commit(w);
    }
    sim_disk_kill(w->disk);
    stop(w);
}

/* Where the n-th frame of the first segment stands, from 0; *count: of its records. */
static uint64_t
frame_at(struct sim_disk *disk, unsigned n)
{
    size_t len;
    uint8_t *bytes = sim_disk_get(disk, first, &len);
    size_t at = SEGMENT_HEAD_BYTES;

    ck_assert_ptr_nonnull(bytes);
    for (; n > 0; n--)
        at += frame_size(bytes + at);
    ck_assert_uint_gt(frame_size(bytes + at), FRAME_HEAD_BYTES);
    free(bytes);
    return at;
}

/* ------------------------------------------------------------------ eyes */

static void
see_segment(void *arg, const struct journal_segment *segment)
{
    struct seen *seen = arg;

    if (seen->segments++ == 0)
        seen->first_end = segment->end;
}

static void
see_damage(void *arg, const struct journal_damage *damage)
{
    struct seen *seen = arg;

    seen->damages++;
    seen->last = *damage;
    (void)snprintf(seen->text, sizeof(seen->text), "%s", damage->name);
}

static bool
see_entry(void *arg, const struct journal_entry *entry)
{
    struct seen *seen = arg;
    struct store_message_record m;
    size_t count = 0;

    seen->entries++;
    seen->named += entry->queue != NULL && bytes_equal_str(entry->queue->name, "q");
    if (entry->change != NULL && entry->change->kind == STORE_CHANGE_POST) {
        while (entry->change->next(entry->change, &m))
            count++;
        ck_assert_uint_eq(count, 1);
    }
    return true;
}

static void
init_seen(struct seen *seen)
{
    memset(seen, 0, sizeof(*seen));
    seen->eyes = (struct journal_callbacks){see_segment, see_damage, see_entry, seen};
    seen->found.now_ms = START_MS;
}

/* Verifies, and says how many messages there are; -1: not known. */
static enum status
verify(struct world *w, struct seen *seen, int *messages)
{
    struct mem *mem = mem_new(0);
    struct engine_config config = fixture_config(mem);
    struct store_op op = {.now_ms = START_MS};
    struct store_totals totals;
    struct journal_bodies *bodies;
    struct store *store;
    enum status st;

    init_seen(seen);
    ck_assert_status(journal_bodies_open(sim_disk_open(w->disk), &bodies), ST_OK);
    config.runs = journal_bodies_runs(bodies);
    config.backlog_memory = UINT64_MAX;
    ck_assert_status(engine_open(&config, &store), ST_OK);
    st = journal_verify(bodies, store, &seen->eyes, &seen->found, w->error);
    *messages = -1;
    if (st == ST_OK && seen->found.replayed) {
        ck_assert_status(store_totals(store, &op, &totals), ST_OK);
        *messages = (int)totals.messages;
    }
    journal_bodies_close(bodies);
    store_close(store);
    ck_assert_uint_eq(seen->damages, seen->found.damages);
    mem_destroy(mem);
    return st;
}

/* One damage, with these LSNs missing. */
static void
expect_damage(struct world *w, uint64_t offset, uint64_t from, uint64_t to)
{
    struct seen seen;
    int messages;

    ck_assert_status(verify(w, &seen, &messages), ST_OK);
    ck_assert_uint_eq(seen.damages, 1);
    ck_assert_uint_eq(seen.last.offset, offset);
    ck_assert_uint_eq(seen.last.from, from);
    ck_assert_uint_eq(seen.last.to, to);
    ck_assert_uint_eq(seen.found.lost, from <= to ? to - from + 1 : 0);
    ck_assert_str_eq(seen.text, first);
}

/* Salvages to a new disk, which a claimd starts with; says how many messages it has
 * then. */
static uint64_t
salvage(struct world *w, struct seen *seen)
{
    struct store_op op = {.now_ms = START_MS};
    struct store_totals totals;
    struct world saved;

    init_world(&saved, sim_disk_new(2));
    init_seen(seen);
    ck_assert_status(journal_salvage(sim_disk_open(w->disk), sim_disk_open(saved.disk),
                                     SEGMENT, &seen->eyes, &seen->found, w->error),
                     ST_OK);
    sim_disk_crash_losing_all(saved.disk); /* it was made durable */
    ck_assert_status(start(&saved), ST_OK);
    ck_assert_status(store_totals(saved.f.store, &op, &totals), ST_OK);
    stop(&saved);
    sim_disk_free(saved.disk);
    return totals.messages;
}

/* ------------------------------------------------------------------ frames */

START_TEST(a_frame_has_a_largest_size)
{
    static const uint8_t nonce[NONCE_BYTES] = {1};
    struct frame frame = {.first_lsn = 1,
                          .count = 1,
                          .length = FRAME_BYTES_MAX - FRAME_HEAD_BYTES},
                 seen;
    uint8_t *bytes = calloc(1, FRAME_BYTES_MAX + 8);

    ck_assert_ptr_nonnull(bytes);
    frame_seal(bytes, &frame, nonce);
    ck_assert_uint_eq(frame_size(bytes), FRAME_BYTES_MAX);
    ck_assert(frame_read(bytes, FRAME_BYTES_MAX, nonce, &seen));
    ck_assert_uint_eq(seen.length, frame.length);
    ck_assert(!frame_read(bytes, FRAME_BYTES_MAX - 1, nonce, &seen));
    frame.length += 8;
    frame_seal(bytes, &frame, nonce);
    ck_assert_uint_eq(frame_size(bytes), FRAME_HEAD_BYTES);
    ck_assert(!frame_read(bytes, FRAME_BYTES_MAX + 8, nonce, &seen));
    free(bytes);
}

#define WORLD_TEST_WITH(id, open)                                                        \
    FIXTURE_TEST_AS(id, struct world, w, open, sim_disk_free(w->disk))
#define WORLD_TEST(id) WORLD_TEST_WITH(id, five_posts(w))

/* ------------------------------------------------------------------ whole ones */

WORLD_TEST(a_whole_journal_is_good_and_is_not_touched)
{
    struct seen seen;
    uint64_t written;
    int messages;

    written = sim_disk_stats(w->disk)->bytes_written;
    ck_assert_status(verify(w, &seen, &messages), ST_OK);
    ck_assert_uint_eq(seen.damages, 0);
    ck_assert_uint_eq(seen.segments, 1);
    ck_assert_uint_eq(seen.found.records, 7);
    ck_assert_uint_eq(seen.found.next_lsn, 8);
    ck_assert_uint_eq(seen.found.torn_bytes, 0);
    ck_assert_int_eq(messages, 5);
    ck_assert_uint_eq(sim_disk_stats(w->disk)->bytes_written, written);
    ck_assert_uint_eq(sim_disk_stats(w->disk)->ops[SIM_LOCK], 1); /* the daemon's */
}

WORLD_TEST(records_are_shown_with_the_names_that_are_known)
{
    struct seen seen;

    init_seen(&seen);
    ck_assert_status(
        journal_show(sim_disk_open(w->disk), false, 0, &seen.eyes, &seen.found, w->error),
        ST_OK);
    ck_assert_uint_eq(seen.entries, 7);
    ck_assert_uint_eq(seen.named, 6);
    init_seen(&seen);
    ck_assert_status(
        journal_show(sim_disk_open(w->disk), false, 6, &seen.eyes, &seen.found, w->error),
        ST_OK);
    ck_assert_uint_eq(seen.entries, 2);
    ck_assert_uint_eq(seen.named, 2);
}

WORLD_TEST_WITH(in_an_empty_directory_there_is_nothing, init_world(w, sim_disk_new(1)))
{
    struct journal_backup_result made;
    const struct journal_linker none = {.link = NULL};
    struct sim_disk *out = sim_disk_new(2);
    struct seen seen;
    int messages;

    ck_assert_status(verify(w, &seen, &messages), ST_OK);
    ck_assert_uint_eq(seen.found.segments, 0);
    ck_assert_uint_eq(seen.damages, 0);
    ck_assert_status(journal_backup(sim_disk_open(w->disk), sim_disk_open(out), &none,
                                    &made, w->error),
                     ST_NOT_FOUND);
    ck_assert_uint_eq(sim_disk_files(w->disk), 0);
    sim_disk_free(out);
}

WORLD_TEST_WITH(a_journal_in_use_is_held_by_its_user, init_world(w, sim_disk_new(1)))
{
    struct disk_file *lock = NULL;

    ck_assert_int_eq(journal_lock(sim_disk_open(w->disk), &lock), 0);
    ck_assert_ptr_null(lock); /* it was never used, and no file was made */
    ck_assert_uint_eq(sim_disk_files(w->disk), 0);
    ck_assert_status(start(w), ST_OK);
    ck_assert_int_eq(journal_lock(sim_disk_open(w->disk), &lock), EWOULDBLOCK);
    ck_assert_ptr_null(lock);
    stop(w);
}

/* ------------------------------------------------------------------ damaged ones */

WORLD_TEST(a_torn_end_is_good_and_is_reported)
{
    struct seen seen;
    int messages;

    sim_disk_flip(w->disk, first, frame_at(w->disk, 5) + 100, 3); /* in the last one */
    ck_assert_status(verify(w, &seen, &messages), ST_OK);
    ck_assert_uint_eq(seen.damages, 0);
    ck_assert_uint_gt(seen.found.torn_bytes, 0);
    ck_assert_uint_eq(seen.first_end, frame_at(w->disk, 5));
    ck_assert_int_eq(messages, 4);
}

/* The first frames have the queue and what is needed; each of the others is missed
 * alone. */
LOOP_TEST(a_flipped_bit_is_one_damage_and_costs_its_frame_alone, 3)
{
    unsigned n = (unsigned)_i + 2;
    uint64_t lsn = n + 2;
    struct world w;
    struct seen seen;

    five_posts(&w);
    sim_disk_flip(w.disk, first, frame_at(w.disk, n) + 100, 3);
    expect_damage(&w, frame_at(w.disk, n), lsn, lsn);
    ck_assert_uint_eq(salvage(&w, &seen), 4);
    ck_assert_uint_eq(seen.damages, 1);
    ck_assert_uint_eq(seen.last.from, lsn);
    ck_assert_uint_eq(seen.last.to, lsn);
    sim_disk_free(w.disk);
}

WORLD_TEST(records_of_a_queue_without_a_name_are_missing)
{
    struct seen seen;

    sim_disk_flip(w->disk, first, frame_at(w->disk, 1) + 100, 3); /* QUEUE, POST */
    expect_damage(w, frame_at(w->disk, 1), 2, 3);
    ck_assert_uint_eq(salvage(w, &seen), 0);
    ck_assert_uint_eq(seen.damages, 2);
    ck_assert_uint_eq(seen.last.from, 4);
    ck_assert_uint_eq(seen.last.to, 7);
    ck_assert_uint_eq(seen.found.lost, 6);
}

/* Nothing says that the first queue of this name has gone; a journal cannot have two. */
WORLD_TEST_WITH(the_later_of_two_queues_of_a_name_is_saved,
                init_world(w, sim_disk_new(1)))
{
    struct seen seen;

    ck_assert_status(start(w), ST_OK);
    commit(w);
    post(&w->f, 2);
    commit(w);
    delete_queue(&w->f);
    commit(w);
    post(&w->f, 3);
    commit(w);
    sim_disk_kill(w->disk);
    stop(w);
    sim_disk_flip(w->disk, first, frame_at(w->disk, 2) + 70, 3); /* QUEUE_GONE */
    expect_damage(w, frame_at(w->disk, 2), 4, 4);
    ck_assert_uint_eq(salvage(w, &seen), 3);
    ck_assert_uint_eq(seen.damages, 1);
}

WORLD_TEST(a_segment_without_its_head_loses_nothing_but_that)
{
    struct seen seen;

    sim_disk_flip(w->disk, first, 20, 3);
    expect_damage(w, 0, 1, 0);
    ck_assert_uint_eq(salvage(w, &seen), 5);
    ck_assert_uint_eq(seen.found.lost, 0);
}

WORLD_TEST(a_journal_of_the_test_api_stays_marked)
{
    struct sim_disk *out = sim_disk_new(2);
    struct segment_head head;
    struct seen seen;
    size_t len;
    uint8_t *bytes;

    bytes = sim_disk_get(w->disk, first, &len);
    ck_assert_int_eq(segment_head_read(bytes, &head), SEGMENT_GOOD);
    head.required = SEGMENT_TEST_API;
    segment_head_write(bytes, &head);
    sim_disk_put(w->disk, first, bytes, len);
    free(bytes);
    init_seen(&seen);
    ck_assert_status(journal_salvage(sim_disk_open(w->disk), sim_disk_open(out), SEGMENT,
                                     &seen.eyes, &seen.found, w->error),
                     ST_OK);
    bytes = sim_disk_get(out, first, &len);
    ck_assert_int_eq(segment_head_read(bytes, &head), SEGMENT_GOOD);
    ck_assert_uint_eq(head.required, SEGMENT_TEST_API);
    free(bytes);
    sim_disk_free(out);
}

/* Another version, and a checksum that says that it is so. */
WORLD_TEST(a_newer_version_cannot_be_read)
{
    struct segment_head head;
    struct seen seen;
    int messages;
    size_t len;
    uint8_t *bytes;

    bytes = sim_disk_get(w->disk, first, &len);
    ck_assert_int_eq(segment_head_read(bytes, &head), SEGMENT_GOOD);
    head.version++;
    segment_head_write(bytes, &head);
    sim_disk_put(w->disk, first, bytes, len);
    free(bytes);
    ck_assert_status(verify(w, &seen, &messages), ST_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(w->error, "newer claimd"));
}

/* ------------------------------------------------------------------ several segments */

/* Posts until there are four segments; messages that do not fit into the fixture's
 * tables. */
static void
four_segments(struct world *w)
{
    struct journal_metrics metrics;

    init_world(w, sim_disk_new(1));
    ck_assert_status(start(w), ST_OK);
    do {
        w->f.posted = 1;
        post(&w->f, 100);
        commit(w);
        journal_metrics(w->journal, &metrics);
    } while (metrics.segments < 4);
    ck_assert_uint_eq(metrics.checkpoints, 0);
}

struct names {
    char all[16][DISK_NAME_CAP];
    size_t count;
};

static void
note_name(void *arg, const char *name)
{
    struct names *names = arg;

    if (strstr(name, ".log") != NULL && names->count < 16)
        (void)snprintf(names->all[names->count++], DISK_NAME_CAP, "%s", name);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void
list_segments(struct sim_disk *disk, struct names *names)
{
    names->count = 0;
    ck_assert_int_eq(disk_list(sim_disk_open(disk), note_name, names), 0);
    qsort(names->all, names->count, DISK_NAME_CAP, by_name);
}

static void
remove_segment(struct sim_disk *disk, const char *name)
{
    ck_assert_int_eq(disk_unlink(sim_disk_open(disk), name), 0);
}

/* From the first LSN of one segment to that of the next. */
LOOP_TEST(a_missing_segment_is_damage_and_the_others_are_saved, 3)
{
    struct names names;
    struct world w;
    struct seen seen;
    uint64_t from, to;
    int messages;

    four_segments(&w);
    sim_disk_kill(w.disk);
    stop(&w);
    list_segments(w.disk, &names);
    ck_assert_uint_eq(names.count, 4);
    from = strtoull(names.all[_i], NULL, 16);
    to = strtoull(names.all[_i + 1], NULL, 16) - 1;
    remove_segment(w.disk, names.all[_i]);
    ck_assert_status(verify(&w, &seen, &messages), ST_OK);
    ck_assert_uint_eq(seen.damages, 1);
    ck_assert_uint_eq(seen.last.from, from);
    ck_assert_uint_eq(seen.last.to, to);
    if (_i > 0) /* the first has the queue's name */
        ck_assert_uint_gt(salvage(&w, &seen), 0);
    sim_disk_free(w.disk);
}

/* Replaces a segment by its first bytes, or by zeros. */
static void
shorten(struct sim_disk *disk, const char *name, size_t keep, bool zeros)
{
    size_t len;
    uint8_t *bytes = sim_disk_get(disk, name, &len);

    ck_assert_ptr_nonnull(bytes);
    if (zeros)
        memset(bytes + keep, 0, len - keep);
    sim_disk_put(disk, name, bytes, zeros ? len : keep);
    free(bytes);
}

/*
 * No crash leaves such a last segment: after a clean stop all of its records were
 * durable. 0: it is missing; 1: empty; 2: its head alone; 3: zeros; 4: zeros behind its
 * head; 5: cut behind a frame; 6: all segments are missing.
 */
LOOP_TEST(a_log_that_ends_before_it_was_durable_is_damaged, 7)
{
    struct names names;
    const char *last;
    struct world w;
    struct seen seen;
    uint64_t records;
    int messages;

    four_segments(&w);
    stop(&w);
    list_segments(w.disk, &names);
    last = names.all[names.count - 1];
    ck_assert_status(verify(&w, &seen, &messages), ST_OK);
    ck_assert_uint_eq(seen.damages, 0);
    records = seen.found.records;
    if (_i == 0 || _i == 6)
        remove_segment(w.disk, last);
    else
        shorten(w.disk, last,
                _i == 5              ? SEGMENT_HEAD_BYTES + 4096
                : _i == 2 || _i == 4 ? SEGMENT_HEAD_BYTES
                                     : 0,
                _i == 3 || _i == 4);
    while (_i == 6 && --names.count > 0)
        remove_segment(w.disk, names.all[names.count - 1]);
    ck_assert_status(verify(&w, &seen, &messages), ST_OK);
    ck_assert_uint_ge(seen.damages, 1);
    ck_assert_uint_eq(seen.last.to, records);
    ck_assert_uint_le(seen.last.from, records);
    ck_assert_status(start(&w), ST_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(w.error, "damaged"));
    ck_assert_ptr_nonnull(strstr(w.error, "Restore a backup"));
    ck_assert_ptr_nonnull(strstr(w.error, "claimd verify DIR --salvage OUT"));
    stop(&w);
    if (_i < 6)
        ck_assert_uint_gt(salvage(&w, &seen), 0);
    sim_disk_free(w.disk);
}

/* Cut to its head it is damage without what stands beside the segments, too. */
LOOP_TEST(a_last_segment_without_frames_has_its_size, 3)
{
    struct names names;
    struct world w;
    struct seen seen;
    int messages;

    four_segments(&w);
    stop(&w);
    list_segments(w.disk, &names);
    ck_assert_int_eq(disk_unlink(sim_disk_open(w.disk), DURABLE_LSN_NAME), 0);
    shorten(w.disk, names.all[names.count - 1], _i == 0 ? SEGMENT_HEAD_BYTES : 0,
            _i == 2);
    ck_assert_status(verify(&w, &seen, &messages), ST_OK);
    ck_assert_uint_eq(seen.damages, 1);
    ck_assert_status(start(&w), ST_BAD_VALUE);
    stop(&w);
    sim_disk_free(w.disk);
}

/* Of a program that did not write it, of another journal, or not whole: it is
 * ignored. */
LOOP_TEST(a_journal_without_a_durable_lsn_is_read, 5)
{
    struct durable_lsn mark;
    struct disk *disk;
    struct world w;
    uint8_t *bytes;
    size_t len;

    five_posts(&w);
    disk = sim_disk_open(w.disk);
    ck_assert_int_eq(durable_lsn_read(disk, &mark), 0);
    ck_assert_uint_eq(mark.segment, 1);
    mark.lsn = 1000; /* which is not there */
    if (_i == 3)
        mark.journal[3] ^= 1;
    ck_assert_int_eq(durable_lsn_write(disk, &mark), 0);
    bytes = sim_disk_get(w.disk, DURABLE_LSN_NAME, &len);
    bytes[33] ^= _i == 1; /* and the checksum is wrong */
    if (_i == 0)
        ck_assert_int_eq(disk_unlink(disk, DURABLE_LSN_NAME), 0);
    else
        sim_disk_put(w.disk, DURABLE_LSN_NAME, bytes, _i == 2 ? len - 1 : len);
    free(bytes);
    ck_assert_status(start(&w), _i == 4 ? ST_BAD_VALUE : ST_OK);
    if (_i != 4)
        ck_assert_uint_eq(stats(&w.f).total, 5);
    stop(&w);
    sim_disk_free(w.disk);
}

START_TEST(a_copy_misses_a_segment_that_it_loses)
{
    const struct journal_linker none = {.link = NULL};
    struct journal_backup_result made;
    struct names names;
    struct world w, copy;
    struct seen seen;
    int messages;

    four_segments(&w);
    init_world(&copy, sim_disk_new(2));
    ck_assert_status(journal_backup(sim_disk_open(w.disk), sim_disk_open(copy.disk),
                                    &none, &made, w.error),
                     ST_OK);
    ck_assert_status(verify(&copy, &seen, &messages), ST_OK);
    ck_assert_uint_eq(seen.damages, 0);
    list_segments(copy.disk, &names);
    remove_segment(copy.disk, names.all[names.count - 1]);
    ck_assert_status(verify(&copy, &seen, &messages), ST_OK);
    ck_assert_uint_eq(seen.damages, 1);
    stop(&w);
    sim_disk_free(copy.disk);
    sim_disk_free(w.disk);
}

WORLD_TEST_WITH(a_segment_of_another_journal_is_damage, four_segments(w))
{
    struct names names;
    struct segment_head head;
    struct seen seen;
    int messages;
    uint8_t *bytes;
    size_t len;

    sim_disk_kill(w->disk);
    stop(w);
    list_segments(w->disk, &names);
    bytes = sim_disk_get(w->disk, names.all[1], &len);
    ck_assert_int_eq(segment_head_read(bytes, &head), SEGMENT_GOOD);
    head.journal[3] ^= 1;
    segment_head_write(bytes, &head);
    sim_disk_put(w->disk, names.all[1], bytes, len);
    sim_disk_put(w->disk, "notes.txt", "mine", 4); /* which is none of our business */
    free(bytes);
    ck_assert_status(verify(w, &seen, &messages), ST_OK);
    ck_assert_uint_eq(seen.damages, 2); /* it is there, and what should be is not */
    ck_assert_uint_eq(seen.last.from, strtoull(names.all[1], NULL, 16));
    ck_assert_uint_eq(seen.last.to, strtoull(names.all[2], NULL, 16) - 1);
}

/* Flips bits here and there, or cuts off. */
static void
spoil(struct world *w, const struct names *names, struct random *dice)
{
    for (uint64_t n = 1 + random_below(dice, 4); n > 0; n--) {
        const char *name = names->all[random_below(dice, names->count)];
        size_t len;
        uint8_t *bytes = sim_disk_get(w->disk, name, &len);

        ck_assert_ptr_nonnull(bytes);
        if (random_chance(dice, 25))
            len = (size_t)random_below(dice, len + 1);
        else if (len > 0)
            bytes[random_below(dice, len)] ^= (uint8_t)(1 << random_below(dice, 8));
        sim_disk_put(w->disk, name, bytes, len);
        free(bytes);
    }
}

/* After any damage, the rest is a journal that starts. */
LOOP_TEST(a_salvaged_journal_starts, 100)
{
    struct random dice;
    struct names names;
    struct world w;
    struct seen seen;
    uint64_t before, saved;
    int messages;

    dice.state = (uint64_t)_i;
    four_segments(&w);
    use(&w.f, "other");
    post(&w.f, 3);
    (void)take(&w.f, 2);
    delete_queue(&w.f);
    commit(&w);
    use(&w.f, "q");
    before = stats(&w.f).total;
    sim_disk_kill(w.disk);
    stop(&w);
    list_segments(w.disk, &names);
    spoil(&w, &names, &dice);
    ck_assert_status(verify(&w, &seen, &messages), ST_OK);
    ck_assert_int_le(messages, (int)before + 3);
    saved = salvage(&w, &seen);
    ck_assert_uint_le(saved, before + 3);
    if (seen.found.damages == 0 && seen.found.torn_bytes == 0)
        ck_assert_uint_eq(saved, before);
    sim_disk_free(w.disk);
}

/* ------------------------------------------------------------------ backup */

/* A daemon that works while it is copied. */
struct traffic {
    struct world *w;
    unsigned pauses, checkpoint_at; /* at this pause it checkpoints; 0: never */
};

static void
work(void *arg)
{
    struct traffic *t = arg;
    struct journal_metrics metrics;
    uint64_t checkpoints;

    t->pauses++;
    t->w->f.posted = 1;
    post(&t->w->f, 10);
    commit(t->w);
    if (t->pauses != t->checkpoint_at)
        return;
    journal_metrics(t->w->journal, &metrics);
    checkpoints = metrics.checkpoints;
    journal_checkpoint(t->w->journal);
    do {
        t->w->f.posted = 1;
        post(&t->w->f, 10);
        commit(t->w);
        journal_metrics(t->w->journal, &metrics);
    } while (metrics.checkpoints == checkpoints);
}

/* The copy contains all records from before it began, whatever is written meanwhile, and
 * the copy starts. */
LOOP_TEST(a_journal_is_copied_while_it_is_written_and_checkpointed, 6)
{
    struct journal_backup_result made;
    struct traffic traffic = {.checkpoint_at = (unsigned)_i};
    const struct journal_linker linker = {.pause = work, .arg = &traffic};
    struct world w, copy;
    uint64_t before, after;
    struct seen seen;
    int messages;

    four_segments(&w);
    traffic.w = &w;
    init_world(&copy, sim_disk_new(2));
    before = stats(&w.f).total;
    ck_assert_status(journal_backup(sim_disk_open(w.disk), sim_disk_open(copy.disk),
                                    &linker, &made, w.error),
                     ST_OK);
    after = stats(&w.f).total;
    ck_assert_uint_gt(made.copied_bytes, (uint64_t)3 * SEGMENT);
    if (made.restarts == 0) /* the disk also has the file of the durable LSN */
        ck_assert_uint_le(made.copied_bytes, sim_disk_bytes(copy.disk));
    ck_assert_uint_gt(traffic.pauses, 4);
    if (_i >= 3 && traffic.pauses > (unsigned)_i) /* not in the last one */
        ck_assert_uint_ge(made.restarts, 1);
    sim_disk_crash_losing_all(copy.disk);
    ck_assert_status(verify(&copy, &seen, &messages), ST_OK);
    ck_assert_uint_eq(seen.damages, 0);
    ck_assert_uint_eq(seen.found.torn_bytes, 0);
    ck_assert_status(start(&copy), ST_OK);
    ck_assert_uint_ge(stats(&copy.f).total, before);
    ck_assert_uint_le(stats(&copy.f).total, after);
    stop(&copy);
    stop(&w);
    sim_disk_free(copy.disk);
    sim_disk_free(w.disk);
}

/*
 * A directory that is read while it changes: where the newer segments come to stand it
 * was read before they were made, where the older ones stood behind the checkpoint that
 * dropped them. Only the segment is seen that the checkpoint began in, and not its end.
 */
static struct {
    const struct disk_vtable *real;
    struct traffic *traffic; /* NULL: it is read at once */
} torn_list;

static int
list_too_little(struct disk *d, void (*each)(void *arg, const char *name), void *arg)
{
    struct traffic *traffic = torn_list.traffic;
    struct names names = {.count = 0};
    int error;

    if (traffic == NULL)
        return torn_list.real->list(d, each, arg);
    torn_list.traffic = NULL;
    work(traffic);
    error = torn_list.real->list(d, note_name, &names);
    qsort(names.all, names.count, DISK_NAME_CAP, by_name);
    ck_assert_uint_gt(names.count, 1);
    each(arg, names.all[0]);
    return error;
}

START_TEST(a_directory_that_changes_while_it_is_read_is_read_again)
{
    const struct journal_linker linker = {.link = NULL};
    struct traffic traffic = {.checkpoint_at = 1};
    struct journal_backup_result made;
    struct disk_vtable ops;
    struct world w, copy;
    struct seen seen;
    struct disk *d;
    uint64_t before;
    int messages;

    four_segments(&w);
    traffic.w = &w;
    init_world(&copy, sim_disk_new(2));
    before = stats(&w.f).total;
    d = sim_disk_open(w.disk);
    torn_list.real = d->vtable;
    torn_list.traffic = &traffic;
    ops = *d->vtable;
    ops.list = list_too_little;
    d->vtable = &ops;
    ck_assert_status(journal_backup(d, sim_disk_open(copy.disk), &linker, &made, w.error),
                     ST_OK);
    d->vtable = torn_list.real;
    ck_assert_uint_eq(traffic.pauses, 1);
    ck_assert_status(verify(&copy, &seen, &messages), ST_OK);
    ck_assert_uint_eq(seen.damages, 0);
    ck_assert_int_ge(messages, (int)before);
    stop(&w);
    sim_disk_free(copy.disk);
    sim_disk_free(w.disk);
}

WORLD_TEST_WITH(a_copy_that_fails_leaves_nothing, four_segments(w))
{
    const struct journal_linker none = {.link = NULL};
    struct journal_backup_result made;
    struct sim_disk *out = sim_disk_new(2);

    sim_disk_fail(out, SIM_SYNC, 2, EIO);
    ck_assert_status(journal_backup(sim_disk_open(w->disk), sim_disk_open(out), &none,
                                    &made, w->error),
                     ST_IO);
    ck_assert_uint_eq(sim_disk_files(out), 0);
    stop(w);
    sim_disk_free(out);
}

/* ------------------------------------------------------------------ disks that fail */

/* All there is to do with a journal, once. */
static enum status
do_all(struct world *w, struct disk *to, bool backup)
{
    const struct journal_linker none = {.link = NULL};
    struct journal_backup_result made;
    struct seen seen;
    int messages;
    enum status st = verify(w, &seen, &messages);

    if (st == ST_OK)
        st = journal_show(sim_disk_open(w->disk), false, 0, &seen.eyes, &seen.found,
                          w->error);
    if (st == ST_OK && backup)
        st = journal_backup(sim_disk_open(w->disk), to, &none, &made, w->error);
    else if (st == ST_OK)
        st = journal_salvage(sim_disk_open(w->disk), to, SEGMENT, &seen.eyes, &seen.found,
                             w->error);
    return st;
}

/* Each operation fails in turn, of the disk that is read (0, 1) or written (2, 3). */
LOOP_TEST(a_disk_that_fails_is_an_error_and_no_verdict, 4)
{
    enum status st = ST_IO;
    uint64_t n = 0;
    struct world w;

    five_posts(&w);
    while (st != ST_OK) {
        struct sim_disk *out = sim_disk_new(2);
        struct sim_disk *dying = _i < 2 ? w.disk : out;

        w.error[0] = '\0';
        sim_disk_die(dying, ++n);
        st = do_all(&w, sim_disk_open(out), _i % 2 == 0);
        sim_disk_mend(dying);
        if (st != ST_OK) {
            ck_assert_status(st, ST_IO);
            ck_assert_ptr_nonnull(strstr(w.error, "Input/output error"));
        }
        sim_disk_free(out);
    }
    ck_assert_uint_ge(n, 5);
    sim_disk_free(w.disk);
}
