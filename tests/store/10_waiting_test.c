/*
 * Waiting for messages (store/waiter.h), claims given back, and the numbers of
 * claims.
 *
 * The twin notifies no listener. It can say which it would notify. Tests of the
 * notification itself run on the engine only.
 */
#include "model/twin.h"
#include "support/dead_letters.h"
#include "support/patient.h"

#include <stdio.h>

struct test_waiter {
    struct store_waiter place;
    struct store_listener listener;
    int ready, gone; /* how often it was notified */
};

static struct store_wakeup *
note(struct store_listener *listener, enum store_notification notification)
{
    struct test_waiter *p = container_of(listener, struct test_waiter, listener);

    if (notification == STORE_READY)
        p->ready++;
    else
        p->gone++;
    return NULL;
}

/* A client that has not waited yet, or waits for another queue than before. */
static void
arrive(struct test_waiter *p)
{
    *p = (struct test_waiter){.listener.notify = note};
    p->place.listener = &p->listener;
}

/* Claims. Without a message the waiter waits, or goes on to wait. Shows the messages. */
static enum status
try(struct fixture *f, struct test_waiter *p, size_t limit)
{
    const struct store_terms terms = {300, 60};
    struct store_op op = {.now_ms = f->now_ms, .waiter = &p->place};
    enum status st;

    store_batch_release(&f->seen);
    p->ready = 0; /* it acts on the notification now */
    st = store_claim_create(f->store, &op, &f->queue, &terms, limit, &f->seen);
    ck_assert(store_audit(f->store));
    if (st != ST_OK)
        return st;
    ck_assert_int_eq(op.waits, f->seen.count == 0 && p->place.waitqueue != NULL);
    ck_assert_int_eq(id_empty(f->seen.claim_id), f->seen.count == 0);
    return st;
}

static void
claim_waiting(struct fixture *f, struct test_waiter *p, size_t limit)
{
    ck_assert_status(try(f, p, limit), ST_OK);
}

static void
claim_in_vain(struct fixture *f, struct test_waiter *p)
{
    claim_waiting(f, p, 1);
    expect_nothing(f);
    ck_assert_ptr_nonnull(p->place.waitqueue);
}

/* So many waiters arrive and wait, one behind the other. */
static void
line_up(struct fixture *f, struct test_waiter *p, int count)
{
    for (int i = 0; i < count; i++) {
        arrive(&p[i]);
        claim_in_vain(f, &p[i]);
    }
}

/* The same with a pop. */
static void
try_pop(struct fixture *f, struct test_waiter *p, size_t limit)
{
    struct store_op op = {.now_ms = f->now_ms, .waiter = &p->place};

    store_batch_release(&f->seen);
    p->ready = 0;
    ck_assert_status(store_message_pop(f->store, &op, &f->queue, limit, &f->seen), ST_OK);
    ck_assert(store_audit(f->store));
    ck_assert_int_eq(op.waits, f->seen.count == 0);
}

static void
leave(struct fixture *f, struct test_waiter *p)
{
    store_waiter_leave(f->store, &p->place);
    ck_assert_ptr_null(p->place.waitqueue);
    ck_assert(store_audit(f->store));
}

static bool
is_twin(struct fixture *f)
{
    return f->mem != NULL && mem_attempts(f->mem) == 0;
}

/* All that is due happens, without an operation. */
static void
come_due(struct fixture *f)
{
    housekeep(f);
    ck_assert(store_audit(f->store));
}

/* Was the waiter notified of a message since it tried last? */
static bool
called(struct fixture *f, struct test_waiter *p)
{
    if (is_twin(f))
        return twin_calls(patient_inside(f->store), &p->place, f->now_ms);
    return p->ready > 0;
}

/* Gives back what was claimed. */
static enum status
give_back(struct fixture *f, struct store_id claim, bool uncount)
{
    enum status st = store_claim_release(f->store, STORE_AT(f->now_ms), &f->queue,
                                         store_id_bytes(&claim),
                                         uncount ? STORE_NOT_SEEN : STORE_NOT_SENT);

    ck_assert(store_audit(f->store));
    return st;
}

/* ------------------------------------------------------------------ wake-ups */

STORE_CASE("wake-ups");

/* One waits for queue "q"; `act` notifies it, and it gets `number`. */
static void
expect_call(struct fixture *f, struct test_waiter *p, int number)
{
    come_due(f);
    ck_assert(called(f, p));
    ck_assert_int_le(p->ready, 1); /* once is enough */
    claim_waiting(f, p, 1);
    expect(f, number);
    ck_assert_ptr_null(p->place.waitqueue);
}

STORE_TEST(a_post_calls)
{
    struct test_waiter p;

    make_queue(f, NULL);
    line_up(f, &p, 1);
    ck_assert(!called(f, &p));
    post(f, 1);
    expect_call(f, &p, 1);
}

STORE_TEST(the_end_of_a_delay_calls_and_not_the_post_before_it)
{
    struct test_waiter p;

    line_up(f, &p, 1);
    post_with(f, 300, 10);
    wait_ms(f, 9999);
    come_due(f);
    ck_assert(!called(f, &p));
    wait_ms(f, 1);
    expect_call(f, &p, 1);
}

STORE_TEST(the_end_of_a_claim_calls)
{
    struct test_waiter p;

    arrive(&p);
    post(f, 1);
    take_for(f, 1, 60, 60);
    claim_in_vain(f, &p);
    wait_ms(f, 59999);
    come_due(f);
    ck_assert(!called(f, &p));
    wait_ms(f, 1);
    expect_call(f, &p, 1);
}

STORE_TEST(a_release_calls)
{
    struct store_id claim;
    struct test_waiter p;

    arrive(&p);
    post(f, 1);
    claim = take(f, 1);
    claim_in_vain(f, &p);
    release(f, claim);
    expect_call(f, &p, 1);
}

STORE_TEST(a_claim_given_back_calls)
{
    struct store_id claim;
    struct test_waiter p;

    arrive(&p);
    for (int uncount = 0; uncount <= 1; uncount++) {
        post(f, 1);
        claim = take(f, 1);
        claim_in_vain(f, &p);
        ck_assert_status(give_back(f, claim, uncount), ST_OK);
        expect_call(f, &p, uncount + 1);
    }
}

START_TEST(a_dead_letter_that_moves_in_calls)
{
    struct fixture f;

    for (int i = 0; i < 8; i++) { /* queues of different shards, and of the same */
        char dead_letter[] = "failed0";
        struct test_waiter p;

        dead_letter[6] = (char)('0' + i);
        fixture_open(&f, _i);
        make_dead_lettering(&f, "q", 1, dead_letter, STORE_UNSET);
        post(&f, 1);
        wear_out(&f, 1, 1);
        arrive(&p);
        use(&f, dead_letter);
        claim_in_vain(&f, &p); /* there is no such queue yet */
        use(&f, "q");
        take(&f, 1);
        expect_nothing(&f);
        use(&f, dead_letter);
        expect_call(&f, &p, 1);
        fixture_close(&f);
    }
}

STORE_TEST(a_dead_letter_wakes_no_waiter_of_its_old_queue_twice)
{
    struct test_waiter p;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    arrive(&p);
    wear_out(f, 1, 1); /* ready, but the next claim moves it away */
    claim_in_vain(f, &p);
    ck_assert(!called(f, &p));
    post(f, 1);
    expect_call(f, &p, 2);
}

STORE_TEST(requests_wait_in_line_for_a_queue_that_does_not_exist)
{
    struct test_waiter first, second;

    line_up(f, &first, 1);
    line_up(f, &second, 1);
    ck_assert_status(store_queue_stats(f->store, STORE_AT(f->now_ms), &f->queue,
                                       &(struct store_stats){0}),
                     ST_NOT_FOUND); /* waiting makes none */
    make_queue(f, NULL);
    ck_assert(!called(f, &first)); /* it is empty */
    post(f, 1);
    ck_assert(!called(f, &second));
    expect_call(f, &first, 1);
    leave(f, &second);
}

STORE_TEST(a_post_that_makes_the_queue_calls)
{
    struct test_waiter p;

    line_up(f, &p, 1);
    post(f, 1);
    expect_call(f, &p, 1);
}

STORE_TEST(changes_in_other_queues_wake_no_waiter)
{
    struct test_waiter p;

    line_up(f, &p, 1);
    for (int i = 0; i < 20; i++) {
        char name[16];

        snprintf(name, sizeof(name), "x%d", i);
        use(f, name);
        post(f, 1);
        use_project(f, "other");
        use(f, "q");
        post(f, 1);
        use_project(f, "p");
    }
    ck_assert(!called(f, &p));
    leave(f, &p);
}

/* ---------------------------------------------------------------------- pausing */

STORE_CASE("pausing");

STORE_TEST(a_waiter_of_a_paused_queue_is_called_when_claims_go_on)
{
    struct test_waiter p;

    make_queue(f, NULL);
    line_up(f, &p, 1);
    pause_queue(f, STORE_PAUSE_CLAIMS);
    ck_assert(!called(f, &p));
    post(f, 1);
    ck_assert(!called(f, &p));
    claim_in_vain(f, &p); /* it keeps waiting */
    ck_assert(!called(f, &p));
    pause_queue(f, 0);
    expect_call(f, &p, 1);
}

STORE_TEST(paused_posts_call_no_waiter_and_keep_none_away)
{
    struct test_waiter p;
    struct store_id held;

    post(f, 1);
    held = take(f, 1);
    line_up(f, &p, 1);
    pause_queue(f, STORE_PAUSE_POSTS);
    ck_assert(!called(f, &p));
    release(f, held);
    expect_call(f, &p, 1);
}

STORE_TEST(messages_that_become_ready_during_a_pause_call_afterwards)
{
    struct test_waiter p;

    arrive(&p);
    post(f, 1);
    take_for(f, 1, 60, 60);
    post_with(f, 300, 30);
    claim_in_vain(f, &p);
    pause_queue(f, STORE_PAUSE_CLAIMS);
    wait_ms(f, 60000);
    come_due(f);
    ck_assert(!called(f, &p));
    pause_queue(f, 0);
    expect_call(f, &p, 1);
}

STORE_TEST(waiters_that_came_during_a_pause_are_served_in_order)
{
    struct test_waiter p[3];

    post(f, 1);
    pause_queue(f, STORE_PAUSE_CLAIMS);
    post(f, 1);
    for (int i = 0; i < 3; i++) {
        arrive(&p[i]);
        claim_in_vain(f, &p[i]);
        ck_assert(!called(f, &p[i]));
    }
    pause_queue(f, 0);
    ck_assert(called(f, &p[0]) && called(f, &p[1]) && !called(f, &p[2]));
    claim_waiting(f, &p[1], 1);
    expect(f, 2);
    claim_waiting(f, &p[0], 1);
    expect(f, 1);
    leave(f, &p[2]);
}

STORE_TEST(a_called_waiter_that_finds_a_pause_waits_on)
{
    struct test_waiter p;

    make_queue(f, NULL);
    line_up(f, &p, 1);
    post(f, 1);
    ck_assert(called(f, &p));
    pause_queue(f, STORE_PAUSE_CLAIMS);
    claim_in_vain(f, &p);
    pause_queue(f, 0);
    expect_call(f, &p, 1);
}

STORE_TEST(a_pop_waits_for_the_end_of_a_pause)
{
    struct test_waiter p;

    post(f, 1);
    pause_queue(f, STORE_PAUSE_CLAIMS);
    arrive(&p);
    try_pop(f, &p, 1);
    expect_nothing(f);
    pause_queue(f, 0);
    ck_assert(called(f, &p));
    try_pop(f, &p, 1);
    expect(f, 1);
}

STORE_TEST(the_deletion_of_a_paused_queue_ends_the_waiting)
{
    struct test_waiter p;

    post(f, 1);
    pause_queue(f, STORE_PAUSE_CLAIMS);
    line_up(f, &p, 1);
    delete_queue(f);
    come_due(f);
    ck_assert_ptr_null(p.place.waitqueue);
}

/* ---------------------------------------------------------------------- the order */

STORE_CASE("the order");

STORE_TEST(waiters_are_served_in_order_of_arrival)
{
    struct test_waiter p[4];

    line_up(f, p, 4);
    post(f, 2);
    ck_assert(called(f, &p[0]) && called(f, &p[1]));
    ck_assert(!called(f, &p[2]) && !called(f, &p[3]));
    claim_in_vain(f, &p[3]); /* it is its thread that is quick */
    claim_in_vain(f, &p[2]);
    claim_waiting(f, &p[1], 1);
    expect(f, 2);
    claim_waiting(f, &p[0], 1);
    expect(f, 1);
    ck_assert(!called(f, &p[2]) && !called(f, &p[3]));
    leave(f, &p[2]);
    leave(f, &p[3]);
}

STORE_TEST(a_waiter_leaves_the_messages_that_waiters_in_front_claim)
{
    struct test_waiter first, second;

    arrive(&first);
    arrive(&second);
    claim_waiting(f, &first, 5);
    claim_waiting(f, &second, 5);
    post(f, 3);
    ck_assert(called(f, &first) && !called(f, &second));
    claim_waiting(f, &second, 5); /* its thread is quicker */
    expect_nothing(f);
    claim_waiting(f, &first, 5);
    expect(f, 1, 2, 3);
    claim_waiting(f, &first, 5);
    post(f, 7);
    ck_assert(called(f, &second) && called(f, &first));
    claim_waiting(f, &first, 5);
    expect(f, 9, 10);
    claim_waiting(f, &second, 5);
    expect(f, 4, 5, 6, 7, 8);
}

STORE_TEST(a_pop_leaves_the_messages_that_waiters_in_front_claim)
{
    struct test_waiter first, second;

    arrive(&first);
    arrive(&second);
    try_pop(f, &first, 2);
    try_pop(f, &second, 2);
    post(f, 3);
    try_pop(f, &second, 2);
    expect(f, 3);
    try_pop(f, &first, 2);
    expect(f, 1, 2);
}

STORE_TEST(a_dead_letter_among_the_reserved_is_left_to_the_first_waiter)
{
    struct test_waiter first, second;
    struct store_id claim;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    claim = take(f, 1);
    line_up(f, &first, 1);
    line_up(f, &second, 1);
    release(f, claim);
    post(f, 2);
    claim_waiting(f, &second, 1);
    expect(f, 2);
    claim_waiting(f, &first, 1);
    expect(f, 3);
}

STORE_TEST(a_waiter_takes_what_lies_behind_the_reserved_messages)
{
    struct test_waiter p[4];

    line_up(f, p, 4);
    post(f, 5);
    claim_waiting(f, &p[2], 10); /* two in front of it */
    expect(f, 3, 4, 5);
    claim_waiting(f, &p[3], 10); /* likewise, and two messages */
    expect_nothing(f);
    claim_waiting(f, &p[0], 10);
    expect(f, 1, 2);
    claim_in_vain(f, &p[1]);
    leave(f, &p[1]);
    leave(f, &p[3]);
}

STORE_TEST(a_new_waiter_is_behind_all_others)
{
    struct test_waiter first, fresh;

    arrive(&fresh);
    line_up(f, &first, 1);
    post(f, 2);
    claim_waiting(f, &fresh, 10); /* one for the one in front */
    expect(f, 2);
    ck_assert_ptr_null(fresh.place.waitqueue);
    claim_in_vain(f, &fresh);
    claim_waiting(f, &first, 10);
    expect(f, 1);
    leave(f, &fresh);
}

STORE_TEST(a_claim_without_wait_passes_the_wait_queue)
{
    struct test_waiter p;

    line_up(f, &p, 1);
    post(f, 1);
    take(f, 1);
    expect(f, 1);
    claim_in_vain(f, &p); /* and it keeps its place */
    post(f, 1);
    ck_assert(called(f, &p));
    pop(f, 1);
    expect(f, 2);
    claim_in_vain(f, &p);
    leave(f, &p);
}

STORE_TEST(a_waiter_that_finds_nothing_keeps_its_place)
{
    struct test_waiter first, second;

    line_up(f, &first, 1);
    line_up(f, &second, 1);
    for (int i = 0; i < 3; i++) {
        claim_in_vain(f, &first);
        claim_in_vain(f, &second);
    }
    post(f, 1);
    ck_assert(called(f, &first) && !called(f, &second));
    claim_in_vain(f, &second);
    claim_waiting(f, &first, 1);
    expect(f, 1);
    leave(f, &second);
}

STORE_TEST(a_served_waiter_queues_at_the_end_again)
{
    struct test_waiter first, second;

    line_up(f, &first, 1);
    line_up(f, &second, 1);
    post(f, 1);
    claim_waiting(f, &first, 1);
    expect(f, 1);
    claim_in_vain(f, &first);
    post(f, 1);
    ck_assert(called(f, &second) && !called(f, &first));
    claim_waiting(f, &second, 1);
    expect(f, 2);
    leave(f, &first);
}

STORE_TEST(a_leaving_waiter_passes_its_wake_up_on)
{
    struct test_waiter p[3];

    line_up(f, p, 3);
    post(f, 1);
    ck_assert(called(f, &p[0]) && !called(f, &p[1]));
    leave(f, &p[0]);
    ck_assert(called(f, &p[1]) && !called(f, &p[2]));
    leave(f, &p[1]);
    ck_assert(called(f, &p[2]));
    claim_waiting(f, &p[2], 1);
    expect(f, 1);
}

STORE_TEST(a_served_waiter_leaves_the_rest_to_the_next)
{
    struct test_waiter p[3];

    line_up(f, p, 3);
    post(f, 2);
    claim_waiting(f, &p[0], 1); /* one of two: the third is not needed */
    expect(f, 1);
    ck_assert(called(f, &p[1]) && !called(f, &p[2]));
    post(f, 1);
    ck_assert(called(f, &p[2]));
    claim_waiting(f, &p[1], 10); /* takes both: the third was called in vain */
    expect(f, 2, 3);
    claim_in_vain(f, &p[2]);
    leave(f, &p[2]);
}

STORE_TEST(a_requeued_message_goes_to_the_longest_waiter)
{
    struct test_waiter p[2];
    struct store_id claim;

    post(f, 3);
    claim = take(f, 3);
    line_up(f, p, 2);
    release(f, claim);
    ck_assert(called(f, &p[0]) && called(f, &p[1]));
    claim_waiting(f, &p[1], 10); /* at their old places, and one left */
    expect(f, 2, 3);
    claim_waiting(f, &p[0], 10);
    expect(f, 1);
}

STORE_TEST(more_wait_than_are_called_at_a_time)
{
    enum { CROWD = 3 * STORE_RESERVED };
    static struct test_waiter p[CROWD];
    int waiting = 0;

    line_up(f, p, CROWD);
    post(f, CROWD);
    for (int i = 0; i < CROWD; i++)
        waiting += called(f, &p[i]);
    ck_assert_int_eq(waiting, STORE_RESERVED);
    ck_assert(called(f, &p[STORE_RESERVED - 1]) && !called(f, &p[STORE_RESERVED]));
    claim_in_vain(f, &p[STORE_RESERVED]); /* however many messages there are */
    for (int i = 0; i < CROWD; i++) {
        ck_assert(called(f, &p[i]));
        claim_waiting(f, &p[i], 1);
        expect(f, i + 1);
    }
}

STORE_TEST(one_waiter_is_in_several_wait_queues)
{
    struct test_waiter first, second;
    struct store_waiter other = {.listener = &first.listener};
    struct store_op op;

    arrive(&second);
    line_up(f, &first, 1);
    use(f, "r");
    claim_in_vain(f, &second);
    op = (struct store_op){.now_ms = f->now_ms, .waiter = &other};
    store_batch_release(&f->seen);
    ck_assert_status(store_claim_create(f->store, &op, &f->queue,
                                        &(struct store_terms){300, 60}, 1, &f->seen),
                     ST_OK);
    ck_assert(op.waits);
    post(f, 2); /* one for each of them */
    if (!is_twin(f))
        ck_assert_int_eq(first.ready, 1);
    use(f, "q");
    post(f, 1);
    if (!is_twin(f))
        ck_assert_int_eq(first.ready, 2); /* of each of its lines */
    store_waiter_leave(f->store, &other);
    ck_assert_ptr_null(other.waitqueue);
    claim_waiting(f, &first, 1);
    expect(f, 3);
    use(f, "r");
    claim_waiting(f, &second, 10);
    expect(f, 1, 2);
}

STORE_TEST(pops_and_claims_share_a_wait_queue)
{
    struct test_waiter first, second;

    arrive(&first);
    arrive(&second);
    try_pop(f, &first, 5);
    ck_assert_ptr_nonnull(first.place.waitqueue);
    claim_in_vain(f, &second);
    post(f, 7);
    claim_waiting(f, &second, 10);
    expect(f, 6, 7);
    try_pop(f, &first, 5);
    expect(f, 1, 2, 3, 4, 5);
    ck_assert_ptr_null(first.place.waitqueue);
    expect_stats(f, 2, 0); /* the popped message is gone */
}

/* ---------------------------------------------------------------------- the end */

STORE_CASE("the end of waiting");

STORE_TEST(a_deletion_ends_it_and_says_so)
{
    struct test_waiter p[3];

    make_queue(f, NULL);
    line_up(f, p, 3);
    delete_queue(f);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(p[i].place.waitqueue);
        if (!is_twin(f))
            ck_assert_int_eq(p[i].gone, 1);
    }
    post(f, 1); /* a queue made anew has another line */
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(p[i].ready, 0);
}

STORE_TEST(a_deletion_of_what_does_not_exist_ends_nothing)
{
    struct test_waiter p;

    line_up(f, &p, 1);
    delete_queue(f);
    ck_assert_ptr_nonnull(p.place.waitqueue);
    ck_assert_int_eq(p.gone, 0);
    post(f, 1);
    expect_call(f, &p, 1);
}

STORE_TEST(a_purge_ends_nothing)
{
    struct test_waiter p;

    arrive(&p);
    post(f, 1);
    take(f, 1);
    claim_in_vain(f, &p);
    purge(f);
    ck_assert_ptr_nonnull(p.place.waitqueue);
    ck_assert_int_eq(p.gone, 0);
    ck_assert(!called(f, &p));
    wait_s(f, 3600); /* the claim that was purged ends, and notifies no waiter */
    come_due(f);
    ck_assert(!called(f, &p));
    post(f, 1);
    expect_call(f, &p, 2);
}

STORE_TEST(one_may_leave_at_any_time)
{
    struct test_waiter p[3];

    for (int i = 0; i < 3; i++)
        arrive(&p[i]);
    leave(f, &p[0]); /* never was in a wait queue */
    claim_in_vain(f, &p[0]);
    leave(f, &p[0]);
    leave(f, &p[0]);
    for (int i = 0; i < 3; i++)
        claim_in_vain(f, &p[i]);
    leave(f, &p[1]); /* from the middle */
    post(f, 1);
    leave(f, &p[2]); /* from the end */
    claim_waiting(f, &p[0], 1);
    expect(f, 1);
    leave(f, &p[0]); /* when it has been served */
    claim_in_vain(f, &p[0]);
    delete_queue(f);
    leave(f, &p[0]); /* when its queue has gone */
    post(f, 1);
    ck_assert_int_eq(p[1].ready + p[2].ready, 0);
}

STORE_TEST(an_expired_message_is_not_waited_for)
{
    struct test_waiter p;

    line_up(f, &p, 1);
    post_with(f, 60, 0);
    ck_assert(called(f, &p));
    wait_s(f, 60);
    claim_in_vain(f, &p);
    post(f, 1);
    expect_call(f, &p, 2);
}

/* ---------------------------------------------------------------------- refusals */

STORE_CASE("refusals");

/* Pops, with space for so many bytes of bodies. */
static enum status
try_pop_into(struct fixture *f, struct test_waiter *p, size_t limit, size_t space)
{
    struct store_op op = {.now_ms = f->now_ms, .waiter = &p->place};

    store_batch_release(&f->seen);
    f->seen.capacity = space;
    return store_message_pop(f->store, &op, &f->queue, limit, &f->seen);
}

STORE_TEST(a_waiter_without_space_keeps_its_place)
{
    struct test_waiter first, second;

    line_up(f, &first, 1);
    line_up(f, &second, 1);
    f->posted = 99; /* bodies of three bytes */
    post(f, 2);
    ck_assert_status(try_pop_into(f, &first, 2, 5), ST_OVER_CAPACITY);
    ck_assert_uint_eq(f->seen.capacity, 6);
    ck_assert_ptr_nonnull(first.place.waitqueue);
    claim_waiting(f, &second, 10); /* still the second */
    expect(f, 101);
    ck_assert_status(try_pop_into(f, &first, 2, 3), ST_OK);
    expect(f, 100);
}

STORE_TEST(a_waiter_without_space_and_place_gets_none)
{
    struct test_waiter p;

    arrive(&p);
    f->posted = 99;
    post(f, 1);
    ck_assert_status(try_pop_into(f, &p, 1, 2), ST_OVER_CAPACITY);
    ck_assert_ptr_null(p.place.waitqueue);
}

/* ---------------------------------------------------------------------- the engine */

ENGINE_CASE("the engine");

START_TEST(without_memory_no_waiter_enters_a_wait_queue)
{
    struct fixture f;
    struct test_waiter p;

    for (int there = 0; there <= 1; there++) {
        enum status st;
        uint64_t nth = 1;

        fixture_open(&f, FIXTURE_ENGINE + _i);
        arrive(&p);
        if (there)
            make_queue(&f, NULL);
        for (;; nth++) {
            mem_fail_nth(f.mem, nth);
            st = try(&f, &p, 1);
            mem_fail_nth(f.mem, 0);
            if (st == ST_OK)
                break;
            ck_assert_status(st, ST_NO_MEMORY);
            ck_assert_ptr_null(p.place.waitqueue);
        }
        ck_assert_uint_gt(nth, 1);
        ck_assert_ptr_nonnull(p.place.waitqueue);
        post(&f, 1);
        ck_assert_int_eq(p.ready, 1);
        leave(&f, &p);
        fixture_close(&f);
    }
}

STORE_TEST_WITH(without_memory_for_a_claim_the_place_is_kept,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct test_waiter first, second;
    uint64_t nth = 1;

    line_up(f, &first, 1);
    line_up(f, &second, 1);
    post(f, 1);
    for (;; nth++) {
        enum status st;

        mem_fail_nth(f->mem, nth);
        st = try(f, &first, 1);
        mem_fail_nth(f->mem, 0);
        if (st == ST_OK)
            break;
        ck_assert_status(st, ST_NO_MEMORY);
        ck_assert_ptr_nonnull(first.place.waitqueue);
        claim_in_vain(f, &second); /* it is still the first one's */
    }
    ck_assert_uint_gt(nth, 1);
    expect(f, 1);
    leave(f, &second);
}

START_TEST(waiters_are_woken_if_dead_letters_cannot_be_moved)
{
    enum { LETTERS = 100 };
    struct fixture f;
    bool waited = false;

    for (uint64_t nth = 1; nth < 160; nth++) {
        enum status st;
        struct test_waiter p;

        fixture_open(&f, FIXTURE_ENGINE + _i);
        make_dead_lettering(&f, "q", 1, "failed", STORE_UNSET);
        post(&f, LETTERS);
        wear_out(&f, LETTERS, 1);
        post(&f, 1);
        arrive(&p);
        mem_fail_nth(f.mem, nth);
        st = try(&f, &p, 1); /* which audits: waiters that have to be notified are */
        mem_fail_nth(f.mem, 0);
        if (st == ST_OK && f.seen.count == 0) {
            waited = true; /* some were moved, and then there was no memory */
            ck_assert_ptr_nonnull(p.place.waitqueue);
            ck_assert_int_eq(p.ready, 1);
            claim_waiting(&f, &p, 1);
        } else if (st != ST_OK) {
            ck_assert_status(st, ST_NO_MEMORY);
            claim_waiting(&f, &p, 1);
        }
        expect(&f, LETTERS + 1);
        fixture_close(&f);
    }
    ck_assert(waited);
}

STORE_TEST_WITH(a_large_crowd_is_notified_in_slices_that_its_queue_has_gone,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    enum { CROWD = 4000 };
    static struct test_waiter p[CROWD];
    int notified = 0, rounds = 0;

    make_queue(f, NULL);
    line_up(f, p, CROWD);
    delete_queue(f);
    for (int i = 0; i < CROWD; i++)
        notified += p[i].gone;
    ck_assert_int_gt(notified, 0);
    ck_assert_int_lt(notified, CROWD);
    ck_assert_int_eq(p[0].gone, 1); /* those who waited longest first */
    ck_assert_int_eq(p[CROWD - 1].gone, 0);
    ck_assert_int_le(store_next_ms(f->store), f->now_ms); /* the rest is wanted at once */
    leave(f, &p[CROWD - 1]);            /* one that leaves meanwhile is not notified */
    claim_waiting(f, &p[CROWD - 2], 1); /* a try meanwhile does not keep it waiting */
    ck_assert_ptr_null(p[CROWD - 2].place.waitqueue);
    post(f, 2); /* nor does a queue made anew call those of the old one */
    claim_waiting(f, &p[CROWD - 3], 1);
    expect(f, 1);
    while (store_next_ms(f->store) <= f->now_ms) {
        come_due(f);
        rounds++;
    }
    ck_assert_int_ge(rounds, 1);
    for (int i = 0; i < CROWD - 3; i++) {
        ck_assert_int_eq(p[i].gone, 1);
        ck_assert_int_eq(p[i].ready, 0);
        ck_assert_ptr_null(p[i].place.waitqueue);
    }
    for (int i = CROWD - 3; i < CROWD; i++)
        ck_assert_int_eq(p[i].gone + p[i].ready, 0);
}

STORE_TEST_WITH(the_last_waiter_frees_its_wait_queue,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    size_t before;
    struct test_waiter p[50];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 50; i++) {
            char name[16];

            arrive(&p[i]);
            snprintf(name, sizeof(name), "w%d", i);
            use(f, name);
            claim_in_vain(f, &p[i]);
        }
        for (int i = 0; i < 50; i++)
            leave(f, &p[i]);
        if (round == 0)
            before = mem_used(f->mem);
        ck_assert_uint_eq(mem_used(f->mem), before);
    }
}

static int fired;

static void
fire(struct store_wakeup *wakeup)
{
    (void)wakeup;
    fired++;
}

static struct store_wakeup wakeups[20] = {
    {fire}, {fire}, {fire}, {fire}, {fire}, {fire}, {fire}, {fire}, {fire}, {fire},
    {fire}, {fire}, {fire}, {fire}, {fire}, {fire}, {fire}, {fire}, {fire}, {fire}};

struct sleeper {
    struct store_waiter place;
    struct store_listener listener;
    struct store_wakeup *wakeup;
};

static struct store_wakeup *
wake(struct store_listener *listener, enum store_notification notification)
{
    (void)notification;
    return container_of(listener, struct sleeper, listener)->wakeup;
}

STORE_TEST_WITH(each_wake_up_fires_once_when_the_operation_is_done,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct sleeper s[20];

    fired = 0;
    for (int i = 0; i < 20; i++) {
        struct store_op op = {.now_ms = f->now_ms, .waiter = &s[i].place};

        s[i] = (struct sleeper){.listener.notify = wake, .wakeup = &wakeups[i]};
        s[i].place.listener = &s[i].listener;
        store_batch_release(&f->seen);
        ck_assert_status(store_message_pop(f->store, &op, &f->queue, 1, &f->seen), ST_OK);
    }
    post(f, 20);
    ck_assert_int_eq(fired, 20);
    for (int i = 0; i < 20; i++)
        store_waiter_leave(f->store, &s[i].place);
    ck_assert_int_eq(fired, 20);
}

/* ---------------------------------------------------------------------- given back */

STORE_CASE("given back");

STORE_TEST(released_messages_return_to_their_old_place)
{
    struct store_id claim;

    post(f, 4);
    take(f, 1);
    claim = take(f, 2);
    ck_assert_status(give_back(f, claim, true), ST_OK);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
    take(f, 3);
    expect(f, 2, 3, 4);
}

START_TEST(a_lost_delivery_does_not_count)
{
    struct store_id claim;
    struct fixture f;

    for (int uncount = 0; uncount <= 1; uncount++) {
        fixture_open(&f, _i);
        post(&f, 2);
        release(&f, take(&f, 2));
        claim = take(&f, 2);
        ck_assert_uint_eq(f.seen.messages[0].claim_count, 2);
        ck_assert_status(delete_claimed(&f, 1, claim), ST_OK);
        ck_assert_status(give_back(&f, claim, uncount), ST_OK);
        get(&f, 1, 2);
        expect(&f, 2);
        ck_assert_uint_eq(f.seen.messages[0].claim_count, uncount ? 1 : 2);
        fixture_close(&f);
    }
}

STORE_TEST(only_attempts_that_count_make_a_dead_letter)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    for (int i = 0; i < 5; i++) {
        struct store_id claim = take(f, 1);

        expect(f, 1);
        ck_assert_status(give_back(f, claim, true), ST_OK);
    }
    ck_assert_status(give_back(f, take(f, 1), false), ST_OK);
    take(f, 1);
    expect_nothing(f);
    use(f, "failed");
    take(f, 1);
    expect(f, 1);
}

STORE_TEST(giving_back_what_is_over_or_unknown_is_fine)
{
    struct store_id claim;

    ck_assert_status(give_back(f, text_id("nonsense"), true), ST_OK); /* no queue */
    post(f, 1);
    ck_assert_status(give_back(f, text_id("nonsense"), true), ST_OK);
    claim = take(f, 1);
    wait_s(f, 300);
    ck_assert_status(give_back(f, claim, true), ST_OK);
    get(f, 1);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 1); /* it had its time */
    claim = take(f, 1);
    release(f, claim);
    ck_assert_status(give_back(f, claim, true), ST_OK);
    get(f, 1);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 2);
    claim = take(f, 1);
    delete_queue(f);
    ck_assert_status(give_back(f, claim, true), ST_OK);
}

/* ---------------------------------------------------------------------- numbers */

STORE_CASE("claim numbers");

STORE_TEST(the_number_of_a_claim_is_larger_than_all_before_it)
{
    uint64_t last = 0;

    for (int i = 0; i < 20; i++) {
        post(f, 2);
        release(f, take(f, 1));
        ck_assert_uint_gt(f->seen.claim_number, last);
        last = f->seen.claim_number;
        ck_assert_uint_le(last, INT64_MAX);
        take(f, 1);
        ck_assert_uint_gt(f->seen.claim_number, last);
        last = f->seen.claim_number;
        if (i % 3 == 1)
            purge(f);
        if (i % 5 == 1)
            delete_queue(f); /* and made again in the same millisecond */
    }
}

STORE_TEST(numbers_grow_through_deletions_however_many_claims_there_were)
{
    uint64_t last = 0;

    post(f, 1);
    for (int i = 0; i < 5000; i++) /* more than a millisecond has numbers for */
        release(f, take(f, 1));
    last = f->seen.claim_number;
    delete_queue(f);
    post(f, 1);
    take(f, 1);
    ck_assert_uint_gt(f->seen.claim_number, last);
    last = f->seen.claim_number;
    delete_queue(f);
    wait_ms(f, 1);
    post(f, 1);
    take(f, 1);
    ck_assert_uint_gt(f->seen.claim_number, last);
}

STORE_TEST(a_number_stays_the_same_when_shown_and_renewed)
{
    struct store_id claim, other;
    uint64_t number, renewed = 0;

    post(f, 2);
    claim = take(f, 1);
    number = f->seen.claim_number;
    other = take(f, 1);
    ck_assert_status(query(f, claim), ST_OK);
    ck_assert_uint_eq(f->seen.claim_number, number);
    ck_assert_status(store_claim_renew(f->store, STORE_AT(f->now_ms), &f->queue,
                                       store_id_bytes(&claim),
                                       &(struct store_terms){60, 60}, &renewed),
                     ST_OK);
    ck_assert_uint_eq(renewed, number);
    purge(f);
    ck_assert_status(query(f, other), ST_NOT_FOUND);
}

STORE_TEST(a_claim_that_found_nothing_uses_no_number_up_that_others_miss)
{
    uint64_t last;

    post(f, 1);
    release(f, take(f, 1));
    last = f->seen.claim_number;
    use(f, "other");
    take(f, 1);
    ck_assert_uint_eq(f->seen.claim_number, 0);
    use(f, "q");
    take(f, 1);
    ck_assert_uint_gt(f->seen.claim_number, last);
}
