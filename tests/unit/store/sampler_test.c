/* The history of queues, and the lines of the log about them. */
#include "claimd/store/sampler.h"

#include "support/dead_letters.h"

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
    struct sampler *sampler;
};

static void
scene_open(struct scene *s)
{
    struct sampler_config config;
    int ends[2];

    fixture_open(&s->f, FIXTURE_ENGINE);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    clock_init_manual(&s->clock, s->f.now_ms);
    s->log = (struct log){.fd = ends[1], .level = LOG_WARN, .clock = &s->clock};
    s->reader = ends[0];
    config = (struct sampler_config){.mem = s->f.mem,
                                     .store = s->f.store,
                                     .clock = &s->clock,
                                     .log = &s->log,
                                     .queues = QUEUES};
    ck_assert_int_eq(sampler_open(&config, &s->sampler), ST_OK);
}

static void
scene_close(struct scene *s)
{
    sampler_close(s->sampler);
    (void)close(s->log.fd);
    (void)close(s->reader);
    fixture_close(&s->f);
}

#define SCENE_TEST(id) FIXTURE_TEST_AS(id, struct scene, s, scene_open(s), scene_close(s))

/* The log lines of a tick after so many seconds, without the time. */
static const char *
look_after(struct scene *s, int64_t seconds)
{
    ssize_t n;

    wait_s(&s->f, seconds);
    clock_advance(&s->clock, seconds * 1000);
    sampler_tick(s->sampler);
    n = read(s->reader, s->text, sizeof(s->text) - 1);
    s->text[n > 0 ? n : 0] = '\0';
    return n > 0 ? strchr(s->text, ' ') + 1 : "";
}

SCENE_TEST(each_check_logs_messages_that_expired_since_the_last_one)
{
    post_with(&s->f, 60, STORE_UNSET);
    post_with(&s->f, 60, STORE_UNSET);
    post_with(&s->f, 120, STORE_UNSET);
    ck_assert_str_eq(look_after(s, 0), "");
    ck_assert_str_eq(look_after(s, 60),
                     "warn messages_expired_unread project=p queue=q messages=2 "
                     "dead_letters=0\n");
    ck_assert_str_eq(look_after(s, 1), "");
    ck_assert_str_eq(look_after(s, 59),
                     "warn messages_expired_unread project=p queue=q messages=1 "
                     "dead_letters=0\n");
}

SCENE_TEST(messages_that_were_read_are_not_logged)
{
    post_with(&s->f, 400, STORE_UNSET);
    release(&s->f, take(&s->f, 1));
    ck_assert_str_eq(look_after(s, 400), "");
}

SCENE_TEST(a_queue_that_was_created_again_is_counted_from_zero)
{
    for (int i = 0; i < 3; i++)
        post_with(&s->f, 60, STORE_UNSET);
    (void)look_after(s, 60);
    delete_queue(&s->f);
    post_with(&s->f, 60, STORE_UNSET);
    ck_assert_str_eq(look_after(s, 60),
                     "warn messages_expired_unread project=p queue=q messages=1 "
                     "dead_letters=0\n");
}

/* The store shows more queues than this log has space for. */
SCENE_TEST(a_check_is_bounded_by_the_queues_that_are_shown)
{
    char name[16];
    int lines = 0;

    for (int i = 0; i < 2 * QUEUES; i++) {
        (void)snprintf(name, sizeof(name), "q%d", i);
        use(&s->f, name);
        post_with(&s->f, 60, STORE_UNSET);
    }
    for (const char *at = look_after(s, 60); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_int_eq(lines, QUEUES);
}

SCENE_TEST(queues_without_a_row_are_summed_in_one)
{
    enum { PLACES = 64 };
    char name[16];

    for (int i = 0; i < PLACES + 2; i++) {
        (void)snprintf(name, sizeof(name), "q%d", i);
        use(&s->f, name);
        make_queue(&s->f, NULL);
    }
    post_with(&s->f, 60, STORE_UNSET);
    wait_s(&s->f, 60);
    list_all(&s->f);
    clock_advance(&s->clock, 60000);
    ck_assert_str_eq(
        look_after(s, 0),
        "warn messages_expired_unread queues=\"not shown by metrics_queues\" "
        "messages=1 dead_letters=0\n");
    ck_assert_str_eq(look_after(s, 0), "");
}

SCENE_TEST(dead_letters_are_logged_once_a_minute)
{
    make_dead_lettering(&s->f, "q", 1, "failed", STORE_UNSET);
    post(&s->f, 3);
    wear_out(&s->f, 3, 1);
    ck_assert(id_empty(take(&s->f, 3)));
    ck_assert_str_eq(look_after(s, 59), "");
    ck_assert_str_eq(look_after(s, 1),
                     "warn messages_dead_lettered project=p queue=q messages=3\n");
    ck_assert_str_eq(look_after(s, 60), "");
}

SCENE_TEST(closing_ends_the_thread)
{
    ck_assert_int_eq(sampler_start(s->sampler), ST_OK);
}

/* ------------------------------------------------------------------ history */

TEST_CASE("history");

static struct store_sample samples[SAMPLER_SAMPLES];

static size_t
read_history(struct scene *s)
{
    size_t count;

    ck_assert_int_eq(sampler_read(s->sampler, &s->f.queue, samples, &count), ST_OK);
    for (size_t i = 1; i < count; i++)
        ck_assert_int_lt(samples[i - 1].at_ms, samples[i].at_ms);
    return count;
}

/* So many samples, 5 s apart. */
static void
tick(struct scene *s, size_t times)
{
    for (size_t i = 0; i < times; i++)
        (void)look_after(s, 5);
}

SCENE_TEST(a_sample_says_what_is_there_and_what_happened_since_the_last_one)
{
    const int64_t start_ms = START_MS;
    struct store_id claim;

    (void)look_after(s, 0);
    ck_assert_int_eq(sampler_read(s->sampler, &s->f.queue, samples, &(size_t){0}),
                     ST_NOT_FOUND);
    post(&s->f, 5);
    post_with(&s->f, 300, 60);
    tick(s, 1);
    claim = take(&s->f, 3);
    pop(&s->f, 1);
    ck_assert_status(delete_claimed(&s->f, 1, claim), ST_OK);
    (void)look_after(s, 2);
    (void)look_after(s, 3);
    release(&s->f, claim);
    tick(s, 1);
    ck_assert_uint_eq(read_history(s), 3);
    ck_assert_int_eq(samples[0].at_ms, start_ms + 5000);
    ck_assert_uint_eq(samples[0].ready, 5);
    ck_assert_uint_eq(samples[0].delayed, 1);
    ck_assert_uint_eq(samples[0].oldest_ready_s, 5);
    ck_assert_uint_eq(samples[0].oldest_claim_s, UINT32_MAX);
    ck_assert_uint_eq(samples[0].counts[STORE_QUEUE_POSTED], 6);
    ck_assert_int_eq(samples[1].at_ms, start_ms + 10000);
    ck_assert_uint_eq(samples[1].ready, 1);
    ck_assert_uint_eq(samples[1].claimed, 2);
    ck_assert_uint_eq(samples[1].oldest_claim_s, 5);
    ck_assert_uint_eq(samples[1].counts[STORE_QUEUE_POSTED], 0);
    ck_assert_uint_eq(samples[1].counts[STORE_QUEUE_DELIVERED], 3);
    ck_assert_uint_eq(samples[1].counts[STORE_QUEUE_DELETED], 2);
    ck_assert_uint_eq(samples[2].counts[STORE_QUEUE_REQUEUED], 2);
    ck_assert_uint_eq(samples[2].counts[STORE_QUEUE_DELIVERED], 0);
}

SCENE_TEST(the_last_hour_is_kept)
{
    post(&s->f, 1);
    (void)look_after(s, 0);
    for (size_t i = 1; i < 2 * SAMPLER_SAMPLES + 30; i++) {
        if (i % 7 == 0) {
            pop(&s->f, 1);
            post(&s->f, 1);
        }
        tick(s, 1);
        if (i % 101 != 0 && i < 2 * SAMPLER_SAMPLES)
            continue;
        ck_assert_uint_eq(read_history(s),
                          i + 1 < SAMPLER_SAMPLES ? i + 1 : SAMPLER_SAMPLES);
        for (size_t k = 0, n; k < SAMPLER_SAMPLES && k <= i; k++) {
            const size_t last = i + 1 < SAMPLER_SAMPLES ? i : SAMPLER_SAMPLES - 1;

            n = i - (last - k);
            if (k > last)
                break;
            ck_assert_int_eq(samples[k].at_ms, START_MS + (int64_t)n * 5000);
            ck_assert_uint_eq(samples[k].ready, 1);
            if (n > 0)
                ck_assert_uint_eq(samples[k].counts[STORE_QUEUE_DELETED], n % 7 == 0);
        }
    }
}

SCENE_TEST(an_empty_queue_takes_little_memory)
{
    size_t before, full;

    make_queue(&s->f, NULL);
    (void)look_after(s, 0);
    before = mem_used(s->f.mem);
    tick(s, SAMPLER_SAMPLES);
    ck_assert_uint_eq(mem_used(s->f.mem), before);
    post(&s->f, 1);
    tick(s, SAMPLER_SAMPLES);
    full = mem_used(s->f.mem);
    ck_assert_uint_gt(full, before + 20000);
    ck_assert_uint_lt(full, before + 48000);
    pop(&s->f, 1);
    tick(s, SAMPLER_SAMPLES + 60);
    ck_assert_uint_le(mem_used(s->f.mem), before + 1000);
    ck_assert_uint_eq(read_history(s), SAMPLER_SAMPLES);
}

SCENE_TEST(without_memory_the_history_of_a_queue_begins_again)
{
    post(&s->f, 1);
    mem_fail_from(s->f.mem, 1);
    tick(s, 2);
    mem_fail_from(s->f.mem, 0);
    ck_assert_int_eq(sampler_read(s->sampler, &s->f.queue, samples, &(size_t){0}),
                     ST_NOT_FOUND);
    tick(s, 58);
    ck_assert_uint_eq(read_history(s), 58);
    mem_fail_from(s->f.mem, 1);
    tick(s, 1);
    ck_assert_uint_eq(read_history(s), 0); /* the first of a new block */
    mem_fail_from(s->f.mem, 0);
    tick(s, 2);
    ck_assert_uint_eq(read_history(s), 2);
}

SCENE_TEST(a_deleted_queue_has_no_history)
{
    post(&s->f, 1);
    tick(s, 3);
    ck_assert_uint_eq(read_history(s), 3);
    delete_queue(&s->f);
    tick(s, 1);
    ck_assert_int_eq(sampler_read(s->sampler, &s->f.queue, samples, &(size_t){0}),
                     ST_NOT_FOUND);
}

SCENE_TEST(rates_are_those_of_the_last_minute)
{
    struct store_rates rates;

    make_queue(&s->f, NULL);
    ck_assert(!sampler_rates(s->sampler, &s->f.queue, &rates));
    (void)look_after(s, 0);
    ck_assert(sampler_rates(s->sampler, &s->f.queue, &rates));
    ck_assert_uint_eq(rates.counts[STORE_QUEUE_POSTED], 0);
    post(&s->f, 10);
    tick(s, 1);
    ck_assert(sampler_rates(s->sampler, &s->f.queue, &rates));
    ck_assert_uint_eq(rates.counts[STORE_QUEUE_POSTED], 1000); /* 10 in 5 + 5 s */
    tick(s, 11);
    ck_assert(sampler_rates(s->sampler, &s->f.queue, &rates));
    ck_assert_uint_eq(rates.counts[STORE_QUEUE_POSTED], 166); /* in 60 s */
    tick(s, 1);
    ck_assert(sampler_rates(s->sampler, &s->f.queue, &rates));
    ck_assert_uint_eq(rates.counts[STORE_QUEUE_POSTED], 0);
    wait_s(&s->f, 295); /* a tick that is late */
    clock_advance(&s->clock, 295000);
    post(&s->f, 300);
    tick(s, 1);
    ck_assert(sampler_rates(s->sampler, &s->f.queue, &rates));
    ck_assert_uint_eq(rates.counts[STORE_QUEUE_POSTED], 300 * 1000 / 355);
}

SCENE_TEST(a_tick_before_its_time_takes_no_sample)
{
    post(&s->f, 1);
    (void)look_after(s, 0);
    (void)look_after(s, 4);
    (void)look_after(s, 0);
    ck_assert_uint_eq(read_history(s), 1);
    (void)look_after(s, 3); /* 2 s late; the next one is in 3 s */
    ck_assert_uint_eq(read_history(s), 2);
    (void)look_after(s, 3);
    ck_assert_uint_eq(read_history(s), 3);
    ck_assert_int_eq(samples[2].at_ms, START_MS + 10000);
}

SCENE_TEST(a_long_move_of_the_clock_is_sampled_in_its_last_hour_only)
{
    const int64_t hour_ms = 3600000;

    (void)look_after(s, 0);
    ck_assert_int_eq(sampler_next_ms(s->sampler, START_MS), START_MS + 5000);
    ck_assert_int_eq(sampler_next_ms(s->sampler, START_MS + 5000 + hour_ms),
                     START_MS + 5000);
    ck_assert_int_eq(sampler_next_ms(s->sampler, START_MS + 9999 + hour_ms),
                     START_MS + 5000);
    ck_assert_int_eq(sampler_next_ms(s->sampler, START_MS + 10000 + hour_ms),
                     START_MS + 10000);
    ck_assert_int_eq(sampler_next_ms(s->sampler, START_MS + 100 * hour_ms),
                     START_MS + 99 * hour_ms);
}
