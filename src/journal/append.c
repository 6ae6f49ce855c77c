/*
 * append: the journal as the log of a store (claimd/store/log.h). Operations append
 * their changes under the locks of the store.
 *
 *     1. journal_reserve() checks the space in the buffer and on the disk, and grants
 *        some. It is the last step of an operation that can fail.
 *     2. journal_append() writes the record into the open frame of the buffer
 *        (record_write()), and returns its LSN. A group stays in one frame
 *        (buffer_ensure_frame()), because a crash cuts between frames only.
 *     3. journal_unreserve() returns what the operation did not use.
 *     4. journal_flush() wakes the committer, at the end of a round of an event loop, so
 *        that one sync serves all requests of the round. FLUSH_BYTES in the buffer wake
 *        it, too.
 *     5. journal_durability() says whether a response up to this LSN may be sent.
 *
 * Read commit.c next.
 */
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"
#include "journal/journal_private.h"

#include <assert.h> /* static_assert */
#include <string.h>
#include <sys/mman.h>

/* ------------------------------------------------------------------ the buffer */

/* SPLITS: space for heads that split the records into frames. KEEP_BYTES: memory that an
 * empty buffer keeps. */
enum { SPLITS = 4096, KEEP_BYTES = 1 << 20 };

static const size_t mapped = BUFFER_BYTES + FRAME_BYTES_MAX + SPLITS;

static_assert(sizeof(struct frame) <= FRAME_HEAD_BYTES, "it stands there until the seal");

enum status
buffer_init(struct buffer *b)
{
    void *bytes = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    *b = (struct buffer){.bytes = NULL};
    if (bytes == MAP_FAILED)
        return ST_NO_MEMORY;
    b->bytes = bytes;
    return ST_OK;
}

void
buffer_fini(struct buffer *b)
{
    if (b->bytes != NULL)
        (void)munmap(b->bytes, mapped); /* cannot fail */
    b->bytes = NULL;
}

static void
begin_frame(struct buffer *b, uint64_t lsn)
{
    b->head = b->used;
    b->open = (struct frame){.first_lsn = lsn};
    b->used += FRAME_HEAD_BYTES;
}

void
buffer_close(struct buffer *b)
{
    if (b->open.count == 0)
        return;
    ENSURE(b->used == b->head + FRAME_HEAD_BYTES + b->open.length);
    memcpy(b->bytes + b->head, &b->open, sizeof(b->open));
    b->open.count = 0;
}

/* Counts the record of `size` bytes that was written behind the used ones. */
static void
add_record(struct buffer *b, uint64_t lsn, size_t size, int64_t now_ms)
{
    if (b->open.count > 0 && b->used - b->head + size > b->frame_max) {
        const uint8_t *record = b->bytes + b->used;

        SOMETIMES(FRAME_SPLITS);
        buffer_close(b); /* the record begins another frame */
        begin_frame(b, lsn);
        memmove(b->bytes + b->used, record, size);
    }
    ENSURE(b->used - b->head + size <= b->frame_max && b->used + size <= mapped);
    b->used += size;
    b->open.length += (uint32_t)size;
    b->open.count++;
    if (b->open.time_ms < now_ms)
        b->open.time_ms = now_ms;
}

/* Appends a change under this LSN. The buffer has space. Returns the size of its record;
 * 0: it has none. */
static size_t
buffer_append(struct buffer *b, uint64_t lsn, struct store_change *change)
{
    bool begun = b->open.count > 0;
    size_t size;

    if (!begun)
        begin_frame(b, lsn);
    size = record_write(b->bytes + b->used, change);
    if (size > 0)
        add_record(b, lsn, size, change->now_ms);
    else if (!begun)
        b->used = b->head;
    return size;
}

/* Ensures that the next records, of so many bytes together, are in one frame: a crash
 * cuts between frames only. */
static void
buffer_ensure_frame(struct buffer *b, size_t bytes)
{
    ENSURE(FRAME_HEAD_BYTES + bytes <= b->frame_max);
    if (b->open.count > 0 && b->used - b->head + bytes > b->frame_max)
        buffer_close(b);
}

void
buffer_reset(struct buffer *b)
{
    if (b->used > KEEP_BYTES)
        (void)madvise(b->bytes + KEEP_BYTES, mapped - KEEP_BYTES, MADV_DONTNEED);
    b->used = 0;
    b->open.count = 0;
}

/* ------------------------------------------------------------------ the log */

/* Bytes from which on the committer is woken without a flush. */
enum { FLUSH_BYTES = 256 * 1024 };

/* Checks for space in the buffer and on the disk. Granted bytes fit into the segments
 * that exist, so a full disk is no failure. */
static enum status
check_space(const struct journal *j, enum store_change_kind kind, bool checkpoint,
            size_t need)
{
    /* These kinds make the log longer for good. Deletions and releases continue on a full
     * disk. */
    const bool longer =
        !checkpoint && (kind == STORE_CHANGE_QUEUE || kind == STORE_CHANGE_META ||
                        kind == STORE_CHANGE_POST || kind == STORE_CHANGE_STATE ||
                        kind == STORE_CHANGE_SUBSCRIPTION);
    size_t filling = j->filling->used + j->granted + need;
    size_t space = checkpoint ? j->checkpoint_space : longer ? j->post_space : j->space;

    lock_assert_held(&j->lock);
    if (filling > (longer ? BUFFER_POSTS : BUFFER_BYTES))
        return ST_UNAVAILABLE; /* the disk is too slow */
    if (j->starting || filling + j->writing <= space)
        return ST_OK;
    SOMETIMES_IF(!j->short_of_space, LOG_REFUSES_SLOW);
    if (!j->short_of_space)
        return ST_UNAVAILABLE;
    SOMETIMES(LOG_REFUSES_FULL);
    return j->limited ? ST_JOURNAL_LIMIT : ST_FULL;
}

static enum status
journal_reserve(struct store_log *log, enum store_change_kind kind, bool checkpoint,
                size_t count, size_t bytes, size_t *space)
{
    struct journal *j = journal_of(log);
    size_t need = record_bound(count, bytes);
    enum status st;

    if (atomic_load_explicit(&j->lost, memory_order_relaxed)) {
        SOMETIMES(LOG_REFUSES_LOST);
        return ST_UNAVAILABLE;
    }
    if (need > log->largest)
        return ST_BEYOND_LOG;
    lock_acquire(&j->lock);
    st = check_space(j, kind, checkpoint, need);
    if (st == ST_OK)
        j->granted += need;
    lock_release(&j->lock);
    if (st == ST_OK)
        *space += need;
    return st;
}

static void
journal_unreserve(struct store_log *log, size_t space)
{
    struct journal *j = journal_of(log);

    lock_acquire(&j->lock);
    ENSURE(j->granted >= space);
    j->granted -= space;
    lock_release(&j->lock);
}

/* Releases the lock, then wakes the committer if it waits, since it needs the lock. */
static void
unlock_and_wake(struct journal *j, bool wake)
{
    lock_assert_held(&j->lock);
    wake = wake && j->waiting;
    if (wake)
        j->waiting = false;
    lock_release(&j->lock);
    if (wake)
        (void)pthread_cond_signal(&j->work); /* cannot fail */
}

/* Expiries are not logged, since they follow from deadlines. But a client may have seen
 * one, so after a crash the time must not be earlier: the next seal stores it. */
void
journal_age(struct journal *j, int64_t now_ms)
{
    bool first;

    lock_acquire(&j->lock);
    j->activity++;
    if (j->time_ms < now_ms)
        j->time_ms = now_ms;
    first = !j->aged;
    j->aged = true;
    unlock_and_wake(j, first);
}

int64_t
journal_now_ms(struct journal *j)
{
    int64_t now_ms = j->config.clock == NULL ? 0 : clock_now_ms(j->config.clock);

    lock_assert_held(&j->lock);
    if (j->time_ms < now_ms)
        j->time_ms = now_ms;
    return j->time_ms;
}

int64_t
journal_wall_ahead_ms(const struct journal *j)
{
    return j->config.clock == NULL || j->config.test_api
               ? 0
               : clock_wall_ahead_ms(j->config.clock);
}

/* Appends one change. Returns its LSN; 0: it has no record. Needs the lock. */
static uint64_t
append_one(struct journal *j, struct store_change *change, size_t *space)
{
    size_t size;

    lock_assert_held(&j->lock);
    if (record_may_need_features(change->kind)) {
        struct store_change copy = *change;

        atomic_fetch_or(&j->features, record_features(&copy));
    }
    size = buffer_append(j->filling, j->next_lsn, change);
    if (size == 0)
        return 0;
    ENSURE(*space >= size && j->granted >= size);
    *space -= size;
    j->granted -= size;
    *(change->checkpoint ? &j->checkpointed : &j->appended) += size;
    j->activity += !change->checkpoint;
    if (j->time_ms < change->now_ms)
        j->time_ms = change->now_ms;
    return j->next_lsn++;
}

static uint64_t
journal_append(struct store_log *log, struct store_change *change, size_t *space)
{
    struct journal *j = journal_of(log);
    uint64_t lsn = 0;

    if (change->kind == STORE_CHANGE_EXPIRED || change->kind == STORE_CHANGE_DELAY_OVER ||
        change->kind == STORE_CHANGE_CLAIM_OVER) {
        journal_age(j, change->now_ms);
        return 0;
    }
    lock_acquire(&j->lock);
    if (change->then != NULL)
        buffer_ensure_frame(j->filling, *space);
    for (struct store_change *one = change; one != NULL; one = one->then) {
        const uint64_t its = append_one(j, one, space);

        lsn = its != 0 ? its : lsn;
    }
    unlock_and_wake(j, j->filling->used >= FLUSH_BYTES);
    return change->checkpoint ? 0 : lsn;
}

uint64_t
journal_mark(struct journal *j, enum record_mark what, uint64_t since)
{
    struct mark mark = {.what = what, .since = since};
    struct buffer *b;
    uint64_t lsn;
    int64_t now_ms;

    store_used_marks(j->store, &mark.used);
    lock_acquire(&j->lock);
    b = j->filling;
    lsn = j->next_lsn++;
    now_ms = journal_now_ms(j);
    if (b->open.count == 0)
        begin_frame(b, lsn);
    add_record(b, lsn, record_write_mark(b->bytes + b->used, &mark, now_ms), now_ms);
    lock_release(&j->lock);
    return lsn;
}

static enum store_durability
journal_durability(struct store_log *log, uint64_t lsn)
{
    struct journal *j = journal_of(log);

    if (lsn <= atomic_load(&j->durable))
        return STORE_DURABLE;
    return atomic_load(&j->lost) ? STORE_LOST : STORE_PENDING;
}

static void
journal_flush(struct store_log *log)
{
    struct journal *j = journal_of(log);

    lock_acquire(&j->lock);
    unlock_and_wake(j, j->filling->used > 0);
}

static uint64_t
journal_loaded(struct store_log *log)
{
    return atomic_load(&journal_of(log)->bodies.loaded);
}

static void
journal_listen(struct store_log *log, struct store_listener *listener)
{
    struct journal *j = journal_of(log);

    lock_acquire(&j->watching);
    list_add_before(&j->listeners, &listener->link);
    lock_release(&j->watching);
}

static void
journal_unlisten(struct store_log *log, struct store_listener *listener)
{
    struct journal *j = journal_of(log);

    lock_acquire(&j->watching);
    list_remove(&listener->link);
    lock_release(&j->watching);
}

void
journal_init_log(struct journal *j)
{
    j->store_log = (struct store_log){.reserve = journal_reserve,
                                      .append = journal_append,
                                      .unreserve = journal_unreserve,
                                      .durability = journal_durability,
                                      .flush = journal_flush,
                                      .loaded = journal_loaded,
                                      .listen = journal_listen,
                                      .unlisten = journal_unlisten};
}
