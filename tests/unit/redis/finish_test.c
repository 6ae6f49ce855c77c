/*
 * Transfers between the queues of a store on Redis: messages that arrive late, and data
 * of older versions. store/finish_test and store/redrive_test say what a finish and a
 * redrive do, and model/model_test_redis compares both with the twin.
 */
#include "support/dead_letters.h"
#include "support/patient.h"
#include "support/redis_server.h"

#include "redis/call.h"

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

static const struct store_unique unique = {.key = BYTES_LIT("k"), .due_ms = 77};

/* Claims a message, deletes it, and posts the next one to queue "next", which is
 * damaged. key: NULL: none. */
static void
finish_with_key(struct fixture *f, bool damaged, const struct store_unique *key)
{
    struct store_id claim = take(f, 1), id;
    struct store_finish_item item = {.action = STORE_FINISH_DELETE,
                                     .id = store_id_bytes(&f->seen.messages[0].id)};
    const struct store_draft draft = {bytes_str("posted"), 300, STORE_UNSET};
    struct store_finish_post to = {
        .queue = bytes_str("next"),
        .post = {.drafts = &draft, .count = 1, .create_queue = true, .unique = key},
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

static void
finish_with_post(struct fixture *f, bool damaged)
{
    finish_with_key(f, damaged, NULL);
}

/* Posts a message with the key. True: the queue did not have one. */
static bool
post_unique(struct fixture *f)
{
    struct store_op op = {.now_ms = f->now_ms};
    char body[16];
    const struct store_draft draft = {
        bytes_of(body, (size_t)snprintf(body, sizeof(body), "%d", f->posted + 1)), 300,
        STORE_UNSET};
    const struct store_post post = {
        .drafts = &draft, .count = 1, .create_queue = true, .unique = &unique};
    struct store_id id;

    ck_assert_status(store_message_post(f->store, &op, &f->queue, &post, &id), ST_OK);
    if (!op.existing)
        f->ids[++f->posted] = id;
    return !op.existing;
}

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

/* ------------------------------------------------------------------ keys */

STORE_TEST_WITH(a_late_post_is_dropped_if_its_key_is_held_when_it_arrives,
                fixture_open(f, FIXTURE_REDIS))
{
    post(f, 2);
    finish_with_post(f, false);
    finish_with_key(f, true, &unique);
    use(f, "next");
    ck_assert(post_unique(f));
    use(f, "q");
    wait_s(f, 5);
    ck_assert(id_empty(take(f, 1)));
    use(f, "next");
    expect_stats(f, 0, 2);
    ck_assert(!post_unique(f));
}

STORE_TEST_WITH(a_late_post_has_its_due_time, fixture_open(f, FIXTURE_REDIS))
{
    post(f, 2);
    finish_with_post(f, false);
    finish_with_key(f, true, &unique);
    wait_s(f, 5);
    ck_assert(id_empty(take(f, 1)));
    use(f, "next");
    list_all(f);
    ck_assert_uint_eq(f->seen.count, 2);
    ck_assert_int_eq(f->seen.messages[1].details->unique.due_ms, 77);
}

static struct call
begin_call(struct fixture *f)
{
    return call_begin(redis_of(patient_inside(f->store)), STORE_AT(f->now_ms), &f->queue);
}

/* Begins a redrive of "failed" whose process ends when the message is in transfer. */
static void
begin_redrive(struct fixture *f)
{
    struct call c = begin_call(f);

    call_number(&c, 0);
    call_number(&c, 10);
    call_text(&c, "");
    call_text(&c, "failed");
    for (int i = 0; i < 3; i++)
        call_number(&c, 0);
    call_text(&c, "q"); /* which holds no key */
    call_text(&c, "0");
    call_word(&c, unique.key);
    ck_assert_status(call_finish(&c, SCRIPT_redrive, CALL_CHANGE), ST_OK);
    expect_stats(f, 0, 0);
}

STORE_TEST_WITH(a_dead_letter_returns_if_its_key_is_held_when_it_arrives,
                fixture_open(f, FIXTURE_REDIS))
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    ck_assert(post_unique(f)); /* 1 */
    wear_out(f, 1, 1);
    claim_nothing(f);
    use(f, "failed");
    begin_redrive(f);
    use(f, "q");
    ck_assert(post_unique(f)); /* 2 */
    use(f, "failed");
    wait_s(f, 5);
    ck_assert_uint_eq(redrive(f).moved, 0);
    list_all(f);
    expect(f, 1);
    ck_assert(bytes_equal_str(f->seen.messages[0].details->origin, "q"));
    ck_assert_int_eq(f->seen.messages[0].details->dead_lettered_ms, f->now_ms - 5000);
    ck_assert(bytes_equal(f->seen.messages[0].details->unique.key, unique.key));
    use(f, "q");
    list_all(f);
    expect(f, 2);
    ck_assert_status(delete_unclaimed(f, 2), ST_OK);
    use(f, "failed");
    ck_assert_uint_eq(redrive(f).moved, 1);
    use(f, "q");
    list_all(f);
    expect(f, 1);
    ck_assert_int_eq(f->seen.messages[0].details->unique.due_ms, 77);
    ck_assert(!post_unique(f));
}

/* Puts two messages with the key back into the queue, as these transfers. Returns how
 * many the queue refuses. */
static size_t
put_back(struct fixture *f, const char *const transfers[2])
{
    enum { REFUSED = 4 };
    const struct store_details details = {
        .origin = f->queue.name, .dead_lettered_ms = f->now_ms, .unique = unique};
    struct call c = begin_call(f);
    size_t refused;

    call_text(&c, "a0000000");
    call_number(&c, 60);
    call_number(&c, 0);
    for (size_t i = 0; i < 2; i++) {
        struct buf text;

        call_text(&c, transfers[i]);
        call_text(&c, transfers[i]); /* as its id */
        call_number(&c, f->now_ms);
        call_number(&c, f->now_ms + 60000);
        call_text(&c, "12345678");
        call_text(&c, "");
        call_text(&c, "back");
        buf_init(&text, c.store->config.mem);
        message_details_write(&text, &details);
        call_buf(&c, &text);
        call_number(&c, 0);
    }
    c.most = 2;
    ck_assert_status(call_run(&c, SCRIPT_dead_letter_post, CALL_CHANGE), ST_OK);
    refused = call_count(&c) - REFUSED;
    call_end(&c);
    fixture_audit(f);
    return refused;
}

/* A process that was slow must not deliver a message that another one has taken back. */
STORE_TEST_WITH(a_queue_remembers_that_it_has_refused_a_message,
                fixture_open(f, FIXTURE_REDIS))
{
    static const char *const first[] = {"b00000000000000000000001",
                                        "b00000000000000000000002"};
    static const char *const second[] = {"b00000000000000000000003",
                                         "b00000000000000000000004"};

    ck_assert(post_unique(f));
    ck_assert_uint_eq(put_back(f, first), 2);
    ck_assert_status(delete_unclaimed(f, 1), ST_OK);
    ck_assert_uint_eq(put_back(f, first), 2);
    expect_stats(f, 0, 0);
    ck_assert_uint_eq(put_back(f, second), 1);
    ck_assert_uint_eq(put_back(f, second), 1);
    expect_stats(f, 0, 1);
    ck_assert(!post_unique(f));
}

/* Sends a post with the key as this transfer. True: a message had the key. */
static bool
send_post(struct fixture *f, struct store_id *existing)
{
    enum { EXISTING = 5 };
    struct call c = begin_call(f);
    bool found;

    call_text(&c, "a0000000");
    call_text(&c, "12345678");
    call_text(&c, "b00000000000000000000001");
    call_number(&c, 60);
    call_number(&c, 0);
    call_number(&c, 0);
    call_unique(&c, &unique, BYTES_NONE, 0);
    call_number(&c, STORE_UNSET);
    call_number(&c, STORE_UNSET);
    call_text(&c, "sent");
    call_text(&c, "");
    ck_assert_status(call_run(&c, SCRIPT_transfer_post, CALL_CHANGE), ST_OK);
    found = call_has(&c, EXISTING);
    if (found)
        call_copy_id(call_item(&c, EXISTING), existing);
    call_end(&c);
    fixture_audit(f);
    return found;
}

STORE_TEST_WITH(a_post_that_was_dropped_for_its_key_does_not_arrive_later,
                fixture_open(f, FIXTURE_REDIS))
{
    struct store_id id;

    ck_assert(post_unique(f));
    for (int i = 0; i < 2; i++) {
        ck_assert(send_post(f, &id));
        ck_assert_str_eq(id.text, f->ids[1].text);
        (void)delete_unclaimed(f, 1);
        expect_stats(f, 0, 0);
    }
}

/* ------------------------------------------------------------ data of older versions */

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
