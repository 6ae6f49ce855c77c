/*
 * commit: the committer writes buffers as frames, makes them durable, and removes old
 * segments. Declared in claimd/journal/journal.h and journal_private.h. journal.c has
 * its thread.
 *
 * A commit:
 *
 *     1. take_buffer() exchanges the buffers. Workers go on in the other one.
 *     2. journal_step() writes its frames, mostly one. write_frame() begins a segment if
 *        the frame does not fit into the present one.
 *     3. make_durable() syncs, raises journal.durable and notifies the listeners. The
 *        workers send the responses up to that LSN. Only then the next frame is written.
 *     4. drop_oldest() removes a segment that a checkpoint has replaced.
 *        journal_update_space() makes spares, and sets how much may be granted.
 *     5. checkpoint() appends slices of a checkpoint, for the next commit.
 *
 * If a step fails, journal_lose() ends all, because after a failed sync the system may
 * show data that are not on the disk.
 *
 * A checkpoint:
 *
 *     1. is_checkpoint_due() compares the log with the live data, or with the space
 *        (space.c).
 *     2. checkpoint() appends MARK_CHECKPOINT_BEGIN, and store_checkpoint_begin()
 *        begins.
 *     3. store_checkpoint() appends slices (engine/state_read.c), CHECKPOINT_PACE bytes
 *        for each byte of changes. So the checkpoint ends before the log has grown much.
 *     4. After the last slice journal_mark() appends MARK_CHECKPOINT_END. The next
 *        commit makes it durable.
 *     5. drop_oldest() removes the segments in front of the beginning, one after each
 *        commit, because commits wait for the removal.
 */
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"
#include "journal/journal_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A checkpoint is due when the log is CHECKPOINT_FACTOR times as large as the live data,
 * has an eighth of the bytes of unloaded messages besides, and CHECKPOINT_SEGMENTS. It
 * writes CHECKPOINT_PACE bytes for each appended byte. */
enum {
    CHECKPOINT_FACTOR = 2,
    UNLOADED_SHARE = 8,
    CHECKPOINT_SEGMENTS = 4,
    CHECKPOINT_PACE = 2
};

/* A checkpoint is due as well when the body files have BODIES_SPARSE_FACTOR times the
 * bytes that their messages need, and this many more. At most one in SPARSE_MS. */
enum { SPARSE_LEAST = 4 * BODIES_FILE_BYTES, SPARSE_MS = 10000 };

/* Records of body files that go at a time. */
enum { EMPTY_AT_ONCE = 16 };

/* Bytes of checkpoint records per step that are written without credit. */
enum { CHECKPOINT_UNPAID = 4 << 20 };

static void
notify_listeners(struct journal *j)
{
    lock_acquire(&j->watching);
    for (struct list *at = j->listeners.next; at != &j->listeners; at = at->next) {
        struct store_listener *listener = container_of(at, struct store_listener, link);
        struct store_wakeup *wakeup = listener->notify(listener, STORE_READY);

        if (wakeup != NULL)
            wakeup->fire(wakeup);
    }
    lock_release(&j->watching);
}

/* Nothing becomes durable any more. */
static void
journal_end(struct journal *j, const char *text, int error)
{
    if (atomic_exchange(&j->lost, true))
        return;
    SOMETIMES_IF(j->checkpoint.under_way, LOST_IN_CHECKPOINT);
    j->lost_error = error;
    if (!j->recovered)
        return;
    if (j->config.log != NULL)
        log_event(j->config.log, LOG_ERROR, "journal_failed", LOG_S("error", text));
    notify_listeners(j);
    if (j->config.failed != NULL)
        j->config.failed(j->config.failed_arg, text, error);
}

void
journal_lose(struct journal *j, const char *what, int error)
{
    char text[JOURNAL_ERROR_CAP];

    (void)snprintf(text, sizeof(text), "the journal cannot %s: %s", what,
                   strerror(error));
    journal_end(j, text, error);
}

/* ------------------------------------------------------------------ writing */

static bool
begin_segment(struct journal *j, const struct frame *frame)
{
    int error = disk_check_lock(j->config.disk, JOURNAL_LOCK, j->lock_file);

    if (error != 0) {
        journal_lose(j,
                     "continue, because the file 'lock' was deleted or replaced and "
                     "another process may write to the directory",
                     error);
        return false;
    }
    error = segments_begin(&j->segments, frame->first_lsn, frame->time_ms);
    if (error == 0)
        error = segments_note_durable(&j->segments, frame->first_lsn - 1, 0);
    SOMETIMES_IF(error != 0, SEGMENT_FAILS);
    SOMETIMES_IF(j->checkpoint.under_way, SEGMENT_IN_CHECKPOINT);
    if (error != 0)
        journal_lose(j, "start a segment", error);
    else if ((j->segments.required & SEGMENT_BODIES) != 0)
        atomic_store(&j->bodies.permitted, true);
    return error == 0;
}

/*
 * Checks whether there are body files or records that need a feature, and the segment
 * does not say so. An older claimd must not read later frames. So segments that begin
 * from now on say so, and the present one ends, unless it has no frame, or there is no
 * spare segment for more than deletions. (An older claimd takes such a record for damage
 * then.)
 */
static bool
needs_feature(struct journal *j, const struct frame *frame)
{
    struct segments *s = &j->segments;

    if (atomic_load(&j->bodies.wanted))
        s->required |= SEGMENT_BODIES;
    s->required |= atomic_load(&j->features);
    if (s->current == s->required)
        return false;
    return s->all[s->count - 1].first_lsn != frame->first_lsn &&
           s->spares > SEGMENT_SPARES;
}

static bool
write_frame(struct journal *j, uint8_t *at, const struct frame *frame)
{
    size_t size = FRAME_HEAD_BYTES + frame->length;
    int error;

    if ((needs_feature(j, frame) || !segments_fits(&j->segments, size)) &&
        !begin_segment(j, frame))
        return false;
    ENSURE(frame->count > 0 && size <= FRAME_BYTES_MAX);
    frame_seal(at, frame, j->segments.nonce);
    error = segments_write(&j->segments, at, size);
    SOMETIMES_IF(error != 0, WRITE_FAILS);
    if (error != 0)
        journal_lose(j, "write", error);
    return error == 0;
}

static bool
make_durable(struct journal *j, uint64_t lsn)
{
    int64_t began_ns = clock_stopwatch_ns();
    int error = segments_sync(&j->segments);

    buckets_add(&j->syncs, &disk_bounds_us,
                (uint64_t)(clock_stopwatch_ns() - began_ns) / 1000);
    if (error != 0) {
        SOMETIMES(SYNC_FAILS);
        journal_lose(j, "sync", error); /* no retry: cached data may lie now */
        return false;
    }
    ENSURE(lsn > atomic_load(&j->durable));
    atomic_store(&j->durable, lsn);
    bodies_note_durable(&j->bodies, lsn);
    j->commits++;
    notify_listeners(j);
    return true;
}

/* ------------------------------------------------------------------ checkpoints */

/*
 * Removes the oldest segment, if it is older than a durable checkpoint. Each removal is
 * durable before the next one: a crash must not leave an older segment without its
 * successor. One at a time, since freeing its space takes a disk some milliseconds, and
 * commits wait for that. True: a segment was removed.
 */
static bool
drop_oldest(struct journal *j)
{
    struct segments *s = &j->segments;
    int error;

    if (j->checkpoint.ended == 0)
        return false;
    /* The commit before included the end mark. */
    ENSURE(j->checkpoint.ended <= atomic_load(&j->durable));
    ENSURE(s->count > 0 && j->checkpoint.since < j->checkpoint.ended);
    if (s->count == 1 || s->all[1].first_lsn > j->checkpoint.since) {
        j->checkpoint.ended = 0;
        return false;
    }
    error = segments_remove(s, 0);
    if (error == 0)
        error = disk_sync_names(s->disk);
    SOMETIMES_IF(error != 0, DROP_FAILS);
    if (error != 0)
        journal_lose(j, "delete a segment", error);
    return error == 0;
}

static uint64_t
activity_count(struct journal *j)
{
    uint64_t activity;

    lock_acquire(&j->lock);
    activity = j->activity;
    lock_release(&j->lock);
    return activity;
}

bool
journal_may_have_sparse(const struct journal *j)
{
    lock_assert_held(&j->lock);
    return atomic_load(&j->bodies.sparse) ||
           (atomic_load(&j->bodies.bytes) > SPARSE_LEAST &&
            j->activity != j->checkpoint.looked_activity);
}

/* Requests a checkpoint if it would find sparse body files, or move their runs. */
static void
look_for_sparse(struct journal *j)
{
    bool found = atomic_load(&j->bodies.sparse);
    struct store_live live;
    int64_t now_ms;
    bool look;

    if (!found && atomic_load(&j->bodies.bytes) <= SPARSE_LEAST)
        return; /* without the lock, which posts need */
    lock_acquire(&j->lock);
    now_ms = journal_now_ms(j);
    look = journal_may_have_sparse(j) && now_ms - j->checkpoint.looked_ms >= SPARSE_MS;
    if (look) {
        j->checkpoint.looked_ms = now_ms;
        j->checkpoint.looked_activity = j->activity;
    }
    lock_release(&j->lock);
    if (look && !found) {
        store_live(j->store, &live);
        found = atomic_load(&j->bodies.bytes) >
                SPARSE_LEAST + BODIES_SPARSE_FACTOR * (live.unloaded_bytes +
                                                       live.unloaded * STORE_BODY_EACH);
    }
    if (look && found)
        journal_checkpoint(j);
}

/*
 * Checks whether the space is enough to begin a checkpoint or to continue with it. On a
 * full disk one that cannot end would take the space that deletions need. Before it
 * begins or continues after a pause, a segment must stay free besides: others may fill
 * the disk, and a start needs it if the process ends. Without a spare no segment can
 * stay free, and only the checkpoint must fit.
 */
static bool
has_space(struct journal *j)
{
    struct journal_checkpoints *c = &j->checkpoint;
    const bool waits = !(c->under_way && c->ready) && j->segments.spares > 0;

    c->ready = !j->short_of_space ||
               journal_checkpoint_fits(j, waits ? j->segments.segment_bytes : 0);
    return c->ready;
}

/* Checks whether a checkpoint is due: it is wanted, or the log is much larger than the
 * live data, or, if space is short, anything happened since the last checkpoint and it
 * frees a little. */
static bool
is_checkpoint_due(struct journal *j)
{
    const struct segments *s = &j->segments;
    const bool wanted = atomic_load(&j->checkpoint.wanted);
    struct store_live live;
    uint64_t bytes;

    if (j->checkpoint.under_way || j->checkpoint.ended != 0)
        return false;
    if (wanted || (s->count <= CHECKPOINT_SEGMENTS && !j->short_of_space))
        return wanted && has_space(j);
    if (!has_space(j))
        return false;
    bytes = journal_live_bytes(j, &live);
    if (j->short_of_space)
        return journal_bytes_freed(s) > journal_checkpoint_bytes(s, bytes) &&
               j->checkpoint.activity != activity_count(j);
    return s->bytes > CHECKPOINT_FACTOR * bytes + live.unloaded_bytes / UNLOADED_SHARE +
                          CHECKPOINT_SEGMENTS * s->segment_bytes;
}

/* Checks whether another slice fits into the space that may be granted. */
static bool
slice_fits(struct journal *j)
{
    const struct segments *s = &j->segments;
    size_t waiting;

    if (s->spares > 0)
        return true;
    lock_acquire(&j->lock);
    waiting = j->filling->used + j->granted;
    lock_release(&j->lock);
    return segments_fits(s, waiting + (size_t)journal_slice_most(s));
}

/*
 * Writes slices of the checkpoint within its credit: CHECKPOINT_PACE bytes for each
 * appended byte; all of it if it was requested; at least CHECKPOINT_UNPAID bytes if space
 * is short.
 */
static void
checkpoint(struct journal *j, uint64_t appended)
{
    uint64_t shown = 0; /* bytes of this step */
    struct store_live live;
    bool wanted;

    if (!j->checkpoint.under_way && j->checkpoint.ended == 0)
        look_for_sparse(j);
    wanted = atomic_load(&j->checkpoint.wanted);
    if (is_checkpoint_due(j)) {
        wanted |= atomic_exchange(&j->checkpoint.wanted, false);
        j->checkpoint.under_way = true;
        j->checkpoint.activity = activity_count(j);
        j->checkpoint.end = j->checkpointed + journal_live_bytes(j, &live);
        j->checkpoint.since = journal_mark(j, MARK_CHECKPOINT_BEGIN, 0);
        ENSURE(j->checkpoint.since > atomic_load(&j->durable));
        store_checkpoint_begin(j->store);
        bodies_count_begin(&j->bodies);
    }
    if (!j->checkpoint.under_way)
        return;
    if (wanted)
        j->checkpoint.credit = INT64_MAX / 2;
    if (j->short_of_space && j->checkpoint.credit < CHECKPOINT_UNPAID)
        j->checkpoint.credit = CHECKPOINT_UNPAID;
    j->checkpoint.credit += (int64_t)(CHECKPOINT_PACE * appended);
    while (j->checkpoint.credit > 0 && shown < journal_slice_most(&j->segments) / 2) {
        uint64_t before = j->checkpointed;
        bool done = false;

        if (!has_space(j) || !slice_fits(j) ||
            store_checkpoint(j->store, &done) != ST_OK) {
            SOMETIMES(CHECKPOINT_PAUSES);
            return; /* there is no space now */
        }
        shown += j->checkpointed - before;
        j->checkpoint.credit -= (int64_t)(j->checkpointed - before);
        if (done) {
            j->checkpoint.under_way = false;
            j->checkpoint.ended =
                journal_mark(j, MARK_CHECKPOINT_END, j->checkpoint.since);
            ENSURE(j->checkpoint.ended > j->checkpoint.since);
            bodies_count_end(&j->bodies);
            lock_acquire(&j->lock);
            atomic_store(&j->checkpoint.done_ms, journal_now_ms(j));
            lock_release(&j->lock);
            j->checkpoint.done++;
            j->checkpoint.credit = 0;
        }
    }
}

/* ------------------------------------------------------------------ body files */

/* Logs that empty body files go. */
static void
log_empty_files(struct journal *j)
{
    uint32_t empty;

    for (int i = 0; i < EMPTY_AT_ONCE && (empty = bodies_find_empty(&j->bodies)) != 0;
         i++)
        bodies_note_logged(&j->bodies, empty, journal_mark(j, MARK_FILE_GONE, empty));
}

bool
journal_write_runs(struct journal *j)
{
    const char *what;
    int error;
    const enum bodies_result written = bodies_write(&j->bodies, &what, &error);
    enum bodies_result removed = BODIES_IDLE;

    if (written != BODIES_FAILED)
        removed = bodies_remove(&j->bodies, &what, &error);
    if (written == BODIES_FAILED || removed == BODIES_FAILED)
        journal_lose(j, what, error);
    return written == BODIES_DONE || removed == BODIES_DONE;
}

bool
journal_load_run(struct journal *j)
{
    const char *what;
    int error;
    enum bodies_result result = bodies_load(&j->bodies, &what, &error);

    if (result == BODIES_FAILED && j->damage[0] != '\0')
        journal_end(j, j->damage, error);
    else if (result == BODIES_FAILED)
        journal_lose(j, what, error);
    if (result != BODIES_IDLE)
        notify_listeners(j);
    return result == BODIES_DONE;
}

/* ------------------------------------------------------------------ steps */

/* Takes the filled buffer; NULL: it is empty. */
static struct buffer *
take_buffer(struct journal *j, uint64_t *appended)
{
    struct buffer *b = NULL;

    lock_acquire(&j->lock);
    if (j->filling->used > 0) {
        b = j->filling;
        ENSURE(b->used >= FRAME_HEAD_BYTES && j->writing == 0);
        j->filling = b == &j->buffers[0] ? &j->buffers[1] : &j->buffers[0];
        *appended = j->appended;
        j->appended = 0;
        j->writing = b->used;
    }
    lock_release(&j->lock);
    return b;
}

bool
journal_step(struct journal *j)
{
    uint64_t appended = 0;
    bool written = true, filled;
    int64_t wall_ahead_ms;
    struct buffer *b;

    if (atomic_load(&j->lost))
        return false;
    b = take_buffer(j, &appended);
    if (b == NULL && drop_oldest(j)) {
        journal_update_space(j);
        return true;
    }
    if (b == NULL) {
        if (atomic_load(&j->checkpoint.wanted))
            checkpoint(j, 0);
        lock_acquire(&j->lock);
        filled = j->filling->used > 0; /* without space later commits continue */
        lock_release(&j->lock);
        return filled;
    }
    buffer_close(b);
    wall_ahead_ms = journal_wall_ahead_ms(j);
    /* Mostly one frame. Each frame is durable before the next is written. So if a whole
     * frame stands behind a broken one, that was damaged later. */
    for (size_t at = 0; written && at < b->used;) {
        struct frame frame;

        memcpy(&frame, b->bytes + at, sizeof(frame));
        frame.wall_ahead_ms = wall_ahead_ms;
        ENSURE(frame.length <= b->used - at - FRAME_HEAD_BYTES);
        written = write_frame(j, b->bytes + at, &frame) &&
                  make_durable(j, frame.first_lsn + frame.count - 1);
        SOMETIMES_IF(!written && at > 0, SECOND_FRAME_FAILS);
        at += FRAME_HEAD_BYTES + frame.length;
    }
    buffer_reset(b);
    if (!written)
        return false;
    j->sealed = false;
    (void)drop_oldest(j);
    log_empty_files(j);
    journal_update_space(j);
    checkpoint(j, appended);
    return true;
}

void
journal_seal(struct journal *j)
{
    uint64_t next_lsn;
    int64_t now_ms;
    int error;

    if (atomic_load(&j->lost))
        return;
    lock_acquire(&j->lock);
    next_lsn = atomic_load(&j->durable) + 1; /* records in the buffer have later LSNs */
    now_ms = journal_now_ms(j);
    j->aged = false;
    lock_release(&j->lock);
    j->sealed = true; /* also if it does not fit: the next frame stores the time */
    error = segments_seal(&j->segments, next_lsn, now_ms, journal_wall_ahead_ms(j));
    if (error == 0)
        error = segments_note_durable(&j->segments, next_lsn - 1, 0);
    if (error != 0)
        journal_lose(j, "seal", error);
}

void
journal_checkpoint(struct journal *j)
{
    atomic_store(&j->checkpoint.wanted, true);
}

void
journal_idle(struct journal *j)
{
    bool aged;

    lock_acquire(&j->lock);
    aged = j->aged;
    lock_release(&j->lock);
    if (!j->sealed || !j->short_of_space || aged)
        journal_seal(j); /* repeated while space is short */
    log_empty_files(j);
    if (atomic_load(&j->lost))
        return;
    if (j->short_of_space)
        journal_update_space(j);
    checkpoint(j, 0);
}
