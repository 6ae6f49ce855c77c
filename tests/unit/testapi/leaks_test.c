/*
 * The record of leaks that the store no longer has (docs/api.md 23.8).
 * tests/api/leaks_test.c tests the requests. Declared in claimd/testapi/leaks.h.
 */
#include "claimd/testapi/leaks.h"

#include "support/arena_fixture.h"

#include <stdio.h>

static struct history *history;
static struct leaks *leaks;

static void
open_all(void)
{
    arena_fixture_open();
    ck_assert_int_eq(history_new(f.mem, &history), ST_OK);
    ck_assert_int_eq(leaks_new(f.mem, &leaks), ST_OK);
}

static void
close_all(void)
{
    leaks_free(leaks);
    history_free(history);
    arena_fixture_close();
}

static struct leak
make(enum leak_kind kind, const char *project, const char *id)
{
    struct leak leak = {.kind = kind,
                        .end = LEAK_END_EXPIRED,
                        .queue = {bytes_str(project), bytes_str("q"), STORE_QUEUE},
                        .at_ms = 7,
                        .ended_ms = 9};

    (void)snprintf(leak.id.text, sizeof(leak.id.text), "%s", id);
    return leak;
}

static void
expire(enum leak_kind kind, const char *project, const char *id)
{
    const struct leak leak = make(kind, project, id);

    leaks_add_expired(leaks, &leak);
}

static void
note(enum history_event event, const char *client, const char *ids)
{
    const struct history_entry e = {.event = event,
                                    .at_ms = 5,
                                    .client = bytes_str(client),
                                    .claim =
                                        bytes_str(event == HISTORY_CLAIMED ? ids : NULL),
                                    .ids = bytes_str(ids)};

    history_add(history, &e);
}

static bool
write_one(void *ctx, uint64_t number, const struct leak *leak)
{
    struct buf *out = ctx;

    ck_assert_uint_gt(number, 0);
    ck_assert_int_eq(leak->ended_ms, 9);
    buf_printf(out, "%s%s %.*s %s %.*s %d", out->len == 0 ? "" : ", ",
               leak_kind_names[leak->kind], (int)leak->queue.project.len,
               leak->queue.project.data, leak->id.text,
               bytes_present(leak->client) ? (int)leak->client.len : 1,
               bytes_present(leak->client) ? leak->client.data : "-", (int)leak->at_ms);
    return true;
}

/* The leaks, as "KIND PROJECT ID CLIENT AT" each. */
#define ck_leaks(expected)                                                               \
    do {                                                                                 \
        f.out.len = 0;                                                                   \
        leaks_read(leaks, 0, write_one, &f.out);                                         \
        ck_assert(bytes_equal_str(buf_view(&f.out), expected));                          \
    } while (0)

TEST_CASE("leaks", .setup = open_all, .teardown = close_all);

START_TEST(a_suspect_becomes_a_leak_when_the_history_knows_no_reader)
{
    note(HISTORY_CLAIMED, "worker", "c");
    note(HISTORY_POSTED, "producer", "m");
    note(HISTORY_SHOWN, "reader", "s");
    expire(LEAK_CLAIM, "p", "c");
    expire(LEAK_UNREAD, "p", "m");
    expire(LEAK_UNREAD, "p", "s");
    expire(LEAK_UNREAD, "p", "unknown");
    ck_leaks("");
    ck_assert_int_eq(leaks_settle(leaks, history, &f.arena), ST_OK);
    ck_leaks("claim p c worker 5, unread p m producer 5, unread p unknown - 7");
    note(HISTORY_SHOWN, "late", "m"); /* it is settled */
    ck_assert_int_eq(leaks_settle(leaks, history, &f.arena), ST_OK);
    ck_leaks("claim p c worker 5, unread p m producer 5, unread p unknown - 7");
}

START_TEST(a_claim_that_a_move_expects_to_end_is_no_suspect)
{
    leaks_expect(leaks, (struct leaks_expected){true, bytes_str("p")});
    expire(LEAK_CLAIM, "p", "a");
    expire(LEAK_CLAIM, "q", "b");
    leaks_expect(leaks, (struct leaks_expected){true, BYTES_NONE});
    expire(LEAK_CLAIM, "q", "c");
    leaks_expect(leaks, (struct leaks_expected){false, BYTES_NONE});
    expire(LEAK_CLAIM, "p", "d");
    ck_assert_int_eq(leaks_settle(leaks, history, &f.arena), ST_OK);
    ck_leaks("claim q b - 7, claim p d - 7");
}

START_TEST(a_project_longer_than_any_expects_nothing)
{
    static char name[LEAKS_PROJECT_MAX + 2];

    memset(name, 'p', LEAKS_PROJECT_MAX + 1);
    leaks_expect(leaks, (struct leaks_expected){true, bytes_str(name)});
    expire(LEAK_CLAIM, "p", "a");
    ck_assert_int_eq(leaks_settle(leaks, history, &f.arena), ST_OK);
    ck_leaks("claim p a - 7");
}

START_TEST(a_leak_is_there_once_in_each_project)
{
    struct leak leak = make(LEAK_UNREAD, "p", "a");

    leaks_add(leaks, &leak);
    leaks_add(leaks, &leak);
    leak.queue.project = bytes_str("q");
    leaks_add(leaks, &leak);
    ck_leaks("unread p a - 7, unread q a - 7");
    ck_assert_uint_eq(leaks_left_out(leaks), 0);
}

START_TEST(a_project_or_all_is_forgotten)
{
    expire(LEAK_CLAIM, "p", "a");
    expire(LEAK_CLAIM, "q", "b");
    leaks_forget(leaks, bytes_str("p"));
    ck_assert_int_eq(leaks_settle(leaks, history, &f.arena), ST_OK);
    ck_leaks("claim q b - 7");
    expire(LEAK_CLAIM, "p", "c");
    leaks_forget(leaks, BYTES_NONE);
    ck_assert_int_eq(leaks_settle(leaks, history, &f.arena), ST_OK);
    ck_leaks("");
}

START_TEST(further_ones_are_counted)
{
    char id[16];

    for (int i = 0; i < LEAKS_KEPT_MOST + 3; i++) {
        (void)snprintf(id, sizeof(id), "m%d", i);
        expire(LEAK_UNREAD, "p", id);
    }
    ck_assert_uint_eq(leaks_left_out(leaks), 0);
    ck_assert_int_eq(leaks_settle(leaks, history, &f.arena), ST_OK);
    ck_assert_uint_eq(leaks_left_out(leaks), 3);
    leaks_forget(leaks, bytes_str("other"));
    ck_assert_uint_eq(leaks_left_out(leaks), 3);
    leaks_forget(leaks, BYTES_NONE);
    ck_assert_uint_eq(leaks_left_out(leaks), 0);
}

START_TEST(suspects_do_not_displace_leaks)
{
    char id[16];

    for (int i = 0; i < LEAKS_SUSPECTS_MOST; i++) {
        (void)snprintf(id, sizeof(id), "m%d", i);
        expire(LEAK_UNREAD, "p", id);
        note(HISTORY_SHOWN, "reader", id);
    }
    ck_assert_uint_eq(leaks_left_out(leaks), 0);
    expire(LEAK_UNREAD, "p", "one too many");
    ck_assert_uint_eq(leaks_left_out(leaks), 1);
    ck_assert_int_eq(leaks_settle(leaks, history, &f.arena), ST_OK);
    ck_leaks("");
}

START_TEST(without_memory_suspects_remain_or_are_counted)
{
    enum status st = ST_NO_MEMORY;

    note(HISTORY_CLAIMED, "worker", "c");
    mem_fail_nth(f.mem, 1);
    expire(LEAK_CLAIM, "p", "lost");
    mem_fail_nth(f.mem, 0);
    ck_assert_uint_eq(leaks_left_out(leaks), 1);
    expire(LEAK_CLAIM, "p", "c");
    for (uint64_t nth = 1; st == ST_NO_MEMORY; nth++) {
        ck_leaks("");
        arena_fini(&f.arena);
        arena_init(&f.arena, f.mem);
        mem_fail_nth(f.mem, nth);
        st = leaks_settle(leaks, history, &f.arena);
        mem_fail_nth(f.mem, 0);
    }
    ck_assert_int_eq(st, ST_OK);
    ck_leaks("claim p c worker 5");
}
