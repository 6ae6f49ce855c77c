#include "journal/reader.h"
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"

#include "journal/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes per read, unless a frame is longer. */
enum { PIECE = 1 << 18 };

enum status
reader_fail(struct reader *r, enum status st, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(r->error, JOURNAL_ERROR_CAP, format, args);
    va_end(args);
    return st;
}

enum status
reader_system_fails(struct reader *r, const char *what, int error)
{
    char text[ERRNO_TEXT_CAP];

    return reader_fail(r, error == ENOMEM ? ST_NO_MEMORY : ST_IO,
                       "the journal cannot %s %s: %s", what, r->name,
                       disk_error_text(error, text));
}

enum status
reader_list(struct reader *r)
{
    int error = segments_list(r->segments);

    memcpy(r->name, r->segments->unread, sizeof(r->name));
    return error == 0 ? ST_OK : reader_system_fails(r, "read", error);
}

/* LSNs `from` to `to` are lost; none if from > to. */
static void
report_damage(struct reader *r, const char *name, uint64_t offset, const char *what,
              uint64_t from, uint64_t to)
{
    const struct journal_damage damage = {name, offset, what, from, to};

    r->found.damages++;
    if (from <= to)
        r->found.lost += to - from + 1;
    r->damage(r->arg, &damage);
}

/* Reports damage of the current segment. If `next` is larger than the current LSN, the
 * LSNs before it are missing. 0: none are. */
static enum status
segment_damaged(struct reader *r, uint64_t offset, const char *what, uint64_t next)
{
    if (r->damage == NULL)
        return reader_fail(r, ST_BAD_VALUE,
                           "the journal is damaged: %s at byte %" PRIu64
                           " %s. The last LSN before that is %" PRIu64 READER_ADVICE,
                           r->name, offset, what, r->next_lsn - 1);
    report_damage(r, r->name, offset, what, r->next_lsn, next == 0 ? 0 : next - 1);
    if (r->next_lsn < next)
        r->next_lsn = next;
    return ST_OK;
}

/* ------------------------------------------------------------------ segments */

/* Opens a segment. Unsynced data that a crash left in the last one is synced or lost. */
static enum status
open_segment(struct reader *r, const struct segment *segment, bool sync)
{
    struct disk *disk = r->segments->disk;
    int error;

    segment_name(r->name, segment->first_lsn);
    r->len = 0;
    r->size = segment->bytes;
    if (r->size > r->capacity) {
        free(r->bytes);
        r->bytes = malloc(r->size);
        r->capacity = r->bytes == NULL ? 0 : r->size;
    }
    if (r->bytes == NULL && r->size > 0)
        return reader_fail(r, ST_NO_MEMORY, "out of memory while reading %s", r->name);
    error = disk_file_open(disk, r->name, sync ? DISK_WRITE : DISK_READ, &r->file);
    /* Data that is only in memory becomes durable before it is used. */
    if (error == 0 && sync)
        error = disk_sync(disk, r->file);
    if (error == 0 && sync)
        disk_forget(disk, r->file);
    return error == 0 ? ST_OK : reader_system_fails(r, "open", error);
}

/* Reads until `want` bytes are in memory, or the segment ends. */
static enum status
read_ahead(struct reader *r, size_t want)
{
    size_t got, to = r->len + PIECE;
    int error;

    if (want <= r->len)
        return ST_OK;
    if (to < want)
        to = want;
    if (to > r->size)
        to = r->size;
    ENSURE(r->len <= to && to <= r->capacity);
    error = disk_read(r->segments->disk, r->file, r->len, r->bytes + r->len, to - r->len,
                      &got);
    if (error != 0)
        return reader_system_fails(r, "read", error);
    r->len += got;
    return ST_OK;
}

/* Reads the whole frame at an offset, if there is one. */
static enum status
fill_frame(struct reader *r, size_t offset)
{
    enum status st = read_ahead(r, offset + FRAME_HEAD_BYTES);

    return st == ST_OK && r->len >= offset + FRAME_HEAD_BYTES
               ? read_ahead(r, offset + frame_size(r->bytes + offset))
               : st;
}

/* ------------------------------------------------------------------ heads */

/* Finds the nonce of a segment without a head in its first frame. This frame has a fixed
 * place, so a body of a message that looks like a frame cannot be taken for it. */
static enum status
find_nonce(struct reader *r, bool *skip)
{
    const uint8_t *at = r->bytes + SEGMENT_HEAD_BYTES;
    struct frame frame;
    enum status st;

    if (r->next_lsn == 0)
        r->next_lsn = r->now.first_lsn;
    st = fill_frame(r, SEGMENT_HEAD_BYTES);
    if (st != ST_OK)
        return st;
    *skip = r->len < SEGMENT_HEAD_BYTES + FRAME_HEAD_BYTES ||
            !frame_read(at, r->len - SEGMENT_HEAD_BYTES, frame_nonce(at), &frame);
    if (!*skip)
        memcpy(r->nonce, frame_nonce(at), NONCE_BYTES);
    return segment_damaged(
        r, 0,
        *skip && r->damage != NULL
            ? "has neither a header nor a first frame, so its records are lost"
            : "is not the header of a segment",
        0);
}

/* Checks that a whole head belongs to this journal and that this program may read it. */
static enum status
check_owner(struct reader *r, const struct segment_head *head, bool *skip)
{
    struct segments *s = r->segments;

    if (!r->known)
        memcpy(s->journal, head->journal, NONCE_BYTES);
    r->known = true;
    memcpy(r->nonce, head->nonce, NONCE_BYTES);
    r->made_bytes = head->bytes;
    *skip = memcmp(s->journal, head->journal, NONCE_BYTES) != 0;
    if (*skip && r->damage != NULL)
        report_damage(r, r->name, 0, "belongs to another journal", 1, 0);
    else if (*skip)
        return reader_fail(r, ST_BAD_VALUE,
                           "%s belongs to another journal than the segments before it. "
                           "Keep the segments of one journal in a directory",
                           r->name);
    r->required |= head->required;
    if ((head->required & SEGMENT_TEST_API) != 0 && !r->test_api)
        return reader_fail(r, ST_BAD_VALUE,
                           "%s was written by a test server (--ci), so a server without "
                           "--ci cannot use it. Use another directory",
                           r->name);
    if ((head->required & SEGMENT_TEST_API) == 0 && r->test_only)
        return reader_fail(r, ST_BAD_VALUE,
                           "%s was not written by a test server, so a server with --ci "
                           "cannot use it. Use another directory",
                           r->name);
    return ST_OK;
}

/* Checks that no record is missing in front of a segment. */
static enum status
check_lsn(struct reader *r)
{
    uint64_t first = r->now.first_lsn;

    if (r->next_lsn == 0)
        r->next_lsn = first;
    if (first == r->next_lsn)
        return ST_OK;
    if (r->damage == NULL)
        return reader_fail(
            r, ST_BAD_VALUE,
            "the journal is damaged: %s has no valid frame at byte %" PRIu64
            ", after LSN %" PRIu64 ", but the next segment starts with LSN %" PRIu64
            " (%s)" READER_ADVICE,
            r->before, r->before_end, r->next_lsn - 1, first, r->name);
    if (first < r->next_lsn) /* its frames report this */
        return ST_OK;
    report_damage(
        r, r->before[0] == '\0' ? r->name : r->before, r->before_end,
        "has no further intact frame, but the next segment starts with a later LSN",
        r->next_lsn, first - 1);
    r->next_lsn = first;
    return ST_OK;
}

/* Checks the head of a segment; *skip: the segment cannot be read. */
static enum status
check_head(struct reader *r, bool *skip)
{
    struct segment_head head;
    enum segment_verdict verdict =
        r->len < SEGMENT_HEAD_BYTES ? SEGMENT_BROKEN : segment_head_read(r->bytes, &head);
    enum status st;

    *skip = false;
    if (verdict == SEGMENT_NEWER)
        return reader_fail(r, ST_BAD_VALUE,
                           "%s was written by a newer claimd (version %" PRIu32
                           ", features %" PRIx64 "). Start that version or a later one",
                           r->name, head.version, head.required);
    if (verdict != SEGMENT_GOOD)
        return find_nonce(r, skip);
    if (head.first_lsn != r->now.first_lsn) {
        if (r->next_lsn == 0)
            r->next_lsn = head.first_lsn;
        st = segment_damaged(r, 0, "is the header of another segment", 0);
        return st == ST_OK ? check_owner(r, &head, skip) : st;
    }
    st = check_owner(r, &head, skip);
    memcpy(r->boot_id, head.boot_id, BOOT_ID_BYTES);
    r->boot_offset_ns = head.boot_offset_ns;
    return st == ST_OK && !*skip ? check_lsn(r) : st;
}

/* ------------------------------------------------------------------ frames */

/* Passes on the records of a whole frame at its place. */
static enum status
read_records(struct reader *r, size_t offset, const struct frame *frame)
{
    const uint8_t *at = r->bytes + offset + FRAME_HEAD_BYTES;
    size_t left = frame->length;

    for (uint32_t i = 0; i < frame->count; i++) {
        struct record record;
        enum status st = record_read(at, left, &record);

        r->record_at = at;
        r->record_size = record_size(at, left);
        ENSURE(st != ST_OK || r->record_size <= left);
        if (st == ST_OK && record.type == RECORD_MARK &&
            record.mark.what == MARK_CHECKPOINT_END &&
            r->checkpointed < record.mark.since)
            r->checkpointed = record.mark.since;
        if (st == ST_OK && record_may_need_features(record.type)) {
            struct record copy = record;

            r->required |= record_features(&copy.change);
        }
        if (st == ST_OK)
            st = r->record(r->arg, r, &record);
        if (st == ST_NO_MEMORY)
            return reader_fail(r, st,
                               "out of memory: the contents of the journal do not fit");
        if (st == ST_BAD_VALUE)
            return segment_damaged(r, offset, "has an invalid record",
                                   frame->first_lsn + frame->count);
        if (st != ST_OK)
            return st;
        at += r->record_size;
        left -= r->record_size;
        r->next_lsn++;
        r->found.records++;
        r->now.records++;
    }
    return left > 0 ? segment_damaged(r, offset, "has extra bytes after its records", 0)
                    : ST_OK;
}

static enum status
read_frame(struct reader *r, size_t offset, const struct frame *frame)
{
    enum status st = ST_OK;

    r->found.wall_ahead_ms = frame->wall_ahead_ms;
    if (frame->first_lsn != r->next_lsn)
        st = segment_damaged(r, offset, "is a frame with an unexpected LSN",
                             frame->first_lsn);
    if (st != ST_OK || frame->first_lsn != r->next_lsn)
        return st; /* a duplicate */
    st = read_records(r, offset, frame);
    if (st != ST_OK)
        return st;
    r->now.frames++;
    r->now.sealed = (frame->flags & FRAME_SEAL) != 0;
    SOMETIMES_IF(r->now.sealed, START_SEALED);
    r->found.frames++;
    r->found.bytes += frame->length;
    if (r->found.last_ms < frame->time_ms)
        r->found.last_ms = frame->time_ms;
    return ST_OK;
}

/* Checks whether there are bytes other than zero behind an offset of the segment. */
static enum status
check_data_behind(struct reader *r, size_t offset, bool *something)
{
    size_t from = r->len, got;
    uint8_t *piece;
    int error = 0;

    *something = offset < r->len && !wire_blank(r->bytes + offset, r->len - offset);
    piece = malloc(PIECE); /* r->bytes would touch memory for nothing */
    if (piece == NULL)
        return reader_fail(r, ST_NO_MEMORY, "out of memory while reading %s", r->name);
    for (; error == 0 && !*something && from < r->size; from += got) {
        error = disk_read(r->segments->disk, r->file, from, piece, PIECE, &got);
        if (error != 0 || got == 0)
            break;
        *something = !wire_blank(piece, got);
    }
    free(piece);
    return error == 0 ? ST_OK : reader_system_fails(r, "read", error);
}

/* Handles a place without a whole frame. *offset moves to a whole frame behind it, which
 * means damage, or to the end. */
static enum status
check_rest(struct reader *r, size_t *offset, bool last)
{
    size_t from = *offset, later, used;
    struct frame frame;
    bool something;
    enum status st = check_data_behind(r, from, &something);

    *offset = r->size;
    if (st == ST_OK && something)
        st = read_ahead(r, r->size);
    if (st != ST_OK || !something)
        return st;
    later = frame_search(r->bytes, r->len, from, r->next_lsn, r->nonce, &frame);
    if (later < r->len) {
        *offset = later;
        return segment_damaged(r, from, "is not a frame, but intact frames follow",
                               frame.first_lsn);
    }
    for (used = r->len; used > 0 && r->bytes[used - 1] == 0;)
        used--;
    if (last && used > from) /* torn frames of earlier crashes remain in other segments */
        r->now.torn_bytes = used - from;
    SOMETIMES_IF(r->now.torn_bytes > 0, START_TORN);
    return ST_OK;
}

static enum status
read_frames(struct reader *r, bool last)
{
    size_t offset = SEGMENT_HEAD_BYTES;
    /* In other segments no record is missing if the next one continues their LSNs. */
    bool search = !r->live && (last || r->damage != NULL);
    struct frame frame;
    enum status st = ST_OK;

    r->now.end = offset;
    while (st == ST_OK && offset < r->size) {
        st = fill_frame(r, offset);
        if (st != ST_OK)
            return st;
        if (r->len >= offset &&
            frame_read(r->bytes + offset, r->len - offset, r->nonce, &frame)) {
            st = read_frame(r, offset, &frame);
            offset += FRAME_HEAD_BYTES + frame.length;
            r->now.end = offset;
            if (r->frame != NULL)
                r->frame(r->arg, r);
        } else if (search)
            st = check_rest(r, &offset, last);
        else
            break;
    }
    return st;
}

/* ------------------------------------------------------------------ the whole */

static enum status
read_segment(struct reader *r, size_t i)
{
    struct segments *s = r->segments;
    bool last = i + 1 == s->count, skip = false;
    enum status st = open_segment(r, &s->all[i], last && r->sync);

    r->now = (struct journal_segment){.name = r->name,
                                      .first_lsn = s->all[i].first_lsn,
                                      .bytes = s->all[i].bytes,
                                      .last = last};
    r->made_bytes = 0;
    if (st == ST_OK)
        st = read_ahead(r, SEGMENT_HEAD_BYTES);
    if (st == ST_OK)
        st = check_head(r, &skip);
    if (st == ST_OK && !skip)
        st = read_frames(r, last);
    /*
     * A start frees the space behind the last frame (segments_trim_last()), and a backup
     * does not copy it. Without a frame neither happens: the segment is removed, or not
     * copied.
     */
    if (st == ST_OK && !skip && last && !r->live && r->now.frames == 0 &&
        r->size < r->made_bytes)
        st = segment_damaged(r, r->size, "ends before its first frame", 0);
    disk_close(s->disk, r->file);
    r->file = NULL;
    if (st != ST_OK)
        return st;
    r->now.next_lsn = r->next_lsn;
    r->found.segments++;
    r->found.next_lsn = r->next_lsn;
    r->found.torn_bytes += r->now.torn_bytes;
    memcpy(r->before, r->name, sizeof(r->before));
    r->before_end = r->now.end;
    if (r->segment != NULL)
        r->segment(r->arg, &r->now);
    return ST_OK;
}

/* Reports that records that were durable once are missing at the end of the log. */
static enum status
report_missing_end(struct reader *r, const struct durable_lsn *mark, bool segment_missing)
{
    uint64_t last = r->next_lsn == 0 ? 0 : r->next_lsn - 1;
    char missing[DISK_NAME_CAP];

    if (r->damage != NULL) {
        if (r->before[0] == '\0')
            report_damage(r, DURABLE_LSN_NAME, 0,
                          "names segments, but the directory has none", 1, mark->lsn);
        else
            report_damage(
                r, r->before, r->before_end,
                segment_missing
                    ? "is the end of the last segment, but a later segment was started"
                    : "is the end of the log, but later records were durable",
                last + 1, mark->lsn);
        return ST_OK;
    }
    segment_name(missing, mark->segment);
    if (segment_missing)
        return reader_fail(
            r, ST_BAD_VALUE,
            "the journal is damaged: %s is missing, or " DURABLE_LSN_NAME
            " belongs to another journal. The last LSN before it is %" PRIu64
                READER_ADVICE,
            missing, last);
    return reader_fail(r, ST_BAD_VALUE,
                       "the journal is damaged: %s has no valid frame at byte %" PRIu64
                       ", after LSN %" PRIu64 ", but records up to LSN %" PRIu64
                       " were durable" READER_ADVICE,
                       r->before, r->before_end, last, mark->lsn);
}

/* Checks that all records are there that were durable when a start, a seal or a new
 * segment last noted it. */
static enum status
check_end(struct reader *r)
{
    const struct segments *s = r->segments;
    uint64_t last = s->count == 0 ? 0 : s->all[s->count - 1].first_lsn;
    struct durable_lsn mark;
    int error = durable_lsn_read(s->disk, &mark);

    if (error != 0) {
        (void)snprintf(r->name, sizeof(r->name), "%s", DURABLE_LSN_NAME);
        return reader_system_fails(r, "read", error);
    }
    if (mark.segment == 0 ||
        (r->known && memcmp(s->journal, mark.journal, NONCE_BYTES) != 0))
        return ST_OK; /* the file is empty, or of another journal */
    if (mark.lsn >= r->next_lsn || mark.segment > last)
        return report_missing_end(r, &mark, mark.segment > last);
    return ST_OK;
}

enum status
reader_read(struct reader *r)
{
    enum status st = ST_OK;
    size_t count = r->segments->count;

    if (count > 0)
        r->begins = r->segments->all[0].first_lsn;
    for (size_t i = 0; st == ST_OK && i < count; i++)
        st = read_segment(r, i);
    return st == ST_OK && !r->live ? check_end(r) : st;
}

bool
reader_lacks_beginning(const struct reader *r)
{
    return r->begins > 1 && r->checkpointed < r->begins;
}

void
reader_fini(struct reader *r)
{
    free(r->bytes);
    r->bytes = NULL;
    r->len = r->size = r->capacity = 0;
}
