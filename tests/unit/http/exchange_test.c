/*
 * An exchange collects a request within the limits of size and memory, and is used again
 * without a trace of the last request. Read src/http/exchange.h next.
 */
#include "http/exchange.h"
#include "support/check_main.h"

enum { LIMIT = 100 };

struct fixture {
    struct mem *mem;
    struct exchange_pool pool;
    struct conn conn;
};

static struct fixture f;

static void
fixture_open(void)
{
    f.mem = mem_new(0);
    ck_assert_ptr_nonnull(f.mem);
    exchange_pool_init(&f.pool, f.mem);
}

static void
fixture_close(void)
{
    exchange_pool_fini(&f.pool);
    mem_destroy(f.mem);
}

static void
assert_split(const char *target, const char *path, const char *query)
{
    struct exchange *ex = exchange_begin(&f.pool, &f.conn, target);

    ck_assert_ptr_nonnull(ex);
    ck_assert_msg(bytes_equal_str(ex->request.path, path), "%s: path %.*s", target,
                  (int)ex->request.path.len, ex->request.path.data);
    ck_assert_msg(query == NULL ? !bytes_present(ex->request.query)
                                : bytes_present(ex->request.query) &&
                                      bytes_equal_str(ex->request.query, query),
                  "%s: query", target);
    exchange_end(&f.pool, ex);
}

TEST_CASE("exchange", .setup = fixture_open, .teardown = fixture_close);

START_TEST(a_target_is_split_and_kept_as_it_was_sent)
{
    assert_split("/v2/queues", "/v2/queues", NULL);
    assert_split("/v2/queues?", "/v2/queues", "");
    assert_split("/v2/%71?a=%31&b=?", "/v2/%71", "a=%31&b=?");
    assert_split("http://host:80/v2?x", "/v2", "x");
    assert_split("http://host", "/", NULL);
    assert_split("*", "*", NULL);
    assert_split("", "", NULL);
}

START_TEST(the_target_is_copied)
{
    char target[] = "/v2/queues";
    struct exchange *ex = exchange_begin(&f.pool, &f.conn, target);

    ck_assert_ptr_nonnull(ex);
    memset(target, 'x', sizeof(target) - 1);
    ck_assert(bytes_equal_str(ex->request.path, "/v2/queues"));
    exchange_end(&f.pool, ex);
}

START_TEST(a_body_is_put_together_from_its_pieces)
{
    struct exchange *ex = exchange_begin(&f.pool, &f.conn, "/");

    ck_assert_ptr_nonnull(ex);
    ex->state = EXCHANGE_BODY;
    for (int i = 0; i < LIMIT; i++)
        exchange_append_body(ex, "x", 1, LIMIT);
    ck_assert_int_eq(ex->state, EXCHANGE_BODY);
    ck_assert_uint_eq(ex->body.len, LIMIT);
    ck_assert(!ex->request.body_too_large);
    exchange_end(&f.pool, ex);
}

START_TEST(a_body_above_the_limit_is_forgotten_and_counted)
{
    struct exchange *ex = exchange_begin(&f.pool, &f.conn, "/");

    ck_assert_ptr_nonnull(ex);
    ex->state = EXCHANGE_BODY;
    for (int i = 0; i <= LIMIT; i++)
        exchange_append_body(ex, "x", 1, LIMIT);
    ck_assert(ex->request.body_too_large);
    ck_assert_ptr_null(ex->body.data);
    exchange_append_body(ex, "xxx", 3, LIMIT);
    ck_assert_uint_eq(ex->received, LIMIT + 4);
    ck_assert_ptr_null(ex->body.data);
    exchange_end(&f.pool, ex);
}

START_TEST(a_promise_of_a_long_body_sets_little_memory_aside)
{
    struct exchange *ex = exchange_begin(&f.pool, &f.conn, "/");
    size_t before;

    ck_assert_ptr_nonnull(ex);
    ex->state = EXCHANGE_BODY;
    ex->head.content_length = 64 * 1024 * 1024;
    before = mem_used(f.mem);
    exchange_append_body(ex, "x", 1, 64 * 1024 * 1024);
    ck_assert_uint_lt(mem_used(f.mem) - before, 20000);
    exchange_end(&f.pool, ex);
}

START_TEST(without_memory_for_a_body_the_rest_is_swallowed)
{
    struct exchange *ex = exchange_begin(&f.pool, &f.conn, "/");

    ck_assert_ptr_nonnull(ex);
    ex->state = EXCHANGE_BODY;
    mem_fail_from(f.mem, 1);
    exchange_append_body(ex, "x", 1, LIMIT);
    mem_fail_from(f.mem, 0);
    exchange_append_body(ex, "x", 1, LIMIT);
    ck_assert(ex->no_memory);
    ck_assert(!ex->request.body_too_large);
    ck_assert_ptr_null(ex->body.data);
    exchange_end(&f.pool, ex);
}

START_TEST(beyond_the_budget_small_bodies_are_taken_and_large_ones_are_not)
{
    enum { SMALL = 16384, LARGE = 1000000 };
    static const char piece[SMALL];
    struct exchange *ex = exchange_begin(&f.pool, &f.conn, "/");

    ck_assert_ptr_nonnull(ex);
    ex->state = EXCHANGE_BODY;
    mem_set_budget(f.mem, 1);
    exchange_append_body(ex, piece, SMALL, LARGE);
    ck_assert_int_eq(ex->state, EXCHANGE_BODY);
    ck_assert_uint_eq(ex->body.len, SMALL);
    exchange_append_body(ex, piece, 1, LARGE);
    ck_assert(ex->no_memory);
    ck_assert_ptr_null(ex->body.data);
    mem_set_budget(f.mem, 0);
    exchange_end(&f.pool, ex);
}

START_TEST(large_responses_may_take_what_is_left_of_the_budget_and_no_more)
{
    enum { BUDGET = 2000000, LARGE = 400000 }; /* which takes 512 KiB */
    struct exchange *busy[20];
    size_t granted = 0;

    mem_set_budget(f.mem, BUDGET);
    for (size_t i = 0; i < 20; i++) {
        busy[i] = exchange_begin(&f.pool, &f.conn, "/");
        ck_assert_ptr_nonnull(busy[i]);
        ck_assert(buf_reserve(&busy[i]->response.body, 1000));
        granted += buf_reserve(&busy[i]->response.body, LARGE);
    }
    ck_assert_uint_ge(granted, 2);
    ck_assert_uint_le(mem_used(f.mem), BUDGET);
    for (size_t i = 0; i < 20; i++)
        exchange_end(&f.pool, busy[i]);
    busy[0] = exchange_begin(&f.pool, &f.conn, "/"); /* the same rules the second time */
    mem_set_budget(f.mem, 1);
    ck_assert(!buf_reserve(&busy[0]->response.body, LARGE));
    exchange_end(&f.pool, busy[0]);
    mem_set_budget(f.mem, 0);
}

START_TEST(a_large_response_may_take_the_last_quarter_of_the_budget_and_a_body_may_not)
{
    enum { LARGE = 100000 };
    struct exchange *ex = exchange_begin(&f.pool, &f.conn, "/");
    void *messages = mem_alloc(f.mem, 800000);

    ck_assert_ptr_nonnull(ex);
    ck_assert_ptr_nonnull(messages);
    mem_set_budget(f.mem, 1000000 + mem_used(f.mem) - 800000);
    ck_assert(!buf_reserve(&ex->body, LARGE));
    ck_assert(buf_reserve(&ex->response.body, LARGE));
    mem_set_budget(f.mem, 0);
    mem_free(f.mem, messages);
    exchange_end(&f.pool, ex);
}

START_TEST(without_memory_there_is_no_exchange_and_no_leak)
{
    for (uint64_t n = 1; n <= 2; n++) {
        mem_fail_nth(f.mem, n);
        ck_assert_ptr_null(exchange_begin(&f.pool, &f.conn, "/"));
    }
    mem_fail_nth(f.mem, 0);
    ck_assert_uint_eq(mem_used(f.mem), 0);
}

START_TEST(an_exchange_is_used_again_and_remembers_nothing)
{
    struct exchange *ex = exchange_begin(&f.pool, &f.conn, "/first?query"), *again;
    uint64_t attempts;

    ck_assert_ptr_nonnull(ex);
    ex->state = EXCHANGE_BODY;
    exchange_append_body(ex, "body", 4, LIMIT);
    ex->code = 201;
    ex->response.header_count = 2;
    buf_str(&ex->response.body, "response");
    exchange_end(&f.pool, ex);
    attempts = mem_attempts(f.mem);
    again = exchange_begin(&f.pool, &f.conn, "/second");
    ck_assert_ptr_eq(again, ex);
    exchange_append_body(again, "body", 4, LIMIT);
    buf_str(&again->response.body, "response");
    ck_assert_uint_eq(mem_attempts(f.mem), attempts); /* all of it was still there */
    ck_assert_int_eq(again->code, 0);
    ck_assert_uint_eq(again->response.header_count, 0);
    ck_assert_uint_eq(again->received, 4);
    ck_assert(!bytes_present(again->request.query));
    exchange_end(&f.pool, again);
}

START_TEST(a_pool_keeps_few_exchanges_and_small_ones)
{
    struct exchange *busy[EXCHANGE_SPARE + 10];

    for (size_t i = 0; i < EXCHANGE_SPARE + 10; i++) {
        busy[i] = exchange_begin(&f.pool, &f.conn, "/");
        ck_assert_ptr_nonnull(busy[i]);
        ck_assert(buf_reserve(&busy[i]->response.body, 1000000));
    }
    for (size_t i = 0; i < EXCHANGE_SPARE + 10; i++)
        exchange_end(&f.pool, busy[i]);
    ck_assert_uint_eq(f.pool.spare_count, EXCHANGE_SPARE);
    ck_assert_uint_lt(mem_used(f.mem), EXCHANGE_SPARE * 8192);
}

START_TEST(a_spare_exchange_that_is_used_again_is_spare_no_more)
{
    struct exchange *ex = exchange_begin(&f.pool, &f.conn, "/");

    ck_assert_ptr_nonnull(ex);
    exchange_end(&f.pool, ex);
    ck_assert_uint_eq(f.pool.spare_count, 1);
    ex = exchange_begin(&f.pool, &f.conn, "/");
    ck_assert_uint_eq(f.pool.spare_count, 0);
    exchange_end(&f.pool, ex);
    ck_assert_uint_eq(f.pool.spare_count, 1);
}

START_TEST(a_spare_exchange_keeps_neither_large_bodies_nor_targets)
{
    enum { LARGE = 1000000, ROUNDS = 50 };
    struct exchange *ex = exchange_begin(&f.pool, &f.conn, "/");
    char target[4096];
    size_t used;

    memset(target, 'x', sizeof(target) - 1);
    target[sizeof(target) - 1] = '\0';
    ck_assert_ptr_nonnull(ex);
    ck_assert(buf_reserve(&ex->body, LARGE));
    exchange_end(&f.pool, ex);
    ck_assert_uint_lt(mem_used(f.mem), LARGE);
    exchange_end(&f.pool, exchange_begin(&f.pool, &f.conn, target));
    used = mem_used(f.mem);
    for (int i = 0; i < ROUNDS; i++)
        exchange_end(&f.pool, exchange_begin(&f.pool, &f.conn, target));
    ck_assert_uint_eq(mem_used(f.mem), used);
}

START_TEST(a_method_is_noted_up_to_the_space_for_it)
{
    struct exchange *ex = exchange_begin(&f.pool, &f.conn, "/");

    ck_assert_ptr_nonnull(ex);
    exchange_set_method(ex, bytes_str("DELETE"));
    ck_assert_str_eq(ex->method, "DELETE");
    ck_assert_int_eq(ex->request.method, METHOD_DELETE);
    exchange_set_method(ex, bytes_str("ABCDEFGHIJKLMNOPQRS"));
    ck_assert_str_eq(ex->method, "ABCDEFGHIJKLMNO");
    ck_assert_uint_eq(strlen(ex->method), EXCHANGE_METHOD_CAP - 1);
    ck_assert_int_eq(ex->request.method, METHOD_OTHER);
    exchange_end(&f.pool, ex);
}

START_TEST(the_listener_decides_what_a_request_reaches)
{
    static const struct {
        enum listen_kind kind;
        int listener;
    } rows[] = {{LISTEN_METRICS, API_LISTENER_METRICS}, {LISTEN_TLS, API_LISTENER_MAIN}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct exchange *ex;

        f.conn.kind = rows[i].kind;
        f.conn.mhd.tls =
            rows[i].kind == LISTEN_TLS ? (void *)&f : NULL; /* never followed */
        ex = exchange_begin(&f.pool, &f.conn, "/");
        ck_assert_ptr_nonnull(ex);
        ck_assert_int_eq(ex->request.listener, rows[i].listener);
        ck_assert(ex->request.tls == (rows[i].kind == LISTEN_TLS));
        exchange_end(&f.pool, ex);
    }
    f.conn = (struct conn){.fd = 0};
}

START_TEST(ids_name_run_source_and_number)
{
    struct request_ids ids;
    char id[REQUEST_ID_CAP];

    request_ids_init(&ids, "3f2a9c1e-4b5d-4c6e-8f70-123456789abc", 3);
    request_ids_next(&ids, id);
    ck_assert_str_eq(id, "req-3f2a9c1e-0003-4c6e-8f70-000000000001");
    for (int i = 0; i < 41; i++)
        request_ids_next(&ids, id);
    ck_assert_str_eq(id, "req-3f2a9c1e-0003-4c6e-8f70-00000000002a");
}
