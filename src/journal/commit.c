/* The committer: buffers become frames, frames become durable, and old segments go. */
#include "claimd/base/invariant.h"
#include "journal/journal_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A checkpoint is due when there is so much more than lives; it shows so many bytes for one. */
enum { CHECKPOINT_FACTOR = 2, CHECKPOINT_SEGMENTS = 4, CHECKPOINT_PACE = 2 };

/* Of the room on the disk, for marks. */
enum { MARKS_ROOM = 2048 };

/* What a message, or a queue, takes besides its texts, roughly; and its deletion. */
enum { LIVE_EACH = 96, DELETE_EACH = 24 };

/* With room for so many more segments the disk has plenty. */
enum { PLENTY_SEGMENTS = 16 };

/* So much more room than there is in the log is enough, whatever lives. */
enum { SURELY_ENOUGH = 8 };

/* Images that are shown at a time when nobody pays for them. */
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

void
journal_lose(struct journal *j, const char *what, int error)
{
    char text[JOURNAL_ERROR_CAP];

    if (atomic_exchange(&j->lost, true))
        return;
    j->lost_error = error;
    if (!j->recovered)
        return;
    (void)snprintf(text, sizeof(text), "the journal cannot %s: %s", what,
                   strerror(error));
    if (j->config.log != NULL)
        log_event(j->config.log, LOG_ERROR, "journal_failed", LOG_S("error", text));
    notify_listeners(j);
    if (j->config.failed != NULL)
        j->config.failed(j->config.failed_arg, text, error);
}

/* ------------------------------------------------------------------ room */

/* What a checkpoint of all that lives would take. */
static uint64_t
live_bytes(struct journal *j, uint64_t *messages)
{
    uint64_t bytes;

    store_live(j->store, messages, &bytes);
    return *messages * LIVE_EACH + bytes;
}

/* Bytes that the segments may still grow by, as far as max_bytes goes. */
static uint64_t
bytes_allowed(const struct journal *j)
{
    const struct segments *s = &j->segments;
    uint64_t taken = s->bytes + s->spares * s->segment_bytes;

    if (j->config.max_bytes == 0)
        return UINT64_MAX;
    return j->config.max_bytes > taken ? j->config.max_bytes - taken : 0;
}

/* How many more segments there may be besides the spares, as far as that is known. */
static uint64_t
more_segments(const struct journal *j)
{
    uint64_t allowed = bytes_allowed(j);

    return (allowed < j->disk_free ? allowed : j->disk_free) / j->segments.segment_bytes;
}

static uint64_t
bytes_left(const struct journal *j)
{
    const struct segments *s = &j->segments;

    return s->size - s->offset + (s->spares + more_segments(j)) * s->segment_bytes;
}

/* What a checkpoint that began now would free. */
static uint64_t
bytes_freed(const struct segments *s)
{
    return s->bytes - s->all[s->count - 1].bytes;
}

/* A slice is hardly ever longer. */
static uint64_t
slice_most(const struct segments *s)
{
    return s->segment_bytes / 4;
}

/* A checkpoint that frees less is not worth what it writes. */
static uint64_t
worth_a_checkpoint(const struct segments *s, uint64_t live)
{
    return live + live / 8 + slice_most(s);
}

/*
 * Is there room for posts? Not if a checkpoint would not fit any more, whose records come before
 * anything goes, nor the deletion of all that lives, nor what is claimed and released until
 * there is enough to be in a checkpoint: a log without room for its checkpoint would never have any again.
 */
static bool
has_room_for_posts(struct journal *j)
{
    const struct segments *s = &j->segments;
    uint64_t left = bytes_left(j), freed = bytes_freed(s), messages, live, need;

    if (s->spares < SEGMENT_SPARES)
        return false;
    if (left > SURELY_ENOUGH * (s->bytes + s->segment_bytes))
        return true; /* without asking the store, which has locks */
    live = live_bytes(j, &messages);
    need = live + slice_most(s) + 2 * s->segment_bytes;
    if (worth_a_checkpoint(s, live) > freed)
        need += worth_a_checkpoint(s, live) - freed;
    return left >= need + messages * DELETE_EACH;
}

/*
 * May another spare be made? One always, if the disk has it, also beyond the bytes allowed:
 * what is written with it ends in fewer of them.
 */
static bool
may_stock(const struct journal *j)
{
    const struct segments *s = &j->segments;

    if (s->spares == 0)
        return j->disk_free >= s->segment_bytes;
    return s->spares < SEGMENT_SPARES_MOST &&
           more_segments(j) >= (s->spares < SEGMENT_SPARES ? 1 : PLENTY_SEGMENTS);
}

static size_t
less(size_t bytes, size_t by)
{
    return bytes > by ? bytes - by : 0;
}

/*
 * A frame does not cross segments, but is half of one at most: half of each spare can be
 * counted on, and not the rest of the segment that is written; but for a checkpoint when there is
 * no spare, as long as all fits there. The last spare is for what gives back, and a little for
 * marks, which nobody asks for.
 */
static void
set_room(struct journal *j)
{
    const struct segments *s = &j->segments;
    size_t each = j->buffers[0].frame_max * (SEGMENT_FRAMES - 1);
    size_t rest = (size_t)(s->size - s->offset);
    bool full = !has_room_for_posts(j);

    lock_acquire(&j->lock);
    j->writing = 0;
    j->short_of_room = full;
    j->limited = bytes_allowed(j) < j->disk_free;
    j->room = less(s->spares * each, MARKS_ROOM);
    j->room_for_checkpoint = s->spares > 0 ? j->room : less(rest, MARKS_ROOM);
    j->room_for_more = j->short_of_room ? 0 : less((s->spares - 1) * each, MARKS_ROOM);
    lock_release(&j->lock);
}

void
journal_look_for_room(struct journal *j)
{
    struct segments *s = &j->segments;
    int error = 0;

    atomic_store(&j->count_shown, s->count);
    atomic_store(&j->bytes_shown, s->bytes);
    /* What others do to the disk matters when room is short, or once a segment. */
    if (s->spares < SEGMENT_SPARES || j->counted != s->count || j->short_of_room) {
        j->counted = s->count;
        if (disk_free_bytes(s->disk, &j->disk_free) != 0)
            j->disk_free = 0;
    }
    while (error == 0 && may_stock(j)) {
        error = segments_stock(s, s->segment_bytes);
        j->disk_free -= s->segment_bytes;
    }
    if (error != 0 && !disk_is_full(error)) {
        journal_lose(j, "create a segment", error);
        return;
    }
    atomic_store(&j->left_shown, bytes_left(j));
    set_room(j);
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
    if (error != 0)
        journal_lose(j, "start a segment", error);
    return error == 0;
}

static bool
write_frame(struct journal *j, uint8_t *at, const struct frame *frame)
{
    size_t size = FRAME_HEAD_BYTES + frame->length;
    int error;

    if (!segments_fits(&j->segments, size) && !begin_segment(j, frame))
        return false;
    frame_seal(at, frame, j->segments.nonce);
    error = segments_write(&j->segments, at, size);
    if (error != 0)
        journal_lose(j, "write", error);
    return error == 0;
}

static bool
make_durable(struct journal *j, uint64_t lsn)
{
    int64_t began_ns = clock_stopwatch_ns();
    int error = segments_sync(&j->segments);

    buckets_add(&j->syncs, &journal_sync_bounds,
                (uint64_t)(clock_stopwatch_ns() - began_ns) / 1000);
    if (error != 0) {
        journal_lose(j, "sync",
                     error); /* and never try again: what is read back may lie */
        return false;
    }
    atomic_store(&j->durable, lsn);
    j->commits++;
    notify_listeners(j);
    return true;
}

/* ------------------------------------------------------------------ checkpoints */

/*
 * What is older than a checkpoint whose end is durable is in its records. Each is gone before the
 * next one goes: a crash must not leave an older one without its successor. One at a time:
 * giving back its room takes a disk some milliseconds, and commits wait for that. True if one
 * has gone.
 */
static bool
drop_oldest(struct journal *j)
{
    struct segments *s = &j->segments;
    int error;

    if (j->checkpoint.ended == 0)
        return false;
    /* A step commits all that was appended before it: also the end, from the step before. */
    ENSURE(j->checkpoint.ended <= atomic_load(&j->durable));
    if (s->count == 1 || s->all[1].first_lsn > j->checkpoint.since) {
        j->checkpoint.ended = 0;
        return false;
    }
    error = segments_drop(s, 0);
    if (error == 0)
        error = disk_sync_names(s->disk);
    if (error != 0)
        journal_lose(j, "delete a segment", error);
    return error == 0;
}

static uint64_t
count_news(struct journal *j)
{
    uint64_t news;

    lock_acquire(&j->lock);
    news = j->news;
    lock_release(&j->lock);
    return news;
}

/*
 * Is there so much more in the log than lives? When room is short a little is enough, if
 * anything has happened since the last one. What does not fit any more is not begun; a segment
 * is left, or there could be no start if the process ended in the middle of it.
 */
static bool
is_checkpoint_due(struct journal *j)
{
    const struct segments *s = &j->segments;
    uint64_t messages, live;

    if (j->checkpoint.under_way || j->checkpoint.ended != 0)
        return false;
    if (atomic_load(&j->checkpoint.wanted))
        return true;
    if (s->count <= CHECKPOINT_SEGMENTS && !j->short_of_room)
        return false;
    live = live_bytes(j, &messages);
    if (j->short_of_room && bytes_left(j) > live + slice_most(s) + s->segment_bytes)
        return bytes_freed(s) > worth_a_checkpoint(s, live) &&
               j->checkpoint.known != count_news(j);
    return s->bytes > CHECKPOINT_FACTOR * live + CHECKPOINT_SEGMENTS * s->segment_bytes;
}

/* Are there bytes for another slice, whatever the disk has? */
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
    return segments_fits(s, waiting + (size_t)slice_most(s));
}

/*
 * Shows what was paid for: two bytes of checkpoints for each that was appended; all, if somebody
 * wants the checkpoint itself; and a good deal when room is short, whether anything comes or not.
 */
static void
checkpoint(struct journal *j, uint64_t appended)
{
    bool wanted = atomic_load(&j->checkpoint.wanted);
    uint64_t shown = 0; /* others need the buffer, too, and commits must not take long */

    if (is_checkpoint_due(j)) {
        wanted |= atomic_exchange(&j->checkpoint.wanted, false);
        j->checkpoint.under_way = true;
        j->checkpoint.known = count_news(j);
        j->checkpoint.since = journal_mark(j, MARK_CHECKPOINT_BEGIN, 0);
        store_checkpoint_begin(j->store);
    }
    if (!j->checkpoint.under_way)
        return;
    if (wanted)
        j->checkpoint.credit = INT64_MAX / 2;
    if (j->short_of_room && j->checkpoint.credit < CHECKPOINT_UNPAID)
        j->checkpoint.credit = CHECKPOINT_UNPAID;
    j->checkpoint.credit += (int64_t)(CHECKPOINT_PACE * appended);
    while (j->checkpoint.credit > 0 && shown < slice_most(&j->segments) / 2) {
        uint64_t before = j->checkpointed;
        bool done = false;

        if (!slice_fits(j) || store_checkpoint(j->store, &done) != ST_OK)
            return; /* there is no room at the moment */
        shown += j->checkpointed - before;
        j->checkpoint.credit -= (int64_t)(j->checkpointed - before);
        if (done) {
            j->checkpoint.under_way = false;
            j->checkpoint.ended =
                journal_mark(j, MARK_CHECKPOINT_END, j->checkpoint.since);
            j->checkpoint.done++;
            j->checkpoint.credit = 0;
        }
    }
}

/* ------------------------------------------------------------------ steps */

/* Takes what is to be committed; NULL: there is nothing. */
static struct buffer *
take_buffer(struct journal *j, uint64_t *appended)
{
    struct buffer *b = NULL;

    lock_acquire(&j->lock);
    if (j->filling->used > 0) {
        b = j->filling;
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
    struct buffer *b;

    if (atomic_load(&j->lost))
        return false;
    b = take_buffer(j, &appended);
    if (b == NULL && drop_oldest(j)) {
        journal_look_for_room(j);
        return true;
    }
    if (b == NULL) {
        if (atomic_load(&j->checkpoint.wanted))
            checkpoint(j, 0);
        lock_acquire(&j->lock);
        filled = j->filling->used > 0; /* not without room: later commits go on */
        lock_release(&j->lock);
        return filled;
    }
    buffer_close(b);
    /*
     * Nearly always one frame. Each is durable before the next is written, so a frame that is not
     * whole has none behind it, unless it was damaged later.
     */
    for (size_t at = 0; written && at < b->used;) {
        struct frame frame;

        memcpy(&frame, b->bytes + at, sizeof(frame));
        written = write_frame(j, b->bytes + at, &frame) &&
                  make_durable(j, frame.first_lsn + frame.count - 1);
        at += FRAME_HEAD_BYTES + frame.length;
    }
    buffer_reset(b);
    if (!written)
        return false;
    j->sealed = false;
    (void)drop_oldest(j);
    journal_look_for_room(j);
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
    next_lsn = atomic_load(&j->durable) + 1; /* what is in the buffer comes behind */
    now_ms = journal_now_ms(j);
    j->aged = false;
    lock_release(&j->lock);
    j->sealed = true; /* also if it does not fit: the next frame tells the time */
    error = segments_seal(&j->segments, next_lsn, now_ms);
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
    if (!j->sealed || !j->short_of_room || aged)
        journal_seal(j); /* if room is short this comes every second */
    if (!j->short_of_room || atomic_load(&j->lost))
        return;
    journal_look_for_room(j);
    checkpoint(j, 0);
}
