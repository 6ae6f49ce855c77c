#include "http/conn.h"
#include "support/check_main.h"

enum { IDLE_MS = 60000, REQUEST_MS = 30000 };

START_TEST(each_phase_has_its_own_limit)
{
    struct conn_table t;
    struct conn c = {.fd = -1};

    conn_table_init(&t, IDLE_MS, REQUEST_MS);
    conn_table_add(&t, &c, 1000);
    ck_assert_int_eq(conn_next_ms(&t), 1000 + IDLE_MS);
    conn_enter(&t, &c, CONN_RECEIVING, 2000);
    ck_assert_int_eq(conn_next_ms(&t), 2000 + REQUEST_MS);
    conn_enter(&t, &c, CONN_ANSWERING, 3000);
    ck_assert_int_eq(conn_next_ms(&t), 3000 + REQUEST_MS);
    conn_enter(&t, &c, CONN_WAITING, 4000);
    ck_assert_int_eq(conn_next_ms(&t), 4000 + IDLE_MS);
    conn_table_remove(&t, &c);
    ck_assert_int_eq(conn_next_ms(&t), INT64_MAX);
}
END_TEST

START_TEST(the_first_overdue_is_found_and_not_before_its_time)
{
    struct conn_table t;
    struct conn early = {.fd = 1}, late = {.fd = 2};

    conn_table_init(&t, IDLE_MS, REQUEST_MS);
    conn_table_add(&t, &early, 0);
    conn_table_add(&t, &late, 0);
    conn_enter(&t, &late, CONN_RECEIVING, 20);
    conn_enter(&t, &early, CONN_RECEIVING, 10);
    conn_enter(&t, &late, CONN_RECEIVING, 30); /* behind early again */
    ck_assert_ptr_null(conn_overdue(&t, 10 + REQUEST_MS - 1));
    ck_assert_ptr_eq(conn_overdue(&t, 10 + REQUEST_MS), &early);
    conn_enter(&t, &early, CONN_DOOMED, 10 + REQUEST_MS);
    ck_assert_ptr_null(conn_overdue(&t, 10 + REQUEST_MS));
    ck_assert_ptr_eq(conn_overdue(&t, 30 + REQUEST_MS), &late);
}
END_TEST

START_TEST(a_doomed_connection_counts_but_has_no_limit_and_no_way_back)
{
    struct conn_table t;
    struct conn c = {.fd = 1};

    conn_table_init(&t, IDLE_MS, REQUEST_MS);
    conn_table_add(&t, &c, 0);
    conn_enter(&t, &c, CONN_DOOMED, 0);
    conn_enter(&t, &c, CONN_WAITING, 0);
    ck_assert_ptr_null(conn_first(&t, CONN_WAITING));
    ck_assert_int_eq(conn_next_ms(&t), INT64_MAX);
    ck_assert_uint_eq(t.count, 1);
    conn_table_remove(&t, &c);
    ck_assert_uint_eq(t.count, 0);
}
END_TEST

START_TEST(unfinished_are_those_with_a_request_under_way)
{
    struct conn_table t;
    struct conn c[4] = {0};

    conn_table_init(&t, IDLE_MS, REQUEST_MS);
    for (int i = 0; i < 4; i++)
        conn_table_add(&t, &c[i], 0);
    ck_assert_uint_eq(conn_unfinished(&t), 0);
    conn_enter(&t, &c[1], CONN_RECEIVING, 0);
    conn_enter(&t, &c[2], CONN_ANSWERING, 0);
    conn_enter(&t, &c[3], CONN_DOOMED, 0);
    ck_assert_uint_eq(conn_unfinished(&t), 2);
}
END_TEST
