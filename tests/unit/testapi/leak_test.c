/*
 * Which messages count as leaked, from the events in the history (docs/api.md 23.8).
 * tests/api/leaks_test.c tests the requests. Declared in claimd/testapi/history.h.
 */
#include "claimd/testapi/history.h"

#include "support/arena_fixture.h"

#include <stdio.h>

static struct history *history;

static void
open_all(void)
{
    arena_fixture_open();
    ck_assert_int_eq(history_new(f.mem, &history), ST_OK);
}

static void
close_all(void)
{
    history_free(history);
    arena_fixture_close();
}

/* Something has happened to messages, at this second. */
static void
note(enum history_event event, int second, const char *client, const char *ids)
{
    const struct history_entry e = {.event = event,
                                    .at_ms = second * 1000,
                                    .queue.name = bytes_str("q"),
                                    .target.name = bytes_str("dead"),
                                    .client = bytes_str(client),
                                    .claim =
                                        bytes_str(event == HISTORY_CLAIMED ? "c" : NULL),
                                    .count = 1,
                                    .ids = bytes_str(ids)};

    history_add(history, &e);
}

static struct leak
suspect(enum leak_kind kind, const char *id)
{
    struct leak leak = {.kind = kind, .at_ms = 7};

    (void)snprintf(leak.id.text, sizeof(leak.id.text), "%s", id);
    return leak;
}

/* The kind of leak that a message turns out to be. */
static struct leak
look_up(const char *id)
{
    struct leak leak = suspect(LEAK_UNREAD, id);

    ck_assert_int_eq(leak_look_up(history, &f.arena, &leak, 1), ST_OK);
    return leak;
}

#define ck_leak(found, kind_, at, who)                                                   \
    do {                                                                                 \
        const struct leak l_ = (found);                                                  \
                                                                                         \
        ck_assert_int_eq(l_.kind, kind_);                                                \
        ck_assert_int_eq(l_.at_ms, at);                                                  \
        ck_assert(bytes_equal_str(l_.client, who));                                      \
    } while (0)

TEST_CASE("leaks", .setup = open_all, .teardown = close_all);

START_TEST(kinds_have_names)
{
    ck_assert_str_eq(leak_kind_names[LEAK_CLAIM], "claim");
    ck_assert_str_eq(leak_kind_names[LEAK_UNREAD], "unread");
    ck_assert_str_eq(leak_kind_names[LEAK_DEAD_LETTER], "dead_letter");
}

START_TEST(a_suspect_without_entries_stays_as_it_is)
{
    const struct leak leak = look_up("a");

    ck_leak(leak, LEAK_UNREAD, 7, "");
    ck_assert(!bytes_present(leak.client));
}

START_TEST(each_message_of_a_post_is_found)
{
    note(HISTORY_POSTED, 1, "me", "a b c");
    note(HISTORY_POSTED, 2, "you", "d");
    ck_leak(look_up("a"), LEAK_UNREAD, 1000, "me");
    ck_leak(look_up("c"), LEAK_UNREAD, 1000, "me");
    ck_leak(look_up("d"), LEAK_UNREAD, 2000, "you");
    ck_leak(look_up("b c"), LEAK_UNREAD, 7, "");
}

START_TEST(a_message_that_was_shown_has_not_leaked)
{
    note(HISTORY_POSTED, 1, "me", "a b");
    note(HISTORY_SHOWN, 2, "you", "b");
    ck_assert_int_eq(look_up("a").kind, LEAK_UNREAD);
    ck_assert_int_eq(look_up("b").kind, LEAK_NONE);
}

START_TEST(a_dead_letter_must_be_shown_anew_wherever_it_is_moved)
{
    note(HISTORY_POSTED, 1, "me", "a");
    note(HISTORY_SHOWN, 2, "you", "a");
    note(HISTORY_CLAIMED, 3, "first", "a");
    note(HISTORY_CLAIMED, 4, "last", "a");
    note(HISTORY_DEAD_LETTER, 5, NULL, "a");
    ck_leak(look_up("a"), LEAK_DEAD_LETTER, 5000, "last");
    ck_assert(bytes_equal_str(look_up("a").from, "q"));
    note(HISTORY_SHOWN, 6, "you", "a");
    ck_assert_int_eq(look_up("a").kind, LEAK_NONE);
    note(HISTORY_DEAD_LETTER, 7, NULL, "a");
    ck_leak(look_up("a"), LEAK_DEAD_LETTER, 7000, "last");
}

START_TEST(the_claim_is_the_latest_of_its_id)
{
    struct leak leak = suspect(LEAK_CLAIM, "c");

    note(HISTORY_CLAIMED, 1, "first", "a");
    note(HISTORY_CLAIMED, 2, "last", "a");
    note(HISTORY_SHOWN, 3, "you", "c"); /* no message is meant */
    ck_assert_int_eq(leak_look_up(history, &f.arena, &leak, 1), ST_OK);
    ck_leak(leak, LEAK_CLAIM, 2000, "last");
}

START_TEST(a_long_history_is_read_to_its_end)
{
    struct leak leaks[600];

    for (int i = 0; i < 600; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "m%d", i);
        leaks[i] = suspect(LEAK_UNREAD, id);
        note(HISTORY_POSTED, i, "me", id);
    }
    note(HISTORY_SHOWN, 600, "you", "m599");
    ck_assert_int_eq(leak_look_up(history, &f.arena, leaks, 600), ST_OK);
    for (int i = 0; i < 599; i++)
        ck_leak(leaks[i], LEAK_UNREAD, i * 1000, "me");
    ck_assert_int_eq(leaks[599].kind, LEAK_NONE);
}

START_TEST(without_memory_nothing_is_left_behind)
{
    enum status st = ST_NO_MEMORY;

    note(HISTORY_POSTED, 1, "me", "a");
    for (uint64_t nth = 1; st == ST_NO_MEMORY; nth++) {
        struct leak leak = suspect(LEAK_UNREAD, "a");

        arena_fini(&f.arena);
        arena_init(&f.arena, f.mem);
        mem_fail_nth(f.mem, nth);
        st = leak_look_up(history, &f.arena, &leak, 1);
        mem_fail_nth(f.mem, 0);
    }
    ck_assert_int_eq(st, ST_OK);
}
