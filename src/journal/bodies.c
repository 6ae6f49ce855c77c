/*
 * bodies: writes, reads and removes body files. Declared in bodies.h.
 *
 *     1. bodies_run_write() copies a run as a frame to the buffer, under the lock of a
 *        shard. So its place is known at once.
 *     2. bodies_write() writes the buffer to its file, syncs, and raises `durable`. Other
 *        runs come into the second buffer meanwhile. A full disk ends the file, and all
 *        tickets that are not durable fail.
 *     3. bodies_run_written() says which it was, and the store logs a RUN (run_unload.c).
 *     4. bodies_load() reads a run, checks it, and passes it to the store (run_load.c).
 *     5. run_release() counts the runs that the store does not need any more. When a file
 *        has none, the committer logs FILE_GONE. When that is durable, the writer removes
 *        the file (bodies_remove()). So no log names a file that is missing, unless a
 *        later FILE_GONE does, too.
 *     6. A checkpoint goes through all runs, and counts what files have (run_count()).
 *        The store moves the runs of a sparse file into the log (run_load.c).
 */
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"
#include "journal/bodies_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* STALLED_MOST: after so many counts without progress sparse files are left alone. */
enum { NAME_DIGITS = 8, STALLED_MOST = 3 };

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

/* The index of the first file whose number is not smaller. */
static size_t
lower_bound(const struct bodies *b, uint32_t number)
{
    size_t low = 0, high = b->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (b->files[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct body_file *
body_file_find(struct bodies *b, uint32_t number)
{
    const size_t at = lower_bound(b, number);

    lock_assert_held(&b->lock);
    return at < b->count && b->files[at].number == number ? &b->files[at] : NULL;
}

struct body_file *
body_file_add(struct bodies *b, uint32_t number)
{
    const size_t at = lower_bound(b, number);

    if (b->count == b->capacity) {
        const size_t capacity = 2 * b->capacity + 16;
        struct body_file *larger = realloc(b->files, capacity * sizeof(*larger));

        if (larger == NULL)
            return NULL;
        b->files = larger;
        b->capacity = capacity;
    }
    bodies_note_used(b, number);
    memmove(&b->files[at + 1], &b->files[at], (b->count - at) * sizeof(b->files[0]));
    b->files[at] = (struct body_file){.number = number};
    b->count++;
    return &b->files[at];
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

bool
bodies_is_gone(const struct bodies *b, uint32_t number)
{
    for (size_t i = 0; i < b->gone_count; i++)
        if (b->gone[i] == number)
            return true;
    return false;
}

/* ------------------------------------------------------------------ counting */

static void
run_release(struct store_runs *runs, uint32_t number)
{
    struct bodies *b = bodies_of(runs);
    struct body_file *file;

    lock_acquire(&b->lock);
    file = body_file_find(b, number);
    ENSURE(file != NULL && file->runs > 0);
    file->runs--;
    b->has_empty = b->has_empty || file->runs == 0;
    /* An idle file may be removed as well. */
    if (file->runs == 0 && number == b->current && b->filling->used == 0 && !b->writing)
        b->current = 0;
    lock_release(&b->lock);
}

static bool
run_count(struct store_runs *runs, uint32_t number, uint64_t bytes)
{
    struct bodies *b = bodies_of(runs);
    struct body_file *file;
    bool sparse;

    lock_acquire(&b->lock);
    file = body_file_find(b, number);
    ENSURE(file != NULL);
    file->counted_runs++;
    file->counted_bytes += bytes;
    sparse = file->sparse;
    lock_release(&b->lock);
    return sparse;
}

void
bodies_count_begin(struct bodies *b)
{
    lock_acquire(&b->lock);
    for (size_t i = 0; i < b->count; i++) {
        b->files[i].counted_runs = 0;
        b->files[i].counted_bytes = 0;
    }
    lock_release(&b->lock);
}

void
bodies_count_end(struct bodies *b)
{
    size_t sparse_runs = 0;

    lock_acquire(&b->lock);
    for (size_t i = 0; i < b->count; i++) {
        struct body_file *file = &b->files[i];

        /* All its runs were counted. Some may be new, or not be written yet. */
        file->sparse = file->runs > 0 && file->runs <= file->counted_runs &&
                       file->counted_bytes < file->size / BODIES_SPARSE_FACTOR &&
                       file->number != b->current;
        if (file->sparse)
            sparse_runs += file->runs;
    }
    b->stalled = sparse_runs < b->sparse_runs || sparse_runs == 0 ? 0 : b->stalled + 1;
    b->sparse_runs = sparse_runs;
    SOMETIMES_IF(sparse_runs > 0, BODIES_SPARSE);
    atomic_store(&b->sparse, sparse_runs > 0 && b->stalled <= STALLED_MOST);
    lock_release(&b->lock);
}

/* ------------------------------------------------------------------ removing */

uint32_t
bodies_find_empty(struct bodies *b)
{
    uint32_t number = 0;

    lock_acquire(&b->lock);
    for (size_t i = 0; b->has_empty && i < b->count && number == 0; i++)
        if (b->files[i].runs == 0 && b->files[i].number != b->current &&
            b->files[i].gone_lsn == 0 && !b->writing)
            number = b->files[i].number;
    b->has_empty = number != 0;
    lock_release(&b->lock);
    return number;
}

void
bodies_note_logged(struct bodies *b, uint32_t number, uint64_t lsn)
{
    lock_acquire(&b->lock);
    body_file_find(b, number)->gone_lsn = lsn;
    atomic_fetch_add(&b->leaving, 1);
    lock_release(&b->lock);
}

void
bodies_note_durable(struct bodies *b, uint64_t lsn)
{
    if (atomic_load(&b->leaving) == 0)
        return;
    lock_acquire(&b->lock);
    b->log_durable = lsn;
    if (!b->pausing)
        (void)pthread_cond_signal(&b->write_work); /* cannot fail */
    lock_release(&b->lock);
}

/* A file whose FILE_GONE is durable; NULL: there is none. Needs the lock. */
static struct body_file *
find_removable(struct bodies *b)
{
    if (atomic_load(&b->leaving) == 0)
        return NULL;
    for (size_t i = 0; i < b->count; i++)
        if (b->files[i].gone_lsn != 0 && b->files[i].gone_lsn <= b->log_durable)
            return &b->files[i];
    return NULL;
}

enum bodies_result
bodies_remove(struct bodies *b, const char **what, int *error)
{
    char name[DISK_NAME_CAP];
    struct body_file *file;

    lock_acquire(&b->lock);
    file = find_removable(b);
    if (file != NULL) {
        body_file_name(name, file->number);
        (void)atomic_fetch_sub(&b->bytes, file->size);
        (void)atomic_fetch_sub(&b->leaving, 1);
        b->count--;
        memmove(file, file + 1, (size_t)(&b->files[b->count] - file) * sizeof(*file));
    }
    lock_release(&b->lock);
    if (file == NULL)
        return BODIES_IDLE;
    *what = "delete a body file";
    *error = disk_unlink(b->disk, name);
    if (*error == ENOENT) /* its first write failed */
        *error = 0;
    return *error == 0 ? BODIES_DONE : BODIES_FAILED;
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
    if (body_file_find(s->bodies, number) != NULL)
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

    body_handle_close(b, &b->reader);
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

    *b = (struct bodies){.runs = {.write = bodies_run_write,
                                  .written = bodies_run_written,
                                  .load = bodies_run_load,
                                  .release = run_release,
                                  .count = run_count,
                                  .adopt = bodies_run_adopt,
                                  .read = bodies_run_read},
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
    atomic_init(&b->space, UINT64_MAX);
    b->filling = &b->buffers[0];
    for (size_t i = 0; i < 2; i++) { /* address space: only what is used takes memory */
        void *bytes = mmap(NULL, BODIES_MAPPED, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        b->buffers[i].bytes = bytes == MAP_FAILED ? NULL : bytes;
    }
}

void
bodies_fini(struct bodies *b)
{
    bodies_drop_loads(b);
    body_handle_close(b, &b->reader);
    for (size_t i = 0; i < 2; i++)
        if (b->buffers[i].bytes != NULL)
            (void)munmap(b->buffers[i].bytes, BODIES_MAPPED); /* cannot fail */
    free(b->files);
    free(b->gone);
    (void)pthread_cond_destroy(&b->write_work);
    (void)pthread_cond_destroy(&b->load_work);
    lock_fini(&b->lock);
}

bool
bodies_wait_write(struct bodies *b)
{
    int64_t pause_ms;
    bool stopping;

    lock_acquire(&b->lock);
    while (b->filling->used == 0 && find_removable(b) == NULL && !b->stopping)
        (void)lock_wait_ms(&b->lock, &b->write_work, BODIES_IDLE_MS);
    /* A moment more: one sync for many runs. And files go one after the other, unless
     * their space is needed: commits wait while the file system frees it. */
    pause_ms = b->filling->used > 0 ? BODIES_WAIT_MS : BODIES_REMOVE_MS;
    b->pausing = true;
    if (b->filling->used < BODIES_WAKE_BYTES && atomic_load(&b->space) > 0 &&
        !b->stopping)
        (void)lock_wait_ms(&b->lock, &b->write_work, pause_ms);
    b->pausing = false;
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
