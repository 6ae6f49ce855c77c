/*
 * finishing: words for finish and redrive, for the tests of stores
 * (support/store_fixture.h).
 *
 *     struct finishing g = finishing_of(f, claim);
 *
 *     then_delete(&g, 1);
 *     then_release(&g, 2, 30, "busy");
 *     then_dead_letter(&g, 3, "bad input");
 *     then_post(&g, "next", 2);
 *     ck_assert_status(finish(f, &g), ST_OK);
 *
 * The messages that it posts get the next numbers of the fixture.
 */
#ifndef TESTS_SUPPORT_FINISHING_H
#define TESTS_SUPPORT_FINISHING_H

#include "support/dead_letters.h"

enum { FINISHING_ITEMS = 80, FINISHING_POSTS = STORE_FINISH_POSTS, FINISHING_DRAFTS = 4 };

struct finishing {
    struct fixture *f;
    struct store_finish request;
    struct store_id claim;
    struct store_terms terms;
    struct store_finish_item items[FINISHING_ITEMS];
    struct store_finish_post posts[FINISHING_POSTS];
    struct store_draft drafts[FINISHING_POSTS][FINISHING_DRAFTS];
};

/* One that is atomic, from the client "worker", of nothing yet. */
struct finishing finishing_of(struct fixture *f, struct store_id claim);

/* reason: NULL: none. */
void then_delete(struct finishing *g, int number);
void then_release(struct finishing *g, int number, int64_t delay_s, const char *reason);
void then_dead_letter(struct finishing *g, int number, const char *reason);

/* To a queue that is made if it does not exist. For 3600 s without delay. */
void then_post(struct finishing *g, const char *queue, size_t count);
void then_renew(struct finishing *g, int64_t ttl_s, int64_t grace_s);

/* Does it, in the fixture's queue. */
enum status finish(struct fixture *f, struct finishing *g);

/* Was the i-th item held? */
static inline bool
was_held(const struct finishing *g, size_t i)
{
    return g->request.items[i].held;
}

/* Checks the details of a message of the fixture's queue. Texts: NULL: none; times:
 * seconds from START_MS, -1: none. */
void expect_details(struct fixture *f, int number, const char *reason, const char *client,
                    int64_t released_s, const char *origin, int64_t dead_lettered_s);
#define expect_details(f, ...) FROM_LINE(expect_details(f, __VA_ARGS__))

/* The result of a redrive, over all its calls. */
struct redriven {
    size_t moved, unknown_origin, calls;
    uint64_t remaining;
};

/* Repeats a redrive of the fixture's queue until its limit is reached or all was looked
 * at. */
struct redriven redrive(struct fixture *f, struct store_redrive which);

/* The same to where they came from, all of them. */
struct redriven redrive_all(struct fixture *f);

#endif
