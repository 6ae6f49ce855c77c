/*
 * The requests that each scenario of the load generator writes for HTTP, beanstalkd and
 * Redis, and how it reads their responses. Read tests/bench/load/protocol.h next.
 */
#include "load/protocol.h"

#include "support/check_main.h"

/* A plan with two messages a batch, an actor, and the request it wrote last. */
struct fixture {
    struct plan plan;
    struct actor actor;
    struct mem *mem;
    struct buf out;
};

static void
fixture_open(struct fixture *f, const struct protocol *protocol)
{
    *f = (struct fixture){.mem = mem_new(0)};
    f->plan.protocol = protocol;
    f->plan.scenario = SCENARIO_CYCLE;
    f->plan.deleting = DELETE_IN_BULK;
    f->plan.connections = 1;
    f->plan.queues = 1;
    f->plan.batch = 2;
    f->plan.queue_base = "q";
    f->plan.body_head = bytes_str("\"");
    f->plan.body_tail = bytes_str("\"");
    f->plan.http_tail = bytes_str(" HTTP/1.1\r\nHost: h\r\n");
    f->plan.message_ttl = 300;
    f->plan.claim_ttl = 60;
    f->plan.claim_grace = 70;
    f->actor.random = 1;
    buf_init(&f->out, f->mem);
}

static void
fixture_close(struct fixture *f)
{
    buf_fini(&f->out);
    mem_destroy(f->mem);
}

#define PROTOCOL_TEST_WITH(id, open)                                                     \
    FIXTURE_TEST(id, struct fixture, open, fixture_close(f))
#define PROTOCOL_TEST(id) PROTOCOL_TEST_WITH(id, fixture_open(f, &protocol_zaqar))

/* Lets the scenario choose, writes the request, and checks it. */
static struct step
next_request(struct fixture *f, const char *expected)
{
    struct step step;

    ck_assert(scenario_next(&f->plan, &f->actor, 0, &step));
    buf_reset(&f->out, SIZE_MAX);
    ck_assert_uint_gt(f->plan.protocol->build(&f->plan, &f->actor, &step, &f->out), 0);
    buf_byte(&f->out, '\0');
    ck_assert_str_eq(f->out.data, expected);
    return step;
}

/* Gives the response byte by byte. Nothing changes before the last byte. */
static struct reply
respond(struct fixture *f, struct step step, const char *text)
{
    struct reply reply;
    size_t len = strlen(text);

    for (size_t n = 0; n < len; n++)
        ck_assert_int_eq(
            protocol_read(&f->plan, &f->actor, &step, bytes_of(text, n), false, &reply),
            READING_MORE);
    ck_assert_int_eq(
        protocol_read(&f->plan, &f->actor, &step, bytes_of(text, len), false, &reply),
        READING_DONE);
    ck_assert_uint_eq(reply.length, len);
    return reply;
}

static const char zaqar_posted[] = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";
static const char zaqar_claimed[] =
    "HTTP/1.1 201 Created\r\nLocation: http://h/v2/queues/q-0/claims/c9\r\n"
    "Content-Length: 139\r\n\r\n"
    "{\"messages\": [{\"href\": \"/v2/queues/q-0/messages/a1?claim_id=c9\", \"body\": 1},"
    "{\"href\": \"/v2/queues/q-0/messages/a2?claim_id=c9\", \"body\": 2}]}";

static void
post_and_claim(struct fixture *f)
{
    struct step step;
    struct reply reply;

    step =
        next_request(f, "POST /v2/queues/q-0/messages HTTP/1.1\r\nHost: h\r\n"
                        "Content-Type: application/json\r\nContent-Length: 98\r\n\r\n"
                        "{\"messages\": [{\"body\": \"0000000000000000\", \"ttl\": 300}, "
                        "{\"body\": \"0000000000000001\", \"ttl\": 300}]}");
    reply = respond(f, step, zaqar_posted);
    ck_assert_uint_eq(reply.messages, 2);
    step = next_request(f, "POST /v2/queues/q-0/claims?limit=2 HTTP/1.1\r\nHost: h\r\n"
                           "Content-Type: application/json\r\nContent-Length: 24\r\n\r\n"
                           "{\"ttl\": 60, \"grace\": 70}");
    reply = respond(f, step, zaqar_claimed);
    ck_assert_uint_eq(reply.messages, 2);
    ck_assert(!scenario_at_start(&f->plan, &f->actor));
}

TEST_CASE("zaqar");

PROTOCOL_TEST(a_cycle_posts_claims_and_deletes_in_bulk)
{
    struct step step;

    post_and_claim(f);
    step = next_request(
        f, "DELETE /v2/queues/q-0/messages?ids=a1,a2&claim_ids=c9 HTTP/1.1\r\n"
           "Host: h\r\n\r\n");
    ck_assert_uint_eq(respond(f, step, "HTTP/1.1 204 Fine\r\n\r\n").messages, 2);
    ck_assert(scenario_at_start(&f->plan, &f->actor));
}

PROTOCOL_TEST(a_cycle_deletes_one_by_one_with_its_claim)
{
    struct step step;

    f->plan.deleting = DELETE_ONE_BY_ONE;
    post_and_claim(f);
    step = next_request(f, "DELETE /v2/queues/q-0/messages/a1?claim_id=c9 HTTP/1.1\r\n"
                           "Host: h\r\n\r\n");
    ck_assert_uint_eq(respond(f, step, "HTTP/1.1 204 Fine\r\n\r\n").messages, 1);
    step = next_request(f, "DELETE /v2/queues/q-0/messages/a2?claim_id=c9 HTTP/1.1\r\n"
                           "Host: h\r\n\r\n");
    respond(f, step, "HTTP/1.1 204 Fine\r\n\r\n");
    ck_assert(scenario_at_start(&f->plan, &f->actor));
}

PROTOCOL_TEST(a_refused_request_counts_no_messages_and_keeps_its_status)
{
    struct step step = {.op = OP_POST, .count = 2};
    struct reply reply;

    reply = respond(f, step, "HTTP/1.1 503 Full\r\nContent-Length: 0\r\n\r\n");
    ck_assert_int_eq(reply.refused, 503);
    ck_assert_uint_eq(reply.messages, 0);
}

PROTOCOL_TEST(an_empty_claim_leaves_the_hand_empty)
{
    struct step step = {.op = OP_CLAIM, .count = 2};
    struct reply reply;

    reply = respond(f, step, "HTTP/1.1 204 Nothing\r\n\r\n");
    ck_assert_int_eq(reply.refused, 0);
    ck_assert_uint_eq(f->actor.held, 0);
}

TEST_CASE("delivery");

/* The worker of a delivery, whose claims wait. */
static void
delivery_open(struct fixture *f)
{
    fixture_open(f, &protocol_zaqar);
    f->plan.scenario = SCENARIO_DELIVERY;
    f->plan.deleting = DELETE_ONE_BY_ONE;
    f->plan.wait = 20;
    f->plan.poll_ns = 8000;
    f->actor.worker = true;
}

static const char waiting_claim[] =
    "POST /v2/queues/q-0/claims?limit=2 HTTP/1.1\r\nHost: h\r\nPrefer: wait=20\r\n"
    "Content-Type: application/json\r\nContent-Length: 24\r\n\r\n"
    "{\"ttl\": 60, \"grace\": 70}";

PROTOCOL_TEST_WITH(bodies_of_a_producer_contain_their_due_time, delivery_open(f))
{
    struct step step;

    f->actor.worker = false;
    ck_assert(scenario_next(&f->plan, &f->actor, 0x123456789a, &step));
    ck_assert_uint_eq(f->plan.protocol->build(&f->plan, &f->actor, &step, &f->out), 1);
    buf_byte(&f->out, '\0');
    ck_assert_str_eq(f->out.data,
                     "POST /v2/queues/q-0/messages HTTP/1.1\r\nHost: h\r\n"
                     "Content-Type: application/json\r\nContent-Length: 98\r\n\r\n"
                     "{\"messages\": [{\"body\": \"000000123456789a\", \"ttl\": 300}, "
                     "{\"body\": \"000000123456789a\", \"ttl\": 300}]}");
    ck_assert(scenario_at_start(&f->plan, &f->actor));
}

PROTOCOL_TEST_WITH(a_worker_claims_with_long_polling_reads_due_times_and_deletes,
                   delivery_open(f))
{
    struct step step;

    step = next_request(f, waiting_claim);
    /* The second as a server may write it anew; the third belongs to another producer. */
    respond(
        f, step,
        "HTTP/1.1 201 Created\r\nLocation: /v2/queues/q-0/claims/c9\r\n"
        "Content-Length: 198\r\n\r\n"
        "[{\"body\":{\"n\":\"000000123456789a\",\"d\":\"\"},\"href\":\"/messages/a1\"},"
        "{\"href\": \"/messages/a2?claim_id=c9\", \"body\": {\"n\": "
        "\"00000000000000ff\"}},"
        "{\"href\": \"/messages/a3?claim_id=c9\", \"body\": {\"n\": \"many\"}}] ]");
    ck_assert_uint_eq(f->actor.held, 3);
    ck_assert_uint_eq(f->actor.arrived, 2);
    ck_assert_int_eq(f->actor.arrived_due_ns[0], 0x123456789a);
    ck_assert_int_eq(f->actor.arrived_due_ns[1], 0xff);
    step = next_request(f, "DELETE /v2/queues/q-0/messages/a1?claim_id=c9 HTTP/1.1\r\n"
                           "Host: h\r\n\r\n");
    respond(f, step, "HTTP/1.1 204 Fine\r\n\r\n");
    f->actor.next = f->actor.held;
    ck_assert(scenario_at_start(&f->plan, &f->actor));
    next_request(f, waiting_claim);
}

PROTOCOL_TEST_WITH(a_worker_without_long_polling_sends_no_prefer, delivery_open(f))
{
    f->plan.wait = 0;
    next_request(f, "POST /v2/queues/q-0/claims?limit=2 HTTP/1.1\r\nHost: h\r\n"
                    "Content-Type: application/json\r\nContent-Length: 24\r\n\r\n"
                    "{\"ttl\": 60, \"grace\": 70}");
}

PROTOCOL_TEST_WITH(
    a_worker_pauses_behind_an_empty_claim_that_the_server_has_not_waited_with,
    delivery_open(f))
{
    struct step claim = {.op = OP_CLAIM, .count = 2};
    struct step delete = {.op = OP_DELETE, .count = 1};
    int64_t least = INT64_MAX;
    int64_t most = 0;

    for (int n = 0; n < 1000; n++) {
        int64_t pause = scenario_pause(&f->plan, &f->actor, &claim, 0, 7999);

        least = pause < least ? pause : least;
        most = pause > most ? pause : most;
    }
    ck_assert_int_ge(least, 6000);
    ck_assert_int_lt(least, 6100);
    ck_assert_int_le(most, 10000);
    ck_assert_int_gt(most, 9900);
    ck_assert_int_eq(scenario_pause(&f->plan, &f->actor, &claim, 0, 8000), 0);
    ck_assert_int_eq(scenario_pause(&f->plan, &f->actor, &claim, 1, 10), 0);
    ck_assert_int_eq(scenario_pause(&f->plan, &f->actor, &delete, 0, 10), 0);
    f->plan.wait = 0; /* then a slow response is no long polling */
    ck_assert_int_ge(scenario_pause(&f->plan, &f->actor, &claim, 0, 90000), 6000);
    f->plan.scenario = SCENARIO_CYCLE;
    ck_assert_int_eq(scenario_pause(&f->plan, &f->actor, &claim, 0, 10), 0);
}

TEST_CASE("others");

PROTOCOL_TEST_WITH(beanstalk_pipelines_a_batch, fixture_open(f, &protocol_beanstalk))
{
    struct step step;

    step = next_request(f, "put 1024 0 3600 18\r\n\"0000000000000000\"\r\n"
                           "put 1024 0 3600 18\r\n\"0000000000000001\"\r\n");
    ck_assert_uint_eq(respond(f, step, "INSERTED 7\r\nINSERTED 8\r\n").messages, 2);
    step = next_request(f, "reserve-with-timeout 0\r\nreserve-with-timeout 0\r\n");
    ck_assert_uint_eq(
        respond(f, step, "RESERVED 7 3\r\nabc\r\nRESERVED 8 3\r\nd\ne\r\n").messages, 2);
    step = next_request(f, "delete 7\r\ndelete 8\r\n");
    ck_assert_uint_eq(respond(f, step, "DELETED\r\nDELETED\r\n").messages, 2);
    ck_assert(scenario_at_start(&f->plan, &f->actor));
}

PROTOCOL_TEST_WITH(beanstalk_may_have_fewer_than_requested,
                   fixture_open(f, &protocol_beanstalk))
{
    struct step step = {.op = OP_CLAIM, .count = 2};

    respond(f, step, "RESERVED 7 1\r\nx\r\nTIMED_OUT\r\n");
    ck_assert_uint_eq(f->actor.held, 1);
}

PROTOCOL_TEST_WITH(redis_moves_to_a_list_of_its_own_and_removes_from_there,
                   fixture_open(f, &protocol_redis))
{
    struct step step;

    f->plan.batch = 1;
    step = next_request(f, "*3\r\n$5\r\nLPUSH\r\n$10\r\nq-00000000\r\n"
                           "$18\r\n\"0000000000000000\"\r\n");
    respond(f, step, ":1\r\n");
    step = next_request(
        f, "*5\r\n$5\r\nLMOVE\r\n$10\r\nq-00000000\r\n$13\r\nheld:00000000\r\n"
           "$5\r\nRIGHT\r\n$4\r\nLEFT\r\n");
    ck_assert_uint_eq(respond(f, step, "$18\r\n\"0000000000000000\"\r\n").messages, 1);
    step = next_request(f, "*4\r\n$4\r\nLREM\r\n$13\r\nheld:00000000\r\n$1\r\n1\r\n"
                           "$18\r\n\"0000000000000000\"\r\n");
    respond(f, step, ":1\r\n");
    ck_assert(scenario_at_start(&f->plan, &f->actor));
}

TEST_CASE("phases");

PROTOCOL_TEST(filling_stops_exactly_at_its_quota)
{
    _Atomic int64_t quota = 5;
    struct step step;

    f->plan.scenario = SCENARIO_FILL;
    f->plan.quota = &quota;
    ck_assert(scenario_next(&f->plan, &f->actor, 0, &step));
    ck_assert_uint_eq(step.count, 2);
    ck_assert(scenario_next(&f->plan, &f->actor, 0, &step));
    ck_assert_uint_eq(step.count, 2);
    ck_assert(scenario_next(&f->plan, &f->actor, 0, &step));
    ck_assert_uint_eq(step.count, 1);
    ck_assert(!scenario_next(&f->plan, &f->actor, 0, &step));
    ck_assert(!scenario_next(&f->plan, &f->actor, 0, &step));
}

PROTOCOL_TEST(lifetimes_are_chosen_so_that_all_end_in_the_second_behind_the_storm)
{
    _Atomic int64_t quota = 1000;
    int64_t due = 60 * STOPWATCH_SECOND;

    f->plan.scenario = SCENARIO_FILL;
    f->plan.quota = &quota;
    f->plan.expire_ns = due;
    for (int64_t now = 0; now < due; now += STOPWATCH_SECOND / 7) {
        struct step step;

        ck_assert(scenario_next(&f->plan, &f->actor, now, &step));
        ck_assert_int_ge(now + step.ttl * STOPWATCH_SECOND, due);
        ck_assert_int_lt(now + step.ttl * STOPWATCH_SECOND, due + STOPWATCH_SECOND);
    }
}
