#include "journal/journal_private.h"

#include "claimd/base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IDLE_AFTER_MS = 1000, SEAL_AGAIN_MS = 3600000 };

struct store_log *
journal_log(struct journal *j)
{
    return &j->store_log;
}

static enum status
lock_directory(struct journal *j, char error[JOURNAL_ERROR_CAP])
{
    int failed = disk_lock(j->config.disk, JOURNAL_LOCK, &j->lock_file);
    char text[ERRNO_TEXT_CAP];

    if (failed == 0)
        return ST_OK;
    (void)snprintf(
        error, JOURNAL_ERROR_CAP, "claimd cannot lock the journal: %s",
        failed == EWOULDBLOCK
            ? "another process uses it. Stop that process, or use another directory"
            : disk_error_text(failed, text));
    return failed == EWOULDBLOCK ? ST_UNAVAILABLE : ST_IO;
}

enum status
journal_open(const struct journal_config *config, struct journal **out,
             char error[JOURNAL_ERROR_CAP])
{
    struct journal *j = calloc(1, sizeof(*j));
    pthread_condattr_t attributes;
    enum status st;

    (void)snprintf(error, JOURNAL_ERROR_CAP, "out of memory while opening the journal");
    if (j == NULL)
        return ST_NO_MEMORY;
    j->config = *config;
    lock_init(&j->lock);
    lock_init(&j->watching);
    list_init(&j->listeners);
    (void)pthread_condattr_init(&attributes); /* none of these can fail on Linux */
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&j->work, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    journal_init_log(j);
    segments_init(&j->segments, config->disk, config->segment_bytes);
    j->segments.required = config->test_api ? SEGMENT_TEST_API : 0;
    if (config->seeded)
        entropy_init_seeded(&j->segments.entropy, config->seed);
    else
        entropy_init_system(&j->segments.entropy);
    bodies_init(&j->bodies, config->disk, j->segments.journal, &j->lost);
    j->bodies.damage = j->damage;
    j->bodies.damage_cap = sizeof(j->damage);
    if (config->seeded)
        entropy_init_seeded(&j->bodies.entropy, config->seed + 1);
    else
        entropy_init_system(&j->bodies.entropy);
    j->filling = &j->buffers[0];
    j->checkpoint.activity = UINT64_MAX; /* always differs */
    st = buffer_init(&j->buffers[0]);
    if (st == ST_OK)
        st = buffer_init(&j->buffers[1]);
    if (st == ST_OK)
        st = lock_directory(j, error);
    if (st == ST_OK)
        *out = j;
    else
        journal_close(j);
    return st;
}

void
journal_close(struct journal *j)
{
    if (j == NULL)
        return;
    if (j->started) {
        lock_acquire(&j->lock);
        j->stopping = true;
        (void)pthread_cond_signal(&j->work);
        lock_release(&j->lock);
        (void)pthread_join(j->thread, NULL); /* cannot fail */
    }
    bodies_stop(&j->bodies);
    if (j->writes)
        (void)pthread_join(j->writer, NULL); /* neither can fail */
    if (j->loads)
        (void)pthread_join(j->loader, NULL);
    while (journal_step(j)) /* the rest */
        continue;
    if (j->store != NULL && j->segments.file != NULL && !atomic_load(&j->lost)) {
        (void)journal_mark(j, MARK_CLOSED, 0);
        (void)journal_step(j);
        journal_seal(j);
    }
    bodies_fini(&j->bodies);
    segments_fini(&j->segments);
    disk_close(j->config.disk, j->lock_file);
    buffer_fini(&j->buffers[0]);
    buffer_fini(&j->buffers[1]);
    (void)pthread_cond_destroy(&j->work);
    lock_fini(&j->watching);
    lock_fini(&j->lock);
    free(j);
}

/* Waits for changes; false: the thread must end. Writes a seal if nothing came for a
 * second, and once an hour, so that the log records that time passes. */
static bool
wait_for_work(struct journal *j)
{
    bool idle = false, stopping;

    lock_acquire(&j->lock);
    while (j->filling->used == 0 && !j->stopping && !idle) {
        /* A seal is useful, or space has to be checked. */
        bool restless =
            !j->sealed || j->aged || j->short_of_space || journal_may_have_sparse(j);

        j->waiting = true;
        idle =
            !lock_wait_ms(&j->lock, &j->work, restless ? IDLE_AFTER_MS : SEAL_AGAIN_MS);
    }
    j->waiting = false;
    stopping = j->stopping && j->filling->used == 0;
    lock_release(&j->lock);
    if (idle)
        journal_idle(j);
    return !stopping;
}

static void *
thread_main(void *arg)
{
    struct journal *j = arg;

    while (!atomic_load(&j->lost) && wait_for_work(j))
        while (journal_step(j))
            continue;
    return NULL;
}

static void *
write_runs(void *arg)
{
    struct journal *j = arg;

    while (bodies_wait_write(&j->bodies))
        (void)journal_write_runs(j);
    return NULL;
}

static void *
load_runs(void *arg)
{
    struct journal *j = arg;

    while (bodies_wait_load(&j->bodies))
        while (journal_load_run(j))
            continue;
    return NULL;
}

enum status
journal_start(struct journal *j)
{
    enum status st = thread_start(&j->thread, thread_main, j);

    j->started = st == ST_OK;
    if (st == ST_OK)
        st = thread_start(&j->writer, write_runs, j);
    j->writes = st == ST_OK;
    if (st == ST_OK)
        st = thread_start(&j->loader, load_runs, j);
    j->loads = st == ST_OK;
    return st;
}

struct store_runs *
journal_runs(struct journal *j)
{
    return &j->bodies.runs;
}

void
journal_metrics(struct journal *j, struct journal_metrics *out)
{
    uint64_t lsn, body_files;
    bool short_of_space;

    lock_acquire(&j->bodies.lock);
    body_files = j->bodies.count;
    lock_release(&j->bodies.lock);
    lock_acquire(&j->lock);
    lsn = j->next_lsn - 1;
    short_of_space = j->short_of_space;
    lock_release(&j->lock);
    *out = (struct journal_metrics){.segments = atomic_load(&j->count_shown),
                                    .bytes = atomic_load(&j->bytes_shown),
                                    .commits = atomic_load(&j->commits),
                                    .records = lsn,
                                    .checkpoints = atomic_load(&j->checkpoint.done),
                                    .checkpoint_ms = atomic_load(&j->checkpoint.done_ms),
                                    .lsn = lsn,
                                    .durable = atomic_load(&j->durable),
                                    .left = atomic_load(&j->left_shown),
                                    .short_of_space = short_of_space,
                                    .lost = atomic_load(&j->lost),
                                    .body_files = body_files,
                                    .body_bytes = atomic_load(&j->bodies.bytes),
                                    .loads = atomic_load(&j->bodies.loaded)};
    buckets_merge(&out->syncs, &j->syncs);
    buckets_merge(&out->loads_us, &j->bodies.loads_us);
}
