/*
 * The cache of results from Keystone: entries expire, the least recently used one is
 * evicted, and a pinned result stays valid. keystone_test.c tests its use. Read
 * src/auth/verdict.h next.
 */
#include "auth/verdict.h"
#include "support/arena_fixture.h"

enum { CAPACITY = 4, END_MS = 1000 };

static struct verdict_cache cache;

static void
setup(void)
{
    const struct hash_key key = {1, 2};

    arena_fixture_open();
    verdict_cache_init(&cache, f.mem, &key, CAPACITY);
}

static void
teardown(void)
{
    verdict_cache_fini(&cache);
    arena_fixture_close();
}

static struct token_digest
digest_of(uint8_t which)
{
    struct token_digest digest = {.bytes = {which}};

    return digest;
}

/* Keeps a verdict about a token, until then. */
static void
put(uint8_t which, int64_t until_ms)
{
    struct verdict *v = verdict_new(f.mem);

    ck_assert_ptr_nonnull(v);
    v->digest = digest_of(which);
    v->until_ms = until_ms;
    v->expires_ms = END_MS;
    verdict_cache_put(&cache, v);
    verdict_unpin(v);
}

/* Until when what is found at that time is kept; 0: nothing is. */
static int64_t
find(uint8_t which, int64_t now_ms)
{
    struct token_digest digest = digest_of(which);
    const struct verdict *v = verdict_cache_find(&cache, &digest, now_ms);

    return v == NULL ? 0 : v->until_ms;
}

TEST_CASE("cache", .setup = setup, .teardown = teardown);

START_TEST(a_cached_verdict_is_found_until_it_expires)
{
    ck_assert_int_eq(find(1, 0), 0);
    put(1, 100);
    put(2, 200);
    ck_assert_int_eq(find(1, 99), 100);
    ck_assert_int_eq(find(2, 99), 200);
    ck_assert_int_eq(find(3, 99), 0);
    ck_assert_int_eq(find(1, 100), 0);
    ck_assert_int_eq(find(1, 99), 0); /* it is over */
    ck_assert_int_eq(find(2, 100), 200);
}

static bool
remembers(uint8_t which, int64_t now_ms)
{
    struct token_digest digest = digest_of(which);

    return verdict_cache_remembers(&cache, &digest, now_ms);
}

START_TEST(that_there_was_one_is_remembered_until_the_token_ends)
{
    struct token_digest digest = digest_of(1);

    put(1, 100);
    ck_assert(remembers(1, 0));
    (void)find(1, 100); /* the cached verdict has expired */
    ck_assert(remembers(1, END_MS - 1));
    ck_assert(!remembers(1, END_MS));
    ck_assert(!remembers(2, 0));
    verdict_cache_drop(&cache, &digest);
    ck_assert(!remembers(1, 0));
    verdict_cache_drop(&cache, &digest); /* it is not there */
    ck_assert_uint_eq(cache.map.count, 0);
}

START_TEST(a_newer_one_takes_the_place_of_an_older)
{
    put(1, 100);
    put(1, 300);
    ck_assert_int_eq(find(1, 200), 300);
    ck_assert_uint_eq(cache.map.count, 1);
}

START_TEST(the_least_recently_used_verdict_is_evicted_first)
{
    for (uint8_t i = 1; i <= CAPACITY; i++)
        put(i, 100);
    ck_assert_int_eq(find(1, 0), 100); /* used again */
    put(5, 100);
    ck_assert_int_eq(find(2, 0), 0);
    ck_assert_int_eq(find(1, 0), 100);
    put(6, 100);
    ck_assert_int_eq(find(3, 0), 0);
    ck_assert_uint_eq(cache.map.count, CAPACITY);
    for (uint8_t i = 10; i < 10 + CAPACITY; i++)
        put(i, 100);
    ck_assert_uint_eq(cache.map.count, CAPACITY);
    ck_assert_int_eq(find(1, 0), 0);
    ck_assert_int_eq(find(10, 0), 100);
}

START_TEST(a_clock_that_is_set_back_ends_a_cached_verdict)
{
    struct verdict *v = verdict_new(f.mem);

    v->digest = digest_of(1);
    v->from_ms = 10000;
    v->until_ms = 70000;
    v->expires_ms = END_MS;
    verdict_cache_put(&cache, v);
    verdict_unpin(v);
    ck_assert_int_eq(find(1, 9000), 70000); /* another thread read the clock earlier */
    ck_assert_int_eq(find(1, 8999), 0);
    ck_assert_int_eq(find(1, 20000), 0); /* and it stays invalid */
}

START_TEST(a_pinned_verdict_stays_valid)
{
    struct token_digest digest = digest_of(1);
    struct verdict *v;

    put(1, 100);
    v = verdict_pin(verdict_cache_find(&cache, &digest, 0));
    verdict_cache_clear(&cache);
    ck_assert_int_eq(find(1, 0), 0);
    ck_assert_int_eq(v->until_ms, 100);
    verdict_unpin(v);
}

START_TEST(without_memory_it_is_not_kept)
{
    struct verdict *v = verdict_new(f.mem);

    v->until_ms = 100;
    mem_fail_nth(f.mem, 1);
    verdict_cache_put(&cache, v);
    mem_fail_nth(f.mem, 0);
    verdict_unpin(v);
    ck_assert_uint_eq(cache.map.count, 0);
    mem_fail_nth(f.mem, 1);
    ck_assert_ptr_null(verdict_new(f.mem));
    mem_fail_nth(f.mem, 0);
}
