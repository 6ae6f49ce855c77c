/*
 * Operations of other threads in the gaps in which an operation of the engine releases
 * its locks.
 *
 * This program is linked with --wrap for the functions below. When a thread has let its
 * last lock go, a test may do something else before the operation goes on: what would
 * need a second thread and luck happens here each time. How much an operation looks at
 * under a lock is counted by the way.
 */
#include "claimd/base/lock.h"
#include "claimd/ds/seqmap.h"
#include "support/finishing.h"
#include "support/subscriptions.h"

#include <stdio.h>

enum { ENGINE = 1, SLICE = 1024 };

typedef void gap_fn(struct fixture *f);

static struct {
    int held;     /* locks */
    int skip;     /* gaps to let pass */
    gap_fn *then; /* NULL: nothing (any more) */
    struct fixture *f;
    size_t looked, most_looked; /* at messages since a lock was taken; the most ever */
} gap;

void __real_lock_acquire(struct lock *l);
void __wrap_lock_acquire(struct lock *l);
void __real_lock_release(struct lock *l);
void __wrap_lock_release(struct lock *l);
void *__real_seqmap_next_live(const struct seqmap *map, uint64_t *seq);
void *__wrap_seqmap_next_live(const struct seqmap *map, uint64_t *seq);
void *__real_seqmap_next_ready(const struct seqmap *map, uint64_t *seq);
void *__wrap_seqmap_next_ready(const struct seqmap *map, uint64_t *seq);

void
__wrap_lock_acquire(struct lock *l)
{
    __real_lock_acquire(l);
    if (gap.held++ == 0)
        gap.looked = 0;
}

void
__wrap_lock_release(struct lock *l)
{
    gap_fn *then = gap.then;

    __real_lock_release(l);
    if (--gap.held > 0 || then == NULL || gap.skip-- > 0)
        return;
    gap.then = NULL;
    then(gap.f);
}

static void
count_look(void)
{
    gap.looked++;
    if (gap.looked > gap.most_looked)
        gap.most_looked = gap.looked;
}

void *
__wrap_seqmap_next_live(const struct seqmap *map, uint64_t *seq)
{
    count_look();
    return __real_seqmap_next_live(map, seq);
}

void *
__wrap_seqmap_next_ready(const struct seqmap *map, uint64_t *seq)
{
    count_look();
    return __real_seqmap_next_ready(map, seq);
}

/* Lets `then` happen in a gap, once. */
static void
in_gap(struct fixture *f, int skip, gap_fn *then)
{
    gap.f = f;
    gap.skip = skip;
    gap.then = then;
}

/* Posts messages of this client to the queue. */
static void
fill(struct fixture *f, int count, uint64_t client)
{
    const struct store_draft draft = {bytes_str("7"), 3600, 0};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .client = client, .create_queue = true};
    struct store_id id;

    for (int i = 0; i < count; i++)
        ck_assert_status(
            store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &request, &id),
            ST_OK);
}

/* ---------------------------------------------------------------------- clocks */

/* Between reading its clock and taking the lock a thread may be overtaken by others. */
STORE_TEST_WITH(nothing_comes_back_for_a_caller_whose_clock_is_behind,
                fixture_open(f, ENGINE))
{
    post_with(f, 60, 0);
    post_with(f, 3600, 0);
    wait_s(f, 60);
    get(f, 1, 2);
    expect(f, 2); /* the end was seen of the first one */
    wait_s(f, -2);
    get(f, 1, 2);
    expect(f, 2);
    post_with(f, 60, 0); /* posted at the time the others have come to */
    wait_s(f, 2);
    expect_times(f, 3, 60, 0);
}

/* ---------------------------------------------------------------------- claims */

/* Takes whatever is in stock in the pools of the shards. */
static void
use_up_stock(struct fixture *f)
{
    struct store_queue own = f->queue;
    char name[24];

    for (int i = 0; i < 400; i++) {
        (void)snprintf(name, sizeof(name), "other%d", i);
        use(f, name);
        fill(f, 1, 1);
    }
    f->queue = own;
}

STORE_TEST_WITH(a_claim_whose_stock_was_used_up_while_letters_moved_is_made_all_the_same,
                fixture_open(f, ENGINE))
{
    struct store_id first, claim;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    first = take(f, 1); /* keeps the claims of the queue within one node */
    for (int i = 2; i <= 62; i++) {
        post(f, 1);
        claim = take(f, 1);
        ck_assert_status(delete_claimed(f, i, claim), ST_OK);
        release(f, claim);
    }
    post(f, 1);
    wear_out(f, 1, 1); /* the 63rd claim; what comes now takes two nodes */
    post(f, 1);
    in_gap(f, 0, use_up_stock);
    claim = take(f, 1);
    ck_assert(gap.then == NULL);
    expect(f, 64);
    expect_only_in(f, 63, "failed");
    release(f, claim);
    release(f, first);
}

/* ---------------------------------------------------------------------- subscriptions */

STORE_TEST_WITH(a_subscription_whose_queue_goes_while_it_is_changed_is_not_found,
                fixture_open(f, ENGINE))
{
    struct store_id id;

    id = subscribe(f, "http://a", 600);
    in_gap(f, 0, delete_queue);
    ck_assert_status(change(f, id, "http://b", NULL, STORE_UNSET), ST_NOT_FOUND);
    ck_assert(gap.then == NULL);
}

/* ---------------------------------------------------------------------- housekeeping */

static void
post_for_a_minute(struct fixture *f)
{
    post_with(f, 60, 0);
}

START_TEST(deadlines_armed_during_housekeeping_are_kept)
{
    struct fixture f;
    int64_t next_ms;

    for (int i = 0; i < 4; i++) { /* after each shard */
        fixture_open(&f, ENGINE);
        in_gap(&f, i, post_for_a_minute);
        store_housekeep(f.store, f.now_ms, &next_ms);
        ck_assert(gap.then == NULL);
        ck_assert_int_le(next_ms, f.now_ms + 60 * 1000);
        ck_assert_int_le(store_next_ms(f.store), f.now_ms + 60 * 1000);
        fixture_close(&f);
    }
}

/* ---------------------------------------------------------------------- listings */

static void
make_anew(struct fixture *f)
{
    delete_queue(f);
    fill(f, 3 * SLICE, 2);
}

STORE_TEST_WITH(a_listing_does_not_go_on_in_a_queue_made_anew, fixture_open(f, ENGINE))
{
    const struct store_filter filter = {.limit = 10, .hide_client = true, .client = 1};

    fill(f, 3 * SLICE, 1);
    in_gap(f, 0, make_anew);
    list(f, &filter);
    ck_assert(gap.then == NULL);
    expect_nothing(f);
}

static void
delete_b(struct fixture *f)
{
    use(f, "b");
    delete_queue(f);
}

STORE_TEST_WITH(a_queue_that_goes_while_queues_are_listed_is_not_named,
                fixture_open(f, ENGINE))
{
    static const char *const names[] = {"a", "b", "c"};
    struct store_queues queues = STORE_QUEUES_INIT;

    for (size_t i = 0; i < 3; i++) {
        use(f, names[i]);
        make_queue(f, NULL);
    }
    in_gap(f, 0, delete_b);
    ck_assert_status(store_queue_list(f->store, STORE_AT(f->now_ms),
                                      &(struct store_page){.project = f->queue.project,
                                                           .marker = BYTES_NONE,
                                                           .limit = 10,
                                                           .with_metadata = true},
                                      &queues),
                     ST_OK);
    ck_assert(gap.then == NULL);
    ck_assert_uint_eq(queues.count, 2);
    ck_assert(bytes_equal_str(queues.queues[0].name, "a"));
    ck_assert(bytes_equal_str(queues.queues[1].name, "c"));
    store_queues_release(&queues);
}

STORE_TEST_WITH(a_queue_that_goes_during_a_survey_is_marked_as_gone,
                fixture_open(f, ENGINE))
{
    static const char *const names[] = {"a", "b", "c"};
    struct store_queue_metrics rows[4];
    struct store_survey survey = {.project = f->queue.project, .rows = rows, .limit = 4};

    for (size_t i = 0; i < 3; i++) {
        use(f, names[i]);
        make_queue(f, NULL);
    }
    in_gap(f, 0, delete_b);
    ck_assert_status(store_queue_survey(f->store, STORE_AT(f->now_ms), &survey), ST_OK);
    ck_assert(gap.then == NULL);
    ck_assert_uint_eq(survey.count, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(rows[i].gone, i == 1);
}

STORE_TEST_WITH(a_listing_looks_at_a_slice_of_the_messages_under_the_lock,
                fixture_open(f, ENGINE))
{
    struct store_filter filter = {.limit = 10, .hide_client = true, .client = 1};

    fill(f, 10 * SLICE, 1);
    fill(f, 1, 2);
    for (int i = 0; i < 2; i++) { /* free messages only, and all of them */
        struct store_batch page = STORE_BATCH_INIT;

        gap.most_looked = 0;
        filter.include_claimed = i == 1;
        ck_assert_status(
            store_message_list(f->store, STORE_AT(f->now_ms), &f->queue, &filter, &page),
            ST_OK);
        ck_assert_uint_le(gap.most_looked, SLICE);
        store_batch_release(&page);
    }
}

/* ------------------------------------------------------------------- finish, redrive */

static uint64_t
count_in(struct fixture *f, const char *name)
{
    struct store_queue where = f->queue;
    struct store_stats now = {0};

    where.name = bytes_str(name);
    (void)store_queue_stats(f->store, STORE_AT(f->now_ms), &where, &now);
    return now.total;
}

static size_t whole; /* gaps in which the operation was looked at */

/* Of 4 messages one is deleted, one is a dead letter, and one is posted: or nothing has
 * happened. */
static void
look_at_finish(struct fixture *f)
{
    const bool done = count_in(f, "next") == 1;

    ck_assert_uint_eq(count_in(f, "q"), done ? 2 : 4);
    ck_assert_uint_eq(count_in(f, "failed"), done ? 1 : 0);
    whole++;
}

/* The names put the queues into several shards, in any order. */
START_TEST(others_see_a_finish_as_a_whole)
{
    struct fixture f;

    whole = 0;
    for (int skip = 0; skip < 40; skip++) {
        struct finishing g;

        fixture_open(&f, ENGINE);
        make_dead_lettering(&f, "q", 3, "failed", STORE_UNSET);
        post(&f, 4);
        g = finishing_of(&f, take(&f, 4));
        then_delete(&g, 1);
        then_release(&g, 2, 0, "busy");
        then_dead_letter(&g, 3, "bad");
        then_post(&g, "next", 1);
        in_gap(&f, skip, look_at_finish);
        ck_assert_status(finish(&f, &g), ST_OK);
        gap.then = NULL;
        fixture_close(&f);
    }
    ck_assert_uint_gt(whole, 1);
}

static const char *other_dead_letter; /* the dead-letter queue that another thread sets */

static void
change_dead_letter_queue(struct fixture *f)
{
    struct store_metadata metadata = {.settings = STORE_SETTINGS_INIT};
    struct store_queues queues = STORE_QUEUES_INIT;

    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_OK);
    metadata.settings.dead_letter = bytes_str(other_dead_letter);
    ck_assert_status(store_queue_update(f->store, STORE_AT(f->now_ms), &f->queue,
                                        queues.queues[0].version, &metadata),
                     ST_OK);
    store_queues_release(&queues);
}

/* Whichever shards they are in: the dead letter goes where the queue sends it at that
 * moment. */
START_TEST(a_finish_whose_dead_letter_queue_changes_meanwhile_uses_the_new_one)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct fixture f;
    size_t changed = 0;

    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < 8; k++) {
            struct finishing g;

            fixture_open(&f, ENGINE);
            make_dead_lettering(&f, "q", 3, names[i], STORE_UNSET);
            post(&f, 1);
            g = finishing_of(&f, take(&f, 1));
            then_dead_letter(&g, 1, NULL);
            other_dead_letter = names[k];
            in_gap(&f, 0, change_dead_letter_queue);
            ck_assert_status(finish(&f, &g), ST_OK);
            gap.then = NULL;
            ck_assert_uint_eq(count_in(&f, "q"), 0);
            ck_assert_uint_eq(
                count_in(&f, names[i]) + (i == k ? 0 : count_in(&f, names[k])), 1);
            changed += i != k && count_in(&f, names[k]) == 1;
            fixture_close(&f);
        }
    ck_assert_uint_gt(changed, 0);
}

static void
look_at_redrive(struct fixture *f)
{
    ck_assert_uint_eq(count_in(f, "q") + count_in(f, "failed"), 100);
    whole++;
}

START_TEST(a_message_that_goes_back_is_in_one_queue_at_any_time)
{
    struct fixture f;

    whole = 0;
    for (int skip = 0; skip < 20; skip++) {
        fixture_open(&f, ENGINE);
        make_dead_lettering(&f, "q", 1, "failed", STORE_UNSET);
        post(&f, 100);
        wear_out(&f, 100, 1);
        take(&f, 1);
        use(&f, "failed");
        in_gap(&f, skip, look_at_redrive);
        ck_assert_uint_eq(redrive_all(&f).moved, 100);
        gap.then = NULL;
        fixture_close(&f);
    }
    ck_assert_uint_gt(whole, 3);
}

STORE_TEST_WITH(a_redrive_looks_at_a_slice_of_the_messages_under_the_lock,
                fixture_open(f, ENGINE))
{
    struct redriven done;
    struct finishing g;

    use(f, "failed");
    fill(f, 10 * SLICE, 1); /* which are no dead letters */
    make_dead_lettering(f, "q", 3, "failed", STORE_UNSET);
    post(f, 1);
    g = finishing_of(f, take(f, 1));
    then_dead_letter(&g, 1, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "failed");
    gap.most_looked = 0;
    done = redrive_all(f);
    ck_assert_uint_eq(done.moved, 1);
    ck_assert_uint_ge(done.calls, 10);
    use(f, "q");
    expect_stats(f, 0, 1);
}
