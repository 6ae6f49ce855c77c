/*
 * The event queue of a worker: order, cancelling, and one wake-up for many events, of
 * which none is lost between threads. Read src/http/eventq.h next.
 */
#include "http/eventq.h"

#include "support/check_main.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

/* Is the worker woken? */
static bool
awake(const struct eventq *m)
{
    struct pollfd fd = {.fd = m->fd, .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

#define EVENTQ_TEST(id)                                                                  \
    FIXTURE_TEST_AS(id, struct eventq, m, ck_assert_int_eq(eventq_init(m), ST_OK),       \
                    eventq_fini(m))

EVENTQ_TEST(events_come_in_the_order_in_which_they_were_pushed)
{
    struct event events[3] = {{.bits = 0}};
    unsigned bits = 0;

    for (int i = 0; i < 3; i++)
        (void)eventq_push(m, &events[i], EVENT_READY);
    (void)eventq_push(m, &events[0], EVENT_GONE); /* keeps its place */
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_eq(eventq_take(m, &bits), &events[i]);
    ck_assert_ptr_null(eventq_take(m, &bits));
}

EVENTQ_TEST(bits_add_up_until_they_are_taken)
{
    struct event event = {.bits = 0};
    unsigned bits = 0;

    (void)eventq_push(m, &event, EVENT_READY);
    (void)eventq_push(m, &event, EVENT_READY);
    (void)eventq_push(m, &event, EVENT_FIBER);
    ck_assert_ptr_eq(eventq_take(m, &bits), &event);
    ck_assert_uint_eq(bits, EVENT_READY | EVENT_FIBER);
    ck_assert_ptr_null(eventq_take(m, &bits));
    (void)eventq_push(m, &event, EVENT_GONE); /* and begin anew */
    ck_assert_ptr_eq(eventq_take(m, &bits), &event);
    ck_assert_uint_eq(bits, EVENT_GONE);
}

EVENTQ_TEST(only_a_worker_that_rests_has_to_be_woken_and_only_once)
{
    struct event one = {.bits = 0}, two = {.bits = 0};

    ck_assert(eventq_prepare_sleep(m)); /* nothing there */
    ck_assert(eventq_push(m, &one, EVENT_READY));
    ck_assert(!eventq_push(m, &two, EVENT_READY));
    ck_assert(!eventq_notify(m));
    eventq_cancel_sleep(m);
    ck_assert(eventq_poll(m));
    ck_assert(!eventq_push(m, &one, EVENT_GONE)); /* it is at work */
    ck_assert(!eventq_prepare_sleep(m));          /* and sees it before it waits */
    eventq_cancel_sleep(m);
    ck_assert(eventq_poll(m));
    ck_assert(!eventq_poll(m));
    ck_assert(eventq_prepare_sleep(m)); /* all has been looked at */
    ck_assert(eventq_notify(m));
    ck_assert(eventq_poll(m));
}

EVENTQ_TEST(a_wake_up_lasts_until_it_is_reset)
{
    ck_assert(!awake(m));
    eventq_reset(m); /* there is nothing to reset */
    eventq_wake(m);
    eventq_wake(m);
    ck_assert(awake(m));
    eventq_reset(m);
    ck_assert(!awake(m));
    m->wakeup.fire(&m->wakeup);
    ck_assert(awake(m));
}

EVENTQ_TEST(a_cancelled_event_does_not_come)
{
    struct event one = {.bits = 0}, two = {.bits = 0};
    unsigned bits = 0;

    eventq_cancel(m, &one); /* it is not in */
    (void)eventq_push(m, &one, EVENT_READY);
    (void)eventq_push(m, &two, EVENT_READY);
    eventq_cancel(m, &one);
    eventq_cancel(m, &one);
    ck_assert_ptr_eq(eventq_take(m, &bits), &two);
    ck_assert_ptr_null(eventq_take(m, &bits));
    (void)eventq_push(m, &one, EVENT_FIBER);
    ck_assert_ptr_eq(eventq_take(m, &bits), &one);
    ck_assert_uint_eq(bits, EVENT_FIBER); /* the cancelled event is gone */
}

enum { SENDERS = 4, ROUNDS = 5000 };

/* Posts and has each taken before it posts again. */
struct sender {
    struct eventq *box;
    struct event event;
    sem_t taken;
};

static void *
send_all(void *arg)
{
    struct sender *s = arg;

    for (int i = 0; i < ROUNDS; i++) {
        if (eventq_push(s->box, &s->event, EVENT_READY))
            eventq_wake(s->box);
        (void)sem_wait(&s->taken);
    }
    return NULL;
}

EVENTQ_TEST(no_wake_up_is_lost_between_threads)
{
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    int taken = 0;

    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.box = m};
        ck_assert_int_eq(sem_init(&senders[i].taken, 0, 0), 0);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
    }
    while (taken < SENDERS * ROUNDS) { /* a lost one would let it wait for ever */
        struct pollfd fd = {.fd = m->fd, .events = POLLIN};
        struct event *event;
        unsigned bits = 0;

        if (eventq_prepare_sleep(m)) {
            ck_assert_int_eq(poll(&fd, 1, -1), 1);
            eventq_reset(m);
        }
        eventq_cancel_sleep(m);
        (void)eventq_poll(m);
        while ((event = eventq_take(m, &bits)) != NULL) {
            ck_assert_uint_eq(bits, EVENT_READY);
            taken++;
            (void)sem_post(&container_of(event, struct sender, event)->taken);
        }
    }
    for (int i = 0; i < SENDERS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        (void)sem_destroy(&senders[i].taken);
    }
}
