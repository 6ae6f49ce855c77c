/*
 * bodies_write: writes runs to body files. Declared in bodies_private.h and bodies.h.
 */
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"
#include "journal/bodies_private.h"
#include "journal/record.h"
#include "journal/segment.h"

#include <string.h>
#include <sys/mman.h>

enum { EPOCH_SHIFT = 40 };

/* Ensures that a run of so many bytes can be added to the buffer. Needs the lock. */
static enum status
make_space(struct bodies *b, size_t need)
{
    struct bodies_buffer *buffer = b->filling;

    if (need > FRAME_BYTES_MAX)
        return ST_BEYOND_LOG;
    atomic_store(&b->wanted, true);
    if (atomic_load(b->lost) || !atomic_load(&b->permitted) ||
        (buffer->used > 0 && buffer->used + need > BODIES_BUFFER_BYTES))
        return ST_AGAIN;
    if (buffer->bytes == NULL)
        return ST_NO_MEMORY;
    if (b->current != 0 && b->end + need <= BODIES_FILE_BYTES)
        return ST_OK;
    if (buffer->used > 0) /* of the present file */
        return ST_AGAIN;
    if (atomic_load(&b->space) < BODIES_FILE_BYTES + FRAME_BYTES_MAX)
        return ST_AGAIN;
    if (b->newest == UINT32_MAX || body_file_add(b, b->newest + 1) == NULL)
        return ST_NO_MEMORY;
    b->current = b->newest;
    b->end = SEGMENT_HEAD_BYTES;
    b->has_empty = true; /* perhaps the file before */
    return ST_OK;
}

enum status
bodies_run_write(struct store_runs *runs, struct store_change *state, size_t bytes,
                 struct store_place *place, uint64_t *ticket)
{
    struct bodies *b = bodies_of(runs);
    struct frame frame = {.count = 1, .time_ms = state->now_ms};
    struct body_file *file;
    enum status st;
    uint8_t *to;

    lock_acquire(&b->lock);
    st = make_space(b, FRAME_HEAD_BYTES + record_bound(state->count, bytes));
    if (st == ST_OK) {
        to = b->filling->bytes + b->filling->used;
        frame.first_lsn = b->end;
        frame.length = (uint32_t)record_write(to + FRAME_HEAD_BYTES, state);
        ENSURE(frame.length > 0);
        memcpy(to, &frame, sizeof(frame)); /* the writer seals it */
        *place = (struct store_place){.file = b->current,
                                      .length = FRAME_HEAD_BYTES + frame.length,
                                      .offset = b->end};
        b->filling->used += place->length;
        b->end += place->length;
        file = body_file_find(b, b->current);
        file->runs++;
        atomic_fetch_add(&b->bytes, b->end - file->size);
        file->size = b->end;
        *ticket = ++b->issued;
        if (b->filling->used == place->length || b->filling->used >= BODIES_WAKE_BYTES)
            (void)pthread_cond_signal(&b->write_work); /* cannot fail */
    }
    lock_release(&b->lock);
    return st;
}

enum store_durability
bodies_run_written(struct store_runs *runs, uint64_t ticket)
{
    struct bodies *b = bodies_of(runs);
    enum store_durability durability = STORE_PENDING;

    lock_acquire(&b->lock);
    if (ticket >> EPOCH_SHIFT != b->issued >> EPOCH_SHIFT || atomic_load(b->lost))
        durability = STORE_LOST; /* perhaps it was written: then in vain */
    else if (ticket <= b->durable)
        durability = STORE_DURABLE;
    lock_release(&b->lock);
    return durability;
}

/* Takes the filled buffer; NULL: it is empty. */
static struct bodies_buffer *
take_buffer(struct bodies *b, struct body_file *file, uint64_t *last)
{
    struct bodies_buffer *buffer = NULL;

    lock_acquire(&b->lock);
    if (b->filling->used > 0) {
        buffer = b->filling;
        b->filling = buffer == &b->buffers[0] ? &b->buffers[1] : &b->buffers[0];
        *file = *body_file_find(b, b->current);
        *last = b->issued;
        b->writing = true;
    }
    lock_release(&b->lock);
    return buffer;
}

/* Begins a file with its head. */
static int
begin_file(struct bodies *b, struct body_file *file, const char *name,
           struct disk_file **out)
{
    struct segment_head head = {.version = SEGMENT_VERSION,
                                .required = SEGMENT_BODIES,
                                .first_lsn = file->number,
                                .bytes = BODIES_FILE_BYTES};
    uint8_t bytes[SEGMENT_HEAD_BYTES];
    int error;

    if (entropy_reserve(&b->entropy, NONCE_BYTES) != ST_OK)
        return EIO;
    entropy_take(&b->entropy, file->nonce, NONCE_BYTES);
    memcpy(head.nonce, file->nonce, NONCE_BYTES);
    memcpy(head.journal, b->journal, NONCE_BYTES);
    segment_head_write(bytes, &head);
    error = disk_file_open(b->disk, name, DISK_NEW, out);
    return error == 0 ? disk_write(b->disk, *out, 0, bytes, sizeof(bytes)) : error;
}

/* Writes a buffer to its file, and syncs. 0 or an errno. */
static int
write_buffer(struct bodies *b, struct body_file *file, struct bodies_buffer *buffer)
{
    const bool begun = file->known;
    struct disk_file *f = NULL;
    char name[DISK_NAME_CAP];
    struct frame frame;
    uint64_t offset;
    int error;

    body_file_name(name, file->number);
    error = begun ? disk_file_open(b->disk, name, DISK_WRITE, &f)
                  : begin_file(b, file, name, &f);
    memcpy(&frame, buffer->bytes, sizeof(frame));
    offset = frame.first_lsn;
    for (size_t at = 0; at < buffer->used; at += FRAME_HEAD_BYTES + frame.length) {
        memcpy(&frame, buffer->bytes + at, sizeof(frame));
        frame_seal(buffer->bytes + at, &frame, file->nonce);
    }
    if (error == 0)
        error = disk_write(b->disk, f, offset, buffer->bytes, buffer->used);
    if (error == 0)
        error = disk_sync(b->disk, f);
    if (error == 0 && !begun)
        error = disk_sync_names(b->disk);
    disk_close(b->disk, f);
    return error;
}

/* All tickets that are not durable fail, and the next run begins a file. Needs the
 * lock. */
static void
fail_tickets(struct bodies *b)
{
    b->filling->used = 0;
    b->current = 0;
    b->issued = ((b->issued >> EPOCH_SHIFT) + 1) << EPOCH_SHIFT;
    b->durable = b->issued;
}

enum bodies_result
bodies_write(struct bodies *b, const char **what, int *error)
{
    struct body_file file, *kept;
    struct bodies_buffer *buffer;
    uint64_t last;

    if (atomic_load(b->lost))
        return BODIES_IDLE;
    buffer = take_buffer(b, &file, &last);
    if (buffer == NULL)
        return BODIES_IDLE;
    *what = "write a body file";
    *error = write_buffer(b, &file, buffer);
    if (buffer->used > BODIES_BUFFER_BYTES)
        (void)madvise(buffer->bytes + BODIES_BUFFER_BYTES,
                      BODIES_MAPPED - BODIES_BUFFER_BYTES, MADV_DONTNEED);
    lock_acquire(&b->lock);
    buffer->used = 0;
    b->writing = false;
    b->has_empty = true; /* perhaps */
    kept = body_file_find(b, file.number);
    memcpy(kept->nonce, file.nonce, NONCE_BYTES);
    kept->known = true;
    SOMETIMES_IF(*error != 0 && disk_is_full(*error), BODIES_DISK_FULL);
    if (*error == 0)
        b->durable = last;
    else
        fail_tickets(b);
    lock_release(&b->lock);
    return *error == 0 || disk_is_full(*error) ? BODIES_DONE : BODIES_FAILED;
}
