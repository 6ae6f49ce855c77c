/*
 * A journal of one segment and one body file, with any records:
 *
 *     1. A verification and a salvage end. A start recovers the journal, or refuses it
 *        with a reason.
 *     2. If the verification finds no damage, the start recovers the journal. Both
 *        stores are sound, and have the same contents.
 *     3. If it finds damage in body files only, it finds none after a salvage.
 *
 * Input: the records of the segment, in one frame, then those of each frame of the body
 * file. The target makes the heads and the checksums.
 */
#include "fuzz/fuzz.h"

#include "api/state.h"
#include "claimd/engine/engine.h"
#include "claimd/journal/inspect.h"
#include "journal/bodies.h"
#include "journal/record.h"
#include "journal/segment.h"
#include "support/patient.h"
#include "support/sim_disk.h"
#include "support/store_fixture.h"

#include <stdio.h>

enum { SEGMENT = 64 * 1024 };
#define NOW_MS (START_MS + 100000)

static const uint8_t nonce[NONCE_BYTES] = {1};

/* ------------------------------------------------------------------ files */

static bool
is_near(int64_t ms)
{
    return ms >= 0 && ms <= 2 * START_MS;
}

/* False for records of feeds, dead letters and keys, which have nothing to do with runs,
 * and for times with which no clock can calculate. */
static bool
is_wanted(const uint8_t *at, size_t left)
{
    static const uint64_t wanted =
        1 << STORE_CHANGE_QUEUE | 1 << STORE_CHANGE_QUEUE_GONE | 1 << STORE_CHANGE_PURGE |
        1 << STORE_CHANGE_POST | 1 << STORE_CHANGE_DELETE | 1 << STORE_CHANGE_CLAIM |
        1 << STORE_CHANGE_RENEW | 1 << STORE_CHANGE_RELEASE | 1 << STORE_CHANGE_STATE |
        1 << STORE_CHANGE_RUN | 1 << RECORD_MARK;
    struct store_message_record m;
    struct record record;

    if (record_read(at, left, &record) != ST_OK)
        return true;
    if ((wanted >> record.type & 1) == 0 || !is_near(record.change.now_ms) ||
        !is_near(record.change.claim.started_ms) || !is_near(record.change.claim.ends_ms))
        return false;
    if (record.change.run != NULL && (!is_near(record.change.run->posted_ms) ||
                                      !is_near(record.change.run->expires_ms)))
        return false;
    while (record.change.next(&record.change, &m))
        if (!is_near(m.posted_ms) || !is_near(m.expires_ms) ||
            !is_near(m.delayed_until_ms) ||
            (m.claim != NULL &&
             (!is_near(m.claim->started_ms) || !is_near(m.claim->ends_ms))))
            return false;
    return true;
}

/* The whole records at the beginning of a text; their number in *count. */
static struct bytes
whole_records(struct bytes text, uint32_t *count)
{
    const uint8_t *at = (const uint8_t *)text.data;
    size_t used = 0, step;

    for (*count = 0; (step = record_size(at + used, text.len - used)) > 0 &&
                     is_wanted(at + used, text.len - used);
         ++*count)
        used += step;
    return bytes_of(text.data, used);
}

/* Adds a frame to a file. */
static void
add_frame(struct buf *file, struct bytes records, uint32_t count, uint64_t first_lsn)
{
    const struct frame frame = {.first_lsn = first_lsn,
                                .time_ms = START_MS,
                                .count = count,
                                .length = (uint32_t)records.len};
    const size_t at = file->len;
    static const char head[FRAME_HEAD_BYTES];

    buf_add(file, head, sizeof(head));
    buf_bytes(file, records);
    frame_seal((uint8_t *)file->data + at, &frame, nonce);
}

static void
begin_file(struct buf *file, uint64_t number)
{
    const struct segment_head head = {.version = SEGMENT_VERSION,
                                      .required = SEGMENT_BODIES,
                                      .journal = {2},
                                      .nonce = {1},
                                      .first_lsn = number,
                                      .bytes = SEGMENT,
                                      .made_ms = START_MS};
    uint8_t bytes[SEGMENT_HEAD_BYTES];

    buf_reset(file, SIZE_MAX);
    segment_head_write(bytes, &head);
    buf_add(file, bytes, sizeof(bytes));
}

static void
write_file(struct disk *disk, const char *name, const struct buf *contents)
{
    struct disk_file *file = NULL;

    fuzz_check(disk_file_open(disk, name, DISK_NEW, &file) == 0 &&
                   disk_write(disk, file, 0, contents->data, contents->len) == 0 &&
                   disk_sync(disk, file) == 0,
               "a file cannot be written");
    disk_close(disk, file);
}

static struct sim_disk *
make_disk(struct bytes input, struct fuzz_memory *m)
{
    struct sim_disk *sd = sim_disk_new(1);
    struct disk *disk = sim_disk_open(sd);
    char name[DISK_NAME_CAP];
    struct bytes records;
    uint32_t count;

    begin_file(&m->out, 1);
    records = whole_records(fuzz_section(&input), &count);
    add_frame(&m->out, records, count, 1);
    segment_name(name, 1);
    write_file(disk, name, &m->out);
    begin_file(&m->out, 1);
    while (bytes_present(input)) {
        records = whole_records(fuzz_section(&input), &count);
        add_frame(&m->out, records, count, m->out.len);
    }
    body_file_name(name, 1);
    write_file(disk, name, &m->out);
    return sd;
}

/* ------------------------------------------------------------------ readers */

static struct store *
open_store(struct fuzz_memory *m, struct store_log *log, struct store_runs *runs)
{
    struct engine_config config = fixture_config(m->mem);
    struct store *store;

    config.log = log;
    config.runs = runs;
    config.backlog_memory = UINT64_MAX;
    fuzz_check(engine_open(&config, &store) == ST_OK, "no store");
    return patient_open(store);
}

/* The contents of a store as lines, in the arena. between(arg) reads body files. */
static struct bytes
contents(struct fuzz_memory *m, struct store *store, void (*between)(void *), void *arg)
{
    struct store_op op = {.now_ms = NOW_MS};
    enum status st;

    patient_between(store, between, arg);
    fuzz_check(store_audit(patient_inside(store)), "the store is unsound");
    buf_reset(&m->out, SIZE_MAX);
    st = state_write(store, &op, BYTES_NONE, &m->out);
    fuzz_check(st == ST_OK, "the contents cannot be read: %s", status_name(st));
    fuzz_check(store_audit(patient_inside(store)), "the store is unsound");
    return arena_copy(&m->arena, buf_view(&m->out));
}

static void
load_checked(void *bodies)
{
    char error[JOURNAL_ERROR_CAP];
    enum status st = journal_bodies_load(bodies, error);

    fuzz_check(st == ST_OK, "%s", error);
}

struct verdict {
    struct bytes contents;         /* in the arena; absent: there is damage */
    char error[JOURNAL_ERROR_CAP]; /* then the last one */
    bool log;                      /* some of it is not in body files */
};

static void
note_damage(void *arg, const struct journal_damage *damage)
{
    struct verdict *v = arg;

    (void)snprintf(v->error, sizeof(v->error), "%s %s", damage->name, damage->what);
    v->log = v->log || body_file_number(damage->name) == 0;
}

static struct verdict
verify(struct fuzz_memory *m, struct sim_disk *disk)
{
    struct verdict v = {.contents = BYTES_NONE};
    const struct journal_callbacks callbacks = {.damage = note_damage, .arg = &v};
    struct journal_findings found = {.now_ms = NOW_MS};
    struct journal_bodies *bodies;
    struct store *store;
    enum status st;

    fuzz_check(journal_bodies_open(sim_disk_open(disk), &bodies) == ST_OK, "no memory");
    store = open_store(m, NULL, journal_bodies_runs(bodies));
    st = journal_verify(bodies, patient_inside(store), &callbacks, &found, v.error);
    v.log = v.log || st != ST_OK || !found.replayed;
    if (!v.log && found.damages == 0)
        v.contents = contents(m, store, load_checked, bodies);
    else
        fuzz_check(v.error[0] != '\0', "%s without a reason", status_name(st));
    journal_bodies_close(bodies);
    store_close(store);
    return v;
}

static void
load_of_journal(void *journal)
{
    fuzz_check(journal_load_run(journal), "a run cannot be read");
    while (journal_load_run(journal))
        continue;
}

/* The contents, if the journal can be recovered. */
static struct bytes
recover(struct fuzz_memory *m, struct sim_disk *disk, bool good)
{
    struct journal_config config = {
        .disk = sim_disk_open(disk), .segment_bytes = SEGMENT, .seeded = true, .seed = 1};
    struct journal_recovery recovery = {.now_ms = NOW_MS, .accept_clock = true};
    char error[JOURNAL_ERROR_CAP] = "";
    struct bytes seen = BYTES_NONE;
    struct journal *journal;
    struct store *store;
    enum status st;

    fuzz_check(journal_open(&config, &journal, error) == ST_OK, "%s", error);
    store = open_store(m, journal_log(journal), journal_runs(journal));
    st = journal_recover(journal, patient_inside(store), &recovery, error);
    fuzz_check(st == ST_OK || error[0] != '\0', "%s without a reason", status_name(st));
    fuzz_check(st == ST_OK || !good, "refused: %s", error);
    if (good)
        seen = contents(m, store, load_of_journal, journal);
    journal_close(journal);
    store_close(store);
    return seen;
}

static struct sim_disk *
salvage(struct sim_disk *disk)
{
    const struct journal_callbacks callbacks = {.arg = NULL};
    struct sim_disk *out = sim_disk_new(2);
    struct journal_findings found = {.now_ms = NOW_MS};
    char error[JOURNAL_ERROR_CAP] = "";
    enum status st = journal_salvage(sim_disk_open(disk), sim_disk_open(out), SEGMENT,
                                     &callbacks, &found, error);

    fuzz_check(st == ST_OK || error[0] != '\0', "%s without a reason", status_name(st));
    if (st == ST_OK)
        return out;
    sim_disk_free(out);
    return NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = fuzz_copy(fuzz_input(data, size)), recovered;
    struct sim_disk *disk, *out;
    struct verdict before, after;
    struct fuzz_memory m;

    fuzz_memory_open(&m);
    disk = make_disk(input, &m);
    before = verify(&m, disk);
    out = salvage(disk);
    recovered = recover(&m, disk, bytes_present(before.contents));
    fuzz_check(bytes_equal(before.contents, recovered), "%.*s became %.*s",
               (int)before.contents.len, before.contents.data, (int)recovered.len,
               recovered.data);
    if (out != NULL && !before.log) {
        after = verify(&m, out);
        fuzz_check(bytes_present(after.contents), "after the salvage: %s", after.error);
    }
    if (out != NULL)
        sim_disk_free(out);
    sim_disk_free(disk);
    fuzz_memory_close(&m);
    fuzz_free(input);
    return 0;
}
