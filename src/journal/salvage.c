/*
 * What is left of a journal, as a new one.
 *
 * It is read twice: first for the names of all queues, which may come late, then for its
 * records. These are copied as they are, but for the marks of checkpoints, whose positions mean
 * nothing in the copy: it begins with position 1, so it needs no checkpoint to be whole.
 */
#include "claimd/journal/inspect.h"

#include "journal/reader.h"
#include "journal/roster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLUSH_AT = 1 << 20 /* a frame of the copy has so many bytes, or one record */
};

struct salvage {
    const struct journal_eyes *eyes;
    struct roster roster;
    struct segments from, to;
    struct reader reader;
    bool quiet;                       /* the first time */
    uint64_t unplaced_from, unplaced; /* a run of records that have no place */

    uint8_t *frame; /* owned: of FRAME_BYTES_MAX bytes */
    struct frame next;
};

static void
tell_damage(void *arg, const struct journal_damage *damage)
{
    const struct salvage *s = arg;

    if (!s->quiet && s->eyes->damage != NULL)
        s->eyes->damage(s->eyes->arg, damage);
}

/* Tells of the records in a row that could not be placed. */
static void
end_run(struct salvage *s)
{
    const struct journal_damage damage = {
        .name = s->reader.name,
        .offset = s->reader.now.end,
        .what = "has records of a queue, but the name of the queue is lost",
        .from = s->unplaced_from,
        .to = s->unplaced_from + s->unplaced - 1};

    if (s->unplaced == 0)
        return;
    s->reader.found.damages++;
    s->reader.found.lost += s->unplaced;
    tell_damage(s, &damage);
    s->unplaced = 0;
}

static enum status
write_fails(struct salvage *s, int error)
{
    return reader_fail(&s->reader, ST_IO, "claimd cannot write the copy: %s",
                       strerror(error));
}

static enum status
flush_frame(struct salvage *s)
{
    size_t size = FRAME_HEAD_BYTES + s->next.length;
    int error = 0;

    if (s->next.count == 0)
        return ST_OK;
    if (!segments_fits(&s->to, size))
        error = segments_begin(&s->to, s->next.first_lsn, s->next.time_ms);
    if (error == 0 && !segments_fits(&s->to, size))
        error = EFBIG;
    if (error == 0) {
        frame_seal(s->frame, &s->next, s->to.nonce);
        error = segments_write(&s->to, s->frame, size);
    }
    s->next.first_lsn += s->next.count;
    s->next.count = s->next.length = 0;
    return error == 0 ? ST_OK : write_fails(s, error);
}

static enum status
put_record(struct salvage *s, const void *record, size_t size, int64_t now_ms)
{
    size_t most = s->to.segment_bytes - SEGMENT_HEAD_BYTES;
    enum status st = ST_OK;

    if (most > FLUSH_AT)
        most = FLUSH_AT;
    if (s->next.count > 0 && FRAME_HEAD_BYTES + s->next.length + size > most)
        st = flush_frame(s);
    if (st != ST_OK)
        return st;
    memcpy(s->frame + FRAME_HEAD_BYTES + s->next.length, record, size);
    s->next.length += (uint32_t)size;
    s->next.count++;
    if (s->next.time_ms < now_ms)
        s->next.time_ms = now_ms;
    return ST_OK;
}

/* A mark that says no more than which numbers have been used up. */
static enum status
put_mark(struct salvage *s, const struct record *record)
{
    struct mark mark = {.what = MARK_OPENED, .used = record->mark.used};
    uint8_t *bytes = malloc(record_bound(0, 0));
    enum status st;

    if (bytes == NULL)
        return ST_NO_MEMORY;
    st = put_record(s, bytes, record_write_mark(bytes, &mark, record->change.now_ms),
                    record->change.now_ms);
    free(bytes);
    return st;
}

static enum status
learn_names(void *arg, struct reader *reader, struct record *record)
{
    struct salvage *s = arg;

    (void)reader;
    return roster_note(&s->roster, record);
}

/* The queue that a record would make, if it were not there: it must have a name. */
static bool
makes(const struct record *record, uint32_t *tag)
{
    *tag = record->type == RECORD_MOVE ? record->change.target_tag : record->change.tag;
    switch (record->type) {
    case RECORD_META: /* what changes only what is there changes nothing otherwise */
    case RECORD_QUEUE_GONE:
    case RECORD_PURGE:
    case RECORD_DELETE:
    case RECORD_RELEASE:
        return false;
    default:
        return true;
    }
}

static enum status
copy_record(void *arg, struct reader *reader, struct record *record)
{
    struct salvage *s = arg;
    uint32_t tag;

    if (record->type == RECORD_MARK && record->mark.what != MARK_OPENED)
        return put_mark(s, record);
    if (record->type != RECORD_MARK && makes(record, &tag) &&
        !roster_can_place(&s->roster, tag)) {
        if (roster_replaced(&s->roster, tag))
            return ST_OK;
        if (s->unplaced > 0 && s->reader.next_lsn != s->unplaced_from + s->unplaced)
            end_run(s);
        if (s->unplaced++ == 0)
            s->unplaced_from = s->reader.next_lsn;
        return ST_OK;
    }
    return put_record(s, reader->record_at, reader->record_size, record->change.now_ms);
}

static enum status
read_again(struct salvage *s,
           enum status (*record)(void *arg, struct reader *r, struct record *record))
{
    char *error = s->reader.error;
    enum status st;

    s->reader = (struct reader){.segments = &s->from,
                                .test_api = true,
                                .error = error,
                                .record = record,
                                .damage = tell_damage,
                                .arg = s};
    s->quiet = record == learn_names;
    st = reader_read(&s->reader);
    end_run(s);
    reader_fini(&s->reader);
    return st;
}

static enum status
salvage_begin(struct salvage *s)
{
    int error;

    s->from.look_only = true;
    s->frame = malloc(FRAME_BYTES_MAX);
    if (s->frame == NULL || roster_init(&s->roster) != ST_OK)
        return reader_fail(&s->reader, ST_NO_MEMORY, "out of memory");
    entropy_init_system(&s->to.entropy);
    if (entropy_reserve(&s->to.entropy, NONCE_BYTES) != ST_OK)
        return reader_fail(&s->reader, ST_UNAVAILABLE,
                           "the system provides no random numbers");
    entropy_take(&s->to.entropy, s->to.journal, NONCE_BYTES);
    error = segments_list(&s->from);
    return error == 0 ? ST_OK
                      : reader_fail(&s->reader, ST_IO,
                                    "the journal cannot list its directory: %s",
                                    strerror(error));
}

static enum status
salvage_finish(struct salvage *s)
{
    enum status st = flush_frame(s);
    int error;

    if (st != ST_OK || s->to.file == NULL)
        return st;
    error = segments_seal(&s->to, s->next.first_lsn, s->next.time_ms);
    if (error == 0)
        error = segments_note_durable(&s->to, s->next.first_lsn - 1, 0);
    if (error == 0)
        error = disk_sync_names(s->to.disk);
    return error == 0 ? ST_OK : write_fails(s, error);
}

enum status
journal_salvage(struct disk *from, struct disk *to, uint64_t segment_bytes,
                const struct journal_eyes *eyes, struct journal_findings *out,
                char error[JOURNAL_ERROR_CAP])
{
    struct salvage s = {
        .eyes = eyes, .next = {.first_lsn = 1}, .reader = {.error = error}};
    enum status st;

    segments_init(&s.from, from, 0);
    segments_init(&s.to, to, segment_bytes);
    st = salvage_begin(&s);
    if (st == ST_OK)
        st = read_again(&s, learn_names);
    s.to.required = s.reader.required; /* what the test API made stays that */
    if (st == ST_OK)
        st = read_again(&s, copy_record);
    if (st == ST_OK)
        st = salvage_finish(&s);
    *out = s.reader.found;
    free(s.frame);
    roster_fini(&s.roster);
    segments_fini(&s.from);
    segments_fini(&s.to);
    return st;
}
