/*
 * The history of the test API (docs/api.md 23.5) keeps events in order, counts those that
 * it dropped, and wakes a request that waits for one. Read claimd/testapi/history.h next.
 */
#include "claimd/testapi/history.h"

#include "support/check_main.h"

static struct mem *mem;
static struct history *h;

static void
open_history(void)
{
    mem = mem_new(0);
    ck_assert_ptr_nonnull(mem);
    ck_assert_int_eq(history_new(mem, &h), ST_OK);
}

static void
close_history(void)
{
    history_free(h);
    mem_destroy(mem);
}

static void
add(enum history_event event, int64_t at_ms)
{
    const struct history_entry e = {.event = event, .at_ms = at_ms};

    history_add(h, &e);
}

/* The entries that were shown: their count, and the numbers at both ends. */
struct seen {
    size_t count, most;
    uint64_t first, last;
    struct history_entry entry; /* the last one */
};

static bool
see(void *ctx, const struct history_entry *e)
{
    struct seen *s = ctx;

    if (s->count == s->most)
        return false;
    if (s->count++ == 0)
        s->first = e->number;
    s->last = e->number;
    s->entry = *e;
    return true;
}

static struct seen
look(uint64_t since, size_t most)
{
    struct seen s = {.most = most};

    history_read(h, since, see, &s);
    return s;
}

TEST_CASE("history", .setup = open_history, .teardown = close_history);

START_TEST(entries_are_kept_in_order_with_their_texts)
{
    char name[] = "jobs", client[] = "c";
    struct history_entry e = {.event = HISTORY_CLAIMED,
                              .queue = {BYTES_LIT("p"), bytes_str(name), STORE_TOPIC},
                              .client = bytes_str(client),
                              .claim = BYTES_LIT(""),
                              .ids = BYTES_LIT("a b"),
                              .count = 2};
    struct seen s;

    add(HISTORY_POSTED, 1);
    history_add(h, &e);
    name[0] = client[0] = 'x'; /* they were copied */
    s = look(0, 10);
    ck_assert_uint_eq(s.count, 2);
    ck_assert_uint_eq(s.first, 1);
    ck_assert_uint_eq(s.last, 2);
    ck_assert(bytes_equal_str(s.entry.queue.name, "jobs"));
    ck_assert(bytes_equal_str(s.entry.queue.project, "p"));
    ck_assert_int_eq(s.entry.queue.kind, STORE_TOPIC);
    ck_assert(bytes_equal_str(s.entry.client, "c"));
    ck_assert(bytes_equal_str(s.entry.ids, "a b"));
    ck_assert(!bytes_present(s.entry.text));
    ck_assert(bytes_present(s.entry.claim)); /* though it is empty */
    ck_assert_uint_eq(look(1, 10).count, 1);
    ck_assert_uint_eq(look(2, 10).count, 0);
    ck_assert_uint_eq(look(99, 10).count, 0);
    ck_assert_uint_eq(look(0, 1).last, 1);
}

START_TEST(the_oldest_go_and_are_counted)
{
    for (int i = 0; i < HISTORY_MOST + 3; i++)
        add(HISTORY_POSTED, i);
    ck_assert_uint_eq(history_last(h), HISTORY_MOST + 3);
    ck_assert_uint_eq(history_lost(h), 3);
    ck_assert_uint_eq(history_missing(h, 0), 3);
    ck_assert_uint_eq(history_missing(h, 2), 1);
    ck_assert_uint_eq(history_missing(h, 3), 0);
    ck_assert_uint_eq(history_missing(h, HISTORY_MOST + 3), 0);
    ck_assert_uint_eq(look(0, SIZE_MAX).count, HISTORY_MOST);
    ck_assert_uint_eq(look(0, SIZE_MAX).first, 4);
}

START_TEST(long_texts_leave_space_for_fewer)
{
    static char text[HISTORY_BYTES / 8];
    struct history_entry e = {.event = HISTORY_REFUSED, .text = {text, sizeof(text)}};

    memset(text, 'x', sizeof(text));
    for (int i = 0; i < 20; i++)
        history_add(h, &e);
    ck_assert_uint_eq(look(0, SIZE_MAX).count, 7); /* beside what each takes besides */
}

START_TEST(without_memory_an_entry_is_missing)
{
    mem_fail_nth(mem, 1);
    add(HISTORY_POSTED, 1);
    mem_fail_nth(mem, 0);
    add(HISTORY_CLAIMED, 2);
    ck_assert_uint_eq(history_last(h), 2);
    ck_assert_uint_eq(history_lost(h), 1);
    ck_assert_uint_eq(look(0, 10).first, 2);
    ck_assert_uint_eq(history_last_of(h, HISTORY_POSTED, HISTORY_POSTED), 1);
}

START_TEST(the_latest_of_a_kind_is_known)
{
    ck_assert_uint_eq(history_last_of(h, HISTORY_CLAIM_ENDED, HISTORY_DEAD_LETTER), 0);
    add(HISTORY_EXPIRED, 1);
    add(HISTORY_CLAIM_ENDED, 2);
    add(HISTORY_POSTED, 3);
    ck_assert_uint_eq(history_last_of(h, HISTORY_CLAIM_ENDED, HISTORY_DEAD_LETTER), 2);
    ck_assert_uint_eq(history_last_of(h, HISTORY_EXPIRED, HISTORY_EXPIRED), 1);
}

/* A listener with a wake-up. */
struct witness {
    struct store_listener listener;
    struct store_wakeup wakeup;
    int notified, fired;
};

static struct store_wakeup *
notify(struct store_listener *listener, enum store_notification notification)
{
    struct witness *w = container_of(listener, struct witness, listener);

    ck_assert_int_eq(notification, STORE_READY);
    w->notified++;
    return &w->wakeup;
}

static void
fire(struct store_wakeup *wakeup)
{
    container_of(wakeup, struct witness, wakeup)->fired++;
}

START_TEST(a_listener_is_notified_and_woken)
{
    struct witness all[20];

    for (size_t i = 0; i < 20; i++) {
        all[i] = (struct witness){.listener.notify = notify, .wakeup.fire = fire};
        history_watch(h, &all[i].listener);
    }
    add(HISTORY_POSTED, 1);
    history_unwatch(h, &all[3].listener);
    add(HISTORY_POSTED, 2);
    for (size_t i = 0; i < 20; i++) {
        ck_assert_int_eq(all[i].notified, i == 3 ? 1 : 2);
        ck_assert_int_eq(all[i].fired, all[i].notified);
        if (i != 3)
            history_unwatch(h, &all[i].listener);
    }
}

START_TEST(each_event_has_a_name_of_its_own)
{
    for (int i = 0; i < HISTORY_EVENTS; i++)
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(history_event_names[i], history_event_names[j]);
    ck_assert_int_le(HISTORY_EVENTS, 32); /* a set of them is a word */
}
