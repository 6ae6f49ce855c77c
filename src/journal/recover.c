/*
 * recover: replays a journal into a store, and continues it. Declared in
 * claimd/journal/journal.h. journal_open() has locked the directory before.
 *
 *     1. reader_list() lists the segments, and choose_sizes() chooses the size of new
 *        ones.
 *     2. replay_log() reads the segments in order (reader.c). apply_record() gives each
 *        record to the store (engine/state_replay.c). Damage ends the start. A torn tail
 *        does not, because no response depended on it.
 *     3. reader_lacks_beginning() refuses a journal whose first segments are missing.
 *     4. choose_store_time() continues the time of the store, and set_clock() sets its
 *        clock. A very long time since the last frame is refused, because all messages
 *        would expire.
 *     5. begin_log() cuts off the zeros of the last segment, and begins a new one. This
 *        comes before the end of the replay, which may append records.
 *     6. end_replay() moves the queues to their shards and expires what is due
 *        (store_replay_end()). Then it appends MARK_OPENED.
 */
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"
#include "journal/journal_private.h"

#include "journal/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_EVERY_MS = 1000 };

struct recovery {
    struct journal *j;
    struct journal_recovery *out;
    struct reader reader;
    struct journal_progress now;   /* bytes: of segments that were read completely */
    int64_t began_ms, reported_ms; /* on the stopwatch */
};

static enum status
apply_record(void *arg, struct reader *reader, struct record *record)
{
    struct recovery *r = arg;
    struct store *store = r->j->store;

    (void)reader;
    r->now.records++;
    if (record->type == STORE_CHANGE_POST || record->type == STORE_CHANGE_MOVE ||
        record->type == STORE_CHANGE_STATE)
        r->now.messages += record->change.count;
    if (record->type == STORE_CHANGE_RUN)
        bodies_note_used(&r->j->bodies, record->run.place.file);
    if (record->type != RECORD_MARK)
        return store_replay(store, &record->change);
    store_replay_marks(store, &record->mark.used);
    return record->mark.what == MARK_FILE_GONE
               ? bodies_note_gone(&r->j->bodies, (uint32_t)record->mark.since)
               : ST_OK;
}

static void
on_frame(void *arg, const struct reader *reader)
{
    struct recovery *r = arg;
    const struct journal_config *config = &r->j->config;
    struct journal_progress p = r->now;
    int64_t now_ms;

    if (config->stopwatch == NULL || config->progress == NULL)
        return;
    now_ms = clock_now_ms(config->stopwatch);
    if (now_ms - r->reported_ms < PROGRESS_EVERY_MS)
        return;
    r->reported_ms = now_ms;
    p.bytes += reader->now.end;
    p.elapsed_ms = now_ms - r->began_ms;
    /* The rest takes as long per byte. The unused end of the last segment takes less. */
    if (p.bytes > 0 && p.of_bytes > p.bytes)
        p.left_ms = (int64_t)((double)p.elapsed_ms * (double)(p.of_bytes - p.bytes) /
                              (double)p.bytes);
    config->progress(config->progress_arg, &p);
}

static void
on_segment(void *arg, const struct journal_segment *segment)
{
    struct recovery *r = arg;

    r->now.segments++;
    r->now.bytes += segment->bytes;
}

static enum status
replay_log(struct recovery *r)
{
    struct journal_recovery *out = r->out;
    const struct journal_findings *found = &r->reader.found;
    enum status st;

    r->now.of_segments = r->j->segments.count;
    r->now.of_bytes = r->j->segments.bytes;
    st = reader_read(&r->reader);
    reader_fini(&r->reader);
    out->segments = found->segments;
    out->records = found->records;
    out->bytes = found->bytes;
    out->last_ms = found->last_ms;
    out->torn = found->torn_bytes > 0;
    out->torn_bytes = found->torn_bytes;
    return st;
}

/*
 * The time of the store, if it has gone on for as long as the process was down. As long
 * as no clock was set, the wall clock and the stopwatch of the machine agree. The wall
 * clock is taken then, because its milliseconds are those of all processes.
 */
static int64_t
continued_ms(const struct recovery *r)
{
    enum { SET_MS = 1000, MS_NS = 1000000 };
    const struct journal_recovery *out = r->out;
    const uint8_t *boot_id = r->j->config.boot_id;
    const int64_t wall_ms = out->now_ms - r->reader.found.wall_ahead_ms;
    const int64_t boot_ms = (out->stopwatch_ns + r->reader.boot_offset_ns) / MS_NS;

    if (out->down_given)
        return out->last_ms + out->down_ms;
    if (boot_id == NULL || memcmp(boot_id, r->reader.boot_id, BOOT_ID_BYTES) != 0)
        return wall_ms;
    return llabs(wall_ms - boot_ms) < SET_MS ? wall_ms : boot_ms;
}

/* Chooses the time of the store: never earlier than the latest in the log. */
static enum status
choose_store_time(struct recovery *r)
{
    struct journal_recovery *out = r->out;

    if (out->last_ms == 0)
        return ST_OK;
    out->now_ms = continued_ms(r);
    if (out->now_ms > out->last_ms + JOURNAL_LIFE_MAX_MS && !out->accept_clock &&
        !out->down_given)
        return reader_fail(
            &r->reader, ST_BAD_VALUE,
            "the clock says that claimd was down for %" PRId64
            " days (the maximum is 14), and every message would expire. If the clock is "
            "wrong, correct it. If it was wrong before, start once with "
            "--journal-downtime SECONDS, the time for which claimd was down. "
            "If claimd was down for so long, start with --accept-clock, and the messages "
            "expire",
            (out->now_ms - out->last_ms) / (24 * 3600 * 1000));
    SOMETIMES_IF(out->now_ms < out->last_ms, START_CLOCK_BACK);
    if (out->now_ms < out->last_ms)
        out->now_ms = out->last_ms;
    return ST_OK;
}

/* Sets the clock of the store, exactly, so that no deadline comes early. */
static void
set_clock(struct recovery *r, int64_t wall_ms)
{
    struct clock *clock = r->j->config.continued;
    const struct journal_recovery *out = r->out;

    if (clock != NULL && r->j->config.test_api)
        clock_advance_to(clock, out->now_ms);
    else if (clock != NULL && out->now_ms != wall_ms)
        clock_init_since(clock, out->now_ms, out->stopwatch_ns);
}

/* Notes how the time of the store follows from the stopwatch of the machine. */
static void
note_boot(struct recovery *r)
{
    const struct journal_config *config = &r->j->config;
    struct segments *s = &r->j->segments;

    if (config->boot_id == NULL || config->test_api)
        return;
    memcpy(s->boot_id, config->boot_id, BOOT_ID_BYTES);
    s->boot_offset_ns = r->out->now_ms * 1000000 - r->out->stopwatch_ns;
}

/* Chooses the sizes: on a small disk segments are small. */
static int
choose_sizes(struct journal *j)
{
    struct segments *s = &j->segments;
    uint64_t free_bytes = 0;
    int error = disk_free_bytes(s->disk, &free_bytes);

    if (error != 0)
        return error;
    free_bytes += s->bytes + s->spare_bytes;
    if (j->config.max_bytes > 0 && free_bytes > j->config.max_bytes)
        free_bytes = j->config.max_bytes;
    if (j->config.segment_bytes == 0)
        segments_choose_size(s, free_bytes, j->config.change_bytes);
    j->buffers[0].frame_max = j->buffers[1].frame_max = segments_frame_max(s);
    j->store_log.largest = segments_frame_max(s) - FRAME_HEAD_BYTES;
    return 0;
}

/* Closes the last segment: behind its last frame are zeros, whose space is freed. A
 * segment without a record is removed, because the next one gets its name. */
static int
close_last_segment(struct recovery *r)
{
    enum { BLOCK = 4096 };
    struct segments *s = &r->j->segments;
    uint64_t used = r->reader.now.end + r->reader.now.torn_bytes;

    if (s->count == 0)
        return 0;
    ENSURE(s->all[s->count - 1].first_lsn <= r->reader.next_lsn);
    if (s->all[s->count - 1].first_lsn == r->reader.next_lsn) {
        SOMETIMES(START_EMPTY_SEGMENT);
        /* If the process crashes before the next one exists, this one must not count as
         * missing. */
        int error = segments_note_durable(s, r->reader.next_lsn - 1, 1);

        return error == 0 ? segments_remove(s, s->count - 1) : error;
    }
    return segments_trim_last(s, (used + BLOCK - 1) / BLOCK * BLOCK);
}

/* Reports "the journal cannot WHAT: ...", if the failure is not of one file. */
static enum status
start_fails(struct recovery *r, const char *what, int error)
{
    char text[ERRNO_TEXT_CAP];

    return reader_fail(&r->reader, error == ENOMEM ? ST_NO_MEMORY : ST_IO,
                       "the journal cannot %s: %s", what, disk_error_text(error, text));
}

/* Begins a segment, and logs behind the last record. */
static enum status
begin_log(struct recovery *r)
{
    struct journal *j = r->j;
    struct segments *s = &j->segments;
    uint64_t free_bytes;
    int error;

    if (r->reader.next_lsn == 0) { /* no segment: a new journal */
        r->reader.next_lsn = 1;
        if (entropy_reserve(&s->entropy, NONCE_BYTES) != ST_OK)
            return reader_fail(&r->reader, ST_UNAVAILABLE,
                               "the system provides no random numbers");
        entropy_take(&s->entropy, s->journal, NONCE_BYTES);
    }
    error = close_last_segment(r);
    if (error != 0)
        return reader_system_fails(&r->reader, "shrink", error);
    error = segments_adopt_spares(s);
    if (error == 0) {
        /* A start needs a segment. If there is no space for a new one, a spare is used,
         * or a smaller one is made: deletions need the spares. */
        error = disk_free_bytes(s->disk, &free_bytes);
        if (error == 0)
            error = segments_add_small_spare(s, free_bytes);
        if (disk_is_full(error))
            error = 0;
    }
    if (error != 0)
        return start_fails(r, "adopt its spare files", error);
    ENSURE(s->file == NULL && !j->recovered);
    j->next_lsn = r->reader.next_lsn;
    j->time_ms = r->out->now_ms;
    atomic_store(&j->durable, r->reader.next_lsn - 1);
    s->required |= r->reader.required & (SEGMENT_UNIQUE | SEGMENT_CAUSES);
    error = segments_begin(s, r->reader.next_lsn, r->out->now_ms);
    if (error == 0)
        error = segments_note_durable(s, r->reader.next_lsn - 1, 0);
    if (error == 0)
        error = disk_sync_names(s->disk);
    if (error != 0)
        return start_fails(r, "start a segment", error);
    journal_update_space(j);
    if (atomic_load(&j->lost))
        return start_fails(r, "create a segment", j->lost_error);
    return ST_OK;
}

static enum status
end_replay(struct recovery *r)
{
    struct store *store = r->j->store;
    enum status st;
    int error;

    r->j->starting = true;
    st = store_replay_end(store, r->out->now_ms);
    r->j->starting = false;
    if (st != ST_OK && r->j->damage[0] != '\0')
        return reader_fail(&r->reader, st, "%s" READER_ADVICE, r->j->damage);
    if (st == ST_BAD_VALUE)
        return reader_fail(&r->reader, st,
                           "the journal is damaged: it has a queue without a name, or "
                           "two queues with the same name" READER_ADVICE);
    if (st != ST_OK)
        return reader_fail(&r->reader, st, "the store cannot start from the journal: %s",
                           status_text(st));
    error = bodies_remove_unused(&r->j->bodies);
    if (error != 0)
        return start_fails(r, "remove its old body files", error);
    (void)journal_mark(r->j, MARK_OPENED, 0);
    return ST_OK;
}

enum status
journal_recover(struct journal *j, struct store *store, struct journal_recovery *recovery,
                char error[JOURNAL_ERROR_CAP])
{
    struct recovery r = {.j = j,
                         .out = recovery,
                         .reader = {.segments = &j->segments,
                                    .sync = true,
                                    .test_api = j->config.test_api,
                                    .test_only = j->config.test_api,
                                    .error = error,
                                    .record = apply_record,
                                    .frame = on_frame,
                                    .segment = on_segment}};
    const int64_t wall_ms = recovery->now_ms;
    enum status st;
    int failed;

    if (j->config.stopwatch != NULL)
        r.began_ms = r.reported_ms = clock_now_ms(j->config.stopwatch);
    r.reader.arg = &r;
    j->store = store;
    st = reader_list(&r.reader); /* also reads the spares, which takes a while */
    if (st != ST_OK)
        return st;
    failed = choose_sizes(j);
    if (failed != 0)
        return start_fails(&r, "determine the free space of the disk", failed);
    st = replay_log(&r);
    if (st == ST_OK && reader_lacks_beginning(&r.reader))
        st = reader_fail(
            &r.reader, ST_BAD_VALUE,
            "the journal is damaged: its first segment is %016" PRIx64
            ".log, but it needs earlier ones, which are missing" READER_ADVICE,
            r.reader.begins);
    if (st == ST_OK)
        st = choose_store_time(&r);
    if (st == ST_OK) {
        set_clock(&r, wall_ms);
        note_boot(&r);
        st = begin_log(&r);
        SOMETIMES_IF(st != ST_OK, START_FAILS_LATE);
    }
    if (st == ST_OK)
        st = end_replay(&r);
    if (st == ST_OK)
        j->recovered = true;
    else
        atomic_store(&j->lost,
                     true); /* the caller reports the failure, and nothing is committed */
    return st;
}
