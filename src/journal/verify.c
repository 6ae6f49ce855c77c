/* Looking at a journal: verify and show. */
#include "claimd/journal/inspect.h"

#include "journal/journal_private.h"
#include "journal/reader.h"
#include "journal/roster.h"

#include <errno.h>

int
journal_hold(struct disk *disk, struct disk_file **out)
{
    struct disk_file *f = NULL;
    int error = disk_file_open(disk, JOURNAL_LOCK, DISK_READ, &f);

    *out = NULL;
    disk_close(disk, f);
    if (error == 0)
        error = disk_lock(disk, JOURNAL_LOCK, out);
    return error == ENOENT || error == EROFS ? 0 : error;
}

struct look {
    const struct journal_eyes *eyes;
    struct store *store; /* NULL: it is not told, or not any more */
    bool broken;         /* it has refused something */
    uint64_t from;
    struct roster roster;
    struct segments segments;
    struct reader reader;
};

static void
tell_segment(void *arg, const struct journal_segment *segment)
{
    const struct look *l = arg;

    if (l->eyes->segment != NULL)
        l->eyes->segment(l->eyes->arg, segment);
}

static void
tell_damage(void *arg, const struct journal_damage *damage)
{
    const struct look *l = arg;

    if (l->eyes->damage != NULL)
        l->eyes->damage(l->eyes->arg, damage);
}

static enum status
look_begin(struct look *l, struct disk *disk, char error[JOURNAL_ERROR_CAP])
{
    segments_init(&l->segments, disk, 0);
    l->segments.look_only = true;
    l->reader.segments = &l->segments;
    l->reader.test_api = true; /* it is only looked at */
    l->reader.error = error;
    l->reader.segment = tell_segment;
    l->reader.damage = tell_damage;
    l->reader.arg = l;
    if (roster_init(&l->roster) != ST_OK)
        return reader_fail(&l->reader, ST_NO_MEMORY, "out of memory");
    return reader_list(&l->reader);
}

static void
look_end(struct look *l)
{
    reader_fini(&l->reader);
    roster_fini(&l->roster);
    segments_fini(&l->segments);
}

static enum status
replay_record(void *arg, struct reader *reader, struct record *record)
{
    struct look *l = arg;
    enum status st = ST_OK;

    (void)reader;
    if (record->type == RECORD_MARK) {
        if (!l->broken)
            store_replay_marks(l->store, &record->mark.used);
        return ST_OK;
    }
    if (!l->broken)
        st = store_replay(l->store, &record->change);
    l->broken = l->broken || st != ST_OK;
    return st;
}

static void
check_beginning(struct look *l)
{
    uint64_t first = l->reader.begins;
    char name[DISK_NAME_CAP];
    struct journal_damage damage = {
        .name = name,
        .what = "is the oldest segment, but the journal needs earlier ones",
        .from = 1,
        .to = first - 1};

    if (!reader_lacks_beginning(&l->reader) || l->reader.next_lsn == 0)
        return;
    segment_name(name, first);
    l->reader.found.damages++;
    l->reader.found.lost += first - 1;
    tell_damage(l, &damage);
}

/* Ends the replay, and finds out whether all of it can be. */
static enum status
end_replay(struct look *l)
{
    struct journal_findings *found = &l->reader.found;
    int64_t now_ms = found->now_ms < found->last_ms ? found->last_ms : found->now_ms;
    enum status st = l->broken ? ST_BAD_VALUE : store_replay_end(l->store, now_ms);

    found->replayed = st == ST_OK;
    if (st == ST_BAD_VALUE && found->damages == 0)
        return reader_fail(&l->reader, ST_CONFLICT,
                           "the journal is damaged: it has a queue without a name, or "
                           "two queues with the same name");
    if (st == ST_NO_MEMORY)
        return reader_fail(&l->reader, st,
                           "out of memory: the contents of the journal do not fit");
    return ST_OK;
}

enum status
journal_verify(struct disk *disk, struct store *store, const struct journal_eyes *eyes,
               struct journal_findings *out, char error[JOURNAL_ERROR_CAP])
{
    struct look l = {.eyes = eyes, .store = store, .reader = {.record = replay_record}};
    enum status st = look_begin(&l, disk, error);

    l.reader.found.now_ms = out->now_ms;
    if (st == ST_OK)
        st = reader_read(&l.reader);
    if (st == ST_OK) {
        check_beginning(&l);
        st = end_replay(&l);
    }
    *out = l.reader.found;
    look_end(&l);
    return st;
}

static enum status
show_record(void *arg, struct reader *reader, struct record *record)
{
    static const char *const mark_names[] = {[MARK_OPENED] = "OPENED",
                                             [MARK_CHECKPOINT_BEGIN] = "CHECKPOINT_BEGIN",
                                             [MARK_CHECKPOINT_END] = "CHECKPOINT_END",
                                             [MARK_CLOSED] = "CLOSED"};
    struct look *l = arg;
    bool mark = record->type == RECORD_MARK;
    struct journal_entry entry = {.position = reader->next_lsn,
                                  .type = record_type_name(record->type),
                                  .change = mark ? NULL : &record->change,
                                  .mark = mark ? mark_names[record->mark.what] : NULL,
                                  .since = mark ? record->mark.since : 0,
                                  .now_ms = record->change.now_ms};

    if (roster_note(&l->roster, record) != ST_OK)
        return ST_NO_MEMORY;
    if (!mark)
        entry.queue = roster_name(&l->roster, record->change.tag);
    if (record->type == RECORD_MOVE)
        entry.target = roster_name(&l->roster, record->change.target_tag);
    if (entry.position < l->from || l->eyes->entry == NULL)
        return ST_OK;
    return l->eyes->entry(l->eyes->arg, &entry) ? ST_OK : ST_AGAIN;
}

enum status
journal_show(struct disk *disk, bool live, uint64_t from, const struct journal_eyes *eyes,
             struct journal_findings *out, char error[JOURNAL_ERROR_CAP])
{
    struct look l = {
        .eyes = eyes, .from = from, .reader = {.record = show_record, .live = live}};
    enum status st = look_begin(&l, disk, error);

    if (st == ST_OK)
        st = reader_read(&l.reader);
    *out = l.reader.found;
    look_end(&l);
    return st == ST_AGAIN ? ST_OK : st;
}
