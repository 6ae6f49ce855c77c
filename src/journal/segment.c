#include "journal/segment.h"

#include "claimd/base/crc32c.h"
#include "claimd/base/invariant.h"
#include "journal/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char suffix[] = ".log", spare[] = "spare.";

enum { LSN_DIGITS = 16, SQUEEZED_LEAST = 64 * 1024, SQUEEZED_PARTS = 4 };

void
segments_init(struct segments *s, struct disk *disk, uint64_t segment_bytes)
{
    *s = (struct segments){.disk = disk,
                           .unread = "its directory",
                           .segment_bytes =
                               segment_bytes == 0 ? SEGMENT_BYTES_USUAL : segment_bytes};
}

void
segments_fini(struct segments *s)
{
    disk_close(s->disk, s->file);
    s->file = NULL;
    free(s->all);
    s->all = NULL;
    s->count = s->capacity = 0;
}

void
segment_name(char name[DISK_NAME_CAP], uint64_t first_lsn)
{
    (void)snprintf(name, DISK_NAME_CAP, "%016" PRIx64 "%s", first_lsn, suffix);
}

static void
spare_name(char name[DISK_NAME_CAP], unsigned i)
{
    (void)snprintf(name, DISK_NAME_CAP, "%s%u", spare, i);
}

/* ------------------------------------------------------------------ the list */

static int
add_segment(struct segments *s, struct segment segment)
{
    struct segment *all;

    if (s->count == s->capacity) {
        all = realloc(s->all, (2 * s->capacity + 16) * sizeof(*all));
        if (all == NULL)
            return ENOMEM;
        s->all = all;
        s->capacity = 2 * s->capacity + 16;
    }
    s->all[s->count++] = segment;
    s->bytes += segment.bytes;
    return 0;
}

struct segment_list {
    struct segments *segments;
    int error;
};

static void
note_name(void *arg, const char *name)
{
    struct segment_list *l = arg;
    struct segments *s = l->segments;
    struct segment segment = {0, 0};
    char again[DISK_NAME_CAP];
    struct disk_file *f;
    bool is_spare = strncmp(name, spare, sizeof(spare) - 1) == 0;

    if (!is_spare && strlen(name) == LSN_DIGITS + sizeof(suffix) - 1)
        segment.first_lsn = strtoull(name, NULL, 16);
    segment_name(again, segment.first_lsn);
    if (l->error != 0 || (!is_spare && strcmp(name, again) != 0))
        return; /* other files stay */
    l->error = disk_file_open(s->disk, name, DISK_READ, &f);
    if (l->error == 0) {
        l->error = disk_size(s->disk, f, &segment.bytes);
        disk_close(s->disk, f);
    }
    if (s->largest < segment.bytes)
        s->largest = segment.bytes;
    if (is_spare || (l->error == ENOENT && s->read_only)) {
        s->spare_bytes += segment.bytes;
        l->error = 0; /* a checkpoint removed it just now; a spare is not read */
    } else if (l->error == 0) {
        l->error = add_segment(s, segment);
    } else {
        (void)snprintf(s->unread, sizeof(s->unread), "%s", name);
    }
}

static int
by_lsn(const void *a, const void *b)
{
    uint64_t left = ((const struct segment *)a)->first_lsn;
    uint64_t right = ((const struct segment *)b)->first_lsn;

    return (left > right) - (left < right);
}

/* Adopts a spare that a crash left; *whole: it has the size of a segment. */
static int
adopt_spare(struct segments *s, const char *name, bool *whole)
{
    struct disk_file *f;
    uint64_t bytes = 0;
    int error = disk_file_open(s->disk, name, DISK_WRITE, &f);

    *whole = false;
    if (error != 0)
        return error == ENOENT ? 0 : error;
    error = disk_size(s->disk, f, &bytes);
    *whole = error == 0 && bytes == s->segment_bytes;
    if (*whole)
        error = disk_sync(s->disk, f); /* as for a new spare */
    disk_close(s->disk, f);
    if (error == 0 && !*whole)
        error = disk_unlink(s->disk, name);
    return error;
}

/* Spares are kept: on a full disk other programs could take their space. A spare contains
 * at most a head, which is written anew. */
int
segments_adopt_spares(struct segments *s)
{
    char name[DISK_NAME_CAP], to[DISK_NAME_CAP];
    bool whole;
    int error = 0;

    ENSURE(s->spares == 0);
    for (unsigned i = 0; i < SEGMENT_SPARES_MOST && error == 0; i++) {
        spare_name(name, i);
        error = adopt_spare(s, name, &whole);
        if (error != 0 || !whole)
            continue;
        spare_name(to, s->spares);
        if (i != s->spares)
            error = disk_rename(s->disk, name, to);
        s->spares++;
    }
    return error;
}

int
segments_list(struct segments *s)
{
    struct segment_list l = {s, 0};
    int error = disk_list(s->disk, note_name, &l);

    if (error == 0)
        error = l.error;
    if (s->count > 1)
        qsort(s->all, s->count, sizeof(s->all[0]), by_lsn);
    return error;
}

void
segments_choose_size(struct segments *s, uint64_t free_bytes, size_t frame_bytes)
{
    uint64_t needed = SEGMENT_HEAD_BYTES + (uint64_t)SEGMENT_FRAMES * frame_bytes;
    uint64_t least = SEGMENT_BYTES_LEAST;

    while (least < SEGMENT_BYTES_MOST && (least < needed || least < s->largest))
        least *= 2;
    s->segment_bytes = SEGMENT_BYTES_USUAL;
    while (s->segment_bytes > least && free_bytes / s->segment_bytes < SEGMENTS_WANTED)
        s->segment_bytes /= 2;
    if (s->segment_bytes < least)
        s->segment_bytes = least;
    ENSURE((s->segment_bytes & (s->segment_bytes - 1)) == 0);
}

size_t
segments_frame_max(const struct segments *s)
{
    uint64_t bytes = (s->segment_bytes - SEGMENT_HEAD_BYTES) / SEGMENT_FRAMES;

    return bytes < FRAME_BYTES_MAX ? (size_t)bytes : FRAME_BYTES_MAX;
}

int
segments_trim_last(struct segments *s, uint64_t bytes)
{
    struct segment *last = &s->all[s->count - 1];
    char name[DISK_NAME_CAP];
    struct disk_file *f;
    int error;

    ENSURE(s->count > 0 && s->file == NULL);
    if (bytes >= last->bytes)
        return 0;
    segment_name(name, last->first_lsn);
    error = disk_file_open(s->disk, name, DISK_WRITE, &f);
    if (error != 0)
        return error;
    error = disk_cut(s->disk, f, bytes);
    disk_close(s->disk, f);
    if (error == 0) {
        s->bytes -= last->bytes - bytes;
        last->bytes = bytes;
    }
    return error;
}

int
segments_remove(struct segments *s, size_t i)
{
    char name[DISK_NAME_CAP];
    int error;

    ENSURE(i < s->count && s->bytes >= s->all[i].bytes);
    segment_name(name, s->all[i].first_lsn);
    error = disk_unlink(s->disk, name);
    if (error != 0)
        return error;
    s->bytes -= s->all[i].bytes;
    s->count--;
    memmove(&s->all[i], &s->all[i + 1], (s->count - i) * sizeof(s->all[0]));
    return 0;
}

/* ------------------------------------------------------------------ making */

int
segments_add_spare(struct segments *s, uint64_t bytes)
{
    char name[DISK_NAME_CAP];
    struct disk_file *f;
    int error;

    spare_name(name, s->spares);
    error = disk_file_open(s->disk, name, DISK_NEW, &f);
    if (error != 0)
        return error;
    error = disk_allocate(s->disk, f, bytes);
    if (error == 0)
        error = disk_sync(s->disk, f);
    disk_close(s->disk, f);
    if (error == 0)
        s->spares++;
    else
        (void)disk_unlink(s->disk, name); /* tried again later */
    return error;
}

int
segments_add_small_spare(struct segments *s, uint64_t free_bytes)
{
    uint64_t least = s->spares == 0 ? SQUEEZED_LEAST : s->segment_bytes / SQUEEZED_PARTS;

    if (s->count == 0)
        return 0; /* an empty journal needs no spares to continue */
    if (s->spares > SEGMENT_SPARES)
        return 0; /* one can be used */
    if (free_bytes >= s->segment_bytes || free_bytes < least)
        return 0;
    return segments_add_spare(s, free_bytes - free_bytes % SEGMENT_HEAD_BYTES);
}

static int
write_head(struct segments *s, uint64_t first_lsn, int64_t now_ms)
{
    struct segment_head head = {.version = SEGMENT_VERSION,
                                .required = s->required,
                                .first_lsn = first_lsn,
                                .bytes = s->size,
                                .made_ms = now_ms,
                                .boot_offset_ns = s->boot_offset_ns};
    uint8_t bytes[SEGMENT_HEAD_BYTES];

    if (entropy_reserve(&s->entropy, NONCE_BYTES) != ST_OK)
        return EIO; /* without a nonce a body could look like a frame */
    entropy_take(&s->entropy, s->nonce, NONCE_BYTES);
    memcpy(head.journal, s->journal, NONCE_BYTES);
    memcpy(head.nonce, s->nonce, NONCE_BYTES);
    memcpy(head.boot_id, s->boot_id, BOOT_ID_BYTES);
    segment_head_write(bytes, &head);
    return disk_write(s->disk, s->file, 0, bytes, sizeof(bytes));
}

int
segments_begin(struct segments *s, uint64_t first_lsn, int64_t now_ms)
{
    char name[DISK_NAME_CAP], from[DISK_NAME_CAP];
    int error = segments_sync(s); /* the previous segment is whole when this one exists */

    if (error == 0 && s->spares == 0)
        error = segments_add_spare(s, s->segment_bytes);
    if (error != 0)
        return error;
    ENSURE(s->spares > 0 && !s->dirty);
    ENSURE(s->count == 0 || s->all[s->count - 1].first_lsn < first_lsn);
    disk_close(s->disk, s->file);
    s->file = NULL;
    spare_name(from, s->spares - 1);
    segment_name(name, first_lsn);
    error = disk_file_open(s->disk, from, DISK_WRITE, &s->file);
    if (error == 0)
        error = disk_size(s->disk, s->file, &s->size);
    if (error == 0)
        error = write_head(s, first_lsn, now_ms);
    if (error == 0)
        error = disk_sync(s->disk, s->file);
    if (error == 0)
        error = disk_rename(s->disk, from, name);
    if (error == 0)
        error = disk_sync_names(s->disk);
    if (error == 0)
        error = add_segment(s, (struct segment){first_lsn, s->size});
    s->spares--;
    s->current = s->required;
    s->offset = SEGMENT_HEAD_BYTES;
    return error;
}

int
segments_write(struct segments *s, const void *frames, size_t len)
{
    int error;

    ENSURE(segments_fits(s, len));
    error = disk_write(s->disk, s->file, s->offset, frames, len);
    s->offset += len;
    s->dirty = true;
    return error;
}

int
segments_sync(struct segments *s)
{
    int error;

    if (!s->dirty)
        return 0;
    ENSURE(s->file != NULL && s->offset <= s->size);
    error = disk_sync(s->disk, s->file);
    if (error == 0)
        s->dirty = false;
    return error;
}

/* ------------------------------------------------------------------ the durable LSN */

/* Offsets. All are in one sector, which a power cut leaves old or new. */
enum { AT_VERSION = 8, AT_JOURNAL = 16, AT_LSN = 32, AT_SEGMENT = 40, AT_CRC = 60 };
enum { DURABLE_LSN_VERSION = 1 };

static const uint8_t magic[8] = {'c', 'l', 'a', 'i', 'm', 'd', 'D', '\n'};

int
durable_lsn_read(struct disk *disk, struct durable_lsn *out)
{
    uint8_t bytes[DURABLE_LSN_BYTES];
    struct disk_file *f;
    size_t got = 0;
    int error = disk_file_open(disk, DURABLE_LSN_NAME, DISK_READ, &f);

    *out = (struct durable_lsn){.lsn = 0};
    if (error != 0)
        return error == ENOENT ? 0 : error;
    error = disk_read(disk, f, 0, bytes, DURABLE_LSN_BYTES, &got);
    disk_close(disk, f);
    if (error != 0 || got < DURABLE_LSN_BYTES ||
        memcmp(bytes, magic, sizeof(magic)) != 0 ||
        wire_u32(bytes + AT_VERSION) != DURABLE_LSN_VERSION ||
        wire_u32(bytes + AT_CRC) != crc32c(0, bytes, AT_CRC))
        return error;
    memcpy(out->journal, bytes + AT_JOURNAL, NONCE_BYTES);
    out->lsn = wire_u64(bytes + AT_LSN);
    out->segment = wire_u64(bytes + AT_SEGMENT);
    return 0;
}

int
durable_lsn_write(struct disk *disk, const struct durable_lsn *mark)
{
    uint8_t bytes[DURABLE_LSN_BYTES];
    struct disk_file *f;
    int error = disk_file_open(disk, DURABLE_LSN_NAME, DISK_WRITE, &f);

    if (error == ENOENT)
        error = disk_file_open(disk, DURABLE_LSN_NAME, DISK_NEW, &f);
    if (error != 0)
        return error;
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, magic, sizeof(magic));
    (void)wire_put_u32(bytes + AT_VERSION, DURABLE_LSN_VERSION);
    (void)wire_put(bytes + AT_JOURNAL, mark->journal, NONCE_BYTES);
    (void)wire_put_u64(bytes + AT_LSN, mark->lsn);
    (void)wire_put_u64(bytes + AT_SEGMENT, mark->segment);
    (void)wire_put_u32(bytes + AT_CRC, crc32c(0, bytes, AT_CRC));
    error = disk_write(disk, f, 0, bytes, DURABLE_LSN_BYTES);
    if (error == 0)
        error = disk_sync(disk, f);
    disk_close(disk, f);
    return error;
}

int
segments_note_durable(struct segments *s, uint64_t lsn, size_t without)
{
    struct durable_lsn mark = {.lsn = lsn};
    int error;

    if (s->count > without)
        mark.segment = s->all[s->count - without - 1].first_lsn;
    memcpy(mark.journal, s->journal, NONCE_BYTES);
    error = durable_lsn_write(s->disk, &mark);
    return disk_is_full(error) ? 0 : error;
}

int
segments_seal(struct segments *s, uint64_t next_lsn, int64_t now_ms,
              int64_t wall_ahead_ms)
{
    const struct frame seal = {.flags = FRAME_SEAL,
                               .first_lsn = next_lsn,
                               .time_ms = now_ms,
                               .wall_ahead_ms = wall_ahead_ms};
    uint8_t bytes[FRAME_HEAD_BYTES];
    int error = 0;

    if (segments_fits(s, sizeof(bytes))) {
        frame_seal(bytes, &seal, s->nonce);
        error = segments_write(s, bytes, sizeof(bytes));
    }
    return error == 0 ? segments_sync(s) : error;
}
