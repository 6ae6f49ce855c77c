/*
 * The feed of a queue keeps a message until each subscription has delivered it, at a cost
 * per post that does not depend on the number of subscriptions. Random histories are
 * compared with arrays. Read src/engine/feed.h next.
 */
#include "engine/feed.h"

#include "support/check_main.h"
#include "support/random.h"

#include <stdlib.h>

enum { CURSORS = 40, POSTS = 300, CROWD = 100000 };

/* A feed held against arrays: which numbers it has to have, and where each cursor
 * stands. */
struct fixture {
    struct mem *mem;
    struct seqmap_pool pool;
    struct feed *feed;
    uint64_t last; /* number of the last post, listened to or not */
    struct cursor cursors[CURSORS];
    uint64_t passed[CURSORS];  /* how many of those in front it has passed or missed */
    uint64_t entered[CURSORS]; /* how many were posted since it was attached */
    uint64_t tally;
};

static struct fixture *
fixture_open(void)
{
    struct fixture *f = calloc(1, sizeof(*f));

    ck_assert_ptr_nonnull(f);
    f->mem = mem_new(0);
    seqmap_pool_init(&f->pool, f->mem);
    f->feed = feed_new(f->mem);
    ck_assert_ptr_nonnull(f->feed);
    feed_count_in(f->feed, &f->tally);
    return f;
}

static void
fixture_close(struct fixture *f)
{
    size_t budget = SIZE_MAX;

    for (int i = 0; i < CURSORS; i++)
        feed_detach(f->feed, &f->cursors[i]);
    ck_assert(feed_trim(f->feed, f->mem, &f->pool, &budget));
    ck_assert_uint_eq(f->tally, 0);
    feed_free(f->mem, f->feed);
    seqmap_pool_fini(&f->pool);
    ck_assert_uint_eq(mem_used(f->mem), 0);
    mem_destroy(f->mem);
    free(f);
}

/* Posts; the message's own pin is gone, as if it had been deleted at once. */
static void
post(struct fixture *f)
{
    struct message *m = message_new(f->mem, bytes_str("\"body\""), NULL, 0);

    ck_assert_ptr_nonnull(m);
    m->seq = ++f->last;
    if (feed_listens(f->feed)) {
        ck_assert_int_eq(seqmap_pool_stock(&f->pool, feed_nodes(f->feed, f->last - 1, 1)),
                         ST_OK);
        ck_assert_int_eq(feed_stock(f->feed, f->mem, 1), ST_OK);
        feed_append(f->feed, &f->pool, m, 60, 0);
    }
    message_unpin(f->mem, m);
    for (int i = 0; i < CURSORS; i++)
        f->entered[i] += f->cursors[i].attached;
}

static void
attach(struct fixture *f, int i)
{
    feed_attach(f->feed, &f->cursors[i], f->last);
    f->passed[i] = f->entered[i] = 0;
}

/* Moves on behind what it has in front; false: nothing. */
static bool
advance(struct fixture *f, int i)
{
    uint64_t number, missed;
    const struct feed_entry *entry = feed_next(f->feed, &f->cursors[i], &number);

    if (entry == NULL)
        return false;
    missed = feed_advance(f->feed, &f->cursors[i], number, entry->ordinal);
    f->passed[i] += missed + 1;
    return true;
}

/* The invariants of feed.h, seen from the cursors. */
static void
check(const struct fixture *f)
{
    const struct feed_entry *entry;
    uint64_t number = 0, ordinal = 0, next;
    size_t at_end = 0;

    for (; (entry = seqmap_next_live(&f->feed->entries, &number)) != NULL; number++) {
        size_t waiting = 0;

        ck_assert_uint_gt(entry->ordinal, ordinal);
        ordinal = entry->ordinal;
        for (int i = 0; i < CURSORS; i++)
            waiting += feed_next(f->feed, &f->cursors[i], &next) == entry;
        ck_assert_uint_eq(entry->waiting, waiting);
    }
    for (int i = 0; i < CURSORS; i++) {
        const struct cursor *c = &f->cursors[i];

        at_end += c->attached && feed_next(f->feed, c, &next) == NULL;
        ck_assert_uint_eq(feed_behind(f->feed, c),
                          c->attached ? f->entered[i] - f->passed[i] : 0);
    }
    ck_assert_uint_eq(f->feed->at_end, at_end);
    ck_assert_uint_eq(f->feed->bytes, f->tally);
}

TEST_CASE("feed");

#define FEED_TEST(id) MADE_TEST(id, struct fixture, f, fixture_open(), fixture_close(f))

FEED_TEST(a_post_without_subscribers_is_not_in_the_feed)
{
    ck_assert(!feed_listens(f->feed));
    ck_assert(!feed_listens(NULL));
    attach(f, 0);
    ck_assert(feed_listens(f->feed));
    post(f);
    ck_assert_uint_eq(f->feed->entries.live, 1);
    ck_assert_uint_gt(f->tally, 0);
    feed_detach(f->feed, &f->cursors[0]);
    feed_detach(f->feed, &f->cursors[0]); /* fine */
    check(f);
}

FEED_TEST(exactly_the_delivered_entries_are_freed)
{
    size_t budget = 2;

    attach(f, 0);
    for (int i = 0; i < 5; i++)
        post(f);
    for (int i = 0; i < 3; i++)
        ck_assert(advance(f, 0));
    ck_assert(!feed_trim(f->feed, f->mem, &f->pool, &budget)); /* as far as it goes */
    ck_assert_uint_eq(f->feed->entries.live, 3);
    budget = 100;
    ck_assert(feed_trim(f->feed, f->mem, &f->pool, &budget));
    ck_assert_uint_eq(budget, 99);
    ck_assert_uint_eq(f->feed->entries.live, 2); /* those that it has in front */
    check(f);
    ck_assert(advance(f, 0) && advance(f, 0) && !advance(f, 0));
}

FEED_TEST(a_subscription_counts_its_dropped_messages)
{
    uint64_t number;
    const struct feed_entry *entry;

    attach(f, 0);
    post(f);
    attach(f, 1);
    post(f);
    post(f);
    ck_assert_uint_eq(feed_drop(f->feed, f->mem, &f->pool), 1);
    ck_assert_uint_eq(feed_drop(f->feed, f->mem, &f->pool), 2);
    check(f);
    ck_assert_uint_eq(feed_behind(f->feed, &f->cursors[0]), 3);
    for (int i = 0; i < 2; i++) {
        entry = feed_next(f->feed, &f->cursors[i], &number);
        ck_assert_uint_eq(number, 3);
        ck_assert_uint_eq(feed_advance(f->feed, &f->cursors[i], number, entry->ordinal),
                          i == 0 ? 2 : 1);
        f->passed[i] = f->entered[i];
    }
    check(f);
}

/* Puts a message with this number there, as a replay of a log does. */
static void
put(struct fixture *f, uint64_t number)
{
    const struct feed_entry as = {.expires_ms = 1000, .ttl_s = 1};
    struct message *m = message_new(f->mem, bytes_str("1"), NULL, 0);

    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(
        seqmap_pool_stock(&f->pool, seqmap_nodes_for(&f->feed->entries, number, 1)),
        ST_OK);
    ck_assert_int_eq(feed_stock(f->feed, f->mem, 1), ST_OK);
    feed_put(f->feed, &f->pool, m, number, &as);
    message_unpin(f->mem, m);
}

FEED_TEST(messages_over_the_capacity_of_a_replayed_feed_are_counted)
{
    static const uint64_t numbers[] = {3, 4, 5, 9, 10, 40, 41, 42, 99};
    enum { COUNT = sizeof(numbers) / sizeof(numbers[0]), KEPT = 2 };
    size_t budget = SIZE_MAX;

    for (size_t i = 0; i < COUNT; i++)
        put(f, numbers[i]);
    put(f, 42); /* it is there */
    ck_assert_uint_eq(f->feed->entries.live, COUNT);
    ck_assert_int_eq(feed_keep_newest(f->feed, &f->pool, 0), ST_OK); /* any number */
    ck_assert_int_eq(feed_keep_newest(f->feed, &f->pool, f->feed->bytes / COUNT * KEPT),
                     ST_OK);
    ck_assert_uint_eq(f->feed->entries.live, KEPT);
    for (uint64_t after = 0; after <= 100; after++) {
        uint64_t lost = 0;

        for (size_t i = 0; i < COUNT - KEPT; i++)
            lost += numbers[i] > after;
        ck_assert_uint_eq(feed_dropped_behind(f->feed, after), lost);
    }
    ck_assert_int_eq(feed_keep_newest(f->feed, &f->pool, 1),
                     ST_OK); /* but for the last */
    ck_assert_uint_eq(f->feed->entries.live, 1);
    feed_number(f->feed);
    feed_attach(f->feed, &f->cursors[0], 40);
    ck_assert_uint_eq(f->cursors[0].after, 98); /* in front of what there is */
    ck_assert_uint_eq(feed_behind(f->feed, &f->cursors[0]), 1);
    feed_detach(f->feed, &f->cursors[0]);
    ck_assert(feed_trim(f->feed, f->mem, &f->pool, &budget));
}

LOOP_TEST(any_history_keeps_the_invariants, 20)
{
    struct fixture *f = fixture_open();
    struct random r = {(uint64_t)_i};

    for (int step = 0; step < POSTS; step++) {
        int i = (int)random_below(&r, CURSORS);
        size_t budget = (size_t)random_below(&r, 8);

        switch (random_below(&r, 6)) {
        case 0:
            post(f);
            break;
        case 1:
            if (!f->cursors[i].attached)
                attach(f, i);
            break;
        case 2:
            if (random_chance(&r, 20))
                feed_detach(f->feed, &f->cursors[i]);
            break;
        case 3:
            if (f->feed->entries.live > 1 && random_chance(&r, 20))
                (void)feed_drop(f->feed, f->mem, &f->pool);
            break;
        case 4:
            (void)feed_trim(f->feed, f->mem, &f->pool, &budget);
            break;
        default:
            (void)advance(f, i);
        }
        check(f);
    }
    fixture_close(f);
}

/* How many allocations a post makes when so many have a cursor at the end. */
static uint64_t
cost_of_a_post(size_t crowd)
{
    struct fixture *f = fixture_open();
    struct cursor *cursors = calloc(crowd, sizeof(*cursors));
    uint64_t before, cost;

    ck_assert_ptr_nonnull(cursors);
    for (size_t i = 0; i < crowd; i++)
        feed_attach(f->feed, &cursors[i], f->last);
    post(f);
    before = mem_attempts(f->mem);
    post(f);
    cost = mem_attempts(f->mem) - before;
    ck_assert_uint_eq(f->feed->entries.live, 2);
    for (size_t i = 0; i < crowd; i++)
        feed_detach(f->feed, &cursors[i]);
    free(cursors);
    fixture_close(f);
    return cost;
}

START_TEST(a_post_allocates_the_same_for_one_and_for_a_hundred_thousand)
{
    uint64_t one = cost_of_a_post(1);

    ck_assert_uint_gt(one, 0);
    ck_assert_uint_eq(one, cost_of_a_post(CROWD));
}

FEED_TEST(a_stock_that_cannot_be_had_changes_nothing)
{
    attach(f, 0);
    mem_fail_nth(f->mem, 3);
    ck_assert_int_eq(feed_stock(f->feed, f->mem, 4), ST_NO_MEMORY);
    mem_fail_nth(f->mem, 0);
    check(f);
    ck_assert_int_eq(feed_stock(f->feed, f->mem, 4), ST_OK);
    ck_assert_uint_eq(f->feed->in_stock, 4);
}
