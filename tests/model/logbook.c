#include "model/logbook.h"

#include <stdlib.h>

static enum status
reserve(struct store_log *observer, enum store_change_kind kind, bool checkpoint,
        size_t count, size_t bytes, size_t *capacity)
{
    struct logbook *log = (struct logbook *)observer;
    size_t bound;

    (void)checkpoint;
    ck_assert(kind != STORE_CHANGE_EXPIRED && kind != STORE_CHANGE_DELAY_OVER &&
              kind != STORE_CHANGE_CLAIM_OVER);
    if (log->random != NULL && random_chance(log->random, log->refuse)) {
        log->refused = true;
        return ST_UNAVAILABLE;
    }
    bound = record_bound(count, bytes);
    log->granted[kind] += bound;
    log->set_aside += bound;
    *capacity += bound;
    return ST_OK;
}

static void
unreserve(struct store_log *observer, size_t capacity)
{
    struct logbook *log = (struct logbook *)observer;

    ck_assert_uint_le(capacity, log->set_aside);
    log->set_aside -= capacity;
}

static void
add(struct logbook *log, const uint8_t *record, size_t size)
{
    if (log->capacity - log->len < size) {
        log->capacity = 2 * log->capacity + size;
        log->bytes = realloc(log->bytes, log->capacity);
        ck_assert_ptr_nonnull(log->bytes);
    }
    memcpy(log->bytes + log->len, record, size);
    log->len += size;
    log->next++;
}

/* The record is written into exactly the space that was granted for its kind, so that
 * ASan sees more. */
static uint64_t
commit_one(struct logbook *log, struct store_change *change, size_t *capacity)
{
    enum store_change_kind kind = change->kind;
    size_t granted = log->granted[kind], size;
    uint8_t *record = malloc(granted);

    ck_assert(granted == 0 || record != NULL);
    log->recorded[kind]++;
    if (log->watch != NULL)
        log->watch(log, change);
    size = record_write(record, change);
    ck_assert_uint_le(size, granted);
    if (size > 0) {
        ck_assert_uint_ge(*capacity, size);
        *capacity -= size;
        log->set_aside -= size;
        log->granted[kind] -= size;
        add(log, record, size);
    }
    free(record);
    return size == 0 || change->checkpoint ? 0 : log->next - 1;
}

/* Notes that the records from `first` on are a group, if they are several. */
static void
note_group(struct logbook *log, uint64_t first)
{
    if (log->next - first < 2)
        return;
    if (log->group_count == log->group_capacity) {
        log->group_capacity = 2 * log->group_capacity + 16;
        log->groups = realloc(log->groups, log->group_capacity * sizeof(*log->groups));
        ck_assert_ptr_nonnull(log->groups);
    }
    log->groups[log->group_count++] = (struct group){first, log->next};
}

uint64_t
logbook_whole(const struct logbook *log, uint64_t lsn)
{
    for (size_t i = 0; i < log->group_count; i++)
        if (log->groups[i].first < lsn && lsn < log->groups[i].end)
            return log->groups[i].first;
    return lsn;
}

static uint64_t
commit(struct store_log *observer, struct store_change *change, size_t *capacity)
{
    struct logbook *log = (struct logbook *)observer;
    const uint64_t first = log->next;
    uint64_t lsn = 0;

    for (; change != NULL; change = change->then) {
        uint64_t its = commit_one(log, change, capacity);

        lsn = its != 0 ? its : lsn;
    }
    note_group(log, first);
    return lsn;
}

struct logbook *
logbook_new(uint64_t first)
{
    struct logbook *log = calloc(1, sizeof(*log));

    ck_assert_ptr_nonnull(log);
    log->observer.reserve = reserve;
    log->observer.append = commit;
    log->observer.unreserve = unreserve;
    log->first = log->next = first;
    return log;
}

void
logbook_free(struct logbook *log)
{
    free(log->bytes);
    free(log->groups);
    free(log);
}

void
logbook_add(struct logbook *log, struct store_change *change)
{
    enum { TEXT = 64, TEXTS = 4 };
    size_t bound = record_bound(change->count, (change->count + 1) * TEXTS * TEXT), size;
    uint8_t *record = malloc(bound);

    ck_assert_ptr_nonnull(record);
    size = record_write(record, change);
    ck_assert_uint_gt(size, 0);
    ck_assert_uint_le(size, bound);
    add(log, record, size);
    free(record);
}

void
logbook_mark(struct logbook *log, struct store *durable)
{
    struct mark mark = {.what = MARK_CHECKPOINT_BEGIN};
    size_t bound = record_bound(0, 0), size;
    uint8_t *record = malloc(bound);

    ck_assert_ptr_nonnull(record);
    store_used_marks(durable, &mark.used);
    size = record_write_mark(record, &mark, START_MS);
    ck_assert_uint_le(size, bound);
    add(log, record, size);
    free(record);
}

void
logbook_cut(struct logbook *log, uint64_t lsn)
{
    size_t at = 0;

    ck_assert_uint_le(log->first, lsn);
    ck_assert_uint_le(lsn, log->next);
    for (; log->first < lsn; log->first++)
        at += record_size(log->bytes + at, log->len - at);
    log->len -= at;
    memmove(log->bytes, log->bytes + at, log->len);
}

void
logbook_copy(struct logbook *log, const struct logbook *from, uint64_t lsn)
{
    uint64_t at_lsn = from->first;

    for (size_t at = 0; at < from->len && at_lsn < lsn; at_lsn++) {
        size_t size = record_size(from->bytes + at, from->len - at);

        if (at_lsn == log->next)
            add(log, from->bytes + at, size);
        at += size;
    }
}

static void
groups_prepend(struct logbook *log, const struct logbook *front)
{
    const size_t count = front->group_count + log->group_count;
    struct group *all = malloc((count + 1) * sizeof(*all));

    ck_assert_ptr_nonnull(all);
    if (front->group_count > 0)
        memcpy(all, front->groups, front->group_count * sizeof(*all));
    if (log->group_count > 0)
        memcpy(all + front->group_count, log->groups, log->group_count * sizeof(*all));
    free(log->groups);
    log->groups = all;
    log->group_count = count;
    log->group_capacity = count + 1;
}

void
logbook_prepend(struct logbook *log, const struct logbook *front)
{
    uint8_t *all = malloc(front->len + log->len + 1);

    ck_assert_ptr_nonnull(all);
    ck_assert_uint_eq(front->next, log->first);
    if (front->len > 0)
        memcpy(all, front->bytes, front->len);
    if (log->len > 0)
        memcpy(all + front->len, log->bytes, log->len);
    free(log->bytes);
    log->bytes = all;
    log->len += front->len;
    log->capacity = log->len + 1;
    log->first = front->first;
    groups_prepend(log, front);
}

enum status
logbook_replay(const struct logbook *log, struct store *durable)
{
    enum status st = ST_OK;
    struct record record;

    for (size_t at = 0; st == ST_OK && at < log->len;) {
        ck_assert_status(record_read(log->bytes + at, log->len - at, &record), ST_OK);
        if (record.type == RECORD_MARK)
            store_replay_marks(durable, &record.mark.used);
        else
            st = store_replay(durable, &record.change);
        at += record_size(log->bytes + at, log->len - at);
    }
    return st;
}

void
logbook_settle(struct logbook *log)
{
    ck_assert_uint_eq(log->set_aside, 0);
    memset(log->granted, 0, sizeof(log->granted));
    log->refused = false;
}
