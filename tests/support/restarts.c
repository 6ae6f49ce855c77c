#include "support/restarts.h"

#include "model/same.h"
#include "support/check_main.h"
#include "support/random.h"

#include <stdlib.h>

/* Large enough for the largest record of the store suite: a frame is a quarter of it. */
enum { SEGMENT_BYTES = 2 << 20 };

struct restarts {
    struct sim_disk *disk;
    struct journalled process;
    struct random dice;
};

struct restarts *
restarts_open(int64_t now_ms, bool confirming)
{
    struct restarts *r = calloc(1, sizeof(*r));

    ck_assert_ptr_nonnull(r);
    r->dice.state = 1;
    r->disk = sim_disk_new(random_next(&r->dice));
    r->process = (struct journalled){.disk = r->disk,
                                     .segment_bytes = SEGMENT_BYTES,
                                     .seed = 42,
                                     .require_confirmation = confirming};
    journalled_start(&r->process, now_ms);
    return r;
}

const struct journalled *
restarts_process(const struct restarts *r)
{
    return &r->process;
}

void
restarts_commit(struct restarts *r)
{
    journalled_commit(&r->process);
}

static void
end_somehow(struct sim_disk *disk, struct random *dice)
{
    switch (random_below(dice, 3)) {
    case 0:
        sim_disk_crash(disk);
        break;
    case 1:
        sim_disk_crash_losing_all(disk);
        break;
    default:
        sim_disk_kill(disk);
    }
}

/* Time goes on from where it was, not from elsewhere. */
static void
start_at(struct journalled *p, int64_t now_ms)
{
    journalled_start(p, now_ms);
    ck_assert(!p->recovery.torn);
    ck_assert_int_eq(p->recovery.now_ms, now_ms);
}

/* The process that there would be after a crash now, and that shows the same. */
static struct journalled
start_copy(struct restarts *r, int64_t now_ms, const char *const *projects)
{
    struct journalled copy = {.segment_bytes = SEGMENT_BYTES,
                              .require_confirmation = r->process.require_confirmation,
                              .seed = random_next(&r->dice)};

    if (random_chance(&r->dice, 20))
        journal_checkpoint(r->process.journal);
    journalled_commit(&r->process);
    copy.disk = sim_disk_copy(r->disk, random_next(&r->dice));
    end_somehow(copy.disk, &r->dice);
    start_at(&copy, now_ms);
    (void)expect_same(r->process.store, copy.store, now_ms, projects);
    return copy;
}

static void
stop_copy(struct journalled *copy)
{
    journalled_stop(copy);
    sim_disk_free(copy->disk);
}

void
restarts_try(struct restarts *r, int64_t now_ms, const char *const *projects)
{
    struct journalled copy = start_copy(r, now_ms, projects);

    stop_copy(&copy);
}

/* A store is not used any more when its journal is closed; a copy of it is. */
void
restarts_do(struct restarts *r, int64_t now_ms, const char *const *projects)
{
    struct journalled copy = start_copy(r, now_ms, projects);

    journalled_stop(&r->process);
    disk_shut(r->process.seen);
    sim_disk_crash_losing_all(r->disk);
    start_at(&r->process, now_ms);
    (void)expect_same(copy.store, r->process.store, now_ms, projects);
    stop_copy(&copy);
}

void
restarts_close(struct restarts *r)
{
    journalled_stop(&r->process);
    sim_disk_free(r->disk);
    free(r);
}
