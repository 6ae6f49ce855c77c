/* The snapshot of the queues that viewers share: one request builds it, others wait
 * (docs/api.md 26.1). */
#include "support/pending.h"

#include <stdio.h>
#include <string.h>

enum { QUEUES = 1000 }; /* two slices of a build */

/* It has many parts, which all names have. */
#define PREFIX "abcdefghijklmnopqrstuvwxyz0123456789"

#define PATH "/claimd/queues?limit=1&sort=name&offset=0"

static void
open_many(struct api_fixture *f)
{
    api_fixture_open(f);
    for (int i = 0; i < QUEUES; i++)
        ck_api(f, "PUT", api_text(f, "/v2/queues/" PREFIX "%03d", i), NULL, 201, NULL);
}

#define SNAPSHOT_TEST(id)                                                                \
    API_TEST_WITH(id, open_many(f))                                                      \
    {                                                                                    \
        if (!api_fixture_on_redis()) /* which keeps a table of its own */                \
            id##_here(f);                                                                \
    }

/* Begins a view. */
static void
view(struct pending *a, struct api_fixture *f, enum api_next expected)
{
    pending_prepare(a, f, "GET", PATH, NULL);
    ck_assert_int_eq(pending_fetch(a), expected);
}

/* The view has its response now. */
static void
ck_viewed(struct pending *a)
{
    ck_assert_int_eq(pending_fetch(a), API_SEND);
    ck_assert_int_eq(a->res.code, 200);
    buf_byte(&a->res.body, '\0');
    ck_assert_ptr_nonnull(strstr(a->res.body.data, "\"total\":1000,\"matching\":1000"));
    pending_end(a);
}

static void
viewers_wait_for_one_build_here(struct api_fixture *f)
{
    struct pending builder, viewers[3];
    const size_t before = mem_used(f->mem);
    size_t during;

    view(&builder, f, API_AGAIN);
    during = mem_used(f->mem);
    for (int i = 0; i < 3; i++)
        view(&viewers[i], f, API_WAIT);
    ck_assert_uint_lt(mem_used(f->mem) - during, (during - before) / 2);
    ck_viewed(&builder);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(viewers[i].ready, 1);
        ck_viewed(&viewers[i]);
    }
}

SNAPSHOT_TEST(viewers_wait_for_one_build)

static void
a_viewer_continues_the_build_of_one_that_left_here(struct api_fixture *f)
{
    struct pending builder, first, second;

    view(&builder, f, API_AGAIN);
    view(&first, f, API_WAIT);
    view(&second, f, API_WAIT);
    pending_end(&builder);
    ck_assert_int_eq(first.ready, 1);
    ck_assert_int_eq(second.ready, 0);
    ck_viewed(&first); /* the second slice is the last one */
    ck_assert_int_eq(second.ready, 1);
    ck_viewed(&second);
}

SNAPSHOT_TEST(a_viewer_continues_the_build_of_one_that_left)

static void
a_build_is_handed_over_again_here(struct api_fixture *f)
{
    struct pending builder, first, second;

    view(&builder, f, API_AGAIN);
    view(&first, f, API_WAIT);
    view(&second, f, API_WAIT);
    pending_end(&builder);
    pending_end(&first); /* it was woken, and leaves before it runs */
    ck_assert_int_eq(second.ready, 1);
    ck_viewed(&second);
}

SNAPSHOT_TEST(a_build_is_handed_over_again)

static void
a_build_that_none_waits_for_is_discarded_here(struct api_fixture *f)
{
    struct pending builder, waiter;
    size_t before;

    view(&builder, f, API_AGAIN);
    view(&waiter, f, API_WAIT);
    pending_end(&waiter);
    pending_end(&builder);
    before = mem_used(f->mem);
    view(&builder, f, API_AGAIN); /* begins anew, and does not wait for the other */
    ck_assert_uint_gt(mem_used(f->mem), before + 50000);
    pending_end(&builder);
    ck_assert_uint_eq(mem_used(f->mem), before);
}

SNAPSHOT_TEST(a_build_that_none_waits_for_is_discarded)

static void
a_request_that_must_not_wait_takes_turns_here(struct api_fixture *f)
{
    struct pending builder, other;

    view(&builder, f, API_AGAIN);
    pending_prepare(&other, f, "GET", PATH, NULL);
    other.req.waiting = NULL;
    ck_assert_int_eq(pending_fetch(&other), API_AGAIN);
    ck_assert_int_eq(pending_fetch(&other), API_AGAIN);
    pending_end(&builder); /* it takes over in its next turn */
    ck_viewed(&other);
}

SNAPSHOT_TEST(a_request_that_must_not_wait_takes_turns)

static void
a_viewer_whose_time_is_over_does_not_wait_again_here(struct api_fixture *f)
{
    struct pending builder, viewer;

    view(&builder, f, API_AGAIN);
    view(&viewer, f, API_WAIT);
    viewer.waiting.end = WAITING_OVER;
    ck_assert_int_eq(pending_fetch(&viewer), API_AGAIN);
    ck_viewed(&builder);
    ck_viewed(&viewer);
}

SNAPSHOT_TEST(a_viewer_whose_time_is_over_does_not_wait_again)

static void
a_viewer_takes_the_build_that_it_waited_for_at_any_age_here(struct api_fixture *f)
{
    struct pending builder, viewer;

    view(&builder, f, API_AGAIN);
    view(&viewer, f, API_WAIT);
    f->c.now_ms += 60000;
    ck_viewed(&builder);
    ck_viewed(&viewer);
    view(&viewer, f, API_AGAIN); /* a new one does not take it */
    pending_end(&viewer);
}

SNAPSHOT_TEST(a_viewer_takes_the_build_that_it_waited_for_at_any_age)

static void
viewers_use_the_last_snapshot_during_a_build_here(struct api_fixture *f)
{
    struct pending builder, viewer;

    ck_api(f, "GET", PATH, NULL, 200, NULL);
    f->c.now_ms += 4000;
    view(&builder, f, API_AGAIN);
    view(&viewer, f, API_SEND);
    pending_end(&viewer);
    f->c.now_ms += 1000; /* now it is too old */
    view(&viewer, f, API_WAIT);
    ck_viewed(&builder);
    ck_viewed(&viewer);
}

SNAPSHOT_TEST(viewers_use_the_last_snapshot_during_a_build)

static void
each_project_has_a_build_of_its_own_here(struct api_fixture *f)
{
    struct pending builder;

    view(&builder, f, API_AGAIN);
    f->c.headers[API_HEADER_PROJECT_ID] = "other";
    ck_api(f, "PUT", "/v2/queues/q", NULL, 201, NULL);
    ck_api(f, "GET", PATH, NULL, 200, NULL);
    ck_assert_uint_eq(f->c.slices, 1);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"total\":1,\"matching\":1,"));
    f->c.headers[API_HEADER_PROJECT_ID] = NULL;
    ck_api(f, "GET", PATH, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"total\":1001,\"matching\":1001"));
    ck_api(f, "GET", PATH "&project=other", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"total\":1,\"matching\":1,"));
    ck_viewed(&builder);
}

SNAPSHOT_TEST(each_project_has_a_build_of_its_own)

static void
few_selections_of_a_snapshot_stay_here(struct api_fixture *f)
{
    size_t before = 0;

    for (int i = 0; i < 200; i++) {
        ck_api(f, "GET", api_text(f, PATH "&q=%.*s", 1 + i / 10, &PREFIX[i % 10]), NULL,
               200, NULL);
        ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"matching\":1000,"));
        if (i == 100)
            before = mem_used(f->mem);
    }
    ck_assert_uint_lt(mem_used(f->mem), before + 65536); /* 400 KB if all stayed */
}

SNAPSHOT_TEST(few_selections_of_a_snapshot_stay)

API_TEST(snapshots_of_few_projects_stay)
{
    size_t used[3];

    for (int i = 0; i < 300; i++) {
        f->c.headers[API_HEADER_PROJECT_ID] = api_text(f, "project%03d", i);
        ck_api(f, "GET", PATH, NULL, 200, NULL);
        if (i % 100 == 99)
            used[i / 100] = mem_used(f->mem);
    }
    ck_assert_uint_lt(used[2] - used[1], (used[1] - used[0]) / 2 + 16384);
    f->c.now_ms += 5000;
    ck_api(f, "GET", PATH, NULL, 200, NULL);
    ck_assert_uint_lt(mem_used(f->mem), used[2]); /* all old ones are gone */
}
