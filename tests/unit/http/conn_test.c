/*
 * The time limit of each phase of a connection, and which connections have an unfinished
 * request when the server stops. Read src/http/conn.h next.
 */
#include "http/conn.h"
#include "support/check_main.h"

#include <sys/socket.h>
#include <unistd.h>

enum { IDLE_MS = 60000, REQUEST_MS = 30000 };

static int64_t
next_ms(const struct conn_table *t)
{
    int64_t due_ms;

    (void)conn_earliest(t, &due_ms);
    return due_ms;
}

/* The connection whose limit has ended at now_ms, NULL if there is none. */
static struct conn *
overdue(const struct conn_table *t, int64_t now_ms)
{
    int64_t due_ms;
    struct conn *c = conn_earliest(t, &due_ms);

    return due_ms <= now_ms ? c : NULL;
}

START_TEST(each_phase_has_its_own_limit)
{
    struct conn_table t;
    struct conn c = {.fd = -1};

    conn_table_init(&t, IDLE_MS, REQUEST_MS);
    conn_table_add(&t, &c, 1000);
    ck_assert_int_eq(next_ms(&t), 1000 + IDLE_MS);
    conn_set_phase(&t, &c, CONN_RECEIVING, 2000);
    ck_assert_int_eq(next_ms(&t), 2000 + REQUEST_MS);
    conn_set_phase(&t, &c, CONN_RESPONDING, 3000);
    ck_assert_int_eq(next_ms(&t), 3000 + REQUEST_MS);
    conn_set_phase(&t, &c, CONN_WAITING, 4000);
    ck_assert_int_eq(next_ms(&t), 4000 + IDLE_MS);
    conn_table_remove(&t, &c);
    ck_assert_int_eq(next_ms(&t), INT64_MAX);
}

START_TEST(the_first_overdue_is_found_and_not_before_its_time)
{
    struct conn_table t;
    struct conn early = {.fd = 1}, late = {.fd = 2};

    conn_table_init(&t, IDLE_MS, REQUEST_MS);
    conn_table_add(&t, &early, 0);
    conn_table_add(&t, &late, 0);
    conn_set_phase(&t, &late, CONN_RECEIVING, 20);
    conn_set_phase(&t, &early, CONN_RECEIVING, 10);
    conn_set_phase(&t, &late, CONN_RECEIVING, 30); /* behind early again */
    ck_assert_ptr_null(overdue(&t, 10 + REQUEST_MS - 1));
    ck_assert_ptr_eq(overdue(&t, 10 + REQUEST_MS), &early);
    conn_set_phase(&t, &early, CONN_CLOSING, 10 + REQUEST_MS);
    ck_assert_ptr_null(overdue(&t, 10 + REQUEST_MS));
    ck_assert_ptr_eq(overdue(&t, 30 + REQUEST_MS), &late);
}

START_TEST(a_closing_connection_counts_but_has_no_limit_and_no_way_back)
{
    struct conn_table t;
    struct conn c = {.fd = 1};

    conn_table_init(&t, IDLE_MS, REQUEST_MS);
    conn_table_add(&t, &c, 0);
    conn_set_phase(&t, &c, CONN_CLOSING, 0);
    conn_set_phase(&t, &c, CONN_WAITING, 0);
    ck_assert(list_empty(&t.phases[CONN_WAITING]));
    ck_assert_int_eq(next_ms(&t), INT64_MAX);
    ck_assert_uint_eq(t.count, 1);
    conn_table_remove(&t, &c);
    ck_assert_uint_eq(t.count, 0);
}

START_TEST(unfinished_are_those_with_a_request_under_way)
{
    struct conn_table t;
    struct conn c[4] = {0};

    conn_table_init(&t, IDLE_MS, REQUEST_MS);
    for (int i = 0; i < 4; i++)
        conn_table_add(&t, &c[i], 0);
    ck_assert_uint_eq(conn_unfinished(&t), 0);
    conn_set_phase(&t, &c[1], CONN_RECEIVING, 0);
    conn_set_phase(&t, &c[2], CONN_RESPONDING, 0);
    conn_set_phase(&t, &c[3], CONN_CLOSING, 0);
    ck_assert_uint_eq(conn_unfinished(&t), 2);
}

START_TEST(a_suspended_request_has_no_limit_and_is_unfinished)
{
    struct conn_table t;
    struct conn c = {.fd = -1};

    conn_table_init(&t, IDLE_MS, REQUEST_MS);
    conn_table_add(&t, &c, 0);
    conn_set_phase(&t, &c, CONN_SUSPENDED, 0);
    ck_assert_int_eq(next_ms(&t), INT64_MAX);
    ck_assert_ptr_null(overdue(&t, INT64_MAX - 1));
    ck_assert_uint_eq(conn_unfinished(&t), 1);
    conn_table_remove(&t, &c);
    ck_assert_uint_eq(conn_unfinished(&t), 0);
}

START_TEST(each_phase_counts_its_connections)
{
    struct conn_table t;
    struct conn c[3] = {0};

    conn_table_init(&t, IDLE_MS, REQUEST_MS);
    for (int i = 0; i < 3; i++)
        conn_table_add(&t, &c[i], 0);
    conn_set_phase(&t, &c[0], CONN_RECEIVING, 0);
    conn_set_phase(&t, &c[0], CONN_SUSPENDED, 0);
    conn_set_phase(&t, &c[1], CONN_CLOSING, 0);
    ck_assert_uint_eq(counter_read(&t.counts[CONN_WAITING]), 1);
    ck_assert_uint_eq(counter_read(&t.counts[CONN_RECEIVING]), 0);
    ck_assert_uint_eq(counter_read(&t.counts[CONN_SUSPENDED]), 1);
    ck_assert_uint_eq(counter_read(&t.counts[CONN_CLOSING]), 1);
    for (int i = 0; i < 3; i++)
        conn_table_remove(&t, &c[i]);
    for (int i = 0; i <= CONN_CLOSING; i++)
        ck_assert_uint_eq(counter_read(&t.counts[i]), 0);
}

START_TEST(a_request_that_lies_in_the_socket_is_unfinished)
{
    struct conn_table t;
    struct conn c = {.fd = -1};
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    c.fd = fds[0];
    conn_table_init(&t, IDLE_MS, REQUEST_MS);
    conn_table_add(&t, &c, 0);
    ck_assert_int_eq(conn_unread(&c), UNREAD_NOTHING);
    ck_assert_uint_eq(conn_unfinished(&t), 0);
    ck_assert_int_eq(send(fds[1], "G", 1, 0), 1);
    ck_assert_int_eq(conn_unread(&c), UNREAD_DATA);
    ck_assert_uint_eq(conn_unfinished(&t), 1);
    ck_assert_int_eq(recv(fds[0], &(char){0}, 1, 0), 1); /* it was left there */
    (void)close(fds[1]);
    ck_assert_int_eq(conn_unread(&c), UNREAD_END);
    ck_assert_uint_eq(conn_unfinished(&t), 0);
    (void)close(fds[0]);
}
