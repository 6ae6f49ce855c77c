/* The line of the log for each queue in which messages expired unread. */
#include "main/expiry_log.h"

#include "support/store_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { QUEUES = 8 };

/* A store, its log into a pipe, and the clock of both. */
struct scene {
    struct fixture f;
    struct clock clock;
    struct log log;
    int reader;
    char text[4096];
    struct expiry_log *expiry_log;
};

static void
scene_open(struct scene *s)
{
    struct expiry_log_config config;
    int ends[2];

    fixture_open(&s->f, FIXTURE_ENGINE);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    clock_init_manual(&s->clock, s->f.now_ms);
    s->log = (struct log){.fd = ends[1], .level = LOG_WARN, .clock = &s->clock};
    s->reader = ends[0];
    config = (struct expiry_log_config){.mem = s->f.mem,
                                        .store = s->f.store,
                                        .clock = &s->clock,
                                        .log = &s->log,
                                        .queues = QUEUES};
    ck_assert_int_eq(expiry_log_open(&config, &s->expiry_log), ST_OK);
}

static void
scene_close(struct scene *s)
{
    expiry_log_close(s->expiry_log);
    (void)close(s->log.fd);
    (void)close(s->reader);
    fixture_close(&s->f);
}

/* What a look after so many seconds logs, without the time. */
static const char *
look_after(struct scene *s, int64_t seconds)
{
    ssize_t n;

    wait_s(&s->f, seconds);
    clock_advance(&s->clock, seconds * 1000);
    expiry_log_check(s->expiry_log);
    n = read(s->reader, s->text, sizeof(s->text) - 1);
    s->text[n > 0 ? n : 0] = '\0';
    return n > 0 ? strchr(s->text, ' ') + 1 : "";
}

START_TEST(each_check_logs_messages_that_expired_since_the_last_one)
{
    struct scene s;

    scene_open(&s);
    post_with(&s.f, 60, STORE_UNSET);
    post_with(&s.f, 60, STORE_UNSET);
    post_with(&s.f, 120, STORE_UNSET);
    ck_assert_str_eq(look_after(&s, 0), "");
    ck_assert_str_eq(look_after(&s, 60),
                     "warn messages_expired_unread project=p queue=q messages=2 "
                     "dead_letters=0\n");
    ck_assert_str_eq(look_after(&s, 1), "");
    ck_assert_str_eq(look_after(&s, 59),
                     "warn messages_expired_unread project=p queue=q messages=1 "
                     "dead_letters=0\n");
    scene_close(&s);
}

START_TEST(messages_that_were_read_are_not_logged)
{
    struct scene s;

    scene_open(&s);
    post_with(&s.f, 400, STORE_UNSET);
    release(&s.f, take(&s.f, 1));
    ck_assert_str_eq(look_after(&s, 400), "");
    scene_close(&s);
}

START_TEST(a_queue_that_was_created_again_is_counted_from_zero)
{
    struct scene s;

    scene_open(&s);
    for (int i = 0; i < 3; i++)
        post_with(&s.f, 60, STORE_UNSET);
    (void)look_after(&s, 60);
    delete_queue(&s.f);
    post_with(&s.f, 60, STORE_UNSET);
    ck_assert_str_eq(look_after(&s, 60),
                     "warn messages_expired_unread project=p queue=q messages=1 "
                     "dead_letters=0\n");
    scene_close(&s);
}

/* The store shows more queues than this log has space for. */
START_TEST(a_check_is_bounded_by_the_queues_that_are_shown)
{
    char name[16];
    struct scene s;
    int lines = 0;

    scene_open(&s);
    for (int i = 0; i < 2 * QUEUES; i++) {
        (void)snprintf(name, sizeof(name), "q%d", i);
        use(&s.f, name);
        post_with(&s.f, 60, STORE_UNSET);
    }
    for (const char *at = look_after(&s, 60); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_int_eq(lines, QUEUES);
    scene_close(&s);
}

START_TEST(queues_that_are_not_shown_have_one_line_together)
{
    enum { PLACES = 64 };
    char name[16];
    struct scene s;

    scene_open(&s);
    for (int i = 0; i < PLACES + 2; i++) {
        (void)snprintf(name, sizeof(name), "q%d", i);
        use(&s.f, name);
        make_queue(&s.f, NULL);
    }
    post_with(&s.f, 60, STORE_UNSET);
    wait_s(&s.f, 60);
    list_all(&s.f);
    ck_assert_str_eq(
        look_after(&s, 0),
        "warn messages_expired_unread queues=\"not shown by metrics_queues\" "
        "messages=1 dead_letters=0\n");
    ck_assert_str_eq(look_after(&s, 0), "");
    scene_close(&s);
}

START_TEST(closing_ends_the_thread)
{
    struct scene s;

    scene_open(&s);
    ck_assert_int_eq(expiry_log_start(s.expiry_log), ST_OK);
    scene_close(&s);
}
