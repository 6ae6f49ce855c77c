/*
 * bodies: writes, reads and removes body files. Declared in bodies.h.
 *
 *     1. runs_write() copies a run as a frame to the buffer, under the lock of a shard.
 *        So its place is known at once.
 *     2. bodies_write() writes the buffer to its file, syncs, and raises `durable`. Other
 *        runs come into the second buffer meanwhile. A full disk ends the file, and all
 *        tickets that are not durable fail.
 *     3. runs_written() says which it was, and the store logs a RUN (run_unload.c).
 *     4. bodies_load() reads a run, checks it, and passes it to the store (run_load.c).
 *     5. runs_release() counts the runs that the store does not need any more. When a
 *        file has none, the committer logs FILE_GONE, and removes the file when that is
 *        durable (bodies_remove()). So no log names a file that is missing, unless a
 *        later FILE_GONE does, too.
 */
#include "journal/bodies.h"
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"
#include "journal/record.h"
#include "journal/segment.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { EPOCH_SHIFT = 40, NAME_DIGITS = 8 };

static const size_t mapped = BODIES_BUFFER_BYTES + FRAME_BYTES_MAX;

static struct bodies *
bodies_of(struct store_runs *runs)
{
    return container_of(runs, struct bodies, runs);
}

void
body_file_name(char name[DISK_NAME_CAP], uint32_t number)
{
    (void)snprintf(name, DISK_NAME_CAP, "%08" PRIx32 BODIES_SUFFIX, number);
}

uint32_t
body_file_number(const char *name)
{
    uint32_t number;
    char *end;

    if (strspn(name, "0123456789abcdef") != NAME_DIGITS ||
        strcmp(name + NAME_DIGITS, BODIES_SUFFIX) != 0)
        return 0;
    number = (uint32_t)strtoul(name, &end, 16);
    return number;
}

/* ------------------------------------------------------------------ the files */

/* The file with this number; NULL: there is none. Needs the lock. */
static struct body_file *
file_find(struct bodies *b, uint32_t number)
{
    lock_assert_held(&b->lock);
    for (size_t i = 0; i < b->count; i++)
        if (b->files[i].number == number)
            return &b->files[i];
    return NULL;
}

/* Adds a file. NULL without memory. Needs the lock. */
static struct body_file *
file_add(struct bodies *b, uint32_t number)
{
    if (b->count == b->capacity) {
        const size_t capacity = 2 * b->capacity + 16;
        struct body_file *larger = realloc(b->files, capacity * sizeof(*larger));

        if (larger == NULL)
            return NULL;
        b->files = larger;
        b->capacity = capacity;
    }
    if (b->newest < number)
        b->newest = number;
    b->files[b->count] = (struct body_file){.number = number};
    return &b->files[b->count++];
}

void
bodies_note_used(struct bodies *b, uint32_t number)
{
    if (b->newest < number)
        b->newest = number;
}

enum status
bodies_note_gone(struct bodies *b, uint32_t number)
{
    if (b->gone_count == b->gone_capacity) {
        const size_t capacity = 2 * b->gone_capacity + 16;
        uint32_t *larger = realloc(b->gone, capacity * sizeof(*larger));

        if (larger == NULL)
            return ST_NO_MEMORY;
        b->gone = larger;
        b->gone_capacity = capacity;
    }
    bodies_note_used(b, number);
    b->gone[b->gone_count++] = number;
    return ST_OK;
}

static bool
is_gone(const struct bodies *b, uint32_t number)
{
    for (size_t i = 0; i < b->gone_count; i++)
        if (b->gone[i] == number)
            return true;
    return false;
}

/* ------------------------------------------------------------------ writing */

static enum status
buffer_map(struct bodies_buffer *buffer)
{
    void *bytes;

    if (buffer->bytes != NULL)
        return ST_OK;
    bytes = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return ST_NO_MEMORY;
    buffer->bytes = bytes;
    return ST_OK;
}

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
    if (buffer_map(buffer) != ST_OK)
        return ST_NO_MEMORY;
    if (b->current != 0 && b->end + need <= BODIES_FILE_BYTES)
        return ST_OK;
    if (buffer->used > 0)
        return ST_AGAIN; /* of the present file */
    if (b->newest == UINT32_MAX || file_add(b, b->newest + 1) == NULL)
        return ST_NO_MEMORY;
    b->current = b->newest;
    b->end = SEGMENT_HEAD_BYTES;
    return ST_OK;
}

static enum status
runs_write(struct store_runs *runs, struct store_change *state, size_t bytes,
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
        file = file_find(b, b->current);
        file->runs++;
        file->size = b->end;
        *ticket = ++b->issued;
        if (b->filling->used == place->length || b->filling->used >= BODIES_WAKE_BYTES)
            (void)pthread_cond_signal(&b->write_work); /* cannot fail */
    }
    lock_release(&b->lock);
    return st;
}

static enum store_durability
runs_written(struct store_runs *runs, uint64_t ticket)
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
        *file = *file_find(b, b->current);
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
        (void)madvise(buffer->bytes + BODIES_BUFFER_BYTES, mapped - BODIES_BUFFER_BYTES,
                      MADV_DONTNEED);
    lock_acquire(&b->lock);
    buffer->used = 0;
    b->writing = false;
    kept = file_find(b, file.number);
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

/* ------------------------------------------------------------------ reading */

/* Sets the text about a damaged or unreadable file. */
static enum status __attribute__((format(printf, 3, 4)))
report(struct bodies *b, enum status st, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (b->damage != NULL)
        (void)vsnprintf(b->damage, b->damage_cap, format, args);
    va_end(args);
    return st;
}

/* Notes that a file is damaged. */
static enum status
report_flaw(struct bodies *b, uint32_t number, const char *flaw)
{
    char name[DISK_NAME_CAP];

    body_file_name(name, number);
    b->flaw = flaw;
    return report(b, ST_BAD_VALUE, "the body file %s %s", name, flaw);
}

static void
close_reader(struct bodies *b, struct body_handle *reader)
{
    if (reader->file != NULL)
        disk_close(b->disk, reader->file);
    reader->file = NULL;
}

static enum status
open_for_reading(struct bodies *b, struct body_handle *reader, uint32_t number)
{
    char name[DISK_NAME_CAP], text[ERRNO_TEXT_CAP];
    int error;

    if (reader->file != NULL && reader->number == number)
        return ST_OK;
    close_reader(b, reader);
    reader->number = number;
    body_file_name(name, number);
    error = disk_file_open(b->disk, name, DISK_READ, &reader->file);
    if (error == ENOENT)
        return report_flaw(b, number, "is missing");
    return error == 0 ? ST_OK
                      : report(b, ST_IO, "the journal cannot open %s: %s", name,
                               disk_error_text(error, text));
}

/* Checks the frame of a run and its record. */
static bool
check_run(const uint8_t *bytes, const struct store_place *place,
          const uint8_t nonce[NONCE_BYTES], struct record *record)
{
    struct frame frame;

    return frame_read(bytes, place->length, nonce, &frame) &&
           frame.first_lsn == place->offset &&
           FRAME_HEAD_BYTES + frame.length == place->length &&
           record_read(bytes + FRAME_HEAD_BYTES, frame.length, record) == ST_OK &&
           record->type == STORE_CHANGE_STATE;
}

/* Reads the run at a place into *bytes, which the caller frees, and checks it. ST_IO,
 * ST_BAD_VALUE, with a text in b->damage; ST_NO_MEMORY. */
static enum status
read_run(struct bodies *b, struct body_handle *reader, const struct store_place *place,
         uint8_t **bytes, struct record *record)
{
    enum status st = open_for_reading(b, reader, place->file);
    char name[DISK_NAME_CAP], text[ERRNO_TEXT_CAP];
    const struct body_file *file;
    uint8_t nonce[NONCE_BYTES];
    size_t got = 0;
    int error;

    *bytes = NULL;
    if (st != ST_OK)
        return st;
    lock_acquire(&b->lock);
    file = file_find(b, place->file);
    ENSURE(file != NULL && file->known);
    memcpy(nonce, file->nonce, NONCE_BYTES);
    lock_release(&b->lock);
    *bytes = malloc(place->length);
    if (*bytes == NULL)
        return ST_NO_MEMORY;
    error = disk_read(b->disk, reader->file, place->offset, *bytes, place->length, &got);
    body_file_name(name, place->file);
    if (error != 0)
        return report(b, ST_IO, "the journal cannot read %s: %s", name,
                      disk_error_text(error, text));
    b->flaw = "has a damaged frame";
    if (got < place->length || !check_run(*bytes, place, nonce, record))
        return report(b, ST_BAD_VALUE, "the body file %s is damaged at %" PRIu64, name,
                      place->offset);
    return ST_OK;
}

static void
runs_load(struct store_runs *runs, struct store_load *load)
{
    struct bodies *b = bodies_of(runs);

    lock_acquire(&b->lock);
    list_add_before(&b->loads, &load->link);
    (void)pthread_cond_signal(&b->load_work); /* cannot fail */
    lock_release(&b->lock);
}

static struct store_load *
take_load(struct bodies *b)
{
    struct list *link;

    lock_acquire(&b->lock);
    link = list_pop(&b->loads);
    lock_release(&b->lock);
    return link == NULL ? NULL : container_of(link, struct store_load, link);
}

enum bodies_result
bodies_load(struct bodies *b, const char **what, int *error)
{
    struct store_load *load = take_load(b);
    struct record record;
    uint8_t *bytes;
    enum status st;

    if (load == NULL) {
        close_reader(b, &b->reader); /* it may be removed */
        return BODIES_IDLE;
    }
    st = read_run(b, &b->reader, &load->place, &bytes, &record);
    load->done(load, st == ST_OK ? &record.change : NULL);
    free(bytes);
    (void)atomic_fetch_add(&b->loaded, 1);
    *what = "read a body file";
    *error = st == ST_BAD_VALUE ? EILSEQ : EIO;
    return st == ST_OK || st == ST_NO_MEMORY ? BODIES_DONE : BODIES_FAILED;
}

static enum status
runs_read(struct store_runs *runs, const struct store_place *place,
          enum status (*done)(void *arg, struct store_change *state), void *arg)
{
    struct bodies *b = bodies_of(runs);
    struct record record;
    uint8_t *bytes;
    enum status st = read_run(b, &b->reader, place, &bytes, &record);

    if (st == ST_OK)
        st = done(arg, &record.change);
    free(bytes);
    return st;
}

/* ------------------------------------------------------------------ counting */

static void
runs_release(struct store_runs *runs, uint32_t number)
{
    struct bodies *b = bodies_of(runs);
    struct body_file *file;

    lock_acquire(&b->lock);
    file = file_find(b, number);
    ENSURE(file != NULL && file->runs > 0);
    file->runs--;
    /* An idle file may be removed as well. */
    if (file->runs == 0 && number == b->current && b->filling->used == 0 && !b->writing)
        b->current = 0;
    lock_release(&b->lock);
}

uint32_t
bodies_find_empty(struct bodies *b)
{
    uint32_t number = 0;

    lock_acquire(&b->lock);
    for (size_t i = 0; i < b->count && number == 0; i++)
        if (b->files[i].runs == 0 && b->files[i].number != b->current &&
            b->files[i].gone_lsn == 0 && !b->writing)
            number = b->files[i].number;
    lock_release(&b->lock);
    return number;
}

void
bodies_note_logged(struct bodies *b, uint32_t number, uint64_t lsn)
{
    lock_acquire(&b->lock);
    file_find(b, number)->gone_lsn = lsn;
    lock_release(&b->lock);
}

enum bodies_result
bodies_remove(struct bodies *b, uint64_t durable, const char **what, int *error)
{
    char name[DISK_NAME_CAP];
    uint32_t number = 0;

    lock_acquire(&b->lock);
    for (size_t i = 0; i < b->count && number == 0; i++)
        if (b->files[i].gone_lsn != 0 && b->files[i].gone_lsn <= durable) {
            number = b->files[i].number;
            memmove(&b->files[i], &b->files[i + 1],
                    (b->count - i - 1) * sizeof(b->files[0]));
            b->count--;
        }
    lock_release(&b->lock);
    if (number == 0)
        return BODIES_IDLE;
    body_file_name(name, number);
    *what = "delete a body file";
    *error = disk_unlink(b->disk, name);
    if (*error == ENOENT) /* its first write failed */
        *error = 0;
    return *error == 0 ? BODIES_DONE : BODIES_FAILED;
}

/* ------------------------------------------------------------------ recovery */

/* Reads the head of a file, and adds the file. */
static enum status
find_file(struct bodies *b, uint32_t number, struct body_file **out)
{
    char name[DISK_NAME_CAP], text[ERRNO_TEXT_CAP];
    uint8_t bytes[SEGMENT_HEAD_BYTES];
    struct segment_head head;
    uint64_t size;
    size_t got;
    enum status st;
    int error;

    *out = file_find(b, number);
    if (*out != NULL)
        return ST_OK;
    st = open_for_reading(b, &b->reader, number);
    if (st != ST_OK)
        return st;
    body_file_name(name, number);
    error = disk_read(b->disk, b->reader.file, 0, bytes, sizeof(bytes), &got);
    if (error == 0)
        error = disk_size(b->disk, b->reader.file, &size);
    if (error != 0)
        return report(b, ST_IO, "the journal cannot read %s: %s", name,
                      disk_error_text(error, text));
    if (got < sizeof(bytes) || segment_head_read(bytes, &head) != SEGMENT_GOOD ||
        head.first_lsn != number)
        return report_flaw(b, number, "has no valid head");
    if (memcmp(head.journal, b->journal, NONCE_BYTES) != 0)
        return report_flaw(b, number, "belongs to another journal");
    *out = file_add(b, number);
    if (*out == NULL)
        return ST_NO_MEMORY;
    (*out)->known = true;
    (*out)->size = size;
    memcpy((*out)->nonce, head.nonce, NONCE_BYTES);
    return ST_OK;
}

static enum status
runs_adopt(struct store_runs *runs, const struct store_queue *queue,
           const struct store_run_record *run)
{
    struct bodies *b = bodies_of(runs);
    struct body_file *file = NULL;
    char name[DISK_NAME_CAP];
    enum status st;

    lock_acquire(&b->lock); /* at the start no other thread waits for it */
    st =
        is_gone(b, run->place.file) ? ST_NOT_FOUND : find_file(b, run->place.file, &file);
    if (st == ST_OK && (run->place.length > file->size ||
                        run->place.offset > file->size - run->place.length)) {
        body_file_name(name, run->place.file);
        b->flaw = "ends too early";
        st = report(b, ST_BAD_VALUE,
                    "the body file %s ends at %" PRIu64 ", but the messages %" PRIu64
                    " to %" PRIu64 " of the queue %.*s are at %" PRIu64,
                    name, file->size, run->first, run->first + 63, (int)queue->name.len,
                    queue->name.data, run->place.offset);
    }
    if (st == ST_OK)
        file->runs++;
    lock_release(&b->lock);
    return st;
}

struct unused {
    struct bodies *bodies;
    uint32_t *numbers; /* owned: files without runs */
    size_t count, capacity;
    int error;
};

static void
note_file(void *arg, const char *name)
{
    struct unused *s = arg;
    const uint32_t number = body_file_number(name);

    if (number == 0 || s->error != 0)
        return;
    if (s->bodies->newest < number)
        s->bodies->newest = number;
    if (file_find(s->bodies, number) != NULL)
        return;
    if (s->count == s->capacity) {
        const size_t capacity = 2 * s->capacity + 16;
        uint32_t *larger = realloc(s->numbers, capacity * sizeof(*larger));

        if (larger == NULL) {
            s->error = ENOMEM;
            return;
        }
        s->numbers = larger;
        s->capacity = capacity;
    }
    s->numbers[s->count++] = number;
}

int
bodies_remove_unused(struct bodies *b)
{
    struct unused s = {.bodies = b};
    char name[DISK_NAME_CAP];
    int error;

    close_reader(b, &b->reader);
    lock_acquire(&b->lock);
    error = disk_list(b->disk, note_file, &s);
    lock_release(&b->lock);
    if (error == 0)
        error = s.error;
    for (size_t i = 0; error == 0 && i < s.count; i++) {
        body_file_name(name, s.numbers[i]);
        error = disk_unlink(b->disk, name);
    }
    free(s.numbers);
    b->gone_count = 0;
    return error;
}

/* ------------------------------------------------------------------ life */

void
bodies_init(struct bodies *b, struct disk *disk, const uint8_t *journal,
            const _Atomic bool *lost)
{
    pthread_condattr_t attributes;

    *b = (struct bodies){.runs = {.write = runs_write,
                                  .written = runs_written,
                                  .load = runs_load,
                                  .release = runs_release,
                                  .adopt = runs_adopt,
                                  .read = runs_read},
                         .disk = disk,
                         .journal = journal,
                         .lost = lost};
    lock_init(&b->lock);
    (void)pthread_condattr_init(&attributes); /* none of these can fail on Linux */
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&b->write_work, &attributes);
    (void)pthread_cond_init(&b->load_work, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    list_init(&b->loads);
    b->filling = &b->buffers[0];
}

void
bodies_fini(struct bodies *b)
{
    struct store_load *load;

    while ((load = take_load(b)) != NULL)
        load->done(load, NULL);
    close_reader(b, &b->reader);
    for (size_t i = 0; i < 2; i++)
        if (b->buffers[i].bytes != NULL)
            (void)munmap(b->buffers[i].bytes, mapped); /* cannot fail */
    free(b->files);
    free(b->gone);
    (void)pthread_cond_destroy(&b->write_work);
    (void)pthread_cond_destroy(&b->load_work);
    lock_fini(&b->lock);
}

bool
bodies_wait_write(struct bodies *b)
{
    bool stopping;

    lock_acquire(&b->lock);
    while (b->filling->used == 0 && !b->stopping)
        (void)lock_wait_ms(&b->lock, &b->write_work, BODIES_IDLE_MS);
    /* A moment more: one sync for many runs. */
    if (b->filling->used < BODIES_WAKE_BYTES && !b->stopping)
        (void)lock_wait_ms(&b->lock, &b->write_work, BODIES_WAIT_MS);
    stopping = b->stopping;
    lock_release(&b->lock);
    return !stopping;
}

bool
bodies_wait_load(struct bodies *b)
{
    bool stopping;

    lock_acquire(&b->lock);
    while (list_empty(&b->loads) && !b->stopping)
        (void)lock_wait_ms(&b->lock, &b->load_work, BODIES_IDLE_MS);
    stopping = b->stopping;
    lock_release(&b->lock);
    return !stopping;
}

void
bodies_stop(struct bodies *b)
{
    lock_acquire(&b->lock);
    b->stopping = true;
    (void)pthread_cond_broadcast(&b->write_work); /* neither can fail */
    (void)pthread_cond_broadcast(&b->load_work);
    lock_release(&b->lock);
}
