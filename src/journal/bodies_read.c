/*
 * bodies_read: reads runs of body files, and finds the files at a start. Declared in
 * bodies_private.h and bodies.h.
 */
#include "claimd/base/clock.h"
#include "claimd/base/invariant.h"
#include "journal/bodies_private.h"
#include "journal/record.h"
#include "journal/segment.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void
body_handle_close(struct bodies *b, struct body_handle *reader)
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
    body_handle_close(b, reader);
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
    file = body_file_find(b, place->file);
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

void
bodies_run_load(struct store_runs *runs, struct store_load *load)
{
    struct bodies *b = bodies_of(runs);

    load->began_ns = clock_stopwatch_ns();
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
    int64_t began_ns;
    uint8_t *bytes;
    enum status st;

    if (load == NULL) {
        body_handle_close(b, &b->reader); /* it may be removed */
        return BODIES_IDLE;
    }
    began_ns = load->began_ns;
    st = read_run(b, &b->reader, &load->place, &bytes, &record);
    load->done(load, st == ST_OK ? &record.change : NULL);
    free(bytes);
    buckets_add(&b->loads_us, &disk_bounds_us,
                (uint64_t)(clock_stopwatch_ns() - began_ns) / 1000);
    (void)atomic_fetch_add(&b->loaded, 1);
    *what = "read a body file";
    *error = st == ST_BAD_VALUE ? EILSEQ : EIO;
    return st == ST_OK || st == ST_NO_MEMORY ? BODIES_DONE : BODIES_FAILED;
}

enum status
bodies_run_read(struct store_runs *runs, const struct store_place *place,
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

    *out = body_file_find(b, number);
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
    *out = body_file_add(b, number);
    if (*out == NULL)
        return ST_NO_MEMORY;
    (*out)->known = true;
    (*out)->size = size;
    atomic_fetch_add(&b->bytes, size);
    memcpy((*out)->nonce, head.nonce, NONCE_BYTES);
    return ST_OK;
}

enum status
bodies_run_adopt(struct store_runs *runs, const struct store_queue *queue,
                 const struct store_run_record *run)
{
    struct bodies *b = bodies_of(runs);
    struct body_file *file = NULL;
    char name[DISK_NAME_CAP];
    enum status st;

    lock_acquire(&b->lock); /* at the start no other thread waits for it */
    st = bodies_is_gone(b, run->place.file) ? ST_NOT_FOUND
                                            : find_file(b, run->place.file, &file);
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

void
bodies_drop_loads(struct bodies *b)
{
    struct store_load *load;

    while ((load = take_load(b)) != NULL)
        load->done(load, NULL);
}
