/* Paused queues, in any store (enum store_pause). Waiters: waiting_test.c. */
#include "support/finishing.h"

enum { CLAIMS = STORE_PAUSE_CLAIMS, POSTS = STORE_PAUSE_POSTS, BOTH = CLAIMS | POSTS };

/* The requests that the store shows as paused. It also shows PAUSED_BY. */
static unsigned
shown(struct fixture *f)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    struct bytes by;
    unsigned paused;

    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_OK);
    paused = queues.queues[0].metadata.settings.paused;
    by = queues.queues[0].metadata.settings.paused_by;
    ck_assert(paused == 0 ? !bytes_present(by) : bytes_equal_str(by, PAUSED_BY));
    store_queues_release(&queues);
    return paused;
}

/* Claims with this key (NULL: none); returns op.paused. */
static bool
claim(struct fixture *f, size_t limit, const struct store_key *key)
{
    const struct store_terms terms = {300, 60};
    struct store_op op = {.now_ms = f->now_ms, .key = key};

    store_batch_release(&f->seen);
    f->seen = STORE_BATCH_INIT;
    ck_assert_status(
        store_claim_create(f->store, &op, &f->queue, &terms, limit, &f->seen), ST_OK);
    ck_assert_int_eq(id_empty(f->seen.claim_id), f->seen.count == 0);
    fixture_audit(f);
    return op.paused;
}

static bool
take_out(struct fixture *f, size_t limit, const struct store_key *key)
{
    struct store_op op = {.now_ms = f->now_ms, .key = key};

    store_batch_release(&f->seen);
    f->seen = STORE_BATCH_INIT;
    ck_assert_status(store_message_pop(f->store, &op, &f->queue, limit, &f->seen), ST_OK);
    fixture_audit(f);
    return op.paused;
}

/* Tries to post one message. */
static enum status
try_post(struct fixture *f, const struct store_key *key, struct store_id *id)
{
    struct store_op op = {.now_ms = f->now_ms, .key = key};
    const struct store_draft draft = {bytes_str("0"), 3600, 0};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .create_queue = true};
    enum status st = store_message_post(f->store, &op, &f->queue, &request, id);

    fixture_audit(f);
    return st;
}

STORE_CASE("claims");

STORE_TEST(a_paused_queue_delivers_nothing)
{
    post(f, 2);
    pause_queue(f, CLAIMS);
    ck_assert(claim(f, 5, NULL));
    expect_nothing(f);
    ck_assert(take_out(f, 5, NULL));
    expect_nothing(f);
    post(f, 1);
    list_ready(f);
    expect(f, 1, 2, 3);
    expect_stats(f, 0, 3);
    pause_queue(f, 0);
    ck_assert(!claim(f, 2, NULL));
    expect(f, 1, 2);
    ck_assert(!take_out(f, 5, NULL));
    expect(f, 3);
}

STORE_TEST(a_queue_with_paused_posts_delivers)
{
    post(f, 3);
    pause_queue(f, POSTS);
    ck_assert(!claim(f, 1, NULL));
    expect(f, 1);
    ck_assert(!take_out(f, 1, NULL));
    expect(f, 2);
}

STORE_TEST(work_on_claimed_messages_goes_on_while_the_queue_is_paused)
{
    struct finishing g;
    struct store_id held;

    post(f, 5);
    held = take(f, 5);
    pause_queue(f, BOTH);
    ck_assert_status(renew(f, held, 600, 60), ST_OK);
    ck_assert_status(query(f, held), ST_OK);
    expect(f, 1, 2, 3, 4, 5);
    ck_assert_status(delete_claimed(f, 1, held), ST_OK);
    g = finishing_of(f, held);
    then_delete(&g, 2);
    then_release(&g, 3, 0, "busy");
    then_post(&g, "next", 1);
    ck_assert_status(finish(f, &g), ST_OK);
    release(f, held);
    list_ready(f);
    expect(f, 3, 4, 5);
    ck_assert_status(delete_unclaimed(f, 4), ST_OK);
    ck_assert(claim(f, 5, NULL));
    expect_nothing(f);
    pause_queue(f, 0);
    take(f, 5);
    expect(f, 3, 5);
}

STORE_TEST(delays_and_claims_end_while_the_queue_is_paused)
{
    post(f, 1);
    take_for(f, 1, 60, 60);
    post_with(f, 3600, 60);
    pause_queue(f, CLAIMS);
    wait_s(f, 60);
    ck_assert(claim(f, 5, NULL));
    expect_stats(f, 0, 2);
    pause_queue(f, 0);
    take(f, 5);
    expect(f, 1, 2);
}

STORE_TEST(a_claim_moves_no_dead_letter_out_of_a_paused_queue)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 2);
    wear_out(f, 1, 1);
    pause_queue(f, CLAIMS);
    ck_assert(claim(f, 5, NULL));
    list_ready(f);
    expect(f, 1, 2);
    pause_queue(f, 0);
    take(f, 5);
    expect(f, 2);
    expect_only_in(f, 1, "failed");
}

STORE_CASE("posts");

STORE_TEST(a_queue_with_paused_posts_refuses_them)
{
    struct store_id id;

    post(f, 1);
    pause_queue(f, POSTS);
    ck_assert_status(try_post(f, NULL, &id), ST_PAUSED);
    list_all(f);
    expect(f, 1);
    pause_queue(f, 0);
    post(f, 1);
    list_all(f);
    expect(f, 1, 2);
}

STORE_TEST(a_finish_with_a_post_to_a_paused_queue_changes_nothing)
{
    struct finishing g;
    struct store_id held;

    use(f, "next");
    post(f, 1);
    pause_queue(f, POSTS);
    use(f, "q");
    post(f, 1);
    held = take(f, 1);
    g = finishing_of(f, held);
    then_delete(&g, 2);
    then_post(&g, "other", 1);
    then_post(&g, "next", 1);
    ck_assert_status(finish(f, &g), ST_PAUSED);
    ck_assert_uint_eq(g.request.failed_post, 1);
    ck_assert_status(query(f, held), ST_OK);
    expect(f, 2);
    use(f, "next");
    list_all(f);
    expect(f, 1);
    pause_queue(f, CLAIMS);
    use(f, "q");
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "next");
    expect_stats(f, 0, 2);
}

STORE_TEST(a_paused_queue_receives_dead_letters_and_redriven_messages)
{
    struct finishing g;
    struct store_id held;

    use(f, "failed");
    make_queue(f, NULL);
    pause_queue(f, BOTH);
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 2);
    wear_out(f, 1, 1);
    held = take(f, 1); /* moves 1 */
    expect(f, 2);
    g = finishing_of(f, held);
    then_dead_letter(&g, 2, "bad");
    ck_assert_status(finish(f, &g), ST_OK);
    pause_queue(f, BOTH);
    use(f, "failed");
    list_ready(f);
    expect(f, 1, 2);
    ck_assert(claim(f, 5, NULL));
    ck_assert_uint_eq(redrive_all(f).moved, 2);
    use(f, "q");
    list_ready(f);
    expect(f, 1, 2);
}

STORE_CASE("the state");

STORE_TEST(a_pause_survives_a_restart)
{
    post(f, 1);
    for (unsigned paused = BOTH; paused > 0; paused--) {
        pause_queue(f, paused);
        fixture_restart(f);
        ck_assert_uint_eq(shown(f), paused);
    }
    pause_queue(f, 0);
    fixture_restart(f);
    ck_assert_uint_eq(shown(f), 0);
}

STORE_TEST(a_pause_is_loaded_with_the_queue)
{
    struct store_records records = STORE_RECORDS_INIT;

    post(f, 1);
    for (unsigned paused = CLAIMS; paused <= BOTH; paused++) {
        pause_queue(f, paused);
        ck_assert_status(store_read(f->store, STORE_AT(f->now_ms), &f->queue, &records),
                         ST_OK);
        ck_assert_uint_eq(records.all[0].metadata.settings.paused, paused);
        use(f, paused == BOTH ? "c" : paused == POSTS ? "b" : "a");
        ck_assert_status(store_apply(f->store, STORE_AT(f->now_ms), &f->queue,
                                     records.all, records.count),
                         ST_OK);
        store_records_release(&records);
        records = STORE_RECORDS_INIT;
        fixture_audit(f);
        ck_assert_uint_eq(shown(f), paused);
        ck_assert_int_eq(claim(f, 1, NULL), (paused & CLAIMS) != 0);
        ck_assert_uint_eq(f->seen.count, (paused & CLAIMS) == 0);
        use(f, "q");
    }
}

STORE_TEST(a_pause_ends_with_its_queue)
{
    post(f, 1);
    pause_queue(f, BOTH);
    delete_queue(f);
    post(f, 1);
    ck_assert_uint_eq(shown(f), 0);
    take(f, 5);
    expect(f, 2);
}

STORE_TEST(a_purge_keeps_the_pause)
{
    post(f, 1);
    pause_queue(f, CLAIMS);
    purge(f);
    post(f, 1);
    ck_assert(claim(f, 5, NULL));
    ck_assert_uint_eq(shown(f), CLAIMS);
}

STORE_TEST(metrics_and_surveys_show_the_pause)
{
    struct store_queue_metrics row;
    struct store_survey survey = {.project = f->queue.project, .rows = &row, .limit = 1};

    post(f, 1);
    for (unsigned paused = 0; paused <= BOTH; paused++) {
        size_t at = 0;

        pause_queue(f, paused);
        ck_assert_status(store_queue_metrics(f->store, STORE_AT(f->now_ms), &at, &row),
                         ST_OK);
        ck_assert_uint_eq(row.paused, paused);
        ck_assert_uint_eq(row.here.ready, 1);
        ck_assert_status(store_queue_survey(f->store, STORE_AT(f->now_ms), &survey),
                         ST_OK);
        ck_assert_uint_eq(survey.count, 1);
        ck_assert_uint_eq(row.paused, paused);
    }
}

STORE_CASE("keys");

STORE_TEST(a_repeated_request_has_its_first_result_while_the_queue_is_paused)
{
    const struct store_key keys[3] = {{.hash = {1}}, {.hash = {2}}, {.hash = {3}}};
    struct store_id first, again;

    ck_assert_status(try_post(f, &keys[0], &first), ST_OK);
    post(f, 2); /* 1 2, behind the first message, 0 */
    ck_assert(!take_out(f, 1, &keys[1]));
    ck_assert(!claim(f, 1, &keys[2]));
    expect(f, 1);
    pause_queue(f, BOTH);
    ck_assert_status(try_post(f, &keys[0], &again), ST_OK);
    ck_assert(id_same(first, again));
    (void)take_out(f, 1, &keys[1]);
    ck_assert_uint_eq(f->seen.count, 1);
    ck_assert(id_same(f->seen.messages[0].id, first));
    (void)claim(f, 1, &keys[2]);
    expect(f, 1);
}

STORE_TEST(a_request_that_found_a_paused_queue_has_no_result_to_repeat)
{
    const struct store_key keys[3] = {{.hash = {1}}, {.hash = {2}}, {.hash = {3}}};
    struct store_id id;

    post(f, 2);
    pause_queue(f, BOTH);
    ck_assert_status(try_post(f, &keys[0], &id), ST_PAUSED);
    ck_assert(take_out(f, 1, &keys[1]));
    expect_nothing(f);
    ck_assert(claim(f, 1, &keys[2]));
    expect_nothing(f);
    pause_queue(f, 0);
    ck_assert_status(try_post(f, &keys[0], &id), ST_OK);
    ck_assert(!take_out(f, 1, &keys[1]));
    expect(f, 1);
    ck_assert(!claim(f, 1, &keys[2]));
    expect(f, 2);
}
