/*
 * The hash map agrees with an array under random changes, also while it grows, and an
 * insertion behind a reservation needs no memory. Read claimd/ds/hashmap.h next.
 */
#include "claimd/ds/hashmap.h"

#include "claimd/base/hash.h"
#include "claimd/ds/list.h"
#include "support/check_main.h"
#include "support/invariant_fixture.h"
#include "support/random.h"

#include <stdlib.h>

struct entry {
    struct hashnode node;
    uint64_t key;
    unsigned seen;
    bool in;
};

enum { KEYS = 2000 };

struct fixture {
    struct mem *mem;
    struct hashmap map;
    struct entry entry[KEYS]; /* entry[k] has the key k; `in` is the naive twin */
    size_t count;
};

static bool
key_equal(const struct hashnode *node, const void *key)
{
    return container_of(node, const struct entry, node)->key == *(const uint64_t *)key;
}

/* Few distinct hashes would hide mistakes, distinct ones too: some keys collide. */
static uint64_t
hash_of(uint64_t key)
{
    return hash_mix(key % 7 == 0 ? key / 2 : key);
}

static struct fixture *
fixture_open(void)
{
    struct fixture *f = calloc(1, sizeof(*f));

    ck_assert_ptr_nonnull(f);
    f->mem = mem_new(0);
    hashmap_init(&f->map, f->mem);
    for (uint64_t k = 0; k < KEYS; k++)
        f->entry[k].key = k;
    return f;
}

static void
fixture_close(struct fixture *f)
{
    hashmap_fini(&f->map);
    mem_destroy(f->mem);
    free(f);
}

static void
insert(struct fixture *f, uint64_t key)
{
    ck_assert_int_eq(hashmap_reserve(&f->map, 1), ST_OK);
    hashmap_insert(&f->map, &f->entry[key].node, hash_of(key));
    f->entry[key].in = true;
    f->count++;
}

static void
take_out(struct fixture *f, uint64_t key)
{
    hashmap_remove(&f->map, &f->entry[key].node);
    f->entry[key].in = false;
    f->count--;
}

static struct hashnode *
find(const struct fixture *f, uint64_t key)
{
    return hashmap_find(&f->map, hash_of(key), key_equal, &key);
}

/* A walk must meet each entry that is in once, even if it takes out what it has passed.
 */
static void
check_walk(struct fixture *f, bool remove_some)
{
    struct hashnode *node = hashmap_walk(&f->map, NULL);
    size_t met = 0, expected = f->count;

    while (node != NULL) {
        struct entry *e = container_of(node, struct entry, node);

        ck_assert(e->in);
        ck_assert_uint_eq(e->seen, 0);
        e->seen = 1;
        met++;
        node = hashmap_walk(&f->map, node);
        if (remove_some && e->key % 3 == 0)
            take_out(f, e->key);
    }
    ck_assert_uint_eq(met, expected);
    for (size_t k = 0; k < KEYS; k++)
        f->entry[k].seen = 0;
}

#define MAP_TEST(id) MADE_TEST(id, struct fixture, f, fixture_open(), fixture_close(f))

MAP_TEST(random_changes_agree_with_an_array)
{
    struct random random;
    uint64_t steps = random_operations(60000);

    random.state = random_seed("hashmap");
    for (uint64_t step = 0; step < steps; step++) {
        /* Tides: the map fills and empties, so that it grows with and without removals.
         */
        uint64_t key = random_below(&random, KEYS);
        bool filling = step / 5000 % 2 == 0;

        ck_assert_ptr_eq(find(f, key), f->entry[key].in ? &f->entry[key].node : NULL);
        if (!f->entry[key].in && (filling || random_once_in(&random, 3)))
            insert(f, key);
        else if (f->entry[key].in && (!filling || random_once_in(&random, 3)))
            take_out(f, key);
        ck_assert_uint_eq(f->map.count, f->count);
        if (random_once_in(&random, 16))
            ck_assert(hashmap_audit(&f->map));
        if (random_once_in(&random, 500))
            check_walk(f, random_once_in(&random, 4));
    }
}

MAP_TEST(every_key_is_found_at_each_step_of_growing)
{
    for (uint64_t k = 0; k < 300; k++) {
        insert(f, k);
        ck_assert(hashmap_audit(&f->map));
        for (uint64_t earlier = 0; earlier <= k; earlier++)
            ck_assert_ptr_eq(find(f, earlier), &f->entry[earlier].node);
        ck_assert_ptr_null(find(f, k + 1));
        check_walk(f, false);
    }
}

MAP_TEST(an_unused_map_allocates_nothing)
{
    ck_assert_uint_eq(mem_used(f->mem), 0);
    ck_assert_ptr_null(find(f, 1));
    ck_assert_ptr_null(hashmap_walk(&f->map, NULL));
    ck_assert(hashmap_audit(&f->map));
}

MAP_TEST(reserved_inserts_need_no_memory)
{
    for (uint64_t k = 0; k < 500; k += 50) {
        ck_assert_int_eq(hashmap_reserve(&f->map, 50), ST_OK);
        mem_fail_from(f->mem, 1);
        for (uint64_t i = k; i < k + 50; i++)
            hashmap_insert(&f->map, &f->entry[i].node, hash_of(i));
        mem_fail_from(f->mem, 0);
        ck_assert(hashmap_audit(&f->map));
    }
    ck_assert_uint_eq(f->map.count, 500);
}

MAP_TEST(reserving_without_memory_fails_and_changes_nothing)
{
    mem_fail_nth(f->mem, 1);
    ck_assert_int_eq(hashmap_reserve(&f->map, 1), ST_NO_MEMORY);
    ck_assert_uint_eq(mem_used(f->mem), 0);
    for (uint64_t k = 0; k < 8; k++)
        insert(f, k);
    mem_fail_nth(f->mem, 1);
    ck_assert_int_eq(hashmap_reserve(&f->map, 1), ST_NO_MEMORY);
    ck_assert(hashmap_audit(&f->map));
    ck_assert_int_eq(hashmap_reserve(&f->map, SIZE_MAX / 2), ST_NO_MEMORY);
    ck_assert_int_eq(hashmap_reserve(&f->map, SIZE_MAX), ST_NO_MEMORY);
    for (uint64_t k = 0; k < 8; k++)
        ck_assert_ptr_eq(find(f, k), &f->entry[k].node);
}

MAP_TEST(an_insert_moves_a_few_chains_not_the_table)
{
    size_t before;

    for (uint64_t k = 0; k < 1024; k++)
        insert(f, k);
    ck_assert_ptr_null(f->map.table[1]);
    insert(f, 1024);
    ck_assert_ptr_nonnull(f->map.table[1]);
    for (uint64_t k = 1025; f->map.table[1] != NULL; k++) {
        before = f->map.moved;
        ck_assert_uint_lt(k, 1024 + 1024 / 2); /* ends before the larger one is full */
        insert(f, k);
        ck_assert_uint_le(f->map.moved, before + 4);
    }
}

static void
insert_without_reserve(void)
{
    struct hashnode node;
    struct hashmap map;

    hashmap_init(&map, NULL);
    hashmap_insert(&map, &node, 1);
}

static void
remove_what_is_not_there(void)
{
    struct mem *mem = mem_new(0);
    struct hashnode here, lost = {.hash = 1};
    struct hashmap map;

    hashmap_init(&map, mem);
    if (hashmap_reserve(&map, 1) != ST_OK)
        return;
    hashmap_insert(&map, &here, 1);
    hashmap_remove(&map, &lost);
}

START_TEST(a_caller_that_breaks_the_contract_is_stopped)
{
    expect_broken(insert_without_reserve, "map->table[0] != NULL",
                  "in hashmap_insert()\n");
    expect_broken(remove_what_is_not_there, "*link != NULL", "in hashmap_remove()\n");
}
