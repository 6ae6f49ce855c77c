/*
 * space: the bytes that the log may still take, and those that are kept. Declared in
 * journal_private.h.
 */
#include "claimd/base/invariant.h"
#include "journal/journal_private.h"

/* Bytes that are kept for marks. */
enum { MARKS_SPACE = 2048 };

/* Rough bytes of a message or queue besides its texts, and of its deletion. */
enum { LIVE_EACH = 96, DELETE_EACH = 24 };

/* Of an unloaded message in a RUN. */
enum { RUN_EACH = 10 };

/* Free segments from which on the disk counts as empty. */
enum { PLENTY_SEGMENTS = 16 };

/* With this many times the bytes of the log free, there is enough space for any
 * checkpoint. */
enum { SURELY_ENOUGH = 8 };

uint64_t
journal_live_bytes(struct journal *j, struct store_live *live)
{
    store_live(j->store, live);
    return live->messages * LIVE_EACH + live->bytes + live->unloaded * RUN_EACH;
}

/* Bytes by which the segments may still grow within max_bytes. */
static uint64_t
bytes_allowed(const struct journal *j)
{
    const struct segments *s = &j->segments;
    const uint64_t taken =
        s->bytes + s->spares * s->segment_bytes + atomic_load(&j->bodies.bytes);

    ENSURE(s->spares <= SEGMENT_SPARES_MOST);
    if (j->config.max_bytes == 0)
        return UINT64_MAX;
    return j->config.max_bytes > taken ? j->config.max_bytes - taken : 0;
}

/* Segments that can still be made besides the spares, as far as is known. */
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

uint64_t
journal_bytes_freed(const struct segments *s)
{
    ENSURE(s->count > 0 && s->bytes >= s->all[s->count - 1].bytes);
    return s->bytes - s->all[s->count - 1].bytes;
}

uint64_t
journal_slice_most(const struct segments *s)
{
    return s->segment_bytes / 4;
}

uint64_t
journal_checkpoint_bytes(const struct segments *s, uint64_t live)
{
    return live + live / 8 + journal_slice_most(s);
}

/*
 * The bytes that are kept for a checkpoint, whose records are written before old segments
 * go, for the deletion of all live data, and for claims and releases until a checkpoint
 * can free enough. A log without space for its checkpoint could never free any.
 */
static uint64_t
bytes_kept(struct journal *j)
{
    const struct segments *s = &j->segments;
    const uint64_t surely = SURELY_ENOUGH * (s->bytes + s->segment_bytes);
    uint64_t freed = journal_bytes_freed(s), bytes, need;
    struct store_live live;

    /* Without the store, whose locks would be taken, and with space for body files. */
    if (bytes_left(j) > surely + 4 * BODIES_FILE_BYTES)
        return surely;
    bytes = journal_live_bytes(j, &live);
    need = journal_checkpoint_bytes(s, bytes);
    if (need > freed)
        need += need - freed;
    return need + 2 * s->segment_bytes + (live.messages + live.unloaded) * DELETE_EACH;
}

bool
journal_checkpoint_fits(struct journal *j, uint64_t leaves)
{
    const struct journal_checkpoints *c = &j->checkpoint;
    struct store_live live;
    uint64_t bytes = journal_live_bytes(j, &live);

    if (c->under_way && c->end < j->checkpointed + bytes)
        bytes = c->end > j->checkpointed ? c->end - j->checkpointed : 0;
    return bytes_left(j) > journal_checkpoint_bytes(&j->segments, bytes) +
                               (live.messages + live.unloaded) * DELETE_EACH + leaves;
}

/* Checks whether another spare may be made. One may always be made if the disk has space,
 * also beyond max_bytes: the checkpoint that is written with it reduces the bytes. */
static bool
may_add_spare(const struct journal *j)
{
    const struct segments *s = &j->segments;

    if (s->spares == 0)
        return j->disk_free >= s->segment_bytes;
    return s->spares < SEGMENT_SPARES_MOST &&
           more_segments(j) >= (s->spares < SEGMENT_SPARES ? 1 : PLENTY_SEGMENTS);
}

static size_t
subtract_or_zero(size_t bytes, size_t by)
{
    return bytes > by ? bytes - by : 0;
}

/*
 * Sets the bytes that may be granted. A frame does not cross segments, but is at most
 * half of one. So half of each spare counts, but not the rest of the current segment.
 * Without a spare the rest is for a checkpoint if it fits there, and else for deletions
 * and releases, but for the last slice. The last spare is kept for these, and a little
 * for marks, which do not ask for space.
 */
static void
set_space(struct journal *j)
{
    const struct segments *s = &j->segments;
    size_t each = j->buffers[0].frame_max * (SEGMENT_FRAMES - 1);
    size_t rest = (size_t)(s->size - s->offset), for_deletions = s->spares * each;
    const uint64_t left = bytes_left(j), kept = bytes_kept(j);
    const bool full = s->spares < SEGMENT_SPARES || left < kept;

    atomic_store(&j->bodies.space, full ? 0 : left - kept);
    ENSURE(s->offset <= s->size && (full || s->spares > 0));
    if (s->spares == 0 && !journal_checkpoint_fits(j, 0))
        for_deletions = subtract_or_zero(rest, journal_slice_most(s));
    lock_acquire(&j->lock);
    j->writing = 0;
    j->short_of_space = full;
    j->limited = bytes_allowed(j) < j->disk_free;
    j->space = subtract_or_zero(for_deletions, MARKS_SPACE);
    j->checkpoint_space = s->spares > 0 ? j->space : subtract_or_zero(rest, MARKS_SPACE);
    j->post_space =
        j->short_of_space ? 0 : subtract_or_zero((s->spares - 1) * each, MARKS_SPACE);
    lock_release(&j->lock);
}

void
journal_update_space(struct journal *j)
{
    struct segments *s = &j->segments;
    int error = 0;

    atomic_store(&j->count_shown, s->count);
    atomic_store(&j->bytes_shown, s->bytes);
    /* The free space is read again if space is short, or once per segment. */
    if (s->spares < SEGMENT_SPARES || j->counted != s->count || j->short_of_space) {
        j->counted = s->count;
        if (disk_free_bytes(s->disk, &j->disk_free) != 0)
            j->disk_free = 0;
    }
    while (error == 0 && may_add_spare(j)) {
        error = segments_add_spare(s, s->segment_bytes);
        j->disk_free -= s->segment_bytes;
    }
    if (error != 0 && !disk_is_full(error)) {
        journal_lose(j, "create a segment", error);
        return;
    }
    atomic_store(&j->left_shown, bytes_left(j));
    set_space(j);
}
