/* The store on Redis completes work that a moved slot, or a process that died, has left
 * undone. */
#include "support/dead_letters.h"
#include "support/patient.h"
#include "support/redis_server.h"

#include "redis/call.h"

STORE_TEST_WITH(dead_letters_that_could_not_arrive_are_posted_by_a_later_claim,
                fixture_open(f, FIXTURE_REDIS))
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 2);
    wear_out(f, 2, 1);
    redis_server_say(f->redis, "SET claimd:1:{p/failed}:q x\r\n", "+OK\r\n");
    ck_assert(id_empty(take(f, 2))); /* they are on their way */
    expect_stats(f, 0, 0);
    redis_server_say(f->redis, "DEL claimd:1:{p/failed}:q\r\n", ":1\r\n");
    wait_ms(f, 4999);
    ck_assert(id_empty(take(f, 2)));
    use(f, "failed");
    list_all(f);
    expect_nothing(f); /* their sender may still be at it */
    use(f, "q");
    wait_ms(f, 1);
    ck_assert(id_empty(take(f, 2)));
    use(f, "failed");
    list_all(f);
    expect(f, 1, 2);
}

/* The sealer of the fixture refuses a body that begins with '-'. */
STORE_TEST_WITH(a_dead_letter_that_cannot_be_encrypted_holds_up_no_other,
                fixture_open(f, FIXTURE_REDIS))
{
    static const char *const bodies[] = {"-1", "2"};
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct store_draft draft = {.ttl_s = 3600};
    const struct store_post one = {.drafts = &draft, .count = 1};

    settings.encrypt = true;
    use(f, "failed");
    make_queue(f, &settings);
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    for (size_t i = 0; i < 2; i++) {
        draft.body = bytes_str(bodies[i]);
        ck_assert_status(store_message_post(f->store, STORE_AT(f->now_ms), &f->queue,
                                            &one, &f->ids[++f->posted]),
                         ST_OK);
    }
    wear_out(f, 2, 1);
    ck_assert(id_empty(take(f, 2)));
    use(f, "failed");
    expect_stats(f, 0, 1);
    delete_queue(f); /* the next one does not encrypt */
    use(f, "q");
    wait_s(f, 5);
    ck_assert(id_empty(take(f, 2)));
    use(f, "failed");
    list_all(f);
    ck_assert_uint_eq(f->seen.count, 1);
    ck_assert(bytes_equal_str(f->seen.messages[0].body, "-1"));
}

/* Sends a command about each list of claims that end. */
static void
say_to_lists(struct fixture *f, const char *format, const char *response)
{
    char command[64];

    for (int i = 0; i < 8; i++) {
        (void)snprintf(command, sizeof(command), format, i);
        redis_server_say(f->redis, command, response);
    }
}

STORE_TEST_WITH(dead_letters_that_could_not_arrive_are_sent_without_a_request,
                fixture_open(f, FIXTURE_REDIS))
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    take_for(f, 1, 60, 60);
    redis_server_say(f->redis, "SET claimd:1:{p/failed}:q x\r\n", "+OK\r\n");
    wait_s(f, 60);
    housekeep(f);
    redis_server_say(f->redis, "DEL claimd:1:{p/failed}:q\r\n", ":1\r\n");
    use(f, "failed");
    wait_ms(f, 4999);
    housekeep(f);
    list_all(f);
    expect_nothing(f);
    wait_ms(f, 1);
    housekeep(f);
    list_all(f);
    expect(f, 1);
    wait_s(f, 5);
    housekeep(f);
    say_to_lists(f, "EXISTS claimd:1:ends:%d\r\n", ":0\r\n"); /* nothing is left to do */
}

STORE_TEST_WITH(a_queue_whose_process_did_not_list_it_is_listed_a_minute_later,
                fixture_open(f, FIXTURE_REDIS))
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 3);
    take_for(f, 1, 60, 60);
    say_to_lists(f, "SET claimd:1:ends:%d x\r\n", "+OK\r\n");
    say_to_lists(f, "DEL claimd:1:ends:%d\r\n", ":1\r\n");
    take_for(f, 1, 120, 60); /* a look is to come */
    say_to_lists(f, "EXISTS claimd:1:ends:%d\r\n", ":0\r\n");
    wait_ms(f, 120001);
    take_for(f, 1, 60, 60);
    wait_s(f, 60);
    housekeep(f);
    use(f, "failed");
    list_all(f);
    expect(f, 1, 2, 3);
}

STORE_TEST_WITH(transfers_of_before_are_not_sent_twice_with_new_ones,
                fixture_open(f, FIXTURE_REDIS))
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 2);
    take_for(f, 1, 60, 60);
    take_for(f, 1, 70, 60);
    redis_server_say(f->redis, "SET claimd:1:{p/failed}:q x\r\n", "+OK\r\n");
    for (int i = 0; i < 3; i++) {
        wait_s(f, i == 0 ? 60 : 5);
        if (i == 2)
            redis_server_say(f->redis, "DEL claimd:1:{p/failed}:q\r\n", ":1\r\n");
        housekeep(f);
    }
    use(f, "failed");
    list_all(f);
    expect(f, 1, 2);
}

STORE_TEST_WITH(a_node_that_fails_is_avoided_for_some_seconds,
                fixture_open(f, FIXTURE_REDIS))
{
    static const int waits_ms[] = {10000, 9999, 1000};
    static const uint64_t requests[] = {1, 0, 1};
    struct redis_store *s = redis_of(patient_inside(f->store));

    housekeep(f);
    say_to_lists(f, "SET claimd:1:ends:%d x\r\n", "+OK\r\n");
    for (int i = 0; i < 3; i++) {
        const uint64_t before = s->cluster.metrics.requests;

        wait_ms(f, waits_ms[i]);
        housekeep(f);
        ck_assert_uint_eq(s->cluster.metrics.requests - before, requests[i]);
        ck_assert_int_le(store_next_ms(f->store), f->now_ms + 1000);
    }
}

/* Posts the dead letter of a message with this id, of a queue with this tag, once
 * more. */
static void
bring_late(struct fixture *f, const struct store_queue *to, const char *id)
{
    struct redis_store *s = redis_of(patient_inside(f->store));
    struct call c = call_begin(s, STORE_AT(f->now_ms), to);

    call_text(&c, "a00000000000");
    call_number(&c, -1);
    call_text(&c, id); /* the id of its transfer has the same digits */
    call_text(&c, id);
    call_number(&c, f->now_ms);
    call_number(&c, f->now_ms + 60000);
    call_text(&c, "12345678");
    call_text(&c, "");
    call_text(&c, "late");
    call_text(&c, ""); /* no details */
    call_number(&c, 0);
    ck_assert_status(call_run(&c, SCRIPT_dead_letter_post, CALL_CHANGE), ST_OK);
    call_end(&c);
}

/* The lessee of some seconds ago may have been slow. */
STORE_TEST_WITH(a_dead_letter_that_another_process_has_posted_does_not_arrive_again,
                fixture_open(f, FIXTURE_REDIS))
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1);
    wear_out(f, 1, 1);
    ck_assert(id_empty(take(f, 1)));
    use(f, "failed");
    list_all(f);
    expect(f, 1);
    bring_late(f, &f->queue, f->ids[1].text);
    list_all(f);
    expect(f, 1);
    wait_ms(f, 60000 + 30000); /* by far the longest that one is about it */
    bring_late(f, &f->queue, f->ids[1].text);
    expect_stats(f, 0, 1);
    ck_assert(store_audit(f->store));
}

STORE_TEST_WITH(a_queue_with_dead_letters_in_transfer_is_deleted_when_they_have_arrived,
                fixture_open(f, FIXTURE_REDIS))
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 2);
    wear_out(f, 2, 1);
    redis_server_say(f->redis, "SET claimd:1:{p/failed}:q x\r\n", "+OK\r\n");
    ck_assert(id_empty(take(f, 2)));
    ck_assert_status(store_queue_delete(f->store, STORE_AT(f->now_ms), &f->queue),
                     ST_UNAVAILABLE);
    redis_server_say(f->redis, "DEL claimd:1:{p/failed}:q\r\n", ":1\r\n");
    delete_queue(f);
    use(f, "failed");
    list_all(f);
    expect(f, 1, 2);
}

/* How many queues of the project are listed. */
static uint64_t
listed(struct fixture *f)
{
    const struct store_page page = {.project = f->queue.project, .limit = 10};
    struct store_queues queues = STORE_QUEUES_INIT;
    uint64_t count;

    ck_assert_status(store_queue_list(f->store, STORE_AT(f->now_ms), &page, &queues),
                     ST_OK);
    count = queues.count;
    store_queues_release(&queues);
    return count;
}

STORE_TEST_WITH(a_queue_that_could_not_be_listed_is_listed_by_the_next_post,
                fixture_open(f, FIXTURE_REDIS))
{
    const struct store_draft draft = {bytes_str("1"), 300, 0};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .create_queue = true};
    struct store_id id;

    redis_server_say(f->redis, "SET claimd:1:{p}:n x\r\n", "+OK\r\n");
    ck_assert_status(
        store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &request, &id),
        ST_UNCONFIRMED); /* it is there, but not where it should be */
    redis_server_say(f->redis, "DEL claimd:1:{p}:n\r\n", ":1\r\n");
    ck_assert_uint_eq(listed(f), 0);
    expect_stats(f, 0, 1);
    post(f, 1);
    ck_assert_uint_eq(listed(f), 1);
}

STORE_TEST_WITH(keys_of_another_program_are_an_error_and_stay,
                fixture_open(f, FIXTURE_REDIS))
{
    struct store_stats seen;

    redis_server_say(f->redis, "SET claimd:1:{p/q}:q theirs\r\n", "+OK\r\n");
    ck_assert_status(store_queue_stats(f->store, STORE_AT(f->now_ms), &f->queue, &seen),
                     ST_UNAVAILABLE);
    ck_assert_status(store_queue_delete(f->store, STORE_AT(f->now_ms), &f->queue),
                     ST_UNAVAILABLE);
    redis_server_say(f->redis, "GET claimd:1:{p/q}:q\r\n", "$6\r\ntheirs\r\n");
    use(f, "r");
    post(f, 1);
    expect_stats(f, 0, 1);
}

STORE_TEST_WITH(the_audit_sees_what_does_not_agree, fixture_open(f, FIXTURE_REDIS))
{
    post(f, 2);
    ck_assert(store_audit(f->store));
    redis_server_say(f->redis, "ZREM claimd:1:{p/q}:t 1\r\n", ":1\r\n");
    ck_assert(!store_audit(f->store));
    delete_queue(f);
}
