/*
 * The radix tree agrees with an array under random changes, near the borders of its nodes
 * above all, and keeps its promises about cost, height and reserved nodes. Read
 * claimd/ds/seqmap.h next.
 */
#include "claimd/ds/seqmap.h"

#include "support/check_main.h"
#include "support/invariant_fixture.h"
#include "support/random.h"

#include <string.h>

/* The naive twin: the same numbers in an ascending array. */
struct twin_item {
    uint64_t seq;
    void *item;
    bool ready;
};

enum { TWIN_CAP = 400 };

struct fixture {
    struct mem *mem;
    struct seqmap_pool pool;
    struct seqmap map;
    struct random random;
    struct twin_item twin[TWIN_CAP];
    size_t count;
};

static char
    things[TWIN_CAP]; /* items are addresses into it; what they are is no matter */

static void
fixture_open(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->mem = mem_new(0);
    seqmap_pool_init(&f->pool, f->mem);
    f->map = (struct seqmap){.root = NULL};
}

static void
fixture_close(struct fixture *f)
{
    uint64_t seq = 0;

    while (seqmap_next_live(&f->map, &seq) != NULL)
        ck_assert_ptr_nonnull(seqmap_remove(&f->map, &f->pool, seq));
    ck_assert(seqmap_audit(&f->map));
    seqmap_pool_fini(&f->pool);
    mem_destroy(f->mem); /* asserts that every node was given back */
}

#define MAP_TEST(id) FIXTURE_TEST(id, struct fixture, fixture_open(f), fixture_close(f))

/* Where seq stands in the twin, or would stand. */
static size_t
twin_place(const struct fixture *f, uint64_t seq)
{
    size_t at = 0;

    while (at < f->count && f->twin[at].seq < seq)
        at++;
    return at;
}

static struct twin_item *
twin_find(struct fixture *f, uint64_t seq)
{
    size_t at = twin_place(f, seq);

    return at < f->count && f->twin[at].seq == seq ? &f->twin[at] : NULL;
}

/* Inserts into both; the pool has been stocked. */
static void
insert_stocked(struct fixture *f, uint64_t seq, bool ready)
{
    size_t at = twin_place(f, seq);
    void *item = &things[f->count];

    seqmap_insert(&f->map, &f->pool, seq, item, ready);
    memmove(&f->twin[at + 1], &f->twin[at], (f->count - at) * sizeof(f->twin[0]));
    f->twin[at] = (struct twin_item){seq, item, ready};
    f->count++;
}

static void
insert(struct fixture *f, uint64_t seq, bool ready)
{
    size_t bound = seqmap_nodes_for(&f->map, seq, 1);

    ck_assert_int_eq(seqmap_pool_stock(&f->pool, bound), ST_OK);
    insert_stocked(f, seq, ready);
}

static void
take_out(struct fixture *f, uint64_t seq)
{
    struct twin_item *t = twin_find(f, seq);

    if (t == NULL) {
        ck_assert_ptr_null(seqmap_remove(&f->map, &f->pool, seq));
        return;
    }
    ck_assert_ptr_eq(seqmap_remove(&f->map, &f->pool, seq), t->item);
    f->count--;
    memmove(t, t + 1, (size_t)(f->twin + f->count - t) * sizeof(*t));
}

static void
check_next(struct fixture *f, uint64_t from, bool ready_only)
{
    uint64_t seq = from;
    void *item =
        ready_only ? seqmap_next_ready(&f->map, &seq) : seqmap_next_live(&f->map, &seq);
    size_t at = twin_place(f, from);

    while (ready_only && at < f->count && !f->twin[at].ready)
        at++;
    if (at == f->count) {
        ck_assert_ptr_null(item);
        ck_assert_uint_eq(seq, from);
        return;
    }
    ck_assert_ptr_eq(item, f->twin[at].item);
    ck_assert_uint_eq(seq, f->twin[at].seq);
}

static void
check_ends(struct fixture *f)
{
    uint64_t seq = 12345;
    void *item = seqmap_last(&f->map, &seq);

    if (f->count == 0) {
        ck_assert_ptr_null(item);
        return;
    }
    ck_assert_ptr_eq(item, f->twin[f->count - 1].item);
    ck_assert_uint_eq(seq, f->twin[f->count - 1].seq);
}

static void
check_one(struct fixture *f, uint64_t seq)
{
    struct twin_item *t = twin_find(f, seq);

    ck_assert_ptr_eq(seqmap_find(&f->map, seq), t == NULL ? NULL : t->item);
    ck_assert_int_eq(seqmap_is_ready(&f->map, seq), t != NULL && t->ready);
    check_next(f, seq, false);
    check_next(f, seq, true);
    ck_assert_uint_le(seqmap_probe_ready(&f->map, seq), 2 * f->map.levels);
}

/*
 * A number where things go wrong: near a power of 64, near either end of the range, near
 * a number of the twin, or anywhere.
 */
static uint64_t
pick(struct fixture *f)
{
    uint64_t near = random_below(&f->random, 130) - 65;

    switch (random_below(&f->random, 6)) {
    case 0:
        return near; /* wraps: numbers at both ends */
    case 1:
        return ((uint64_t)1 << 6 * random_below(&f->random, 11)) + near;
    case 2:
        return random_next(&f->random) >> random_below(&f->random, 64);
    case 3:
        return 5000 + random_below(&f->random, 300);
    default:
        return f->count == 0
                   ? near
                   : f->twin[random_below(&f->random, f->count)].seq + near / 16;
    }
}

static void
change(struct fixture *f, uint64_t seq, bool filling)
{
    struct twin_item *t = twin_find(f, seq);

    if (t == NULL) {
        if (f->count < TWIN_CAP && (filling || random_once_in(&f->random, 3)))
            insert(f, seq, random_once_in(&f->random, 2));
        else
            take_out(f, seq);
        return;
    }
    if (random_once_in(&f->random, filling ? 4 : 2)) {
        take_out(f, seq);
        return;
    }
    t->ready = random_once_in(&f->random, 2);
    seqmap_set_ready(&f->map, seq, t->ready);
}

static size_t
twin_ready(const struct fixture *f)
{
    size_t ready = 0;

    for (size_t i = 0; i < f->count; i++)
        ready += f->twin[i].ready;
    return ready;
}

MAP_TEST(random_changes_agree_with_an_array)
{
    uint64_t steps = random_operations(40000);

    f->random.state = random_seed("seqmap");
    for (uint64_t step = 0; step < steps; step++) {
        uint64_t seq = pick(f);

        if (f->count > 0 && random_once_in(&f->random, 2))
            seq = f->twin[random_below(&f->random, f->count)].seq;
        change(f, seq, step / 1000 % 2 == 0);
        ck_assert(seqmap_audit(&f->map));
        ck_assert_uint_eq(f->map.live, f->count);
        ck_assert_uint_eq(f->map.ready, twin_ready(f));
        check_one(f, seq);
        check_one(f, pick(f));
        check_one(f, random_once_in(&f->random, 2) ? UINT64_MAX : 0);
        check_ends(f);
        if (random_once_in(&f->random, 100))
            seqmap_pool_trim(&f->pool);
        ck_assert_uint_le(f->pool.count, 64 + 1000 * 11);
    }
}

/* A queue as it is used: numbers ascend, the old ones go. */
MAP_TEST(a_moving_window_keeps_its_height_and_its_nodes)
{
    uint64_t first = 1, next = 1;

    f->random.state = random_seed("seqmap window");
    for (int step = 0; step < 15000; step++) {
        size_t batch = random_below(&f->random, 20);

        if (f->count + batch < 200 && random_once_in(&f->random, 2)) {
            size_t bound = seqmap_nodes_for(&f->map, next, batch);

            ck_assert_uint_le(bound, 8); /* cheap to keep in stock */
            seqmap_pool_fini(&f->pool);
            ck_assert_int_eq(seqmap_pool_stock(&f->pool, bound), ST_OK);
            while (batch-- > 0)
                insert_stocked(f, next++, true);
        }
        while (f->count > 0 && !random_once_in(&f->random, 8)) {
            first = f->twin[0].seq;
            take_out(f, first);
        }
        ck_assert(seqmap_audit(&f->map));
        ck_assert_uint_le(f->map.levels, 3); /* 3 when it straddles n * 4096 */
        check_one(f, first);
    }
    ck_assert_uint_gt(next, 64 * 64);
}

MAP_TEST(stocking_what_nodes_for_says_is_enough_for_any_range)
{
    f->random.state = random_seed("seqmap stock");
    for (int round = 0; round < 500; round++) {
        uint64_t first = pick(f);
        size_t count = 1 + random_below(&f->random, TWIN_CAP - 1);

        for (size_t held = random_below(&f->random, 3); held > 0; held--) {
            uint64_t seq = pick(f);

            if (twin_find(f, seq) == NULL && f->count < TWIN_CAP)
                insert(f, seq, false);
        }
        if (count - 1 > UINT64_MAX - first)
            count = (size_t)(UINT64_MAX - first) + 1;
        ck_assert_int_eq(
            seqmap_pool_stock(&f->pool, seqmap_nodes_for(&f->map, first, count)), ST_OK);
        mem_fail_from(f->mem, 1);
        for (size_t i = 0; i < count; i++)
            if (twin_find(f, first + i) == NULL)
                seqmap_insert(&f->map, &f->pool, first + i, things, true);
        mem_fail_from(f->mem, 0);
        ck_assert(seqmap_audit(&f->map));
        for (size_t i = 0; i < count; i++)
            if (twin_find(f, first + i) == NULL)
                ck_assert_ptr_nonnull(seqmap_remove(&f->map, &f->pool, first + i));
        ck_assert(seqmap_audit(&f->map));
        while (f->count > 0)
            take_out(f, f->twin[0].seq);
        seqmap_pool_fini(&f->pool);
    }
}

MAP_TEST(stocking_what_nodes_up_to_says_is_enough_for_numbers_anywhere)
{
    f->random.state = random_seed("seqmap up to");
    for (int round = 0; round < 2000; round++) {
        uint64_t numbers[8], last = 0;
        size_t count = 1 + random_below(&f->random, 8);

        for (size_t held = random_below(&f->random, 3); held > 0; held--) {
            uint64_t seq = pick(f);

            if (twin_find(f, seq) == NULL)
                insert(f, seq, false);
        }
        for (size_t i = 0; i < count; i++) {
            numbers[i] = pick(f);
            last = numbers[i] > last ? numbers[i] : last;
        }
        ck_assert_int_eq(
            seqmap_pool_stock(&f->pool, seqmap_nodes_up_to(&f->map, last, count)), ST_OK);
        mem_fail_from(f->mem, 1);
        for (size_t i = 0; i < count; i++)
            if (twin_find(f, numbers[i]) == NULL)
                insert_stocked(f, numbers[i], true);
        mem_fail_from(f->mem, 0);
        ck_assert(seqmap_audit(&f->map));
        while (f->count > 0)
            take_out(f, f->twin[0].seq);
        seqmap_pool_fini(&f->pool);
    }
    ck_assert_uint_eq(seqmap_nodes_up_to(&f->map, 7, 0), 0);
}

MAP_TEST(one_item_is_one_leaf_whatever_its_number)
{
    static const uint64_t numbers[] = {0, 1, 63, 64, 4096, 1ULL << 60, UINT64_MAX};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ck_assert_uint_eq(seqmap_nodes_for(&f->map, numbers[i], 1), 1);
        insert(f, numbers[i], true);
        ck_assert_uint_eq(f->map.levels, 1);
        check_one(f, numbers[i]);
        take_out(f, numbers[i]);
        ck_assert_uint_eq(f->map.levels, 0);
    }
}

MAP_TEST(the_height_follows_the_span)
{
    insert(f, UINT64_MAX, true);
    insert(f, 0, true);
    ck_assert_uint_eq(f->map.levels, 11);
    check_one(f, 1);
    take_out(f, 0);
    ck_assert_uint_eq(f->map.levels, 1);
    ck_assert(seqmap_audit(&f->map));
    insert(f, UINT64_MAX - 64, true);
    ck_assert_uint_eq(f->map.levels, 2);
}

/* The carry: the search must leave a leaf without ready numbers to the right and up. */
MAP_TEST(find_next_carries_over_empty_nodes)
{
    for (uint64_t seq = 0; seq < 3; seq++)
        insert(f, seq * 64 + 63, true);
    insert(f, 64 * 64 * 5, true);
    seqmap_set_ready(&f->map, 127, false);
    f->twin[1].ready = false;
    check_next(f, 63, true);
    check_next(f, 64, true); /* 127 is held: 191 */
    check_next(f, 127, false);
    check_next(f, 128, true);
    check_next(f, 192, true); /* two levels up */
    check_next(f, 64 * 64 * 5 + 1, true);
}

MAP_TEST(finding_the_next_ready_costs_the_same_however_many_are_claimed)
{
    enum { COUNT = 900000 };
    size_t alone;
    uint64_t seq = 0;

    ck_assert_int_eq(seqmap_pool_stock(&f->pool, seqmap_nodes_for(&f->map, 1, COUNT)),
                     ST_OK);
    for (uint64_t i = 1; i <= COUNT; i++)
        seqmap_insert(&f->map, &f->pool, i, things, true);
    alone = seqmap_probe_ready(&f->map, 1);
    for (uint64_t i = 1; i < COUNT; i++)
        seqmap_set_ready(&f->map, i, false);
    ck_assert_uint_le(seqmap_probe_ready(&f->map, 1), 2 * alone);
    ck_assert_ptr_nonnull(seqmap_next_ready(&f->map, &seq));
    ck_assert_uint_eq(seq, COUNT);
    ck_assert(seqmap_audit(&f->map));
}

MAP_TEST(a_dense_map_costs_nine_bytes_an_item)
{
    enum { COUNT = 64 * 64 * 16 };

    ck_assert_int_eq(seqmap_pool_stock(&f->pool, seqmap_nodes_for(&f->map, 0, COUNT)),
                     ST_OK);
    for (uint64_t i = 0; i < COUNT; i++)
        seqmap_insert(&f->map, &f->pool, i, things, true);
    seqmap_pool_fini(&f->pool);
    ck_assert_uint_lt(mem_used(f->mem), COUNT * 9);
}

MAP_TEST(trimming_keeps_a_few_nodes)
{
    ck_assert_int_eq(seqmap_pool_stock(&f->pool, 500), ST_OK);
    ck_assert_uint_eq(f->pool.count, 500);
    seqmap_pool_trim(&f->pool);
    ck_assert_uint_eq(f->pool.count, 16);
    seqmap_pool_trim(&f->pool);
    ck_assert_uint_eq(f->pool.count, 16);
}

MAP_TEST(stocking_without_memory_fails_and_keeps_what_it_has)
{
    mem_fail_nth(f->mem, 3);
    ck_assert_int_eq(seqmap_pool_stock(&f->pool, 5), ST_NO_MEMORY);
    ck_assert_uint_eq(f->pool.count, 2);
    ck_assert_int_eq(seqmap_pool_stock(&f->pool, 5), ST_OK);
    ck_assert_uint_eq(f->pool.count, 5);
    ck_assert_uint_eq(seqmap_nodes_for(&f->map, 7, 0), 0);
}

static void
insert_twice(void)
{
    struct mem *mem = mem_new(0);
    struct seqmap_pool pool;
    struct seqmap map;

    seqmap_pool_init(&pool, mem);
    map = (struct seqmap){.root = NULL};
    if (seqmap_pool_stock(&pool, 2) != ST_OK)
        return;
    seqmap_insert(&map, &pool, 7, &map, true);
    seqmap_insert(&map, &pool, 7, &map, true);
}

static void
insert_without_stock(void)
{
    struct seqmap_pool pool;
    struct seqmap map;

    seqmap_pool_init(&pool, NULL);
    map = (struct seqmap){.root = NULL};
    seqmap_insert(&map, &pool, 7, &map, true);
}

START_TEST(a_caller_that_breaks_the_contract_is_stopped)
{
    expect_broken(insert_twice, "!taken", "in seqmap_insert()\n");
    expect_broken(insert_without_stock, "node != NULL", "in pool_take()\n");
}
