/*
 * Responses that have to wait: for a message, for a log, for a store that blocks. A whole
 * server in this process; time stands still (--wrap=clock_gettime) and goes on when a
 * test says so.
 */
#include "support/client_fixture.h"
#include "support/slow_store.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <sys/ioctl.h>

/* A response has come, or the test would wait for ever. */
static void
expect_something(int fd)
{
    char byte;

    ck_assert_int_eq(recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), 1);
}

/* ---------------------------------------------------------------------- waiting */

TEST_CASE("waiting");

SERVER_TEST(a_claim_waits_until_there_is_a_message, open_waiting(f, 10))
{
    struct http_response a;
    int fd = begin_suspended(f, WAITING);

    fetch_once(f, POST("other"), 201);
    expect_silence(f, fd);
    fetch_once(f, POST("q"), 201);
    a = receive(fd);
    ck_assert_int_eq(a.code, 201);
    ck_assert_ptr_nonnull(strstr(a.head, "Preference-Applied: wait=30\r\n"));
    ck_assert_ptr_nonnull(strstr(a.head, "Claim-Number: "));
    ck_assert_uint_eq(stats_of(f).claimed, 1);
    (void)close(fd);
}

SERVER_TEST(a_pop_waits_likewise, open_waiting(f, 10))
{
    int fd = begin_suspended(f, WAITING_POP);

    fetch_once(f, POST("q"), 201);
    end(fd, 200);
    ck_assert_uint_eq(stats_of(f).total, 0);
}

SERVER_TEST(one_message_goes_to_the_longest_waiter, open_waiting(f, 10))
{
    int fds[5];

    for (int i = 0; i < 5; i++)
        fds[i] = begin_suspended(f, WAITING);
    for (int i = 0; i < 5; i++) {
        fetch_once(f, POST("q"), 201);
        expect_code(fds[i], 201);
        for (int k = i + 1; k < 5; k++)
            expect_silence(f, fds[k]);
    }
    for (int i = 0; i < 5; i++)
        (void)close(fds[i]);
}

SERVER_TEST(when_the_time_is_over_there_is_the_usual_response, open_waiting(f, 10))
{
    struct http_response a;
    int claim, pop;

    claim = begin(f, WAITING);
    pop = begin(f, WAITING_POP);
    expect_silence(f, claim);
    pass_s(f, 29);
    expect_silence(f, claim);
    expect_silence(f, pop);
    pass_s(f, 2); /* never too early: a millisecond late, since clocks are rounded */
    a = receive(claim);
    ck_assert_int_eq(a.code, 204);
    ck_assert_ptr_nonnull(strstr(a.head, "Preference-Applied: wait=30\r\n"));
    a = receive(pop);
    ck_assert_int_eq(a.code, 200);
    ck_assert_str_eq(a.body, "{\"messages\":[]}");
    say(claim, WAITING); /* and it may wait again, as long */
    pass_s(f, 29);
    expect_silence(f, claim);
    fetch_once(f, POST("q"), 201);
    end(claim, 201);
    (void)close(pop);
}

/* The worker rounds the time down, so the response comes a millisecond later. */
SERVER_TEST(a_long_polling_request_ends_after_its_time_never_before, open_waiting(f, 10))
{
    int fd = begin_suspended(f, WAITING);

    pass_s(f, 30);
    expect_silence(f, fd);
    pass_s(f, 1);
    expect_something(fd);
    end(fd, 204);
}

SERVER_TEST(a_wake_up_in_vain_does_not_prolong_the_long_polling, open_waiting(f, 10))
{
    int waiter, other;

    waiter = begin_suspended(f, WAITING);
    pass_s(f, 20);
    other = begin(f, POST("q") PURGE); /* the worker responds to both before it looks */
    expect_code(other, 201);
    end(other, 204);
    expect_silence(f, waiter);
    pass_s(f, 11);
    expect_something(waiter);
    end(waiter, 204);
}

SERVER_TEST(waiting_does_not_count_for_the_time_limits, open_waiting(f, 10))
{
    int fd = begin_suspended(f, WAITING);

    pass_s(f, 29);
    fetch_once(f, POST("q"), 201);
    expect_code(fd, 201);
    pass_s(f, SERVER_FIXTURE_SECONDS - 1);
    say(fd, HOME);
    end(fd, 200);
}

SERVER_TEST(the_deletion_of_the_queue_ends_it, open_waiting(f, 10))
{
    int fd;

    fetch_once(f, POST("q"), 201);
    fetch_once(f, CLAIM, 201);
    fd = begin_suspended(f, WAITING);
    fetch_once(f, DELETION, 204);
    end(fd, 204);
}

SERVER_TEST(a_request_behind_one_that_waits_gets_its_response_behind_it,
            open_waiting(f, 10))
{
    int fd = begin_suspended(f, WAITING HOME WAITING HOME);

    fetch_once(f, POST("q"), 201);
    expect_code(fd, 201);
    expect_code(fd, 200);
    expect_silence(f, fd);
    fetch_once(f, POST("q"), 201);
    expect_code(fd, 201);
    end(fd, 200);
}

SERVER_TEST(half_a_request_behind_one_that_waits_is_kept, open_waiting(f, 10))
{
    int fd = begin_suspended(f, WAITING "GET /v2/ HT");

    say(fd, "TP/1.1\r\nHo"); /* while it waits */
    expect_silence(f, fd);
    fetch_once(f, POST("q"), 201);
    expect_code(fd, 201);
    expect_silence(f, fd);
    say(fd, "st: test\r\n" WHO "\r\n");
    end(fd, 200);
}

SERVER_TEST(half_a_body_behind_one_that_waits_is_kept, open_waiting(f, 10))
{
    static const char request[] = WAITING POST("q");
    char first[sizeof(request)] = "";
    int fd;

    memcpy(first, request, sizeof(request) - 11);
    fd = begin_suspended(f, first);
    fetch_once(f, POST("q"), 201);
    expect_code(fd, 201);
    expect_silence(f, fd);
    say(fd, request + sizeof(request) - 11);
    end(fd, 201);
    ck_assert_uint_eq(stats_of(f).total, 2);
}

SERVER_TEST(a_half_closed_waiter_gets_a_response_at_once, open_waiting(f, 10))
{
    int fd = begin_suspended(f, WAITING);

    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    expect_code(fd, 204);
    expect_closed(fd);
    fd = begin(f, WAITING); /* also if it did so before it was read */
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    expect_code(fd, 204);
    expect_closed(fd);
    fetch_once(f, POST("q"), 201);
    server_fixture_settle(f);
    ck_assert_uint_eq(stats_of(f).claimed, 0);
}

SERVER_TEST(the_message_of_a_disconnected_waiter_goes_to_the_next, open_waiting(f, 10))
{
    int gone, next;

    for (int noticed = 0; noticed <= 1; noticed++) {
        gone = begin_suspended(f, WAITING);
        next = begin_suspended(f, WAITING);
        (void)close(gone);
        if (noticed)
            server_fixture_settle(f);
        fetch_once(f, POST("q"), 201);
        end(next, 201);
        ck_assert_uint_eq(stats_of(f).claimed, (unsigned)noticed + 1);
        ck_assert_uint_eq(stats_of(f).total, (unsigned)noticed + 1);
    }
}

SERVER_TEST(a_disconnected_client_has_claimed_nothing, open_waiting(f, 10))
{
    int fd = begin_suspended(f, WAITING);

    (void)close(fd);
    fetch_once(f, POST("q"), 201);
    server_fixture_settle(f);
    ck_assert_uint_eq(stats_of(f).claimed, 0);
    fetch_once(f, CLAIM, 201);
}

SERVER_TEST(no_more_wait_than_may, open_waiting(f, 3))
{
    struct http_response a;
    int fds[3];

    for (int i = 0; i < 3; i++)
        fds[i] = begin_suspended(f, WAITING);
    for (int i = 0; i < 3; i++) {
        int fd = begin(f, WAITING);

        a = receive(fd);
        ck_assert_int_eq(a.code, 204);
        ck_assert_ptr_null(strstr(a.head, "Preference-Applied"));
        (void)close(fd);
    }
    fetch_once(f, POST("q"), 201); /* each that ends makes space for one */
    expect_code(fds[0], 201);
    say(fds[0], WAITING);
    expect_silence(f, fds[0]);
    (void)close(fds[1]);
    server_fixture_settle(f);
    fds[1] = begin_suspended(f, WAITING);
    pass_s(f, 31);
    for (int i = 0; i < 3; i++) {
        expect_code(fds[i], 204);
        say(fds[i], WAITING);
        expect_silence(f, fds[i]);
    }
    fetch_once(f, WAITING, 204);
    for (int i = 0; i < 3; i++)
        (void)close(fds[i]);
}

SERVER_TEST(with_a_limit_of_zero_no_request_waits, open_waiting(f, 0))
{
    fetch_once(f, WAITING, 204);
    fetch_once(f, WAITING_POP, 200);
    fetch_once(f, POST("q"), 201);
    fetch_once(f, WAITING, 201);
}

START_TEST(a_drain_ends_all_waiters)
{
    struct server_fixture f;
    int fds[20];

    open_waiting(&f, 20);
    for (int i = 0; i < 20; i++)
        fds[i] = begin(&f, WAITING);
    expect_silence(&f, fds[19]);
    server_fixture_close(&f); /* nothing may be cut off */
    for (int i = 0; i < 20; i++) {
        struct http_response a = receive(fds[i]);

        ck_assert_int_eq(a.code, 204);
        ck_assert_ptr_nonnull(strstr(a.head, "Connection: close\r\n"));
        expect_closed(fds[i]);
    }
}

START_TEST(a_drain_waits_for_no_request_behind_one_that_waited)
{
    struct server_fixture f;
    pthread_t drainer;
    int fd;

    open_waiting(&f, 20);
    fd = begin_suspended(&f, WAITING);
    say(fd, "GET /v2/ HT"); /* half a request: the rest is not waited for */
    server_fixture_stop(&f);
    ck_assert_int_eq(pthread_create(&drainer, NULL, drain, &f), 0);
    expect_code(fd, 204);
    expect_closed(fd); /* but for this: until then it may still be sending */
    ck_assert_int_eq(pthread_join(drainer, NULL), 0);
}

SERVER_TEST(thousands_of_disconnecting_waiters_leave_nothing_behind, open_waiting(f, 250))
{
    enum { ROUNDS = 12, CROWD = 250 };
    size_t before = 0;
    int fds[CROWD];

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CROWD; i++)
            fds[i] = begin(f, i % 3 == 0 ? WAITING_POP : WAITING);
        expect_silence(f, fds[CROWD - 1]);
        fetch_once(f, WAITING, 204); /* all of them wait */
        for (int i = 0; i < CROWD; i++) {
            struct linger hard = {.l_onoff = i % 2};

            (void)setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
            (void)close(fds[i]);
        }
        /* A round of the worker sees 32 of them, and serves one that works besides. */
        for (int i = 0; i < CROWD / 32 + 1; i++)
            server_fixture_settle(f);
        if (round == 1)
            before = mem_used(f->mem);
        else if (round > 1)
            await_memory(f, before);
    }
    fds[0] = begin(f, WAITING); /* there is capacity again, and no waiter in front */
    expect_silence(f, fds[0]);
    fetch_once(f, POST("q"), 201);
    end(fds[0], 201);
    ck_assert_uint_eq(stats_of(f).claimed, 1);
}

SERVER_TEST(without_memory_to_wait_there_is_a_response, open_waiting(f, 50))
{
    unsigned waited = 0, refused = 0;

    for (uint64_t nth = 1; nth < 30; nth++) {
        struct http_response a;
        int fd;

        mem_fail_nth(f->mem, nth);
        fd = begin(f, WAITING);
        for (int i = 0; i < 2; i++) { /* one of which may be what has no memory */
            int other = begin(f, HOME);

            (void)receive(other);
            (void)close(other);
        }
        mem_fail_nth(f->mem, 0);
        if (recv(fd, &a.head, 1, MSG_PEEK | MSG_DONTWAIT) < 0) {
            fetch_once(f, POST("q"), 201);
            end(fd, 201);
            waited++;
        } else {
            end(fd, 503);
            refused++;
        }
    }
    ck_assert_uint_gt(waited, 0);
    ck_assert_uint_gt(refused, 0);
}

/* ---------------------------------------------------------------------- slices */

TEST_CASE("slices");

/* A store that finishes nothing while its gate is shut. */
static void
open_slicing(struct server_fixture *f, size_t max_waiters)
{
    const struct server_fixture_options options = {.workers = 1,
                                                   .max_waiters = max_waiters,
                                                   .slow = true,
                                                   .slow_kinds = SLOW_STORE_SLICES};

    server_fixture_open_with(f, &options);
}

SERVER_TEST(a_long_polling_request_that_times_out_in_slices_gives_its_place_back,
            open_slicing(f, 1))
{
    int fd;

    slow_store_shut(f->store);
    fd = begin_suspended(f, WAITING);
    pass_s(f, SERVER_FIXTURE_SECONDS - 1); /* a new connection must not time out, too */
    pass_s(f, 1);
    expect_code(fd, 503);
    expect_closed(fd);
    slow_store_unshut(f->store);
    fd = begin_suspended(f, WAITING);
    fetch_once(f, POST("q"), 201);
    end(fd, 201);
}

SERVER_TEST(a_client_that_hangs_up_in_slices_does_not_wait, open_slicing(f, 1))
{
    int fd;

    slow_store_shut(f->store);
    fd = begin_suspended(f, WAITING);
    (void)close(fd);
    server_fixture_settle(f);
    slow_store_unshut(f->store);
    server_fixture_settle(f);
    fd = begin(f, WAITING); /* there is one place, and it is free again */
    expect_silence(f, fd);
    fetch_once(f, POST("q"), 201);
    end(fd, 201);
}

SERVER_TEST(a_read_in_slices_ends_if_the_client_hangs_up, open_slicing(f, 1))
{
    int read, post;

    slow_store_shut(f->store);
    read = begin_suspended(f, STATS);
    post = begin_suspended(f, POST("q"));
    ck_assert_int_eq(parked_requests(f, "turn"), 2);
    (void)close(read);
    (void)close(post);
    server_fixture_settle(f);
    ck_assert_int_eq(parked_requests(f, "turn"), 1); /* the post may have begun */
    slow_store_unshut(f->store);
    server_fixture_settle(f);
    ck_assert_int_eq(parked_requests(f, "turn"), 0);
    ck_assert_uint_eq(stats_of(f).total, 1);
}

SERVER_TEST(a_short_request_in_slices_overtakes_two_long_ones, open_slicing(f, 1))
{
    int fds[3];

    slow_store_shut(f->store);
    for (int i = 0; i < 2; i++)
        fds[i] = begin_suspended(f, POST("q"));
    fds[2] = begin_suspended(f, STATS);
    slow_store_let_stats(f->store);
    server_fixture_settle(f);
    expect_something(fds[2]);
    end(fds[2], 200);
    slow_store_unshut(f->store);
    for (int i = 0; i < 2; i++)
        end(fds[i], 201);
}

/* ---------------------------------------------------------------------- a log */

TEST_CASE("a log");

static void
open_log(struct server_fixture *f)
{
    const struct server_fixture_options options = {
        .workers = 1, .max_waiters = 10, .slow = true, .slow_kinds = SLOW_STORE_LOGS};

    server_fixture_open_with(f, &options);
}

static void
make_all_durable(const struct server_fixture *f)
{
    slow_store_make_durable(f->store, slow_store_lsn(f->store));
}

/* How many deliveries of the only message of queue q count. */
static unsigned
deliveries_of(const struct server_fixture *f)
{
    const struct store_filter all = {.limit = 2, .include_claimed = true};
    struct store_batch shown = STORE_BATCH_INIT;
    unsigned count;

    ck_assert_int_eq(store_message_list(f->store, STORE_AT(clock_now_ms(&f->clock)),
                                        &queue_q, &all, &shown),
                     ST_OK);
    ck_assert_uint_eq(shown.count, 1);
    count = shown.messages[0].claim_count;
    store_batch_release(&shown);
    return count;
}

SERVER_TEST(a_response_is_held_until_its_content_is_durable, open_log(f))
{
    int fd = begin_suspended(f, POST("q"));

    ck_assert_uint_eq(slow_store_lsn(f->store), 2); /* the queue, and its message */
    ck_assert_uint_eq(stats_of(f).total, 1);
    slow_store_make_durable(f->store, 1);
    expect_silence(f, fd);
    slow_store_make_durable(f->store, 2);
    end(fd, 201);
}

SERVER_TEST(a_worker_flushes_the_log_before_it_rests, open_log(f))
{
    int fd = begin(f, POST("q"));

    server_fixture_settle(f);
    ck_assert_uint_eq(slow_store_lsn(f->store), 2);
    ck_assert_uint_eq(slow_store_flushed(f->store), 2);
    make_all_durable(f);
    end(fd, 201);
}

SERVER_TEST(responses_are_sent_in_the_order_of_the_log, open_log(f))
{
    int fds[4];

    for (int i = 0; i < 4; i++) {
        fds[i] = begin(f, POST("q"));
        server_fixture_settle(f);
    }
    for (int i = 0; i < 4; i++) {
        slow_store_make_durable(f->store, (uint64_t)i + 2);
        expect_code(fds[i], 201);
        for (int k = i + 1; k < 4; k++)
            expect_silence(f, fds[k]);
        (void)close(fds[i]);
    }
}

SERVER_TEST(a_response_with_an_older_lsn_does_not_wait_for_a_newer_one, open_log(f))
{
    int older, newer, reader;

    older = begin_suspended(f, POST("q"));
    newer = begin_suspended(f, POST("other"));
    reader = begin(f, STATS); /* of q, so its LSN is that of the first post */
    expect_silence(f, reader);
    slow_store_make_durable(f->store, 2);
    end(older, 201);
    expect_silence(f, newer);
    expect_something(reader);
    end(reader, 200);
    make_all_durable(f);
    end(newer, 201);
}

SERVER_TEST(requests_behind_a_suspended_one_get_their_responses_behind_it, open_log(f))
{
    int fd = begin_suspended(f, POST("q") HOME POST("q") HOME);

    make_all_durable(f);
    expect_code(fd, 201);
    expect_code(fd, 200);
    expect_silence(f, fd);
    make_all_durable(f);
    expect_code(fd, 201);
    end(fd, 200);
}

SERVER_TEST(a_read_waits_for_what_it_saw_and_for_nothing_else, open_log(f))
{
    int post, seen;

    post = begin_suspended(f, POST("other"));
    fetch_once(f, STATS, 200); /* of a queue that does not exist */
    make_all_durable(f);
    end(post, 201);
    post = begin_suspended(f, POST("q"));
    seen = begin_suspended(f, STATS);
    make_all_durable(f);
    end(seen, 200);
    end(post, 201);
    fetch_once(f, STATS, 200); /* it is durable now */
}

SERVER_TEST(a_lost_response_is_not_sent, open_log(f))
{
    int kept, lost[3], seen;

    kept = begin(f, POST("q"));
    server_fixture_settle(f);
    make_all_durable(f);
    expect_code(kept, 201);
    for (int i = 0; i < 3; i++)
        lost[i] = begin_suspended(f, POST("q"));
    seen = begin_suspended(f, STATS);
    slow_store_lose(f->store);
    for (int i = 0; i < 3; i++)
        expect_closed(lost[i]);
    expect_closed(seen);
    expect_closed(begin(f, POST("q"))); /* nor what comes afterwards */
    say(kept, HOME);
    end(kept, 200);
}

SERVER_TEST(parked_requests_are_counted_by_reason_until_they_continue, open_log(f))
{
    int waiter, post;

    waiter = begin_suspended(f, WAITING);
    ck_assert_int_eq(parked_requests(f, "message"), 1);
    post = begin_suspended(f, POST("q"));
    ck_assert_int_eq(parked_requests(f, "message"), 0);
    ck_assert_int_eq(parked_requests(f, "journal"), 2);
    make_all_durable(f);
    end(post, 201);
    end(waiter, 201);
    server_fixture_settle(f);
    ck_assert_int_eq(parked_requests(f, "journal"), 0);
}

SERVER_TEST(a_parked_request_whose_connection_ends_is_counted_no_more, open_log(f))
{
    int fd = begin_suspended(f, POST("q"));

    ck_assert_int_eq(parked_requests(f, "journal"), 1);
    slow_store_lose(f->store);
    expect_closed(fd);
    server_fixture_settle(f);
    ck_assert_int_eq(parked_requests(f, "journal"), 0);
}

START_TEST(a_waiter_that_has_its_message_makes_space_for_another_at_once)
{
    const struct server_fixture_options options = {
        .workers = 1, .max_waiters = 1, .slow = true, .slow_kinds = SLOW_STORE_LOGS};
    struct server_fixture f;
    int first, next, post;

    server_fixture_open_with(&f, &options);
    first = begin_suspended(&f, WAITING);
    post = begin_suspended(&f, POST("q"));
    ck_assert_uint_eq(stats_of(&f).claimed, 1); /* the response waits for the journal */
    next = begin_suspended(&f, WAITING);
    make_all_durable(&f);
    end(post, 201);
    end(first, 201);
    expect_silence(&f, next);
    post = begin_suspended(&f, POST("q"));
    make_all_durable(&f);
    end(post, 201);
    end(next, 201);
    server_fixture_close(&f);
}

SERVER_TEST(hanging_up_does_not_undo_what_was_done, open_log(f))
{
    int fd = begin_suspended(f, POST("q"));

    (void)close(fd);
    server_fixture_settle(f);
    ck_assert_uint_eq(stats_of(f).total, 1);
    fd = begin(f, POST("q")); /* one that still listens is held behind it */
    expect_silence(f, fd);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    expect_silence(f, fd);
    make_all_durable(f);
    end(fd, 201);
    ck_assert_uint_eq(stats_of(f).total, 2);
}

SERVER_TEST(a_claim_for_a_disconnected_client_is_released, open_log(f))
{
    int fd;

    slow_store_make_durable(f->store, UINT64_MAX);
    fetch_once(f, POST("q"), 201);
    slow_store_make_durable(f->store, slow_store_lsn(f->store));
    fd = begin_suspended(f, CLAIM);
    ck_assert_uint_eq(stats_of(f).claimed, 1);
    (void)close(fd);
    server_fixture_settle(f);
    make_all_durable(f);
    for (int i = 0; i < 100 && stats_of(f).claimed > 0; i++)
        server_fixture_settle(f);
    ck_assert_uint_eq(stats_of(f).claimed, 0);
    ck_assert_uint_eq(stats_of(f).total, 1);
    make_all_durable(f);
}

/* True if the system reports how many bytes of a connection were sent. An emulator of
 * user programs (qemu) does not. */
static bool
tells_sent_bytes(void)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct tcp_info info;
    socklen_t len = sizeof(info);

    ck_assert_int_ge(fd, 0);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        len = 0;
    (void)close(fd);
    return len > offsetof(struct tcp_info, tcpi_bytes_retrans);
}

/* A Unix socket cannot report whether the client has seen a part of the response. */
LOOP_TEST(a_response_of_which_no_byte_left_counts_as_no_delivery_over_tcp, 2)
{
    const struct server_fixture_options options = {.workers = 1,
                                                   .tcp = _i == 1,
                                                   .max_waiters = 10,
                                                   .slow = true,
                                                   .slow_kinds = SLOW_STORE_LOGS};
    const struct linger hard = {.l_onoff = 1};
    struct server_fixture f;
    int fd, post;

    server_fixture_open_with(&f, &options);
    fd = begin_suspended(&f, WAITING);
    post = begin_suspended(&f, POST("q"));
    ck_assert_uint_eq(stats_of(&f).claimed, 1);
    ck_assert_uint_eq(deliveries_of(&f), 1);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    (void)close(fd);
    make_all_durable(&f);
    end(post, 201);
    for (int i = 0; i < 100 && stats_of(&f).claimed > 0; i++)
        server_fixture_settle(&f);
    ck_assert_uint_eq(stats_of(&f).claimed, 0);
    ck_assert_uint_eq(deliveries_of(&f), options.tcp && tells_sent_bytes() ? 0 : 1);
    make_all_durable(&f);
    server_fixture_close(&f);
}

START_TEST(a_claim_whose_response_a_shutdown_discards_counts_as_no_delivery)
{
    struct server_fixture f;
    int fd;

    open_log(&f);
    slow_store_make_durable(f.store, UINT64_MAX);
    fetch_once(&f, POST("q"), 201);
    make_all_durable(&f);
    fd = begin_suspended(&f, CLAIM);
    ck_assert_uint_eq(deliveries_of(&f), 1);
    server_fixture_stop(&f);
    ck_assert_uint_eq(server_drain(f.server, 0), 1);
    ck_assert_uint_eq(stats_of(&f).claimed, 0);
    ck_assert_uint_eq(deliveries_of(&f), 0);
    expect_closed(fd);
    server_fixture_cut(&f);
}

SERVER_TEST(a_woken_waiter_gets_its_message_when_it_is_durable, open_log(f))
{
    int waiting, post;

    waiting = begin_suspended(f, WAITING);
    post = begin_suspended(f, POST("q"));
    expect_silence(f, waiting);
    ck_assert_uint_eq(stats_of(f).claimed, 1);
    make_all_durable(f);
    end(post, 201);
    end(waiting, 201);
}

SERVER_TEST(the_time_limits_do_not_count_while_a_response_is_held, open_log(f))
{
    int fd = begin_suspended(f, POST("q"));

    pass_s(f, 3 * SERVER_FIXTURE_SECONDS);
    expect_silence(f, fd);
    make_all_durable(f);
    end(fd, 201);
}

/* Only a worker that sleeps has to be woken; one that never does would not let us out. */
static void
await_rest(const struct server_fixture *f)
{
    while (slow_store_notify(f->store) == 0)
        server_fixture_settle(f);
}

SERVER_TEST(a_worker_that_holds_nothing_sleeps_when_the_log_moves, open_log(f))
{
    for (int i = 0; i < 3; i++)
        await_rest(f);
}

static _Atomic int waiter_fd, producer_fd;

/*
 * The worker is awake for the request of the producer and has not read it. The waiter
 * hangs up now, so its end is no event of this round.
 */
static void
hang_up_in_the_same_round(void)
{
    int unread = 0;

    if (ioctl(producer_fd, SIOCOUTQ, &unread) != 0 || unread == 0)
        return; /* the worker is not awake for that yet */
    atomic_store(&at_clock, NULL);
    (void)close(waiter_fd);
}

/* False: the worker was awake before the producer sent its request, so the waiter got the
 * message. */
static bool
hang_up_as_a_message_comes(const struct server_fixture *f)
{
    waiter_fd = begin_suspended(f, WAITING);
    producer_fd = begin(f, HOME);
    expect_code(producer_fd, 200);
    await_rest(f);
    atomic_store(&at_clock, hang_up_in_the_same_round);
    say(producer_fd, POST("q"));
    end(producer_fd, 201);
    if (atomic_exchange(&at_clock, NULL) == NULL)
        return true;
    end(waiter_fd, 201);
    fetch_once(f, PURGE, 204);
    return false;
}

SERVER_TEST(a_message_that_comes_as_the_client_hangs_up_counts_as_no_delivery,
            open_log(f))
{
    slow_store_make_durable(f->store, UINT64_MAX);
    while (!hang_up_as_a_message_comes(f))
        continue;
    server_fixture_settle(f);
    ck_assert_uint_eq(stats_of(f).claimed, 0);
    ck_assert_uint_eq(deliveries_of(f), 0);
}

START_TEST(a_drain_waits_for_the_log)
{
    struct server_fixture f;
    pthread_t drainer;
    int fds[3];

    open_log(&f);
    for (int i = 0; i < 3; i++)
        fds[i] = begin_suspended(&f, POST("q"));
    server_fixture_stop(&f);
    ck_assert_int_eq(pthread_create(&drainer, NULL, drain, &f), 0);
    /* Whenever it becomes durable, before or after the drain has begun. */
    make_all_durable(&f);
    for (int i = 0; i < 3; i++)
        end(fds[i], 201);
    ck_assert_int_eq(pthread_join(drainer, NULL), 0);
}

/* ---------------------------------------------------------------------- blocking */

TEST_CASE("a store that blocks");

static void
open_blocking(struct server_fixture *f, size_t fibers, unsigned more)
{
    const struct server_fixture_options options = {.workers = 1,
                                                   .max_connections = 1000,
                                                   .max_waiters = 100,
                                                   .slow = true,
                                                   .slow_kinds = SLOW_STORE_BLOCKS | more,
                                                   .fibers = fibers,
                                                   .threads = 2,
                                                   .line = 100};

    server_fixture_open_with(f, &options);
}

/* Nothing has come, while no thread is free to respond to anything. */
static void
expect_nothing_yet(int fd)
{
    char byte;

    ck_assert_int_eq(recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1);
    ck_assert_int_eq(errno, EAGAIN);
}

SERVER_TEST(others_are_served_while_one_waits_for_the_store, open_blocking(f, 0, 0))
{
    int fd;

    slow_store_shut(f->store);
    fd = begin(f, POST("q"));
    slow_store_await(f->store, 1);
    for (int i = 0; i < 10; i++)
        fetch_once(f, HOME, 200);
    expect_silence(f, fd);
    slow_store_unshut(f->store);
    end(fd, 201);
    ck_assert_uint_eq(stats_of(f).total, 1);
}

SERVER_TEST(many_get_responses_at_once, open_blocking(f, 0, 0))
{
    enum { CROWD = 100 };
    int fds[CROWD];

    for (int round = 0; round < 3; round++) {
        slow_store_shut(f->store);
        for (int i = 0; i < CROWD; i++)
            fds[i] = begin(f, i % 2 == 0 ? POST("q") HOME : POST("r") STATS);
        slow_store_await(f->store, 4);
        slow_store_unshut(f->store);
        for (int i = 0; i < CROWD; i++) {
            expect_code(fds[i], 201);
            end(fds[i], 200);
        }
    }
    ck_assert_uint_eq(stats_of(f).total, 3 * CROWD / 2);
}

/* All responses without a body share one response of libmicrohttpd. */
SERVER_TEST(each_response_without_a_body_has_its_own_request_id, open_blocking(f, 0, 0))
{
    enum { CROWD = 10, ID = 40 };
    char ids[2 * CROWD][ID + 1];
    int fds[CROWD];

    slow_store_shut(f->store);
    for (int i = 0; i < CROWD; i++)
        fds[i] = begin(f, DELETION DELETION);
    slow_store_await(f->store, 4);
    slow_store_unshut(f->store);
    for (int i = 0; i < 2 * CROWD; i++) {
        struct http_response a = receive(fds[i / 2]);
        const char *at = strstr(a.head, "X-Request-ID: ");

        ck_assert_int_eq(a.code, 204);
        ck_assert_ptr_nonnull(at);
        ck_assert_int_eq(sscanf(at, "X-Request-ID: %40s\r\n", ids[i]), 1);
        ck_assert_uint_eq(strlen(ids[i]), ID);
        ck_assert_ptr_nonnull(strstr(a.head, "X-OpenStack-Request-Id: "));
        ck_assert_int_eq(
            strncmp(strstr(a.head, "X-OpenStack-Request-Id: ") + 24, ids[i], ID), 0);
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(ids[k], ids[i]);
    }
    for (int i = 0; i < CROWD; i++)
        (void)close(fds[i]);
}

SERVER_TEST(a_request_that_waits_for_the_store_needs_no_thread, open_blocking(f, 0, 0))
{
    enum { CROWD = 100 };
    int fds[CROWD];

    slow_store_shut(f->store);
    for (int i = 0; i < CROWD; i++)
        fds[i] = begin(f, POST("q"));
    slow_store_await(f->store, CROWD);
    fetch_once(f, HOME, 200);
    slow_store_let_one(f->store);
    slow_store_await(f->store, CROWD - 1);
    slow_store_unshut(f->store);
    for (int i = 0; i < CROWD; i++)
        end(fds[i], 201);
    ck_assert_uint_eq(stats_of(f).total, CROWD);
}

SERVER_TEST(without_a_free_fiber_a_request_takes_its_turn, open_blocking(f, 3, 0))
{
    enum { CROWD = 20, FIBERS = 3 };
    int fds[CROWD];

    slow_store_shut(f->store);
    for (int i = 0; i < CROWD; i++)
        fds[i] = begin(f, POST("q"));
    slow_store_await(f->store, FIBERS);
    server_fixture_settle(f);
    (void)close(fds[CROWD - 1]); /* in the wait queue */
    for (int i = 0; i < CROWD - 1; i++)
        expect_nothing_yet(fds[i]);
    slow_store_let_one(f->store);
    end(fds[0], 201);
    slow_store_await(f->store, FIBERS); /* the next one has the fiber */
    slow_store_unshut(f->store);
    for (int i = 1; i < CROWD - 1; i++)
        end(fds[i], 201);
}

SERVER_TEST(a_request_without_a_free_fiber_is_refused_in_the_end, open_blocking(f, 1, 0))
{
    struct http_response a;
    int fds[2];

    slow_store_shut(f->store);
    fds[0] = begin(f, POST("q"));
    slow_store_await(f->store, 1);
    fds[1] = begin(f, POST("q"));
    server_fixture_settle(f);
    for (int i = 0; i < 100 && recv(fds[1], &(char){0}, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
         i++)
        pass_s(f, 31);
    a = receive(fds[1]);
    ck_assert_int_eq(a.code, 503);
    ck_assert_ptr_nonnull(strstr(a.head, "Retry-After: "));
    (void)close(fds[1]);
    slow_store_unshut(f->store);
    end(fds[0], 201);
    ck_assert_uint_eq(stats_of(f).total, 1); /* refused requests have not happened */
}

SERVER_TEST(a_pipelined_request_follows_one_that_waits_for_the_store,
            open_blocking(f, 0, 0))
{
    int fd;

    slow_store_shut(f->store);
    fd = begin(f, POST("q") HOME "GET /v2/ HT");
    slow_store_await(f->store, 1);
    expect_silence(f, fd);
    slow_store_unshut(f->store);
    expect_code(fd, 201);
    expect_code(fd, 200);
    say(fd, "TP/1.1\r\n" HEAD "\r\n");
    end(fd, 200);
}

START_TEST(a_request_of_a_disconnected_client_is_freed_after_the_store)
{
    struct server_fixture f;
    int fd;

    open_blocking(&f, 0, 0);
    slow_store_shut(f.store);
    fd = begin(&f, POST("q"));
    slow_store_await(f.store, 1);
    (void)close(fd);
    server_fixture_settle(&f);
    slow_store_unshut(f.store);
    for (int i = 0; i < 1000 && stats_of(&f).total == 0; i++)
        server_fixture_settle(&f);
    ck_assert_uint_eq(stats_of(&f).total, 1);
    server_fixture_close(&f); /* which finds nothing left */
}

SERVER_TEST(a_claim_of_a_client_that_disconnected_meanwhile_is_released,
            open_blocking(f, 0, 0))
{
    struct store_batch shown = STORE_BATCH_INIT;
    int fd;

    fetch_once(f, POST("q"), 201);
    slow_store_shut(f->store);
    fd = begin(f, CLAIM);
    slow_store_await(f->store, 1);
    (void)close(fd);
    server_fixture_settle(f);
    slow_store_let_one(f->store);  /* it claims */
    slow_store_await(f->store, 1); /* and gives back */
    slow_store_unshut(f->store);
    server_fixture_stop(f);
    for (int i = 0; i < 100000 && stats_of(f).claimed > 0; i++)
        sched_yield();
    ck_assert_uint_eq(stats_of(f).claimed, 0);
    ck_assert_uint_eq(stats_of(f).total, 1);
    ck_assert_int_eq(store_message_list(f->store, STORE_AT(clock_now_ms(&f->clock)),
                                        &queue_q, &(struct store_filter){.limit = 1},
                                        &shown),
                     ST_OK);
    ck_assert_uint_eq(shown.count, 1);
    store_batch_release(&shown);
}

SERVER_TEST(a_waiting_claim_calls_the_store_again_and_again, open_blocking(f, 0, 0))
{
    int fds[3];

    for (int i = 0; i < 3; i++)
        fds[i] = begin_suspended(f, WAITING);
    for (int i = 0; i < 3; i++)
        fetch_once(f, POST("q"), 201);
    for (int i = 0; i < 3; i++)
        end(fds[i], 201);
    ck_assert_uint_eq(stats_of(f).claimed, 3);
}

SERVER_TEST(a_message_that_comes_during_a_call_of_the_store_is_not_missed,
            open_blocking(f, 0, 0))
{
    int fd, post;

    for (int i = 0; i < 50; i++) { /* in whatever order both come in */
        slow_store_shut(f->store);
        fd = begin(f, WAITING);
        slow_store_await(f->store, 1);
        post = begin(f, POST("q"));
        slow_store_await(f->store, 2);
        slow_store_unshut(f->store);
        end(post, 201);
        end(fd, 201);
    }
}

SERVER_TEST(time_and_deletions_end_the_waiting_too, open_blocking(f, 0, 0))
{
    int fd = begin_suspended(f, WAITING);

    for (int i = 0; i < 100 && recv(fd, &(char){0}, 1, MSG_PEEK | MSG_DONTWAIT) < 0; i++)
        pass_s(f, 31); /* it may not have been in the wait queue yet when time went on */
    expect_code(fd, 204);
    fetch_once(f, MAKING, 201);
    slow_store_shut(f->store);
    say(fd, WAITING);
    slow_store_await(f->store, 1);
    slow_store_unshut(f->store);
    fetch_once(f, STATS, 200);
    for (int i = 0; i < 1000 && recv(fd, &(char){0}, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
         i++) {
        fetch_once(f, DELETION,
                   204); /* it may not have been in the wait queue, likewise */
        fetch_once(f, MAKING, 201);
    }
    end(fd, 204);
}

START_TEST(a_drain_waits_for_the_store)
{
    struct server_fixture f;
    pthread_t drainer;
    int fds[4];

    open_blocking(&f, 0, 0);
    slow_store_shut(f.store);
    for (int i = 0; i < 3; i++)
        fds[i] = begin(&f, POST("q"));
    slow_store_await(f.store, 2);
    fds[3] = begin(&f, WAITING); /* not retried until the end */
    server_fixture_stop(&f);
    ck_assert_int_eq(pthread_create(&drainer, NULL, drain, &f), 0);
    slow_store_unshut(f.store);
    for (int i = 0; i < 3; i++)
        end(fds[i], 201);
    (void)receive(fds[3]); /* 201, or 204 if it came first */
    (void)close(fds[3]);
    ck_assert_int_eq(pthread_join(drainer, NULL), 0);
}

SERVER_TEST(a_store_that_blocks_may_have_a_log, open_blocking(f, 0, SLOW_STORE_LOGS))
{
    int fd = begin(f, POST("q") HOME);

    while (slow_store_lsn(f->store) < 2)
        server_fixture_settle(f);
    expect_silence(f, fd);
    make_all_durable(f);
    expect_code(fd, 201);
    end(fd, 200);
}

LOOP_TEST(crowds_that_come_and_go_leave_nothing_behind, 2)
{
    enum { ROUNDS = 10, CROWD = 100 };
    struct server_fixture f;
    int fds[CROWD];

    open_blocking(&f, _i == 0 ? 0 : 3, 0);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2 == 0)
            slow_store_shut(f.store);
        for (int i = 0; i < CROWD; i++)
            fds[i] = begin(&f, i % 4 == 0 ? POST("q") : i % 4 == 1 ? CLAIM : WAITING);
        if (round % 2 == 0)
            slow_store_await(f.store, 3);
        for (int i = 0; i < CROWD; i++)
            (void)close(fds[i]);
        slow_store_unshut(f.store);
    }
    server_fixture_close(&f); /* no client is left, and all memory is back */
}

/* ---------------------------------------------------------------------- admission */

TEST_CASE("Keystone");

/* Requests with a token. */
#define BY(token)       "X-Auth-Token: " token "\r\n"
#define HOME_BY(token)  "GET /v2/ HTTP/1.1\r\n" HEAD BY(token) "\r\n"
#define CLAIM_BY(token) "POST /v2/queues/q/claims HTTP/1.1\r\n" HEAD BY(token) "\r\n"
#define WAITING_BY(token)                                                                \
    "POST /v2/queues/q/claims?limit=1 HTTP/1.1\r\n" HEAD BY(                             \
        token) "Prefer: wait=30\r\nContent-Length: 0\r\n\r\n"
#define POST_BY(token)                                                                   \
    "POST /v2/queues/q/messages HTTP/1.1\r\n" HEAD BY(                                   \
        token) "Content-Length: 25\r\n\r\n{\"messages\":[{\"body\":1}]}"

static void
open_with_keystone(struct server_fixture *f, size_t threads, size_t line)
{
    const struct server_fixture_options options = {.workers = 1,
                                                   .max_connections = 1000,
                                                   .max_waiters = 100,
                                                   .keystone_threads = threads,
                                                   .keystone_line = line};

    server_fixture_open_with(f, &options);
}

SERVER_TEST(a_caller_with_a_keystone_token_is_accepted, open_with_keystone(f, 2, 10))
{
    for (int i = 0; i < 3; i++) {
        fetch_once(f, HOME_BY("member@p"), 200);
        fetch_once(f, HOME_BY("member@other"), 403);
        fetch_once(f, HOME_BY("unknown"), 401);
        fetch_once(f, HOME, 401);
    }
    ck_assert_uint_eq(fake_keystone_requests(&f->fake), 3);
}

SERVER_TEST(no_100_continue_is_sent_while_keystone_verifies, open_with_keystone(f, 2, 10))
{
    int fd;

    fake_keystone_shut(&f->fake);
    fd = begin(
        f, "POST /v2/queues/q/messages HTTP/1.1\r\n" HEAD BY(
               "member@p") "Expect: 100-continue\r\nContent-Length: 10000000\r\n\r\n");
    fake_keystone_await(&f->fake, 1);
    expect_silence(f, fd); /* not even 100 Continue */
    fake_keystone_open(&f->fake);
    expect_code(fd, 400);
    expect_closed(fd);
}

SERVER_TEST(others_are_served_while_keystone_verifies_one, open_with_keystone(f, 2, 10))
{
    int fd;

    fetch_once(f, HOME_BY("member@p"), 200);
    fake_keystone_shut(&f->fake);
    fd = begin(f, POST_BY("admin@p"));
    fake_keystone_await(&f->fake, 1);
    for (int i = 0; i < 10; i++)
        fetch_once(f, HOME_BY("member@p"), 200);
    expect_silence(f, fd);
    ck_assert_uint_eq(stats_of(f).total, 0);
    fake_keystone_open(&f->fake);
    end(fd, 201);
    ck_assert_uint_eq(stats_of(f).total, 1);
}

SERVER_TEST(the_token_of_a_crowd_is_verified_once, open_with_keystone(f, 1, 1))
{
    enum { CROWD = 200 };
    int fds[CROWD];

    fake_keystone_shut(&f->fake);
    for (int i = 0; i < CROWD; i++)
        fds[i] = begin(f, POST_BY("member@p") HOME_BY("member@p"));
    fake_keystone_await(&f->fake, 1);
    expect_silence(f, fds[CROWD - 1]);
    fake_keystone_open(&f->fake);
    for (int i = 0; i < CROWD; i++) {
        expect_code(fds[i], 201);
        end(fds[i], 200);
    }
    ck_assert_uint_eq(fake_keystone_requests(&f->fake), 1);
    ck_assert_uint_eq(stats_of(f).total, CROWD);
}

SERVER_TEST(one_token_too_many_has_to_come_later, open_with_keystone(f, 1, 1))
{
    struct http_response a;
    int fds[2], fd;

    fake_keystone_shut(&f->fake);
    fds[0] = begin(f, POST_BY("member@p"));
    fake_keystone_await(&f->fake, 1);
    fds[1] = begin_suspended(f, POST_BY("admin@p"));
    fd = begin(f, POST_BY("admin,member@p"));
    a = receive(fd);
    ck_assert_int_eq(a.code, 503);
    ck_assert_ptr_nonnull(strstr(a.head, "Retry-After: "));
    fake_keystone_open(&f->fake);
    for (int i = 0; i < 2; i++)
        end(fds[i], 201);
    say(fd, POST_BY("admin,member@p")); /* the connection is good */
    end(fd, 201);
    ck_assert_uint_eq(stats_of(f).total, 3); /* refused requests have not happened */
}

SERVER_TEST(while_keystone_is_down_only_cached_tokens_are_accepted,
            open_with_keystone(f, 2, 10))
{
    struct http_response a;
    int fd;

    fetch_once(f, HOME_BY("member@p"), 200);
    f->fake.status = ST_UNAVAILABLE;
    fd = begin(f, POST_BY("admin@p"));
    a = receive(fd);
    ck_assert_int_eq(a.code, 503);
    ck_assert_ptr_nonnull(strstr(a.head, "Retry-After: 1\r\n"));
    ck_assert_ptr_nonnull(strstr(a.body, "claimd cannot reach the identity server"));
    (void)close(fd);
    fetch_once(f, HOME_BY("member@p"), 200);
    pass_s(f, 60);
    fetch_once(f, HOME_BY("member@p"), 503);
    ck_assert_uint_eq(stats_of(f).total, 0);
}

START_TEST(a_request_of_a_disconnected_client_is_freed_after_verification)
{
    struct server_fixture f;
    int fd;

    open_with_keystone(&f, 2, 10);
    fake_keystone_shut(&f.fake);
    fd = begin(&f, POST_BY("member@p"));
    fake_keystone_await(&f.fake, 1);
    (void)close(fd);
    server_fixture_settle(&f);
    fake_keystone_open(&f.fake);
    for (int i = 0; i < 1000 && stats_of(&f).total == 0; i++)
        server_fixture_settle(&f);
    ck_assert_uint_eq(stats_of(&f).total, 1);
    server_fixture_close(&f); /* which finds nothing left */
}

SERVER_TEST(a_client_that_disconnects_during_verification_claims_nothing,
            open_with_keystone(f, 2, 10))
{
    static const char *const requests[] = {CLAIM_BY("member@p"), WAITING_BY("member@p")};

    fetch_once(f, POST_BY("admin@p"), 201);
    for (int i = 0; i < 2; i++) {
        int fd;

        fake_keystone_shut(&f->fake);
        fd = begin(f, requests[i]);
        fake_keystone_await(&f->fake, 1);
        (void)close(fd);
        server_fixture_settle(f);
        fake_keystone_open(&f->fake);
        while (keystone_count(f->keystone) < 2)
            server_fixture_settle(f);
        for (int k = 0; k < 1000 && stats_of(f).claimed > 0; k++)
            server_fixture_settle(f);
        ck_assert_uint_eq(stats_of(f).claimed, 0);
        ck_assert_uint_eq(stats_of(f).total, 1);
        keystone_clear_cache(f->keystone);
        fetch_once(f, HOME_BY("admin@p"), 200);
    }
}

SERVER_TEST(a_waiter_is_authorized_once, open_with_keystone(f, 2, 10))
{
    int fd = begin(f, WAITING_BY("member@p"));

    while (keystone_count(f->keystone) == 0)
        server_fixture_settle(f);
    expect_silence(f, fd);
    keystone_clear_cache(f->keystone);
    f->fake.status = ST_UNAVAILABLE;
    pass_s(f, 29);
    expect_silence(f, fd);
    f->fake.status = ST_OK;
    fetch_once(f, POST_BY("admin@p"), 201);
    end(fd, 201);
    ck_assert_uint_eq(fake_keystone_requests(&f->fake), 2);
}

SERVER_TEST(a_pipelined_request_follows_one_that_waits_for_verification,
            open_with_keystone(f, 2, 10))
{
    int fd;

    fake_keystone_shut(&f->fake);
    fd = begin(f, POST_BY("member@p") HOME_BY("admin@p") "GET /livez HT");
    fake_keystone_await(&f->fake, 1);
    expect_silence(f, fd);
    fake_keystone_open(&f->fake);
    expect_code(fd, 201);
    expect_code(fd, 200);
    say(fd, "TP/1.1\r\n" HEAD "\r\n");
    end(fd, 200);
}

START_TEST(a_drain_waits_for_keystone)
{
    struct server_fixture f;
    pthread_t drainer;
    int fds[4];

    open_with_keystone(&f, 2, 10);
    fake_keystone_shut(&f.fake);
    for (int i = 0; i < 3; i++)
        fds[i] = begin(&f, POST_BY("member@p"));
    fake_keystone_await(&f.fake, 1);
    fds[3] = begin(&f, WAITING_BY("reader,member@p"));
    fake_keystone_await(&f.fake, 2);
    expect_silence(&f, fds[3]);
    server_fixture_stop(&f);
    ck_assert_int_eq(pthread_create(&drainer, NULL, drain, &f), 0);
    fake_keystone_open(&f.fake);
    for (int i = 0; i < 3; i++)
        end(fds[i], 201);
    (void)receive(fds[3]); /* 201, or 204 if it came first */
    (void)close(fds[3]);
    ck_assert_int_eq(pthread_join(drainer, NULL), 0);
}

static void *
cut(void *arg)
{
    struct server_fixture *f = arg;

    server_fixture_cut(f);
    return NULL;
}

START_TEST(a_server_stopped_early_leaves_no_waiter)
{
    struct server_fixture f;
    pthread_t cutter;
    int fds[2];

    open_with_keystone(&f, 1, 10);
    fake_keystone_shut(&f.fake);
    fds[0] = begin(&f, POST_BY("member@p"));
    fake_keystone_await(&f.fake, 1);
    fds[1] = begin_suspended(&f, WAITING_BY("admin@p"));
    server_fixture_stop(&f);
    ck_assert_int_eq(pthread_create(&cutter, NULL, cut, &f), 0);
    fake_keystone_open(&f.fake);
    ck_assert_int_eq(pthread_join(cutter, NULL), 0); /* all memory is back */
    for (int i = 0; i < 2; i++)
        (void)close(fds[i]);
}

START_TEST(a_store_that_blocks_and_a_keystone_go_together)
{
    const struct server_fixture_options options = {.workers = 1,
                                                   .max_connections = 1000,
                                                   .max_waiters = 100,
                                                   .slow = true,
                                                   .slow_kinds = SLOW_STORE_BLOCKS,
                                                   .threads = 2,
                                                   .line = 200,
                                                   .keystone_threads = 2,
                                                   .keystone_line = 10};
    enum { CROWD = 100 };
    struct server_fixture f;
    int fds[CROWD];

    server_fixture_open_with(&f, &options);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < CROWD; i++)
            fds[i] = begin(&f, i % 2 == 0 ? POST_BY("member@p") HOME_BY("admin@p")
                                          : CLAIM_BY("member,reader@p"));
        for (int i = 0; i < CROWD; i++) {
            int code = receive(fds[i]).code;

            ck_assert(code == 201 || (i % 2 == 1 && code == 204));
            if (i % 2 == 0)
                expect_code(fds[i], 200);
            (void)close(fds[i]);
        }
        keystone_clear_cache(f.keystone);
    }
    ck_assert_uint_eq(stats_of(&f).total, 5 * CROWD / 2);
    server_fixture_close(&f);
}

START_TEST(verifications_of_crowds_leave_nothing_behind)
{
    enum { ROUNDS = 10, CROWD = 100 };
    struct server_fixture f;
    int fds[CROWD];

    open_with_keystone(&f, 2, 2);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2 == 0)
            fake_keystone_shut(&f.fake);
        for (int i = 0; i < CROWD; i++)
            fds[i] = begin(&f, i % 4 == 0   ? POST_BY("member@p")
                               : i % 4 == 1 ? CLAIM_BY("admin@p")
                               : i % 4 == 2 ? HOME_BY("unknown")
                                            : WAITING_BY("admin,member@p"));
        if (round % 2 == 0)
            fake_keystone_await(&f.fake, 2);
        for (int i = 0; i < CROWD; i++)
            (void)close(fds[i]);
        fake_keystone_open(&f.fake);
        keystone_clear_cache(f.keystone);
    }
    server_fixture_close(&f); /* no client is left, and all memory is back */
}
