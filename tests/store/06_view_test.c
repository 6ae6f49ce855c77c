/* The survey of all queues, and the listing of a queue's claims (store/store.h). */
#include "support/finishing.h"

#include <stdio.h>

enum { ROWS = 32 };

/* Where a survey stands, and the names that it showed: "p/a p/b ". */
struct tour {
    struct store_survey survey;
    struct store_queue_metrics rows[ROWS];
    char project[STORE_METRICS_PROJECT], name[STORE_METRICS_NAME];
    char seen[2048];
};

static void
tour_begin(struct tour *t, const char *project, size_t limit)
{
    t->survey = (struct store_survey){.project = project == NULL ? BYTES_NONE
                                                                 : bytes_str(project),
                                      .rows = t->rows,
                                      .limit = limit};
    t->seen[0] = '\0';
}

/* One slice. False: there are no more. */
static bool
tour_slice(struct fixture *f, struct tour *t)
{
    struct store_survey *s = &t->survey;
    size_t len = strlen(t->seen);

    ck_assert_status(store_queue_survey(f->store, STORE_AT(f->now_ms), s), ST_OK);
    ck_assert_uint_le(s->count, s->limit);
    for (size_t i = 0; i < s->count; i++)
        len += (size_t)snprintf(t->seen + len, sizeof(t->seen) - len, "%.*s/%.*s%s ",
                                (int)s->rows[i].project_len, s->rows[i].project,
                                (int)s->rows[i].name_len, s->rows[i].name,
                                s->rows[i].gone ? "!" : "");
    if (s->count > 0) {
        const struct store_queue_metrics *last = &s->rows[s->count - 1];

        memcpy(t->project, last->project, last->project_len);
        memcpy(t->name, last->name, last->name_len);
        s->after_project = bytes_of(t->project, last->project_len);
        s->after_name = bytes_of(t->name, last->name_len);
    }
    return s->more;
}

static const char *
tour_all(struct fixture *f, struct tour *t, const char *project, size_t limit)
{
    tour_begin(t, project, limit);
    while (tour_slice(f, t))
        continue;
    return t->seen;
}

static void
make(struct fixture *f, const char *project, const char *queue)
{
    use_project(f, project);
    use(f, queue);
    make_queue(f, NULL);
}

/* ------------------------------------------------------------------ the survey */

STORE_CASE("survey");

STORE_TEST(a_survey_goes_by_project_and_name)
{
    struct tour t;

    ck_assert_str_eq(tour_all(f, &t, NULL, 4), "");
    make(f, "p2", "b");
    make(f, "p10", "z");
    make(f, "p2", "a");
    make(f, "p1", "c");
    for (size_t limit = 1; limit < 6; limit++) {
        ck_assert_str_eq(tour_all(f, &t, NULL, limit), "p1/c p10/z p2/a p2/b ");
        ck_assert_uint_eq(t.survey.total, 4);
        ck_assert_str_eq(tour_all(f, &t, "p2", limit), "p2/a p2/b ");
        ck_assert_uint_eq(t.survey.total, 2);
    }
    t.survey.whole = true;
    t.survey.project = t.survey.after_project = t.survey.after_name = BYTES_NONE;
    t.survey.limit = ROWS;
    t.seen[0] = '\0';
    ck_assert(!tour_slice(f, &t));
    ck_assert_str_eq(t.seen, "p1/c p10/z p2/a p2/b ");
    ck_assert_str_eq(tour_all(f, &t, "p3", 4), "");
    ck_assert_uint_eq(t.survey.total, 0);
}

STORE_TEST(a_survey_goes_on_behind_a_queue_that_was_deleted)
{
    struct tour t;

    make(f, "p1", "a");
    make(f, "p1", "b");
    make(f, "p2", "c");
    make(f, "p3", "d");
    tour_begin(&t, NULL, 2);
    ck_assert(tour_slice(f, &t));
    use_project(f, "p1");
    use(f, "b");
    delete_queue(f);
    use(f, "a");
    delete_queue(f); /* the project is gone, too */
    use_project(f, "p2");
    use(f, "c");
    delete_queue(f);
    while (tour_slice(f, &t))
        continue;
    ck_assert_str_eq(t.seen, "p1/a p1/b p3/d ");
    ck_assert_uint_eq(t.survey.total, 1);
}

STORE_TEST(a_row_shows_the_contents_of_the_queue)
{
    struct store_queue_metrics *row;
    struct store_waiter waiter = {.wants = 0};
    struct tour t;

    make_dead_lettering(f, "q", 3, "failed", STORE_UNSET);
    use(f, "q");
    post(f, 4);
    post_with(f, 300, 60);
    wait_ms(f, 2500);
    (void)take(f, 1);
    wait_ms(f, 1500);
    tour_begin(&t, "p", ROWS);
    (void)tour_slice(f, &t);
    row = &t.rows[t.survey.count - 1];
    ck_assert_str_eq(t.seen, "p/q ");
    ck_assert_uint_eq(row->here.ready, 3);
    ck_assert_uint_eq(row->here.claimed, 1);
    ck_assert_uint_eq(row->here.delayed, 1);
    ck_assert_uint_eq(row->here.claims, 1);
    ck_assert(row->has_oldest);
    ck_assert_int_eq(row->age_ms, 4000);
    ck_assert_int_eq(row->posted_ms, f->now_ms - 4000);
    ck_assert_int_eq(row->claimed_age_ms, 1500);
    ck_assert_uint_eq(row->waiters, 0);
    ck_assert_uint_eq(row->dead_letter_len, 6);
    ck_assert_mem_eq(row->dead_letter, "failed", 6);
    use(f, "empty");
    {
        struct store_terms terms = {300, 60};
        struct store_batch none = STORE_BATCH_INIT;
        struct store_op op = {.now_ms = f->now_ms, .waiter = &waiter};

        make_queue(f, NULL);
        ck_assert_status(store_claim_create(f->store, &op, &f->queue, &terms, 1, &none),
                         ST_OK);
        ck_assert(op.waits);
        store_batch_release(&none);
    }
    tour_begin(&t, "p", ROWS);
    (void)tour_slice(f, &t);
    row = &t.rows[0];
    ck_assert_uint_eq(row->waiters, 1);
    ck_assert(!row->has_oldest);
    ck_assert_int_eq(row->claimed_age_ms, 0);
    ck_assert_uint_eq(row->dead_letter_len, 0);
    store_waiter_leave(f->store, &waiter);
}

STORE_TEST(a_survey_shows_no_message_that_has_expired)
{
    struct tour t;

    post_with(f, 60, 0);
    wait_s(f, 60);
    tour_begin(&t, NULL, ROWS);
    (void)tour_slice(f, &t);
    ck_assert(!t.rows[0].has_oldest);
    ck_assert_uint_eq(t.rows[0].here.ready, 0);
}

/* ------------------------------------------------------------------ claims */

STORE_CASE("claims");

static struct store_id
take_as(struct fixture *f, const char *client)
{
    const struct store_terms terms = {100, 60};
    struct store_op op = {.now_ms = f->now_ms, .client = bytes_str(client)};
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_id id;

    ck_assert_status(store_claim_create(f->store, &op, &f->queue, &terms, 2, &batch),
                     ST_OK);
    id = batch.claim_id;
    store_batch_release(&batch);
    return id;
}

static void
renew_as(struct fixture *f, struct store_id claim, const char *client)
{
    const struct store_terms terms = {200, 60};
    struct store_op op = {.now_ms = f->now_ms, .client = bytes_str(client)};
    uint64_t number;

    ck_assert_status(store_claim_renew(f->store, &op, &f->queue, store_id_bytes(&claim),
                                       &terms, &number),
                     ST_OK);
}

static struct store_claim_page
claims(struct fixture *f, struct store_claim_info *infos, size_t limit,
       struct bytes marker, struct bytes id)
{
    struct store_claim_page page = {
        .id = id, .marker = marker, .claims = infos, .limit = limit};

    ck_assert_status(store_claim_list(f->store, STORE_AT(f->now_ms), &f->queue, &page),
                     ST_OK);
    ck_assert_uint_le(page.count, limit);
    return page;
}

static void
ck_client(const struct store_claim_info *info, const char *client)
{
    ck_assert_uint_eq(info->client_len, strlen(client));
    ck_assert_mem_eq(info->client, client, info->client_len);
}

STORE_TEST(claims_are_listed_oldest_first_page_by_page)
{
    struct store_claim_info infos[8];
    struct store_claim_page page;
    struct store_id taken[5], marker = {""};

    post(f, 10);
    for (size_t i = 0; i < 5; i++) {
        taken[i] = take_as(f, "c");
        if (i % 2 == 1)
            wait_s(f, 1);
    }
    for (size_t limit = 1; limit < 8; limit++) {
        size_t at = 0;

        marker.text[0] = '\0';
        do {
            page = claims(f, infos, limit,
                          id_empty(marker) ? BYTES_NONE : store_id_bytes(&marker),
                          BYTES_NONE);
            for (size_t i = 0; i < page.count; i++)
                ck_assert(id_same(infos[i].id, taken[at++]));
            marker = page.next;
        } while (!id_empty(marker));
        ck_assert_uint_eq(at, 5);
    }
    page = claims(f, infos, 2, BYTES_NONE, BYTES_NONE);
    release(f, taken[0]);
    release(f, taken[1]);
    release(f, taken[2]);
    page = claims(f, infos, 8, store_id_bytes(&page.next), BYTES_NONE);
    ck_assert_uint_eq(page.count, 2);
    ck_assert(id_same(infos[0].id, taken[3]));
}

STORE_TEST(a_claim_names_the_client_that_made_or_renewed_it)
{
    struct store_claim_info infos[4];
    struct store_claim_page page;
    struct store_id first, second;

    post(f, 5);
    first = take_as(f, "c8a8b0a8-2b9e-11e3-b191-71861300734c");
    wait_ms(f, 1500);
    second = take_as(f, "a name that is longer than thirty-six characters");
    page = claims(f, infos, 4, BYTES_NONE, BYTES_NONE);
    ck_assert_uint_eq(page.count, 2);
    ck_client(&infos[0], "c8a8b0a8-2b9e-11e3-b191-71861300734c");
    ck_client(&infos[1], "a name that is longer than thirty-six characters");
    ck_assert_int_eq(infos[0].age_ms, 1500);
    ck_assert_int_eq(infos[0].left_ms, 98500);
    ck_assert_uint_eq(infos[0].messages, 2);
    ck_assert_uint_lt(infos[0].number, infos[1].number);
    renew_as(f, first, "other");
    wait_ms(f, 500);
    ck_assert_status(renew(f, second, 60, 60), ST_OK); /* by a client that is not known */
    ck_assert_status(delete_claimed(f, 1, first), ST_OK);
    page = claims(f, infos, 4, BYTES_NONE, BYTES_NONE);
    ck_client(&infos[0], "other");
    ck_client(&infos[1], "a name that is longer than thirty-six characters");
    ck_assert_int_eq(infos[0].age_ms, 2000);
    ck_assert_int_eq(infos[0].left_ms, 199500);
    ck_assert_uint_eq(infos[0].messages, 1);
    page = claims(f, infos, 1, BYTES_NONE, store_id_bytes(&second));
    ck_assert_uint_eq(page.count, 1);
    ck_assert(id_same(infos[0].id, second));
    release(f, second);
    page = claims(f, infos, 1, BYTES_NONE, store_id_bytes(&second));
    ck_assert_uint_eq(page.count, 0);
}

STORE_TEST(claims_that_are_over_are_not_listed)
{
    struct store_claim_info infos[4];
    struct store_claim_page page = {.claims = infos, .limit = 4};

    ck_assert_status(store_claim_list(f->store, STORE_AT(f->now_ms), &f->queue, &page),
                     ST_NOT_FOUND);
    post(f, 2);
    ck_assert_uint_eq(claims(f, infos, 4, BYTES_NONE, BYTES_NONE).count, 0);
    (void)take_as(f, "c");
    wait_ms(f, 99999);
    ck_assert_uint_eq(claims(f, infos, 4, BYTES_NONE, BYTES_NONE).count, 1);
    ck_assert_int_eq(infos[0].left_ms, 1);
    wait_ms(f, 1);
    ck_assert_uint_eq(claims(f, infos, 4, BYTES_NONE, BYTES_NONE).count, 0);
}

STORE_TEST(a_marker_that_the_store_did_not_make_begins_with_the_oldest_claim)
{
    static const char *const foreign[] = {
        "", "x", "0", "-1", "99999999999999999999999999", "zzzzzzzzzzzzzzzzzzzzzzzz"};
    struct store_claim_info infos[4];

    post(f, 4);
    (void)take_as(f, "c");
    (void)take_as(f, "c");
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        ck_assert_uint_eq(claims(f, infos, 4, bytes_str(foreign[i]), BYTES_NONE).count,
                          2);
}

/* -------------------------------------------- counters, which the twin does not have */

TEST_CASE("counters", .times = FIXTURE_KINDS - FIXTURE_ENGINE);

static void
ck_counts(struct fixture *f, uint64_t posted, uint64_t delivered, uint64_t deleted,
          uint64_t requeued, uint64_t dead_lettered)
{
    const uint64_t expected[] = {[STORE_QUEUE_POSTED] = posted,
                                 [STORE_QUEUE_DELIVERED] = delivered,
                                 [STORE_QUEUE_DELETED] = deleted,
                                 [STORE_QUEUE_REQUEUED] = requeued,
                                 [STORE_QUEUE_DEAD_LETTERED] = dead_lettered};
    struct tour t;
    size_t i = 0;

    tour_begin(&t, "p", ROWS);
    (void)tour_slice(f, &t);
    while (i < t.survey.count &&
           !bytes_equal(f->queue.name, bytes_of(t.rows[i].name, t.rows[i].name_len)))
        i++;
    ck_assert_uint_lt(i, t.survey.count);
    for (size_t k = 0; k < STORE_QUEUE_COUNTERS; k++)
        ck_assert_msg(
            t.rows[i].counts[k] == expected[k], "counter %zu: %llu, wanted %llu", k,
            (unsigned long long)t.rows[i].counts[k], (unsigned long long)expected[k]);
}

STORE_TEST_WITH(messages_are_counted_by_their_queue, fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct store_id claim;

    make_dead_lettering(f, "q", 3, "failed", STORE_UNSET);
    post(f, 4);
    post(f, 1);
    ck_counts(f, 5, 0, 0, 0, 0);
    claim = take(f, 3);
    ck_counts(f, 5, 3, 0, 0, 0);
    ck_assert_status(delete_claimed(f, 1, claim), ST_OK);
    ck_assert_status(delete_unclaimed(f, 4), ST_OK);
    pop(f, 1);
    ck_counts(f, 5, 3, 3, 0, 0);
    release(f, claim);
    ck_counts(f, 5, 3, 3, 2, 0);
    (void)take_for(f, 2, 60, 60);
    wait_s(f, 60);
    ck_counts(f, 5, 5, 3, 4, 0);
    (void)take_for(f, 2, 60, 60);
    wait_s(f, 60);
    ck_counts(f, 5, 7, 3, 4, 2);
    use(f, "failed");
    ck_counts(f, 0, 0, 0, 0, 0); /* dead letters are not posts */
    use(f, "q");
    delete_queue(f);
    post(f, 1);
    ck_counts(f, 1, 0, 0, 0, 0);
}

STORE_TEST_WITH(a_finish_is_counted_by_each_queue_that_it_changes,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct finishing g;

    make_dead_lettering(f, "q", 5, "failed", STORE_UNSET);
    post(f, 5);
    g = finishing_of(f, take(f, 5));
    then_delete(&g, 1);
    then_delete(&g, 2);
    then_release(&g, 3, 0, NULL);
    then_release(&g, 4, 30, "busy");
    then_release(&g, 5, 0, NULL);
    then_post(&g, "next", 2);
    ck_assert_status(finish(f, &g), ST_OK);
    ck_counts(f, 5, 5, 2, 3, 0);
    wait_s(f, 30); /* the end of a delay counts no more */
    ck_counts(f, 5, 5, 2, 3, 0);
    g = finishing_of(f, take(f, 1));
    then_dead_letter(&g, 3, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    ck_counts(f, 5, 6, 2, 3, 1);
    use(f, "next");
    ck_counts(f, 2, 0, 0, 0, 0);
}

/* ---------------------------------------- topics, which the fixture does not compare */

TEST_CASE("topics", .times = 2);

STORE_TEST_WITH(a_survey_has_no_topics,
                fixture_open(f, _i == 0 ? FIXTURE_ENGINE : FIXTURE_REDIS))
{
    struct tour t;

    make(f, "p", "q");
    f->queue.kind = STORE_TOPIC;
    use(f, "t");
    make_queue(f, NULL);
    ck_assert_str_eq(tour_all(f, &t, NULL, 4), "p/q ");
    ck_assert_str_eq(tour_all(f, &t, "p", 4), "p/q ");
    ck_assert_uint_eq(t.survey.total, 1);
}
