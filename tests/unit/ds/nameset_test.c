/*
 * The set of names agrees with an array under random changes, and pages through names in
 * byte order. Read claimd/ds/nameset.h next.
 */
#include "claimd/ds/nameset.h"

#include "claimd/base/hash.h"
#include "support/check_main.h"
#include "support/random.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAMES = 300 };

/* Names in no order of their index; the naive twin is `in`, searched from end to end. */
struct fixture {
    struct nameset set;
    struct namenode node[NAMES];
    char text[NAMES][16];
    struct bytes name[NAMES];
    bool in[NAMES];
    size_t count;
};

static struct fixture *
fixture_open(void)
{
    struct fixture *f = calloc(1, sizeof(*f));

    ck_assert_ptr_nonnull(f);
    f->set = (struct nameset){.root = NULL};
    for (size_t i = 0; i < NAMES; i++) {
        int len = snprintf(f->text[i], sizeof(f->text[i]), "%x", (unsigned)(i * 40503));

        f->name[i] = bytes_of(f->text[i], (size_t)len);
    }
    return f;
}

static void
insert(struct fixture *f, size_t i, uint64_t priority)
{
    nameset_insert(&f->set, &f->node[i], f->name[i], priority);
    f->in[i] = true;
    f->count++;
}

static void
take_out(struct fixture *f, size_t i)
{
    nameset_remove(&f->set, &f->node[i]);
    f->in[i] = false;
    f->count--;
}

/* The first name behind the marker, by looking at all of them. */
static struct namenode *
twin_after(struct fixture *f, struct bytes marker)
{
    struct namenode *best = NULL;

    for (size_t i = 0; i < NAMES; i++) {
        if (!f->in[i])
            continue;
        if (bytes_present(marker) && bytes_compare(f->name[i], marker) <= 0)
            continue;
        if (best == NULL || bytes_compare(f->name[i], best->name) < 0)
            best = &f->node[i];
    }
    return best;
}

static void
check_walk(struct fixture *f)
{
    struct namenode *node = nameset_after(&f->set, BYTES_NONE);
    size_t met = 0;

    for (; node != NULL; met++) {
        struct namenode *next = nameset_next(node);

        ck_assert_ptr_eq(next, twin_after(f, node->name));
        node = next;
    }
    ck_assert_uint_eq(met, f->count);
}

START_TEST(random_changes_agree_with_an_array)
{
    struct fixture *f = fixture_open();
    struct random random;
    uint64_t steps = random_operations(20000);

    random.state = random_seed("nameset");
    for (uint64_t step = 0; step < steps; step++) {
        size_t i = random_below(&random, NAMES);
        bool filling = step / 2000 % 2 == 0;

        if (!f->in[i] && (filling || random_once_in(&random, 3)))
            insert(f, i, random_below(&random, 200)); /* some priorities are equal */
        else if (f->in[i] && (!filling || random_once_in(&random, 3)))
            take_out(f, i);
        ck_assert(nameset_audit(&f->set));
        ck_assert_uint_eq(f->set.count, f->count);
        ck_assert_ptr_eq(nameset_after(&f->set, f->name[i]), twin_after(f, f->name[i]));
        ck_assert_ptr_eq(nameset_after(&f->set, BYTES_NONE), twin_after(f, BYTES_NONE));
        ck_assert_ptr_eq(nameset_find(&f->set, f->name[i]),
                         f->in[i] ? &f->node[i] : NULL);
        if (random_once_in(&random, 500))
            check_walk(f);
    }
    while (f->count > 0) {
        size_t i = (size_t)(nameset_after(&f->set, BYTES_NONE) - f->node);

        take_out(f, i);
        ck_assert(nameset_audit(&f->set));
    }
    ck_assert_ptr_null(f->set.root);
    free(f);
}

START_TEST(names_come_in_byte_order)
{
    static const char *const sorted[] = {"", "A", "a", "a-", "a0", "aa", "b", "\xc3\xa4"};
    enum { COUNT = sizeof(sorted) / sizeof(sorted[0]) };
    struct namenode nodes[COUNT];
    struct namenode *node;
    struct nameset set;

    set = (struct nameset){.root = NULL};
    for (size_t i = 0; i < COUNT; i++) {
        size_t turn = i * 5 % COUNT;

        nameset_insert(&set, &nodes[turn], bytes_str(sorted[turn]), hash_mix(turn));
    }
    node = nameset_after(&set, BYTES_NONE);
    for (size_t i = 0; i < COUNT; i++, node = nameset_next(node))
        ck_assert_ptr_eq(node, &nodes[i]);
    ck_assert_ptr_null(node);
}

START_TEST(a_marker_need_not_be_in_the_set)
{
    struct namenode b, d;
    struct nameset set;

    set = (struct nameset){.root = NULL};
    ck_assert_ptr_null(nameset_after(&set, BYTES_NONE));
    nameset_insert(&set, &b, bytes_str("b"), 1);
    nameset_insert(&set, &d, bytes_str("d"), 2);
    ck_assert_ptr_eq(nameset_after(&set, bytes_str("")), &b); /* empty, not absent */
    ck_assert_ptr_eq(nameset_after(&set, bytes_str("a")), &b);
    ck_assert_ptr_eq(nameset_after(&set, bytes_str("b")), &d);
    ck_assert_ptr_eq(nameset_after(&set, bytes_str("c")), &d);
    ck_assert_ptr_null(nameset_after(&set, bytes_str("d")));
}

static size_t
depth_of(const struct namenode *node)
{
    size_t depth = 0;

    for (; node != NULL; node = node->parent)
        depth++;
    return depth;
}

START_TEST(names_inserted_in_order_make_no_list)
{
    enum { COUNT = 20000 };
    struct namenode *nodes = calloc(COUNT, sizeof(*nodes));
    char(*text)[8] = calloc(COUNT, sizeof(*text));
    size_t deepest = 0;
    struct nameset set;

    ck_assert_ptr_nonnull(nodes);
    ck_assert_ptr_nonnull(text);
    set = (struct nameset){.root = NULL};
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(text[i], sizeof(text[i]), "%05u", (unsigned)i);
        nameset_insert(&set, &nodes[i], bytes_str(text[i]), hash_mix(i));
    }
    for (size_t i = 0; i < COUNT; i++)
        if (depth_of(&nodes[i]) > deepest)
            deepest = depth_of(&nodes[i]);
    ck_assert_uint_lt(deepest, 60); /* about 3 log2(n) is usual; a list has 20000 */
    ck_assert(nameset_audit(&set));
    free(text);
    free(nodes);
}
