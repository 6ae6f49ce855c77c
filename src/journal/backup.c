/*
 * Copies a journal that a process may write meanwhile.
 *
 * Segments are added at the end and removed at the beginning, and reading a directory
 * takes time. But if two readings in a row agree, the segments that they list existed
 * together between them: a segment that both missed would have been added and removed
 * meanwhile, and then the older ones would have been removed, too. From there on only the
 * last segment changes, by growing. A frame that was whole with these segments stays
 * whole.
 *
 * A body file is created before a RUN names it, grows, and is removed when its FILE_GONE
 * is durable, or at a start that does not need it. The copy needs each file that its own
 * log needs, up to the last RUN that names it:
 *
 *     1. note_newest() lists the segments, and remembers the last one.
 *     2. copy_bodies() links or copies the body files. If one is removed meanwhile, its
 *        FILE_GONE is in the segments that follow.
 *     3. find_segments() and copy_segments() copy the segments.
 *     4. copy_bodies() again: files that were created meanwhile, and the rest of those
 *        that were copied before and have grown.
 *     5. Only a file that was created or has grown after step 2, and was removed before
 *        step 4, is incomplete. The RUN that names it is in a segment from step 1 on. So
 *        check_bodies() reads only these, and begins again if such a RUN has no
 *        FILE_GONE.
 *
 * Numbers of files only grow. A file that was incomplete once, or is older, existed
 * before the next try, so it is complete then, or not needed. It causes no third try.
 */
#include "claimd/journal/inspect.h"

#include "journal/bodies.h"
#include "journal/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 100, PIECE = 1 << 18 };

/* A body file of the copy. */
struct body_copy {
    uint32_t number;
    bool linked;    /* it grows with the source */
    uint64_t bytes; /* that were copied */
    uint64_t wants; /* bytes that the log names; 0: none */
    bool gone;      /* the log says so */
};

struct backup {
    struct disk *from, *to;
    const struct journal_linker *linker;
    struct journal_backup_result *out;
    struct segments segments; /* of the source */
    struct reader reader;
    uint8_t *piece; /* owned: PIECE bytes */

    struct body_copy *bodies; /* owned: files that were found or that the log names */
    size_t bodies_count, bodies_capacity;
    uint64_t since;      /* first LSN of the last segment in step 1; 0: none */
    uint64_t end;        /* of the last segment */
    uint32_t incomplete; /* the newest file that was, in any try; 0: none */
    bool again;          /* a body file is incomplete */
    int list_error;
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
copy_bytes(struct backup *b, struct disk_file *from, struct disk_file *to, uint64_t begin,
           uint64_t bytes)
{
    int error = 0;
    size_t got;

    for (uint64_t at = begin; error == 0 && at < bytes; at += got) {
        uint64_t left = bytes - at;

        error = disk_read(b->from, from, at, b->piece,
                          left < PIECE ? (size_t)left : PIECE, &got);
        if (error == 0 && got == 0)
            return EIO; /* the file was longer before */
        if (error == 0)
            error = disk_write(b->to, to, at, b->piece, got);
    }
    b->out->copied_bytes += bytes - begin;
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
        error = copy_bytes(b, from, to, 0, bytes);
    disk_close(b->from, from);
    disk_close(b->to, to);
    return error;
}

/* Links a file. EXDEV: it must be copied. */
static int
try_link(struct backup *b, const char *name)
{
    static const int cannot_link[] = {EXDEV, EPERM, EMLINK, EOPNOTSUPP, ENOSYS, EACCES};
    int error = EXDEV;

    if (b->linker->link != NULL)
        error = b->linker->link(b->linker->arg, name);
    if (error == 0)
        b->out->linked++;
    for (size_t i = 0; i < sizeof(cannot_link) / sizeof(cannot_link[0]); i++)
        if (error == cannot_link[i])
            return EXDEV;
    return error;
}

/* Links or copies a segment that is complete. */
static int
copy_closed(struct backup *b, const struct segment *segment)
{
    char name[DISK_NAME_CAP];
    int error;

    segment_name(name, segment->first_lsn);
    error = try_link(b, name);
    return error == EXDEV ? copy_file(b, name, segment->bytes) : error;
}

/* ------------------------------------------------------------------ body files */

/* The entry of a body file, which is added if there is none; NULL without memory. */
static struct body_copy *
body_copy(struct backup *b, uint32_t number)
{
    for (size_t i = 0; i < b->bodies_count; i++)
        if (b->bodies[i].number == number)
            return &b->bodies[i];
    if (b->bodies_count == b->bodies_capacity) {
        const size_t capacity = 2 * b->bodies_capacity + 16;
        struct body_copy *larger = realloc(b->bodies, capacity * sizeof(*larger));

        if (larger == NULL)
            return NULL;
        b->bodies = larger;
        b->bodies_capacity = capacity;
    }
    b->bodies[b->bodies_count] = (struct body_copy){.number = number};
    return &b->bodies[b->bodies_count++];
}

static void
note_body(void *arg, const char *name)
{
    struct backup *b = arg;
    const uint32_t number = body_file_number(name);

    if (number != 0 && body_copy(b, number) == NULL)
        b->list_error = ENOMEM;
}

/* Copies a body file as far as it is, from where an earlier call ended. */
static int
extend_copy(struct backup *b, struct body_copy *body, const char *name)
{
    struct disk_file *from = NULL, *to = NULL;
    uint64_t size = 0;
    int error = disk_file_open(b->from, name, DISK_READ, &from);

    if (error == 0)
        error = disk_size(b->from, from, &size);
    if (error == 0 && size > body->bytes)
        error =
            disk_file_open(b->to, name, body->bytes == 0 ? DISK_NEW : DISK_WRITE, &to);
    if (to != NULL)
        error = copy_bytes(b, from, to, body->bytes, size);
    disk_close(b->from, from);
    disk_close(b->to, to);
    if (error == 0 && size > body->bytes)
        body->bytes = size;
    return error;
}

/* Links or copies all body files. A file that is removed meanwhile is skipped. */
static int
copy_bodies(struct backup *b)
{
    char name[DISK_NAME_CAP];
    int error;

    b->list_error = 0;
    error = disk_list(b->from, note_body, b);
    if (error == 0)
        error = b->list_error;
    for (size_t i = 0; error == 0 && i < b->bodies_count; i++) {
        struct body_copy *body = &b->bodies[i];

        if (body->linked || body->gone)
            continue;
        pause_copy(b);
        body_file_name(name, body->number);
        error = body->bytes > 0 ? EXDEV : try_link(b, name);
        body->linked = error == 0;
        if (error == EXDEV)
            error = extend_copy(b, body, name);
        if (error == ENOENT)
            error = 0;
    }
    return error;
}

static enum status
note_needed(void *arg, struct reader *reader, struct record *record)
{
    struct backup *b = arg;
    const struct store_place *place = &record->run.place;
    const bool gone = record->type == RECORD_MARK && record->mark.what == MARK_FILE_GONE;
    struct body_copy *body;

    (void)reader;
    if (!gone && record->type != STORE_CHANGE_RUN)
        return ST_OK;
    body = body_copy(b, gone ? (uint32_t)record->mark.since : place->file);
    if (body == NULL)
        return ST_NO_MEMORY;
    body->gone = body->gone || gone;
    if (!gone && body->wants < place->offset + place->length)
        body->wants = place->offset + place->length;
    return ST_OK;
}

/* Finds a body file that the copy needs, but does not have. */
static void
check_bodies(struct backup *b)
{
    const uint32_t known = b->incomplete;

    for (size_t i = 0; i < b->bodies_count; i++) {
        const struct body_copy *body = &b->bodies[i];

        if (body->gone || body->linked || body->bytes >= body->wants ||
            body->number <= known)
            continue;
        b->again = true;
        if (b->incomplete < body->number)
            b->incomplete = body->number;
    }
    b->out->bodies = 0;
    for (size_t i = 0; i < b->bodies_count; i++)
        b->out->bodies += b->bodies[i].linked || b->bodies[i].bytes > 0;
}

/* ------------------------------------------------------------------ the last segment */

static void
note_copied_end(void *arg, const struct journal_segment *segment)
{
    struct backup *b = arg;

    b->end = segment->frames == 0 ? 0 : segment->end;
}

/* Copies the last segment up to its last whole frame, unless it has none. Reads the ones
 * before it, too, which were written during the backup. ENOENT: it was removed. EILSEQ:
 * one is damaged, see error[]. */
static int
copy_last(struct backup *b)
{
    struct segments read = b->segments;
    size_t first = read.count - 1;
    char name[DISK_NAME_CAP];
    enum status st;

    segment_name(name, read.all[first].first_lsn);
    while (first > 0 && read.all[first].first_lsn > b->since)
        first--;
    read.all += first;
    read.count -= first;
    b->end = 0;
    b->reader.segments = &read;
    b->reader.live = true;
    b->reader.test_api = true;
    b->reader.record = note_needed;
    b->reader.segment = note_copied_end;
    b->reader.arg = b;
    st = reader_read(&b->reader);
    b->out->next_lsn = b->reader.next_lsn;
    reader_fini(&b->reader);
    if (st != ST_OK)
        return EILSEQ;
    memcpy(b->segments.journal, read.journal, NONCE_BYTES);
    return b->end == 0 ? 0 : copy_file(b, name, b->end);
}

/* ------------------------------------------------------------------ the whole */

static void
remove_copies(struct backup *b)
{
    char name[DISK_NAME_CAP];

    for (size_t i = 0; i < b->segments.count; i++) {
        segment_name(name, b->segments.all[i].first_lsn);
        (void)disk_unlink(b->to, name); /* the last ones were not copied */
    }
    for (size_t i = 0; i < b->bodies_count; i++) {
        body_file_name(name, b->bodies[i].number);
        (void)disk_unlink(b->to, name); /* those that the log names may be missing */
    }
    (void)disk_unlink(b->to, DURABLE_LSN_NAME);
}

/* Notes the last segment. */
static int
note_newest(struct backup *b)
{
    struct segments now;
    int error = list_segments(b, &now);

    b->since = error != 0 || now.count == 0 ? 0 : now.all[now.count - 1].first_lsn;
    segments_fini(&now);
    return error;
}

static int
copy_segments(struct backup *b)
{
    int error = 0;

    for (size_t i = 0; error == 0 && i < b->segments.count; i++) {
        pause_copy(b);
        error = i + 1 < b->segments.count ? copy_closed(b, &b->segments.all[i])
                                          : copy_last(b);
    }
    return error;
}

static int
copy_once(struct backup *b)
{
    char *text = b->reader.error;
    int error = note_newest(b);

    b->bodies_count = 0;
    b->again = false;
    b->out->linked = b->out->copied_bytes = 0;
    b->reader = (struct reader){.error = text};
    if (error == 0)
        error = copy_bodies(b);
    if (error != 0)
        return error;
    error = find_segments(b);
    b->out->segments = b->segments.count;
    if (error == 0)
        error = copy_segments(b);
    if (error == 0 && b->segments.count > 0)
        error = copy_bodies(b);
    if (error != 0)
        return error;
    check_bodies(b);
    if (b->segments.count > 0) {
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

    while ((error == 0 ? b->again : was_checkpointed(b)) && b->out->restarts < TRIES) {
        remove_copies(b);
        segments_fini(&b->segments);
        b->out->restarts++;
        error = copy_once(b);
    }
    if (error == 0 && b->again)
        error = EBUSY;
    if (error == EILSEQ) /* error[] says why */
        return ST_IO;
    if (error != 0)
        return reader_fail(&b->reader, ST_IO, "claimd cannot copy the journal: %s",
                           error == EBUSY
                               ? "its files changed during each try. Run the backup again"
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
    free(b.bodies);
    free(b.piece);
    return st;
}
