/*
 * ds_bench: what the containers cost, in nanoseconds an operation. Not a test: it asserts
 * nothing, because machines differ. The metrics in docs/adr/0002-millisecond-wheel.md and
 * docs/engine.md come from here.
 */
#include "claimd/base/hash.h"
#include "claimd/ds/hashmap.h"
#include "claimd/ds/seqmap.h"
#include "claimd/ds/wheel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT = 1000000, SLICE = 64 };

static int64_t
now_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void
report(const char *what, int64_t since_ns, size_t count)
{
    printf("%-52s %8.1f ns\n", what, (double)(now_ns() - since_ns) / (double)count);
}

static void *
must(void *block)
{
    if (block == NULL)
        abort();
    return block;
}

static void
must_ok(enum status st)
{
    if (st != ST_OK)
        abort();
}

/* A number below COUNT, in an order that caches do not like. */
static size_t
scattered(size_t i)
{
    return i * 611953 % COUNT; /* prime: each number comes once */
}

/* As large as a message with a short body, so that the cache misses are real. */
struct owner {
    struct deadline due;
    char rest[168];
};

/* Arms the crowd for one second, an hour from now. */
static void
arm_crowd(struct wheel *w, struct owner *owner)
{
    for (size_t i = 0; i < COUNT; i++)
        wheel_arm(w, &owner[i].due, 3600000 + (int64_t)(scattered(i) % 1000));
}

/* Calls advance until it is done; returns the longest call in ns. */
static int64_t
advance_timed(struct wheel *w, int64_t now_ms, size_t budget, size_t *calls)
{
    int64_t longest = 0;
    bool done = false;

    while (!done) {
        int64_t start = now_ns();

        done = wheel_advance(w, now_ms, budget);
        ++*calls;
        if (now_ns() - start > longest)
            longest = now_ns() - start;
    }
    return longest;
}

/* An owner that was asleep until the crowd fell due. */
static void
bench_wheel_late(struct mem *mem, struct owner *owner, size_t budget)
{
    struct wheel *w = must(wheel_new(mem, 0));
    int64_t longest, start;
    size_t calls = 0;

    arm_crowd(w, owner);
    start = now_ns();
    longest = advance_timed(w, 3601000, budget, &calls);
    printf(
        "wheel: a million at once, budget %-8zu longest call %9.1f us, whole %6.1f ms, "
        "%zu calls\n",
        budget, (double)longest / 1e3, (double)(now_ns() - start) / 1e6, calls);
    memset(owner, 0, COUNT * sizeof(*owner));
    wheel_free(w);
}

/* An owner that wakes when the wheel hints it. */
static void
bench_wheel_on_time(struct mem *mem, struct owner *owner)
{
    struct wheel *w = must(wheel_new(mem, 0));
    int64_t now = 0, longest = 0, start = now_ns();
    size_t calls = 0, drained = 0;

    arm_crowd(w, owner);
    report("wheel_arm, an hour ahead", start, COUNT);
    start = now_ns();
    while (wheel_next_ms(w) != WHEEL_NEVER) {
        int64_t next = wheel_next_ms(w), took;

        now = next > now ? next : now;
        took = advance_timed(w, now, SLICE, &calls);
        longest = took > longest ? took : longest;
        for (int i = 0; i < SLICE && wheel_drain(w) != NULL; i++)
            drained++;
    }
    report("wheel_advance + wheel_drain in slices of 64", start, drained);
    printf("wheel: longest call %.1f us of %zu calls\n", (double)longest / 1e3, calls);
    wheel_free(w);
}

/* The cost with ticks of 100 ms: a wide slot moved whole, a tick's slot searched. */
static void
bench_wide_slots(struct mem *mem, struct owner *owner)
{
    struct wheel *w = must(wheel_new(mem, 0));
    struct list slot;
    int64_t start;
    size_t due = 0;

    for (size_t i = 0; i < COUNT; i++)
        wheel_arm(w, &owner[scattered(i)].due, 3 * 4096 + (int64_t)(i % 1000));
    start = now_ns();
    (void)wheel_advance(w, 2 * 4096, SIZE_MAX); /* empties the one slot they are all in */
    printf("wheel: a slot of a million moved down one level, %.1f ms\n",
           (double)(now_ns() - start) / 1e6);
    memset(owner, 0, COUNT * sizeof(*owner));
    wheel_free(w);

    list_init(&slot);
    for (size_t i = 0; i < COUNT / 10; i++) {
        owner[scattered(i)].due.due_ms = (int64_t)i;
        list_add_before(&slot, &owner[scattered(i)].due.link);
    }
    start = now_ns();
    for (const struct list *node = slot.next; node != &slot; node = node->next)
        due += container_of(node, const struct deadline, link)->due_ms < COUNT / 20;
    printf("list: a slot of 100 000 searched for %zu due, %.2f ms\n", due,
           (double)(now_ns() - start) / 1e6);
    memset(owner, 0, COUNT * sizeof(*owner));
}

static void
bench_wheel(struct mem *mem)
{
    struct owner *owner = must(calloc(COUNT, sizeof(*owner)));
    struct wheel *w = must(wheel_new(mem, 0));
    int64_t start;

    arm_crowd(w, owner); /* touches the memory */
    start = now_ns();
    for (size_t i = 0; i < COUNT; i++)
        wheel_disarm(w, &owner[scattered(i)].due);
    report("wheel_disarm, scattered", start, COUNT);
    wheel_arm(w, &owner[0].due, 1LL << 40);
    wheel_arm(w, &owner[1].due, 43200000);
    start = now_ns();
    for (int64_t i = 0; i < COUNT; i++)
        (void)wheel_advance(w, i / 100, SLICE); /* nothing becomes due */
    report("wheel_advance with nothing to do", start, COUNT);
    start = now_ns();
    for (size_t i = 0; i < COUNT; i++)
        wheel_arm(w, &owner[i % 1000].due, 30000 + (int64_t)i / 100);
    report("wheel_arm again, a thousand in turn", start, COUNT);
    wheel_free(w);
    memset(owner, 0, COUNT * sizeof(*owner));

    bench_wheel_on_time(mem, owner);
    bench_wheel_late(mem, owner, SLICE);
    bench_wheel_late(mem, owner, SIZE_MAX);
    bench_wide_slots(mem, owner);
    free(owner);
}

static void
bench_seqmap(struct mem *mem)
{
    static char thing;
    struct seqmap_pool pool;
    struct seqmap map;
    int64_t start = now_ns();
    uint64_t seq = 0;

    seqmap_pool_init(&pool, mem);
    map = (struct seqmap){.root = NULL};
    for (size_t i = 0; i < COUNT; i++) {
        must_ok(seqmap_pool_stock(&pool, seqmap_nodes_for(&map, i, 1)));
        seqmap_insert(&map, &pool, i, &thing, true);
    }
    report("seqmap: stock one and insert", start, COUNT);
    start = now_ns();
    for (size_t i = 0; i < COUNT; i++) {
        must(seqmap_next_ready(&map, &seq));
        seqmap_set_ready(&map, seq, false);
    }
    report("seqmap: find the next ready and take it", start, COUNT);
    start = now_ns();
    for (size_t i = 0; i < COUNT; i++)
        seqmap_set_ready(&map, scattered(i), true);
    report("seqmap: give back, scattered", start, COUNT);
    start = now_ns();
    for (size_t i = 0; i < COUNT; i++)
        must(seqmap_find(&map, scattered(i)));
    report("seqmap: find, scattered", start, COUNT);
    start = now_ns();
    for (size_t i = 0; i < COUNT; i++)
        must(seqmap_remove(&map, &pool, scattered(i)));
    report("seqmap: remove, scattered", start, COUNT);
    seqmap_pool_fini(&pool);
}

struct entry {
    struct hashnode node;
    uint64_t key;
};

static bool
key_equal(const struct hashnode *node, const void *key)
{
    return container_of(node, struct entry, node)->key == *(const uint64_t *)key;
}

static void
bench_hashmap(struct mem *mem)
{
    struct entry *entry = must(calloc(COUNT, sizeof(*entry)));
    int64_t longest = 0, start = now_ns();
    struct hashmap map;

    hashmap_init(&map, mem);
    for (size_t i = 0; i < COUNT; i++) {
        int64_t before = now_ns();

        entry[i].key = i;
        must_ok(hashmap_reserve(&map, 1));
        hashmap_insert(&map, &entry[i].node, hash_mix(i));
        if (now_ns() - before > longest)
            longest = now_ns() - before;
    }
    report("hashmap: insert while growing (and two clock reads)", start, COUNT);
    printf("hashmap: longest insert %.1f us\n", (double)longest / 1e3);
    start = now_ns();
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t key = scattered(i);

        must(hashmap_find(&map, hash_mix(key), key_equal, &key));
    }
    report("hashmap: find, scattered", start, COUNT);
    start = now_ns();
    for (size_t i = 0; i < COUNT; i++)
        hashmap_remove(&map, &entry[scattered(i)].node);
    report("hashmap: remove, scattered", start, COUNT);
    hashmap_fini(&map);
    free(entry);
}

int
main(void)
{
    struct mem *mem = must(mem_new(0));

    bench_wheel(mem);
    bench_seqmap(mem);
    bench_hashmap(mem);
    mem_destroy(mem);
    return 0;
}
