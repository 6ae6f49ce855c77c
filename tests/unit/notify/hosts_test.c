/*
 * A slow or silent host must not delay the deliveries to others: each host and all slow
 * hosts have a bounded share of the transfers. Read src/notify/hosts.h next.
 */
#include "notify/hosts.h"

#include "support/check_main.h"

#include <stdio.h>

static struct {
    struct mem *mem;
    struct hosts hosts;
} f;

enum { SLOW_MS = 1000 };

static void
fixture_open(void)
{
    f.mem = mem_new(0);
}

static void
fixture_close(void)
{
    hosts_fini(&f.hosts);
    mem_destroy(f.mem);
}

static void
begin(size_t workers)
{
    hosts_init(&f.hosts, f.mem, (struct hash_key){1, 2}, workers, SLOW_MS);
}

static struct host *
named(const char *format, int number)
{
    char origin[64];

    (void)snprintf(origin, sizeof(origin), format, number);
    return hosts_find(&f.hosts, origin);
}

/* A host that is as it became by one transfer. */
static struct host *
after(const char *format, int number, int64_t took_ms, bool responded)
{
    struct host *host = named(format, number);

    host_begin(&f.hosts, host);
    host_end(&f.hosts, host, took_ms, responded);
    return named(format, number);
}

/* As many transfers as there is space for. */
static size_t
fill(struct host *host)
{
    size_t count = 0;

    for (; host_has_capacity(&f.hosts, host); count++)
        host_begin(&f.hosts, host);
    return count;
}

static void
empty(struct host *host)
{
    while (host->running > 1)
        host_end(&f.hosts, host, 1, true);
    if (host->running == 1)
        host_end(&f.hosts, host, 1, true);
    else
        host_release(&f.hosts, host);
}

TEST_CASE("hosts", .setup = fixture_open, .teardown = fixture_close);

START_TEST(one_host_has_half_of_all)
{
    static const size_t expected[][2] = {{1, 1}, {2, 1}, {3, 2}, {10, 5}, {11, 6}};

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct host *host;

        begin(expected[i][0]);
        host = after("quick", 0, 1, true);
        ck_assert_uint_eq(fill(host), expected[i][1]);
        empty(host);
        hosts_fini(&f.hosts);
    }
    begin(1);
}

START_TEST(slow_ones_have_half_of_all_together)
{
    struct host *slow[3], *late, *quick;

    begin(10);
    for (int i = 0; i < 3; i++)
        slow[i] = after("slow%d", i, 5, false);
    late = after("late", 0, SLOW_MS, true);
    quick = after("quick", 0, 5, true);
    ck_assert_uint_eq(counter_read(&f.hosts.slow), 4);
    host_begin(&f.hosts, slow[0]);
    host_begin(&f.hosts, slow[0]);
    host_begin(&f.hosts, slow[1]);
    ck_assert_uint_eq(fill(slow[2]), 2);
    ck_assert(!host_has_capacity(&f.hosts, slow[1]));
    ck_assert(!host_has_capacity(&f.hosts, late));
    ck_assert_uint_eq(fill(quick), 5);
    empty(quick);
    empty(slow[0]); /* it is quick now, and what it has counts no more */
    ck_assert_uint_eq(counter_read(&f.hosts.slow), 3);
    ck_assert_uint_eq(fill(late), 2);
    for (int i = 1; i < 3; i++)
        empty(slow[i]);
    empty(late);
}

START_TEST(those_that_never_responded_leave_a_quarter)
{
    struct host *fresh[3], *quick;

    begin(10);
    quick = after("quick", 0, 5, true);
    for (int i = 0; i < 3; i++)
        fresh[i] = named("new%d", i);
    ck_assert_uint_eq(fill(fresh[0]), 5);
    ck_assert_uint_eq(fill(fresh[1]), 3);
    ck_assert_uint_eq(fill(fresh[2]), 0);
    ck_assert_uint_eq(fill(quick), 2);
    for (int i = 0; i < 3; i++)
        empty(fresh[i]);
    empty(quick);
}

START_TEST(queues_of_hosts_are_short_and_served_in_turns)
{
    struct list links[2][HOST_QUEUE_MOST], more = {NULL, NULL};
    struct host *host[2], *next;
    int64_t wait_ms;

    begin(2);
    for (int i = 0; i < 2; i++) {
        host[i] = named("h%d", i);
        host_begin(&f.hosts, host[i]);
        for (int k = 0; k < HOST_QUEUE_MOST; k++)
            ck_assert(host_enqueue(&f.hosts, host[i], &links[i][k], &wait_ms));
    }
    ck_assert(!host_enqueue(&f.hosts, host[0], &more, &wait_ms));
    ck_assert_int_eq(wait_ms, 50);
    ck_assert_ptr_null(hosts_dequeue(&f.hosts, false, &next));
    for (int i = 0; i < 2; i++)
        host_end(&f.hosts, host[i], 1, true);
    ck_assert(!host_has_capacity(&f.hosts, host[0])); /* others are in front */
    for (int k = 0; k < HOST_QUEUE_MOST; k++)
        for (int i = 0; i < 2; i++) {
            ck_assert_ptr_eq(hosts_dequeue(&f.hosts, false, &next), &links[i][k]);
            ck_assert_ptr_eq(next, host[i]);
            host_begin(&f.hosts, next);
            host_end(&f.hosts, next, 1, true);
        }
    ck_assert_uint_eq(f.hosts.waiting, 0);
}

START_TEST(a_host_that_backed_off_is_retried_when_its_turn_is_likely)
{
    struct list links[HOST_QUEUE_MOST], more = {NULL, NULL};
    struct host *host;
    int64_t wait_ms, before = 0;

    begin(2);
    host = after("h", 0, 400, true); /* typically 100 ms, a quarter of it */
    host_begin(&f.hosts, host);
    for (int k = 0; k < HOST_QUEUE_MOST; k++)
        ck_assert(host_enqueue(&f.hosts, host, &links[k], &wait_ms));
    for (int i = 0; i < 1000; i++) {
        ck_assert(!host_enqueue(&f.hosts, host, &more, &wait_ms));
        if (i == 0)
            ck_assert_int_eq(wait_ms, 900);
        ck_assert_int_ge(wait_ms, before);
        before = wait_ms;
    }
    ck_assert_int_eq(wait_ms, 10000);
    while (hosts_dequeue(&f.hosts, true, &host) != NULL)
        continue;
    host_end(&f.hosts, named("h", 0), 1, true);
}

START_TEST(the_queues_of_all_hosts_have_a_common_limit)
{
    struct list links[QUEUED_MOST], more = {NULL, NULL};
    struct host *host;
    int64_t wait_ms;
    size_t count = 0;

    begin(1);
    for (int i = 0; count < QUEUED_MOST; i++) {
        host = named("h%d", i);
        for (int k = 0; k < HOST_QUEUE_MOST; k++)
            ck_assert(host_enqueue(&f.hosts, host, &links[count++], &wait_ms));
    }
    ck_assert(!host_enqueue(&f.hosts, named("other", 0), &more, &wait_ms));
    while (hosts_dequeue(&f.hosts, true, &host) != NULL)
        host_release(&f.hosts, host);
}

START_TEST(those_that_were_idle_for_longest_are_forgotten)
{
    struct host *host;

    begin(10);
    for (int i = 0; i < HOSTS_REMEMBERED + 10; i++)
        host_release(&f.hosts, after("h%d", i, 5, false));
    ck_assert_uint_eq(f.hosts.map.count, HOSTS_REMEMBERED);
    ck_assert_uint_eq(counter_read(&f.hosts.slow), HOSTS_REMEMBERED);
    host = named("h%d", HOSTS_REMEMBERED);
    ck_assert_int_eq(host->pace, HOST_SLOW);
    host_release(&f.hosts, host);
    host = named("h%d", 0);
    ck_assert_int_eq(host->pace, HOST_NEW);
    host_release(&f.hosts, host);
}

START_TEST(without_memory_there_is_no_host)
{
    begin(1);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        mem_fail_nth(f.mem, nth);
        ck_assert_ptr_null(named("h", 0));
    }
    host_release(&f.hosts, named("h", 0));
}
