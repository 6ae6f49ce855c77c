#include "http/mailbox.h"

#include "support/check_main.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

/* Is the worker woken? */
static bool
awake(const struct mailbox *m)
{
    struct pollfd fd = {.fd = m->event_fd, .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

START_TEST(mails_come_in_the_order_in_which_they_were_posted)
{
    struct mail mails[3] = {{.news = 0}};
    struct mailbox m;
    unsigned news = 0;

    ck_assert_int_eq(mailbox_init(&m), ST_OK);
    for (int i = 0; i < 3; i++)
        (void)mailbox_post(&m, &mails[i], MAIL_READY);
    (void)mailbox_post(&m, &mails[0], MAIL_GONE); /* keeps its place */
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_eq(mailbox_take(&m, &news), &mails[i]);
    ck_assert_ptr_null(mailbox_take(&m, &news));
    mailbox_fini(&m);
}
END_TEST

START_TEST(news_add_up_until_they_are_taken)
{
    struct mail mail = {.news = 0};
    struct mailbox m;
    unsigned news = 0;

    ck_assert_int_eq(mailbox_init(&m), ST_OK);
    (void)mailbox_post(&m, &mail, MAIL_READY);
    (void)mailbox_post(&m, &mail, MAIL_READY);
    (void)mailbox_post(&m, &mail, MAIL_DONE);
    ck_assert_ptr_eq(mailbox_take(&m, &news), &mail);
    ck_assert_uint_eq(news, MAIL_READY | MAIL_DONE);
    ck_assert_ptr_null(mailbox_take(&m, &news));
    (void)mailbox_post(&m, &mail, MAIL_GONE); /* and begin anew */
    ck_assert_ptr_eq(mailbox_take(&m, &news), &mail);
    ck_assert_uint_eq(news, MAIL_GONE);
    mailbox_fini(&m);
}
END_TEST

START_TEST(only_a_worker_that_rests_has_to_be_woken_and_only_once)
{
    struct mail one = {.news = 0}, two = {.news = 0};
    struct mailbox m;

    ck_assert_int_eq(mailbox_init(&m), ST_OK);
    ck_assert(mailbox_rest(&m)); /* nothing there */
    ck_assert(mailbox_post(&m, &one, MAIL_READY));
    ck_assert(!mailbox_post(&m, &two, MAIL_READY));
    ck_assert(!mailbox_note(&m));
    mailbox_rise(&m);
    ck_assert(mailbox_look(&m));
    ck_assert(!mailbox_post(&m, &one, MAIL_GONE)); /* it is at work */
    ck_assert(!mailbox_rest(&m));                  /* and sees it before it waits */
    mailbox_rise(&m);
    ck_assert(mailbox_look(&m));
    ck_assert(!mailbox_look(&m));
    ck_assert(mailbox_rest(&m)); /* all has been looked at */
    ck_assert(mailbox_note(&m));
    ck_assert(mailbox_look(&m));
    mailbox_fini(&m);
}
END_TEST

START_TEST(a_wake_up_lasts_until_it_is_reset)
{
    struct mailbox m;

    ck_assert_int_eq(mailbox_init(&m), ST_OK);
    ck_assert(!awake(&m));
    mailbox_reset(&m); /* there is nothing to reset */
    mailbox_wake(&m);
    mailbox_wake(&m);
    ck_assert(awake(&m));
    mailbox_reset(&m);
    ck_assert(!awake(&m));
    m.wakeup.fire(&m.wakeup);
    ck_assert(awake(&m));
    mailbox_fini(&m);
}
END_TEST

START_TEST(a_mail_that_is_cancelled_does_not_come)
{
    struct mail one = {.news = 0}, two = {.news = 0};
    struct mailbox m;
    unsigned news = 0;

    ck_assert_int_eq(mailbox_init(&m), ST_OK);
    mailbox_cancel(&m, &one); /* it is not in */
    (void)mailbox_post(&m, &one, MAIL_READY);
    (void)mailbox_post(&m, &two, MAIL_READY);
    mailbox_cancel(&m, &one);
    mailbox_cancel(&m, &one);
    ck_assert_ptr_eq(mailbox_take(&m, &news), &two);
    ck_assert_ptr_null(mailbox_take(&m, &news));
    (void)mailbox_post(&m, &one, MAIL_DONE);
    ck_assert_ptr_eq(mailbox_take(&m, &news), &one);
    ck_assert_uint_eq(news, MAIL_DONE); /* what was cancelled is forgotten */
    mailbox_fini(&m);
}
END_TEST

enum { SENDERS = 4, ROUNDS = 5000 };

/* Posts and has each taken before it posts again. */
struct sender {
    struct mailbox *box;
    struct mail mail;
    sem_t taken;
};

static void *
send_all(void *arg)
{
    struct sender *s = arg;

    for (int i = 0; i < ROUNDS; i++) {
        if (mailbox_post(s->box, &s->mail, MAIL_READY))
            mailbox_wake(s->box);
        (void)sem_wait(&s->taken);
    }
    return NULL;
}

START_TEST(no_wake_up_is_lost_between_threads)
{
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    struct mailbox m;
    int taken = 0;

    ck_assert_int_eq(mailbox_init(&m), ST_OK);
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.box = &m};
        ck_assert_int_eq(sem_init(&senders[i].taken, 0, 0), 0);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
    }
    while (taken < SENDERS * ROUNDS) { /* a lost one would let it wait for ever */
        struct pollfd fd = {.fd = m.event_fd, .events = POLLIN};
        struct mail *mail;
        unsigned news = 0;

        if (mailbox_rest(&m)) {
            ck_assert_int_eq(poll(&fd, 1, -1), 1);
            mailbox_reset(&m);
        }
        mailbox_rise(&m);
        (void)mailbox_look(&m);
        while ((mail = mailbox_take(&m, &news)) != NULL) {
            ck_assert_uint_eq(news, MAIL_READY);
            taken++;
            (void)sem_post(&container_of(mail, struct sender, mail)->taken);
        }
    }
    for (int i = 0; i < SENDERS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        (void)sem_destroy(&senders[i].taken);
    }
    mailbox_fini(&m);
}
END_TEST
