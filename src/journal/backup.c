/*
 * Copies a journal that a process may write meanwhile.
 *
 * Segments are added at the end and removed at the beginning, and reading a directory
 * takes time. But if two readings in a row agree, the segments that they list existed
 * together between them: a segment that both missed would have been added and removed
 * meanwhile, and then the older ones would have been removed, too. From there on only the
 * last segment changes, by growing. A frame that was whole with these segments stays
 * whole.
 */
#include "claimd/journal/inspect.h"

#include "journal/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 100, PIECE = 1 << 18 };

struct backup {
    struct disk *from, *to;
    const struct journal_linker *linker;
    struct journal_backup_result *out;
    struct segments segments; /* of the source */
    struct reader reader;
    uint8_t *piece; /* owned: PIECE bytes */
};

static void
pause_copy(const struct backup *b)
{
    if (b->linker->pause != NULL)
        b->linker->pause(b->linker->arg);
}

static int
list_segments(struct backup *b, struct segments *s)
{
    segments_init(s, b->from, 0);
    s->read_only = true;
    return segments_list(s);
}

/* Lists the segments until two readings agree; EBUSY if they do not. */
static int
find_segments(struct backup *b)
{
    bool agreed = false;
    int error = list_segments(b, &b->segments);

    for (int i = 0; error == 0 && !agreed && i < TRIES; i++) {
        struct segments before = b->segments;

        pause_copy(b);
        error = list_segments(b, &b->segments);
        agreed = before.count == b->segments.count;
        for (size_t k = 0; agreed && k < before.count; k++)
            agreed = before.all[k].first_lsn == b->segments.all[k].first_lsn;
        segments_fini(&before);
    }
    return error == 0 && !agreed ? EBUSY : error;
}

static int
copy_bytes(struct backup *b, struct disk_file *from, struct disk_file *to, uint64_t bytes)
{
    int error = 0;
    size_t got;

    for (uint64_t at = 0; error == 0 && at < bytes; at += got) {
        uint64_t left = bytes - at;

        error = disk_read(b->from, from, at, b->piece,
                          left < PIECE ? (size_t)left : PIECE, &got);
        if (error == 0 && got == 0)
            return EIO; /* the file was longer before */
        if (error == 0)
            error = disk_write(b->to, to, at, b->piece, got);
    }
    b->out->copied_bytes += bytes;
    return error == 0 ? disk_sync(b->to, to) : error;
}

static int
copy_file(struct backup *b, const char *name, uint64_t bytes)
{
    struct disk_file *from = NULL, *to = NULL;
    int error = disk_file_open(b->from, name, DISK_READ, &from);

    if (error == 0)
        error = disk_file_open(b->to, name, DISK_NEW, &to);
    if (error == 0)
        error = copy_bytes(b, from, to, bytes);
    disk_close(b->from, from);
    disk_close(b->to, to);
    return error;
}

/* Links or copies a segment that is complete. */
static int
copy_closed(struct backup *b, const struct segment *segment)
{
    static const int cannot_link[] = {EXDEV, EPERM, EMLINK, EOPNOTSUPP, ENOSYS, EACCES};
    char name[DISK_NAME_CAP];
    int error = EXDEV;

    segment_name(name, segment->first_lsn);
    if (b->linker->link != NULL)
        error = b->linker->link(b->linker->arg, name);
    if (error == 0)
        b->out->linked++;
    for (size_t i = 0; i < sizeof(cannot_link) / sizeof(cannot_link[0]); i++)
        if (error == cannot_link[i])
            return copy_file(b, name, segment->bytes);
    return error;
}

static enum status
skip_record(void *arg, struct reader *reader, struct record *record)
{
    (void)arg, (void)reader, (void)record;
    return ST_OK;
}

static void
note_copied_end(void *arg, const struct journal_segment *segment)
{
    *(uint64_t *)arg = segment->frames == 0 ? 0 : segment->end;
}

/* Copies the last segment up to its last whole frame, unless it has none. ENOENT: it was
 * removed. EILSEQ: it is damaged, see error[]. */
static int
copy_last(struct backup *b, struct segment *segment)
{
    struct segments one = b->segments;
    uint64_t end = 0;
    char name[DISK_NAME_CAP];
    enum status st;

    one.all = segment;
    one.count = 1;
    b->reader.segments = &one;
    b->reader.live = true;
    b->reader.test_api = true;
    b->reader.record = skip_record;
    b->reader.segment = note_copied_end;
    b->reader.arg = &end;
    segment_name(name, segment->first_lsn);
    st = reader_read(&b->reader);
    b->out->next_lsn = b->reader.next_lsn;
    reader_fini(&b->reader);
    if (st != ST_OK)
        return EILSEQ;
    memcpy(b->segments.journal, one.journal, NONCE_BYTES);
    return end == 0 ? 0 : copy_file(b, name, end);
}

static void
remove_copies(struct backup *b)
{
    char name[DISK_NAME_CAP];

    for (size_t i = 0; i < b->segments.count; i++) {
        segment_name(name, b->segments.all[i].first_lsn);
        (void)disk_unlink(b->to, name); /* the last ones were not copied */
    }
    (void)disk_unlink(b->to, DURABLE_LSN_NAME);
}

static int
copy_once(struct backup *b)
{
    char *text = b->reader.error;
    int error = find_segments(b);

    b->out->segments = b->segments.count;
    b->out->linked = b->out->copied_bytes = 0;
    b->reader = (struct reader){.error = text};
    for (size_t i = 0; error == 0 && i < b->segments.count; i++) {
        struct segment *segment = &b->segments.all[i];

        pause_copy(b);
        error =
            i + 1 < b->segments.count ? copy_closed(b, segment) : copy_last(b, segment);
    }
    if (error == 0 && b->segments.count > 0) {
        struct segments copy = b->segments; /* a file that is lost later is missed then */

        copy.disk = b->to;
        error =
            segments_note_durable(&copy, b->out->next_lsn - 1, b->reader.now.frames == 0);
    }
    return error == 0 ? disk_sync_names(b->to) : error;
}

/* A checkpoint removes the oldest segment first. If that is gone, others may follow. */
static bool
was_checkpointed(const struct backup *b)
{
    char name[DISK_NAME_CAP];
    struct disk_file *f = NULL;
    int error;

    if (b->segments.count == 0)
        return false;
    segment_name(name, b->segments.all[0].first_lsn);
    error = disk_file_open(b->from, name, DISK_READ, &f);
    disk_close(b->from, f);
    return error == ENOENT;
}

static enum status
backup_run(struct backup *b)
{
    int error = copy_once(b);
    char text[ERRNO_TEXT_CAP];

    while (error != 0 && was_checkpointed(b) && b->out->restarts < TRIES) {
        remove_copies(b);
        segments_fini(&b->segments);
        b->out->restarts++;
        error = copy_once(b);
    }
    if (error == EILSEQ) /* error[] says why */
        return ST_IO;
    if (error != 0)
        return reader_fail(
            &b->reader, ST_IO, "claimd cannot copy the journal: %s",
            error == EBUSY ? "its segments changed during each try. Run the backup again"
                           : disk_error_text(error, text));
    if (b->segments.count == 0)
        return reader_fail(&b->reader, ST_NOT_FOUND, "there is no journal");
    return ST_OK;
}

enum status
journal_backup(struct disk *from, struct disk *to, const struct journal_linker *linker,
               struct journal_backup_result *out, char error[JOURNAL_ERROR_CAP])
{
    struct backup b = {
        .from = from, .to = to, .linker = linker, .out = out, .reader = {.error = error}};
    enum status st;

    *out = (struct journal_backup_result){0};
    b.piece = malloc(PIECE);
    if (b.piece == NULL)
        return reader_fail(&b.reader, ST_NO_MEMORY, "out of memory");
    st = backup_run(&b);
    if (st != ST_OK)
        remove_copies(&b);
    segments_fini(&b.segments);
    free(b.piece);
    return st;
}
