/*
 * Transfers between the queues of a store on Redis: messages that arrive late, and data
 * of older versions. store/finish_test and store/redrive_test say what a finish and a
 * redrive do, and model/model_test_redis compares both with the twin.
 */
#include "support/dead_letters.h"
#include "support/redis_server.h"

#include <stdio.h>

/* ------------------------------------------------------------------ late arrivals */

/* Ensures that scripts which change this queue fail (queue_get does not), until mend().
 * Until then it cannot be audited. */
static void
damage(struct fixture *f, const char *queue)
{
    char command[128];

    snprintf(command, sizeof(command),
             "RENAME claimd:1:{p/%s}:m claimd:1:{p/%s}:away\r\n", queue, queue);
    redis_server_say(f->redis, command, "+OK\r\n");
    snprintf(command, sizeof(command), "SET claimd:1:{p/%s}:m x\r\n", queue);
    redis_server_say(f->redis, command, "+OK\r\n");
}

static void
mend(struct fixture *f, const char *queue)
{
    char command[128];

    snprintf(command, sizeof(command),
             "RENAME claimd:1:{p/%s}:away claimd:1:{p/%s}:m\r\n", queue, queue);
    redis_server_say(f->redis, command, "+OK\r\n");
}

/* Claims a message, deletes it, and posts the next one to queue "next", which is
 * damaged. */
static void
finish_with_post(struct fixture *f, bool damaged)
{
    struct store_id claim = take(f, 1), id;
    struct store_finish_item item = {.action = STORE_FINISH_DELETE,
                                     .id = store_id_bytes(&f->seen.messages[0].id)};
    const struct store_draft draft = {bytes_str("posted"), 300, STORE_UNSET};
    struct store_finish_post to = {
        .queue = bytes_str("next"),
        .post = {.drafts = &draft, .count = 1, .create_queue = true},
        .ids = &id};
    struct store_finish finish = {.claim_id = store_id_bytes(&claim),
                                  .items = &item,
                                  .count = 1,
                                  .posts = &to,
                                  .post_count = 1,
                                  .atomic = true};

    if (damaged)
        damage(f, "next");
    ck_assert_status(
        store_claim_finish(f->store, STORE_AT(f->now_ms), &f->queue, &finish), ST_OK);
    if (damaged)
        mend(f, "next");
    ck_assert(item.held);
    ck_assert_int_eq(to.pending, damaged);
    fixture_audit(f);
}

TEST_CASE("transfers");

STORE_TEST_WITH(a_post_that_could_not_arrive_is_pending_and_comes_with_a_later_claim,
                fixture_open(f, FIXTURE_REDIS))
{
    post(f, 3);
    finish_with_post(f, false);
    finish_with_post(f, true);
    wait_ms(f, 4999);
    ck_assert(!id_empty(take(f, 1)));
    use(f, "next");
    expect_stats(f, 0, 1); /* the process that sent it may still be at it */
    use(f, "q");
    wait_ms(f, 1);
    ck_assert(id_empty(take(f, 1)));
    use(f, "next");
    expect_stats(f, 0, 2);
}

STORE_TEST_WITH(a_queue_is_deleted_when_its_posts_have_arrived,
                fixture_open(f, FIXTURE_REDIS))
{
    post(f, 2);
    finish_with_post(f, false);
    finish_with_post(f, true);
    use(f, "next");
    delete_queue(f);
    use(f, "q");
    delete_queue(f);
    use(f, "next");
    expect_stats(f, 0, 1);
}

/* Makes two dead letters 1 and 2 in "failed". */
static void
make_dead_letters(struct fixture *f)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 2);
    wear_out(f, 2, 1);
    ck_assert(id_empty(take(f, 2)));
    use(f, "failed");
    expect_stats(f, 0, 2);
}

static struct store_redriven
redrive(struct fixture *f)
{
    struct store_redrive which = {.limit = 10};
    struct store_redriven out;

    ck_assert_status(
        store_redrive(f->store, STORE_AT(f->now_ms), &f->queue, &which, &out), ST_OK);
    fixture_audit(f);
    return out;
}

/* Puts the dead letters back to q, which is damaged. */
static void
redrive_in_vain(struct fixture *f)
{
    struct store_redrive which = {.limit = 10};
    struct store_redriven out;

    damage(f, "q");
    ck_assert_status(
        store_redrive(f->store, STORE_AT(f->now_ms), &f->queue, &which, &out),
        ST_UNCONFIRMED);
    mend(f, "q");
    expect_stats(f, 0, 0); /* they are in transfer */
    fixture_audit(f);
}

STORE_TEST_WITH(redrive_stops_at_a_target_that_is_away_and_goes_on_later,
                fixture_open(f, FIXTURE_REDIS))
{
    make_dead_letters(f);
    redrive_in_vain(f);
    wait_ms(f, 4999);
    ck_assert_uint_eq(redrive(f).moved, 0);
    use(f, "q");
    expect_stats(f, 0, 0);
    use(f, "failed");
    wait_ms(f, 1);
    ck_assert_uint_eq(redrive(f).moved, 0);
    use(f, "q");
    list_all(f);
    expect(f, 1, 2);
}

STORE_TEST_WITH(a_scan_of_the_metrics_sends_what_an_ended_process_has_left,
                fixture_open(f, FIXTURE_REDIS))
{
    struct store_metrics metrics;

    make_dead_letters(f);
    redrive_in_vain(f);
    for (int i = 0; i < 2; i++) {
        wait_ms(f, 2500);
        ck_assert_status(store_metrics(f->store, STORE_AT(f->now_ms), &metrics), ST_OK);
        use(f, "q");
        expect_stats(f, 0, i == 0 ? 0 : 2);
    }
}

/* ------------------------------------------------------------ data of older versions */

/* Claims, and finds nothing. */
static void
claim_nothing(struct fixture *f)
{
    const struct store_terms terms = {60, 60};
    struct store_batch batch = STORE_BATCH_INIT;

    ck_assert_status(
        store_claim_create(f->store, STORE_AT(f->now_ms), &f->queue, &terms, 1, &batch),
        ST_OK);
    ck_assert_uint_eq(batch.count, 0);
}

STORE_TEST_WITH(a_dead_letter_in_transfer_of_an_older_version_arrives,
                fixture_open(f, FIXTURE_REDIS))
{
    static const char *const zeros = "\\x00\\x00\\x00\\x00\\x00\\x00";
    char command[512];

    use(f, "failed");
    post(f, 1);
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1); /* 2 */
    wear_out(f, 1, 1);
    damage(f, "failed");
    claim_nothing(f);
    mend(f, "failed");
    /* posted: 2^40, expires: 2^41, client, lengths, id, name, body */
    snprintf(command, sizeof(command),
             "HSET claimd:1:{p/q}:x %s \"%s\\x70\\x42%s\\x80\\x42"
             "clientid\\x06\\x00%sfailed2\"\r\n",
             f->ids[2].text, zeros, zeros, f->ids[2].text);
    redis_server_say(f->redis, command, ":0\r\n");
    wait_s(f, 5);
    claim_nothing(f);
    use(f, "failed");
    list_all(f);
    expect(f, 1, 2);
    ck_assert_int_eq(f->seen.messages[1].posted_ms, INT64_C(1) << 40);
    ck_assert_int_eq(f->seen.messages[1].expires_ms, INT64_C(1) << 41);
    ck_assert_ptr_null(f->seen.messages[1].details);
    ck_assert_uint_eq(redrive(f).unknown_origin, 1);
}

/* An older claimd moves messages without their details. */
STORE_TEST_WITH(details_that_an_older_version_has_left_out_are_none,
                fixture_open(f, FIXTURE_REDIS))
{
    const struct store_filter all = {.limit = 10};
    struct store_batch batch = STORE_BATCH_INIT;

    make_dead_letters(f);
    redis_server_say(f->redis, "HDEL claimd:1:{p/failed}:m e1\r\n", ":1\r\n");
    ck_assert_status(
        store_message_list(f->store, STORE_AT(f->now_ms), &f->queue, &all, &batch),
        ST_OK);
    ck_assert_uint_eq(batch.count, 2);
    ck_assert_ptr_null(batch.messages[0].details);
    ck_assert_ptr_nonnull(batch.messages[1].details);
    ck_assert(bytes_equal_str(batch.messages[1].details->origin, "q"));
    store_batch_release(&batch);
    ck_assert_status(delete_unclaimed(f, 1), ST_OK);
}
