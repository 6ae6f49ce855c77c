/* What a store's operations do with the journal: append, under their locks, and be told. */
#include "claimd/base/invariant.h"
#include "journal/journal_private.h"

/* A change that is larger cannot be one frame. */
static size_t
largest(const struct journal *j)
{
    return j->buffers[0].frame_max - FRAME_HEAD_BYTES;
}

/* Does this kind make the log longer for good? What gives back goes on when the disk is full. */
static bool
adds(enum store_change_kind kind)
{
    return kind == STORE_CHANGE_QUEUE || kind == STORE_CHANGE_META ||
           kind == STORE_CHANGE_POST;
}

static bool
is_image(enum store_change_kind kind)
{
    return kind == STORE_CHANGE_IMAGE_QUEUE || kind == STORE_CHANGE_IMAGE_CLAIM ||
           kind == STORE_CHANGE_IMAGE;
}

/* Who sweeps has looked for room himself; it is what makes some. */
static bool
is_refused(enum room left, enum store_change_kind kind)
{
    return left != ROOM_ANY && !is_image(kind) && (left == ROOM_NONE || adds(kind));
}

static enum status
reserve(struct store_observer *observer, enum store_change_kind kind, size_t count,
        size_t bytes, size_t *room)
{
    struct journal *j = journal_of(observer);
    size_t need = record_bound(count, bytes);
    size_t most = adds(kind) ? BUFFER_POSTS : BUFFER_ROOM;
    enum room left = (enum room)atomic_load_explicit(&j->room, memory_order_relaxed);
    enum status st = ST_OK;

    if (atomic_load_explicit(&j->lost, memory_order_relaxed))
        return ST_UNAVAILABLE;
    if (is_refused(left, kind))
        return ST_FULL;
    if (need > largest(j))
        return ST_TOO_LARGE;
    lock_acquire(&j->lock);
    if (j->filling->used + j->granted + need > most)
        st = ST_UNAVAILABLE; /* the disk does not keep up */
    else
        j->granted += need;
    lock_release(&j->lock);
    if (st == ST_OK)
        *room += need;
    return st;
}

static void
give_back(struct store_observer *observer, size_t room)
{
    struct journal *j = journal_of(observer);

    lock_acquire(&j->lock);
    ENSURE(j->granted >= room);
    j->granted -= room;
    lock_release(&j->lock);
}

/* The committer is woken by the first record in an empty buffer. */
static void
wake_committer(struct journal *j)
{
    if (!j->waiting)
        return;
    j->waiting = false;
    (void)pthread_cond_signal(&j->work); /* cannot fail */
}

static uint64_t
commit(struct store_observer *observer, struct store_change *change, size_t *room)
{
    struct journal *j = journal_of(observer);
    bool image = is_image(change->kind);
    uint64_t position = 0;
    size_t size;

    if (change->kind == STORE_CHANGE_EXPIRED || change->kind == STORE_CHANGE_DELAY_OVER ||
        change->kind == STORE_CHANGE_CLAIM_OVER)
        return 0; /* they follow from deadlines */
    lock_acquire(&j->lock);
    size = buffer_append(j->filling, j->next_lsn, change);
    if (size > 0) {
        ENSURE(*room >= size && j->granted >= size);
        *room -= size;
        j->granted -= size;
        position = j->next_lsn++;
        *(image ? &j->imaged : &j->appended) += size;
        if (j->time_ms < change->now_ms)
            j->time_ms = change->now_ms;
        wake_committer(j);
    }
    lock_release(&j->lock);
    return image ? 0 : position;
}

uint64_t
journal_mark(struct journal *j, enum record_mark what, uint64_t since)
{
    struct mark mark = {.what = what, .since = since};
    uint64_t position;

    j->store->marks(j->store, &mark.used);
    lock_acquire(&j->lock);
    position = j->next_lsn++;
    (void)buffer_append_mark(j->filling, position, &mark, j->time_ms);
    lock_release(&j->lock);
    return position;
}

static enum store_fate
fate(struct store_observer *observer, uint64_t position)
{
    struct journal *j = journal_of(observer);

    if (position <= atomic_load(&j->durable))
        return STORE_DURABLE;
    return atomic_load(&j->lost) ? STORE_LOST : STORE_PENDING;
}

static void
watch(struct store_observer *observer, struct store_watcher *watcher)
{
    struct journal *j = journal_of(observer);

    lock_acquire(&j->watching);
    list_add_before(&j->watchers, &watcher->link);
    lock_release(&j->watching);
}

static void
unwatch(struct store_observer *observer, struct store_watcher *watcher)
{
    struct journal *j = journal_of(observer);

    lock_acquire(&j->watching);
    list_remove(&watcher->link);
    lock_release(&j->watching);
}

void
journal_observe(struct journal *j)
{
    j->observer = (struct store_observer){.reserve = reserve,
                                          .commit = commit,
                                          .give_back = give_back,
                                          .fate = fate,
                                          .watch = watch,
                                          .unwatch = unwatch};
}
