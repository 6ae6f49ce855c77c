/*
 * The load generator keeps its pausing connections in the order in which they continue.
 * Declared in tests/bench/load/connection.h.
 */
#include "load/connection.h"

#include "support/check_main.h"

#include <stdlib.h>

#define COUNT 40

/* The list is in order, in both directions, and has so many members. */
static void
check_pauses(const struct pause_list *p, size_t count)
{
    const struct connection *before = NULL;
    size_t n = 0;

    for (const struct connection *c = p->first; c != NULL; c = c->later, n++) {
        ck_assert_ptr_eq(c->earlier, before);
        ck_assert(before == NULL || before->resume_ns <= c->resume_ns);
        before = c;
    }
    ck_assert_ptr_eq(p->last, before);
    ck_assert_uint_eq(n, count);
}

START_TEST(pausing_connections_are_in_the_order_of_their_ends)
{
    struct connection *all = calloc(COUNT, sizeof *all);
    struct pause_list p = {.first = NULL};

    ck_assert_ptr_nonnull(all);
    check_pauses(&p, 0);
    for (size_t n = 0; n < COUNT; n++) {
        all[n].resume_ns = (int64_t)(n * 23 % 37); /* some are equal */
        pauses_add(&p, &all[n]);
        check_pauses(&p, n + 1);
    }
    for (size_t n = 0; n < COUNT; n++) {
        pauses_remove(&p, &all[n * 7 % COUNT]);
        check_pauses(&p, COUNT - n - 1);
    }
    free(all);
}

START_TEST(connections_with_the_same_end_are_in_the_order_of_their_pauses)
{
    struct connection *both = calloc(2, sizeof *both);
    struct pause_list p = {.first = NULL};

    ck_assert_ptr_nonnull(both);
    pauses_add(&p, &both[0]);
    pauses_add(&p, &both[1]);
    ck_assert_ptr_eq(p.first, &both[0]);
    free(both);
}
