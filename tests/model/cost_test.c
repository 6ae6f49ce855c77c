/*
 * Cost as a property of the engine: an idle store never wakes, removing a queue is one
 * step however full it is, and housekeeping gives the memory back in slices.
 *
 * No test here looks at a clock: slices are counted, and memory is measured.
 */
#include "support/dead_letters.h"

#include <stdio.h>
#include <sys/mman.h>

enum { ENGINE = 1, MANY = 100000, BATCH = 1000 };

/* Memory that housekeeping may keep for the next messages: spare nodes, hash tables. */
enum { SPARE = 64 * 1024 };

/* Posts MANY messages for ttl_s seconds. */
static void
fill(struct fixture *f, int64_t ttl_s)
{
    static struct store_draft drafts[BATCH];
    static struct store_id ids[BATCH];
    const struct store_post request = {
        .drafts = drafts, .count = BATCH, .client = 1, .create_queue = true};

    for (int i = 0; i < BATCH; i++)
        drafts[i] = (struct store_draft){bytes_str("{\"some\":\"body\"}"), ttl_s, 0};
    for (int i = 0; i < MANY / BATCH; i++)
        ck_assert_status(
            store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &request, ids),
            ST_OK);
    ck_assert_uint_eq(stats(f).total, MANY);
}

/* A store with a queue that has been in use, and how much memory it takes. */
static size_t
open_used(struct fixture *f)
{
    fixture_open(f, ENGINE);
    post(f, 1);
    delete_unclaimed(f, 1);
    housekeep(f);
    return mem_used(f->mem);
}

/* ---------------------------------------------------------------------- idleness */

TEST_CASE("idleness");

STORE_TEST_WITH(a_fresh_store_never_wakes, fixture_open(f, ENGINE))
{
    int64_t next_ms = 0;

    ck_assert_int_eq(store_next_ms(f->store), INT64_MAX);
    store_housekeep(f->store, f->now_ms, &next_ms);
    ck_assert_int_eq(next_ms, INT64_MAX);
    make_queue(f, NULL); /* an empty queue has no deadline */
    ck_assert_int_eq(store_next_ms(f->store), INT64_MAX);
}

STORE_TEST_WITH(a_store_wakes_no_later_than_the_first_deadline, fixture_open(f, ENGINE))
{
    post_with(f, 3600, 0);
    ck_assert_int_le(store_next_ms(f->store), START_MS + 3600 * 1000);
    post_with(f, 3600, 300);
    ck_assert_int_le(store_next_ms(f->store), START_MS + 300 * 1000);
    take_for(f, 1, 60, 60);
    ck_assert_int_le(store_next_ms(f->store), START_MS + 60 * 1000);
    housekeep(f);
    ck_assert_int_le(store_next_ms(f->store), START_MS + 60 * 1000);
    ck_assert_int_gt(store_next_ms(f->store), START_MS);
}

START_TEST(a_store_wakes_for_a_dead_letter_with_a_shorter_ttl)
{
    struct fixture f;

    for (int i = 0; i < 8; i++) { /* queues of different shards, and of the same */
        char name[] = "dead0";

        name[4] = (char)('0' + i);
        fixture_open(&f, ENGINE);
        make_dead_lettering(&f, "q", 1, name, 60);
        post_with(&f, 1209600, 0);
        wear_out(&f, 1, 1);
        housekeep(&f);
        ck_assert_int_gt(store_next_ms(f.store), f.now_ms + 60 * 1000);
        take(&f, 1); /* moves the message to the dead-letter queue */
        expect_nothing(&f);
        ck_assert_int_le(store_next_ms(f.store), f.now_ms + 60 * 1000);
        fixture_close(&f);
    }
}

STORE_TEST_WITH(waiting_for_one_deadline_takes_few_wake_ups, fixture_open(f, ENGINE))
{
    int64_t next_ms;
    int wake_ups = 0;

    post_with(f, 1209600, 0);
    while ((next_ms = store_next_ms(f->store)) != INT64_MAX) {
        f->now_ms = next_ms;
        housekeep(f);
        wake_ups++;
    }
    ck_assert_int_ge(f->now_ms, START_MS + 1209600 * INT64_C(1000));
    ck_assert_int_le(wake_ups, 7); /* at most one for each level of the wheel */
    expect_stats(f, 0, 0);
}

STORE_TEST_WITH(a_store_sleeps_for_ever_when_everything_was_deleted,
                fixture_open(f, ENGINE))
{
    struct store_id claim;

    post(f, 100);
    post_with(f, 3600, 900);
    claim = take(f, 50);
    for (int i = 1; i <= 101; i++)
        ck_assert_status(i <= 50 ? delete_claimed(f, i, claim) : delete_unclaimed(f, i),
                         ST_OK);
    release(f, claim);
    housekeep(f);
    ck_assert_int_eq(store_next_ms(f->store), INT64_MAX);
}

STORE_TEST_WITH(a_store_sleeps_for_ever_when_its_queues_were_deleted,
                fixture_open(f, ENGINE))
{
    post(f, 100);
    post_with(f, 3600, 900);
    take(f, 50);
    take(f, 20);
    delete_queue(f);
    ck_assert_int_le(store_next_ms(f->store),
                     f->now_ms); /* there is memory to give back */
    housekeep(f);
    ck_assert_int_eq(store_next_ms(f->store), INT64_MAX);
}

STORE_TEST_WITH(a_store_sleeps_for_ever_when_everything_has_expired,
                fixture_open(f, ENGINE))
{
    post(f, 100);
    take_for(f, 50, 43200, 43200);
    wait_s(f, 86400);
    housekeep(f);
    ck_assert_int_eq(store_next_ms(f->store), INT64_MAX);
    expect_stats(f, 0, 0);
}

/* ---------------------------------------------------------------------- removal */

TEST_CASE("removal");

/* Removes all messages of the queue. Way 0 purges the queue, way 1 deletes it. */
static void
remove_all(struct fixture *f, int way)
{
    if (way == 0)
        ck_assert_status(store_queue_purge(f->store, STORE_AT(f->now_ms), &f->queue,
                                           STORE_PURGE_MESSAGES),
                         ST_OK);
    else
        ck_assert_status(store_queue_delete(f->store, STORE_AT(f->now_ms), &f->queue),
                         ST_OK);
}

LOOP_TEST(removing_a_hundred_thousand_messages_is_one_step, 2)
{
    struct fixture f;
    size_t idle, full;

    idle = open_used(&f);
    fill(&f, 3600);
    take(&f, 500);
    full = mem_used(f.mem);
    remove_all(&f, _i);
    /* The call freed nothing, because it did not visit the messages. */
    ck_assert_uint_gt(mem_used(f.mem), full - (full - idle) / 100);
    post(&f, 1); /* the queue accepts messages at once */
    list_all(&f);
    expect(&f, 2);
    fixture_close(&f);
}

LOOP_TEST(housekeeping_gives_memory_back_in_slices, 2)
{
    struct fixture f;
    size_t idle;
    int slices;

    idle = open_used(&f);
    fill(&f, 3600);
    take(&f, 500);
    store_batch_release(&f.seen); /* a batch keeps its messages in memory */
    housekeep(&f);
    ck_assert_int_gt(store_next_ms(f.store), f.now_ms); /* nothing to do for now */
    remove_all(&f, _i);
    ck_assert_int_le(store_next_ms(f.store), f.now_ms); /* memory to give back */
    slices = housekeep(&f);
    ck_assert_int_ge(slices, MANY / 4096); /* no slice did more than some thousands */
    if (_i == 0)
        delete_queue(&f); /* its claim goes with it */
    housekeep(&f);
    ck_assert_uint_le(mem_used(f.mem), idle + SPARE);
    ck_assert_int_eq(store_next_ms(f.store), INT64_MAX);
    ck_assert(store_audit(f.store));
    fixture_close(&f);
}

START_TEST(messages_that_expire_together_are_removed_in_slices)
{
    struct fixture f;
    size_t idle;
    int slices;

    idle = open_used(&f);
    fill(&f, 60);
    wait_s(&f, 60);
    slices = housekeep(&f);
    ck_assert_int_ge(slices, MANY / 4096);
    ck_assert_uint_le(mem_used(f.mem), idle + SPARE);
    ck_assert_int_eq(store_next_ms(f.store), INT64_MAX);
    expect_stats(&f, 0, 0);
    fixture_close(&f);
}

START_TEST(deleting_one_by_one_gives_memory_back)
{
    struct fixture f;
    size_t idle;

    idle = open_used(&f);
    fill(&f, 3600);
    for (int i = 0; i < MANY / BATCH; i++) {
        struct store_batch popped = STORE_BATCH_INIT;

        ck_assert_status(
            store_message_pop(f.store, STORE_AT(f.now_ms), &f.queue, BATCH, &popped),
            ST_OK);
        ck_assert_uint_eq(popped.count, BATCH);
        store_batch_release(&popped);
    }
    ck_assert_uint_le(mem_used(f.mem), idle + SPARE); /* at once, without housekeeping */
    fixture_close(&f);
}

STORE_TEST_WITH(finished_claims_take_no_memory_however_long_their_terms,
                fixture_open(f, 1))
{
    size_t idle;

    for (int i = 0; i < 2; i++) { /* allocates what the engine keeps for reuse */
        post(f, 1);
        ck_assert_status(delete_claimed(f, f->posted, take_for(f, 1, 43200, 43200)),
                         ST_OK);
    }
    idle = mem_used(f->mem);
    for (int i = 0; i < 500; i++) {
        post(f, 1);
        ck_assert_status(delete_claimed(f, f->posted, take_for(f, 1, 43200, 43200)),
                         ST_OK);
        /* The fixture keeps the last message. Its body, a number, grows by digits. */
        ck_assert_uint_le(mem_used(f->mem), idle + 8);
    }
    ck_assert_int_eq(store_next_ms(f->store) > f->now_ms, true);
}

START_TEST(a_message_takes_at_most_128_bytes_more_than_its_body)
{
    struct fixture f;
    size_t idle, each;

    idle = open_used(&f);
    fill(&f, 3600);
    each = (mem_used(f.mem) - idle) / MANY;
    ck_assert_uint_le(each, sizeof("{\"some\":\"body\"}") - 1 + 128);
    fixture_close(&f);
}

START_TEST(a_thousand_deleted_queues_leave_no_memory)
{
    struct fixture f;
    size_t idle;
    char name[24];

    idle = open_used(&f);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "queue%d", i);
        use(&f, name);
        ck_assert_status(store_queue_purge(f.store, STORE_AT(f.now_ms), &f.queue,
                                           STORE_PURGE_MESSAGES),
                         ST_OK);
        f.posted = 0; /* reuse the message numbers */
        post(&f, 2);
        take(&f, 1);
        delete_queue(&f);
        housekeep(&f);
    }
    ck_assert_uint_le(mem_used(f.mem), idle + SPARE);
    ck_assert_int_eq(store_next_ms(f.store), INT64_MAX);
    fixture_close(&f);
}

/* ---------------------------------------------------------------------- waiters */

TEST_CASE("waiters");

enum { CROWD = 4000 };

struct test_waiter {
    struct store_waiter waiter;
    struct store_listener listener;
    struct test_waiter *next;
};

static struct test_waiter *notified; /* the notified waiters, latest first */
static size_t notifications;

static struct store_wakeup *
count_notification(struct store_listener *listener, enum store_notification notification)
{
    struct test_waiter *p = container_of(listener, struct test_waiter, listener);

    ck_assert_int_eq(notification, STORE_READY);
    p->next = notified;
    notified = p;
    notifications++;
    return NULL;
}

/* Claims one message, without an audit of the wait queue. True if there was one. */
static bool
claim_or_wait(struct fixture *f, struct test_waiter *p)
{
    struct store_op op = {.now_ms = f->now_ms, .waiter = &p->waiter};
    struct store_batch batch = STORE_BATCH_INIT;
    bool got;

    ck_assert_status(store_claim_create(f->store, &op, &f->queue,
                                        &(struct store_terms){300, 60}, 1, &batch),
                     ST_OK);
    got = batch.count > 0;
    ck_assert_int_eq(op.waits, !got);
    store_batch_release(&batch);
    return got;
}

static void
post_without_audit(struct fixture *f, size_t count)
{
    static struct store_draft drafts[BATCH];
    static struct store_id ids[BATCH];
    const struct store_post request = {
        .drafts = drafts, .count = count, .client = 1, .create_queue = true};

    for (size_t i = 0; i < count; i++)
        drafts[i] = (struct store_draft){bytes_str("1"), 3600, 0};
    ck_assert_status(
        store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &request, ids),
        ST_OK);
}

/* CROWD waiters, oldest first. `behind` is a mapping of its own: all after the first
 * STORE_RESERVED. */
struct crowd {
    struct test_waiter *front, *behind;
    size_t behind_bytes;
};

static struct test_waiter *
waiter_at(struct crowd *c, size_t i)
{
    return i < STORE_RESERVED ? &c->front[i] : &c->behind[i - STORE_RESERVED];
}

static void *
map(size_t bytes)
{
    void *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(at, MAP_FAILED);
    return at;
}

static void
open_crowd(struct fixture *f, struct crowd *c)
{
    fixture_open(f, ENGINE);
    make_queue(f, NULL);
    c->behind_bytes = (CROWD - STORE_RESERVED) * sizeof(struct test_waiter);
    c->front = map(STORE_RESERVED * sizeof(struct test_waiter));
    c->behind = map(c->behind_bytes);
    notified = NULL;
    notifications = 0;
    for (size_t i = 0; i < CROWD; i++) {
        struct test_waiter *p = waiter_at(c, i);

        p->listener.notify = count_notification;
        p->waiter.listener = &p->listener;
        ck_assert(!claim_or_wait(f, p));
    }
}

static void
close_crowd(struct fixture *f, struct crowd *c)
{
    for (size_t i = 0; i < CROWD; i++)
        store_waiter_leave(f->store, &waiter_at(c, i)->waiter);
    ck_assert_int_eq(munmap(c->front, STORE_RESERVED * sizeof(struct test_waiter)), 0);
    ck_assert_int_eq(munmap(c->behind, c->behind_bytes), 0);
    fixture_close(f);
}

START_TEST(one_message_notifies_one_of_thousands_of_waiters)
{
    struct fixture f;
    struct crowd c;

    open_crowd(&f, &c);
    for (size_t i = 1; i <= 10; i++) {
        post_without_audit(&f, 1);
        ck_assert_uint_eq(notifications, i);
        ck_assert(claim_or_wait(&f, notified));
    }
    ck_assert(store_audit(f.store));
    close_crowd(&f, &c);
}

START_TEST(a_post_reads_only_the_front_of_the_wait_queue)
{
    struct fixture f;
    struct crowd c;

    open_crowd(&f, &c);
    /* An access to the waiters behind the front ends the program. */
    ck_assert_int_eq(mprotect(c.behind, c.behind_bytes, PROT_NONE), 0);
    post_without_audit(&f, 1);
    post_without_audit(&f, BATCH);
    post_without_audit(&f, 1);
    ck_assert_int_eq(mprotect(c.behind, c.behind_bytes, PROT_READ | PROT_WRITE), 0);
    ck_assert_uint_eq(notifications, STORE_RESERVED);
    close_crowd(&f, &c);
}

START_TEST(each_of_thousands_of_waiters_is_notified_once)
{
    struct fixture f;
    struct crowd c;
    size_t served = 0;

    open_crowd(&f, &c);
    for (int i = 0; i < CROWD / BATCH; i++)
        post_without_audit(&f, BATCH);
    while (notified != NULL) {
        struct test_waiter *p = notified; /* latest first: any order gets a message */

        notified = p->next;
        ck_assert(claim_or_wait(&f, p));
        served++;
    }
    ck_assert_uint_eq(served, CROWD);
    ck_assert_uint_eq(notifications, CROWD);
    close_crowd(&f, &c);
}

STORE_TEST_WITH(a_wait_queue_without_waiters_costs_nothing, fixture_open(f, ENGINE))
{
    struct test_waiter p = {.listener.notify = count_notification};

    p.waiter.listener = &p.listener;
    make_queue(f, NULL);
    ck_assert(!claim_or_wait(f, &p)); /* the table of wait queues stays allocated */
    store_waiter_leave(f->store, &p.waiter);
    for (int i = 0; i < 100; i++) {
        size_t before = mem_used(f->mem);

        ck_assert(!claim_or_wait(f, &p));
        ck_assert_uint_gt(mem_used(f->mem), before);
        store_waiter_leave(f->store, &p.waiter);
        ck_assert_uint_eq(mem_used(f->mem), before);
        post_without_audit(f, 2);
        release(f, take(f, 1));
        store_batch_release(&f->seen);
        ck_assert_status(
            store_message_pop(f->store, STORE_AT(f->now_ms), &f->queue, 2, &f->seen),
            ST_OK);
        store_batch_release(&f->seen);
    }
}
