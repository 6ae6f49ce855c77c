/*
 * The checker itself: it takes histories that a correct server could have had, and
 * refuses those that break a promise.
 */
#include "model/linear/search.h"
#include "support/check_main.h"

#include <string.h>

/* A history being written down. Operations follow each other unless a test overlaps
 * them. */
struct script {
    struct operation ops[32];
    size_t count;
    int64_t now_ns;
};

/* Adds an operation that begins and ends after all that came before. */
static struct operation *
then(struct script *s, struct operation op)
{
    op.call_ns = s->now_ns + 1;
    op.response_ns = s->now_ns + 2;
    s->now_ns += 10;
    s->ops[s->count] = op;
    return &s->ops[s->count++];
}

/* The last two overlap. */
static void
overlap(struct script *s)
{
    s->ops[s->count - 1].call_ns = s->ops[s->count - 2].call_ns;
}

static void
post(struct script *s, uint8_t message)
{
    then(s, (struct operation){
                .kind = LINEAR_POST, .code = 201, .count = 1, .messages = {message}});
}

static void
take(struct script *s, uint8_t made, uint8_t message)
{
    then(s, (struct operation){.kind = LINEAR_CLAIM,
                               .limit = 1,
                               .code = message == 0 ? 204 : 201,
                               .made = made,
                               .count = message != 0,
                               .messages = {message}});
}

static void
act(struct script *s, enum linear_kind kind, uint8_t claim, int code)
{
    then(s, (struct operation){.kind = kind, .claim = claim, .code = code});
}

static void
remove_one(struct script *s, uint8_t message, uint8_t claim, int code)
{
    then(s, (struct operation){
                .kind = LINEAR_DELETE, .message = message, .claim = claim, .code = code});
}

static void
remove_both(struct script *s, uint8_t claim, int code)
{
    then(s, (struct operation){.kind = LINEAR_DELETE_MANY,
                               .claim = claim,
                               .code = code,
                               .count = 2,
                               .messages = {1, 2}});
}

static void
list(struct script *s, bool include_claimed, uint8_t message)
{
    then(s, (struct operation){.kind = LINEAR_LIST,
                               .limit = 20,
                               .include_claimed = include_claimed,
                               .code = 200,
                               .count = message != 0,
                               .messages = {message}});
}

static void
count(struct script *s, uint8_t claimed, uint8_t total)
{
    then(s, (struct operation){
                .kind = LINEAR_STATS, .code = 200, .claimed = claimed, .total = total});
}

static void
pause_claims(struct script *s, bool pauses)
{
    then(s, (struct operation){.kind = LINEAR_PAUSE, .pauses = pauses, .code = 200});
}

static void
expect(const struct script *s, enum verdict verdict)
{
    struct search_result result;

    search(s->ops, s->count, &result);
    ck_assert_int_eq(result.verdict, verdict);
}

/* A test that writes a history `s`, which the checker takes or refuses. */
#define SCRIPT_TEST(id, verdict)                                                         \
    FIXTURE_TEST_AS(id, struct script, s, *s = (struct script){.count = 0},              \
                    expect(s, verdict))
#define ACCEPTS_TEST(id) SCRIPT_TEST(id, LINEARIZABLE)
#define REFUSES_TEST(id) SCRIPT_TEST(id, NOT_LINEARIZABLE)

/* A claim of up to two that would have waited; of this message, or of none (0). */
static void
wait_for(struct script *s, uint8_t made, uint8_t message)
{
    struct operation *op;

    take(s, made, message);
    op = &s->ops[s->count - 1];
    op->waits = true;
    op->limit = 2;
}

/* ---------------------------------------------------------------------- taken */

ACCEPTS_TEST(a_life_of_a_message_is_taken)
{
    post(s, 1);
    post(s, 2);
    take(s, 1, 1);
    act(s, LINEAR_RENEW, 1, 204);
    list(s, false, 2);
    count(s, 1, 2);
    remove_one(s, 1, 0, 403);
    remove_one(s, 1, 1, 204);
    remove_one(s, 2, 1, 400);
    act(s, LINEAR_RELEASE, 1, 204);
    act(s, LINEAR_QUERY, 1, 404);
    take(s, 2, 2);
    act(s, LINEAR_PURGE, 0, 204);
    act(s, LINEAR_QUERY, 2, 404);
    count(s, 0, 0);
}

/* Deletes 1, releases 2, and posts 3, of which the claim held these. */
static struct operation *
finish_some(struct script *s, uint8_t claim, bool atomic, int code, uint8_t held)
{
    return then(s, (struct operation){.kind = LINEAR_FINISH,
                                      .claim = claim,
                                      .atomic = atomic,
                                      .released = 2,
                                      .posted = 3,
                                      .code = code,
                                      .held = held,
                                      .count = 2,
                                      .messages = {1, 2}});
}

/* A claim of both messages, and one that holds the second only. */
static void
claim_two(struct script *s, bool both)
{
    post(s, 1);
    post(s, 2);
    take(s, 1, 1);
    if (!both)
        remove_one(s, 1, 1, 204);
    take(s, both ? 1 : 2, 2);
}

ACCEPTS_TEST(a_finish_is_one_step)
{
    claim_two(s, true);
    (void)finish_some(s, 1, true, 200, 3);
    count(s, 0, 2);
    take(s, 3, 2);
    take(s, 4, 3);
    (void)finish_some(s, 1, true, 409, 0);
    count(s, 2, 2);
}

ACCEPTS_TEST(a_finish_that_is_not_atomic_does_what_it_can)
{
    claim_two(s, false);
    (void)finish_some(s, 2, false, 200, 2);
    count(s, 0, 2);
    take(s, 3, 2);
    take(s, 4, 3);
}

/* A finish without a response has happened, or it never happens. */
LOOP_TEST(a_finish_without_a_response_has_happened_or_not, 2)
{
    struct script s = {.count = 0};

    claim_two(&s, true);
    (void)finish_some(&s, 1, true, 0, 0);
    count(&s, _i == 0 ? 2 : 0, 2);
    if (_i == 1)
        take(&s, 3, 2);
    expect(&s, LINEARIZABLE);
}

REFUSES_TEST(half_of_a_finish_is_refused)
{
    claim_two(s, true);
    (void)finish_some(s, 1, true, 0, 0);
    count(s, 0, 3); /* released and posted, but nothing is deleted */
}

REFUSES_TEST(a_finish_of_what_is_not_held_is_refused)
{
    claim_two(s, false);
    (void)finish_some(s, 2, true, 200, 3);
}

START_TEST(a_finish_of_a_claim_that_is_over_does_nothing)
{
    struct script s = {.count = 0};

    claim_two(&s, true);
    act(&s, LINEAR_RELEASE, 1, 204);
    (void)finish_some(&s, 1, false, 404, 0);
    count(&s, 0, 2);
    expect(&s, LINEARIZABLE);
    (void)finish_some(&s, 1, false, 200, 0);
    expect(&s, NOT_LINEARIZABLE);
}

REFUSES_TEST(a_finish_that_was_refused_has_not_posted)
{
    claim_two(s, false);
    (void)finish_some(s, 2, true, 409, 0);
    count(s, 1, 2);
}

/* Posts a message with the only key; existing: the message that had it; 0: none. */
static struct operation *
post_unique(struct script *s, uint8_t message, uint8_t existing)
{
    return then(s, (struct operation){.kind = LINEAR_POST,
                                      .unique = 1,
                                      .code = 201,
                                      .existing = existing,
                                      .count = existing == 0,
                                      .messages = {existing == 0 ? message : 0}});
}

ACCEPTS_TEST(a_unique_post_names_the_message_that_has_its_key)
{
    post_unique(s, 1, 0);
    take(s, 1, 1);
    post_unique(s, 2, 1);
    count(s, 1, 1);
    remove_one(s, 1, 1, 204);
    post_unique(s, 2, 0);
    count(s, 0, 1);
}

ACCEPTS_TEST(a_claim_frees_a_key_that_is_held_until_then)
{
    post_unique(s, 1, 0)->until_claimed = true;
    post_unique(s, 2, 1);
    take(s, 1, 1);
    post_unique(s, 2, 0);
    count(s, 1, 2);
}

REFUSES_TEST(two_messages_with_one_key_are_refused)
{
    post_unique(s, 1, 0);
    post_unique(s, 2, 0);
}

REFUSES_TEST(a_deleted_message_does_not_hold_its_key)
{
    post_unique(s, 1, 0);
    remove_one(s, 1, 0, 204);
    post_unique(s, 2, 1);
}

/* A post without a response may have added the message that has the key. */
LOOP_TEST(a_key_may_be_that_of_a_post_that_was_cut_off, 2)
{
    struct script s = {.count = 0};

    post_unique(&s, 1, 0)->code = _i == 0 ? 0 : 201;
    if (_i == 1)
        remove_one(&s, 1, 0, 204);
    post_unique(&s, 2, LINEAR_UNKNOWN);
    expect(&s, _i == 0 ? LINEARIZABLE : NOT_LINEARIZABLE);
}

ACCEPTS_TEST(a_bulk_delete_with_a_claim_deletes_only_what_the_claim_holds)
{
    post(s, 1);
    post(s, 2);
    take(s, 1, 1);
    remove_both(s, 1, 400);
    count(s, 1, 2);
    remove_one(s, 1, 1, 204);
    take(s, 2, 2);
    remove_both(s, 2, 204);
    count(s, 0, 0);
}

ACCEPTS_TEST(requests_at_the_same_time_may_happen_in_either_order)
{
    post(s, 1);
    list(s, false, 0);
    overlap(s);
    post(s, 2);
    post(s, 3);
    overlap(s);
    remove_one(s, 1, 0, 204);
    take(s, 1, 3);
    take(s, 2, 2);
}

/*
 * Two waiters of up to two messages, the first of which was in the wait queue before the
 * second was called, and then a post of three: the second gets this message.
 */
static void
wait_in_line(struct script *s, uint8_t second_gets)
{
    struct operation *first, *second, *posted;

    wait_for(s, 1, 1);
    wait_for(s, 2, second_gets);
    then(s, (struct operation){
                .kind = LINEAR_POST, .code = 201, .count = 3, .messages = {1, 2, 3}});
    first = &s->ops[0];
    second = &s->ops[1];
    posted = &s->ops[2];
    first->queued_ns = first->call_ns + 1;
    first->response_ns = second->response_ns = posted->response_ns + 1;
}

/* The first one gets both. */
static void
give_two_to_the_first(struct script *s)
{
    s->ops[0].count = 2;
    s->ops[0].messages[1] = 2;
}

START_TEST(a_waiter_takes_what_is_behind_the_reserved_messages)
{
    struct script s = {.count = 0};

    wait_in_line(&s, 3);
    give_two_to_the_first(&s);
    expect(&s, LINEARIZABLE);
    list(&s, false, 0);
    expect(&s, LINEARIZABLE);
}

ACCEPTS_TEST(a_waiter_gets_nothing_when_all_is_reserved)
{
    wait_in_line(s, 0);
    give_two_to_the_first(s);
    list(s, false, 3);
}

/* ---------------------------------------------------------------------- cut off */

/* The last one has no response; its connection broke when it would have had one. */
static void
cut_off(struct script *s)
{
    struct operation *op = &s->ops[s->count - 1];

    op->code = 0;
    if (op->kind != LINEAR_POST)
        op->count = 0;
}

START_TEST(a_cut_off_operation_has_happened_or_not)
{
    for (uint8_t happened = 0; happened <= 1; happened++) {
        struct script s = {.count = 0};

        post(&s, 1);
        cut_off(&s);
        list(&s, false, happened ? 1 : 0);
        take(&s, 1, happened ? 1 : 0);
        expect(&s, LINEARIZABLE);
    }
}

START_TEST(all_that_changes_something_may_be_cut_off)
{
    static const enum linear_kind kinds[] = {LINEAR_RELEASE, LINEAR_PURGE, LINEAR_POP,
                                             LINEAR_DELETE, LINEAR_DELETE_MANY};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (uint8_t happened = 0; happened <= 1; happened++) {
            struct script s = {.count = 0};

            post(&s, 1);
            if (kinds[i] != LINEAR_POP)
                take(&s, 1, 1);
            then(&s, (struct operation){.kind = kinds[i],
                                        .message = 1,
                                        .claim = 1,
                                        .limit = 1,
                                        .count = 1,
                                        .messages = {1}});
            if (kinds[i] == LINEAR_POP)
                cut_off(&s);
            if (kinds[i] == LINEAR_RELEASE)
                list(&s, false, happened);
            else
                list(&s, true, !happened);
            expect(&s, LINEARIZABLE);
        }
    }
}

ACCEPTS_TEST(a_claim_that_was_cut_off_may_hold_what_it_would_have_got)
{
    post(s, 1);
    post(s, 2);
    take(s, 1, 1);
    cut_off(s);
    count(s, 1, 2);
    take(s, 2, 2);
    remove_one(s, 1, 0, 403);
}

REFUSES_TEST(an_operation_cannot_take_effect_after_its_response)
{
    post(s, 1);
    cut_off(s);
    list(s, false, 0);
    list(s, false, 1);
}

REFUSES_TEST(an_operation_takes_effect_once)
{
    post(s, 1);
    cut_off(s);
    take(s, 1, 1);
    remove_one(s, 1, 1, 204);
    list(s, true, 1);
}

REFUSES_TEST(a_cut_off_operation_does_not_undo_one_with_a_response)
{
    post(s, 1);
    remove_one(s, 2, 0, 204); /* of a message that is not there */
    cut_off(s);
    list(s, false, 0);
}

REFUSES_TEST(a_batch_that_was_cut_off_is_there_or_not_but_never_half)
{
    then(s, (struct operation){.kind = LINEAR_POST, .count = 2, .messages = {1, 2}});
    take(s, 1, 1);
    take(s, 2, 0);
}

START_TEST(a_look_does_not_come_before_what_was_cut_off_unless_it_can)
{
    struct script s = {.count = 0};

    post(&s, 1);
    take(&s, 1, 1);
    then(&s, (struct operation){.kind = LINEAR_RELEASE, .claim = 1}); /* and it has */
    count(&s, 0, 1);
    take(&s, 2, 1);
    expect(&s, LINEARIZABLE);
    s.count = 0;
    post(&s, 1);
    post(&s, 2);
    then(&s, (struct operation){.kind = LINEAR_POST, .count = 1, .messages = {3}});
    list(&s, false, 1); /* shows the same, whether it has happened or not */
    s.ops[s.count - 1].limit = 1;
    count(&s, 0, 3);
    expect(&s, LINEARIZABLE);
}

/* ---------------------------------------------------------------------- refused */

REFUSES_TEST(a_message_claimed_twice_is_refused)
{
    post(s, 1);
    take(s, 1, 1);
    take(s, 2, 1);
    overlap(s); /* even at the same time */
}

REFUSES_TEST(a_lost_message_is_refused)
{
    post(s, 1);
    take(s, 1, 0);
}

REFUSES_TEST(a_message_lost_by_a_release_is_refused)
{
    post(s, 1);
    take(s, 1, 1);
    act(s, LINEAR_RELEASE, 1, 204);
    count(s, 0, 0);
}

REFUSES_TEST(a_release_that_is_not_seen_is_refused)
{
    post(s, 1);
    take(s, 1, 1);
    act(s, LINEAR_RELEASE, 1, 204);
    list(s, false, 0);
}

REFUSES_TEST(a_claim_out_of_order_is_refused)
{
    post(s, 1);
    post(s, 2);
    take(s, 1, 2);
}

REFUSES_TEST(a_released_message_at_the_end_of_the_queue_is_refused)
{
    post(s, 1);
    post(s, 2);
    take(s, 1, 1);
    act(s, LINEAR_RELEASE, 1, 204);
    take(s, 2, 2);
}

REFUSES_TEST(a_delete_with_a_dead_claim_is_refused)
{
    post(s, 1);
    take(s, 1, 1);
    act(s, LINEAR_RELEASE, 1, 204);
    remove_one(s, 1, 1, 204);
}

REFUSES_TEST(a_claim_from_the_past_is_refused)
{
    post(s, 1);
    take(s, 1, 1);
    remove_one(s, 1, 1, 204);
    take(s, 2, 1);
}

REFUSES_TEST(a_waiter_gets_the_oldest_message)
{
    post(s, 1);
    post(s, 2);
    wait_for(s, 1, 2);
}

START_TEST(a_waiter_that_takes_what_is_reserved_for_a_longer_one_is_refused)
{
    struct script s = {.count = 0};

    wait_in_line(&s, 1);
    s.ops[0].messages[0] = 2;
    s.ops[0].count = 2;
    s.ops[0].messages[1] = 3;
    expect(&s, NOT_LINEARIZABLE);
    s.ops[0].queued_ns = 0; /* it is not known which of them was in front */
    s.ops[1].count = 1;
    s.ops[1].limit = 1;
    expect(&s, LINEARIZABLE);
}

REFUSES_TEST(a_waiter_that_takes_less_than_is_left_is_refused)
{
    post(s, 1);
    post(s, 2);
    wait_for(s, 1, 1);
}

REFUSES_TEST(a_count_that_never_was_is_refused)
{
    post(s, 1);
    post(s, 2);
    overlap(s);
    count(s, 0, 1); /* after both */
}

/* Posts all under way together, in the order of their calls or the other way round. */
static void
post_together(struct script *s, uint8_t messages, bool calls_in_order)
{
    for (uint8_t i = 0; i < messages; i++) {
        post(s, (uint8_t)(i + 1));
        s->ops[i].call_ns = calls_in_order ? 1 + i : messages - i;
        s->ops[i].response_ns = 100 + i;
    }
    s->now_ns = 200;
    for (uint8_t i = 0; i < messages; i++) /* single claims: what was posted first? */
        take(s, (uint8_t)(i + 1), (uint8_t)(i + 1));
}

START_TEST(posts_under_way_together_are_put_in_order_whichever_way_it_is)
{
    struct script s = {.count = 0};

    post_together(&s, 14, true);
    expect(&s, LINEARIZABLE);
    s = (struct script){.count = 0};
    post_together(&s, 14, false);
    expect(&s, LINEARIZABLE);
}

START_TEST(those_that_only_look_are_not_tried_in_every_order)
{
    struct search_result result;
    struct script s = {.count = 0};

    post(&s, 1);
    for (int i = 0; i < 24; i++) { /* all under way to the end */
        count(&s, 0, 1);
        s.ops[s.count - 1].response_ns = INT64_MAX;
    }
    take(&s, 1, 0); /* a lost message: every order of what came before is in vain */
    search(s.ops, s.count, &result);
    ck_assert_int_eq(result.verdict, NOT_LINEARIZABLE);
    ck_assert_uint_le(result.states, 2 * s.count);
}

START_TEST(a_search_that_gives_up_says_so)
{
    struct search_result result;
    struct script s = {.count = 0};

    post(&s, 1);
    take(&s, 1, 1);
    act(&s, LINEAR_RELEASE, 1, 204);
    search_within(s.ops, s.count, 2, &result);
    ck_assert_int_eq(result.verdict, GAVE_UP);
    search_within(s.ops, s.count, 3, &result); /* one after the other: a step for each */
    ck_assert_int_eq(result.verdict, LINEARIZABLE);
}

START_TEST(the_operation_that_cannot_be_is_left_over)
{
    struct search_result result;
    struct script s = {.count = 0};

    post(&s, 1);
    take(&s, 1, 1);
    take(&s, 2, 1);
    search(s.ops, s.count, &result);
    ck_assert_uint_eq(result.longest, 2);
    ck_assert(result.ordered[0] && result.ordered[1] && !result.ordered[2]);
}

/* ---------------------------------------------------------------------- pausing */

TEST_CASE("pausing");

ACCEPTS_TEST(a_paused_queue_delivers_nothing)
{
    post(s, 1);
    pause_claims(s, true);
    take(s, 0, 0);
    wait_for(s, 0, 0);
    list(s, false, 1);
    pause_claims(s, false);
    take(s, 1, 1);
}

START_TEST(a_claim_from_a_paused_queue_is_noticed)
{
    struct script s = {.count = 0};

    post(&s, 1);
    pause_claims(&s, true);
    take(&s, 1, 1);
    expect(&s, NOT_LINEARIZABLE);
    overlap(&s); /* it may have been first */
    expect(&s, LINEARIZABLE);
}

REFUSES_TEST(a_resumed_queue_that_delivers_nothing_is_noticed)
{
    post(s, 1);
    pause_claims(s, true);
    pause_claims(s, false);
    take(s, 0, 0);
}

START_TEST(a_pause_without_a_response_may_have_happened)
{
    struct script s = {.count = 0};

    post(&s, 1);
    pause_claims(&s, true);
    s.ops[s.count - 1].code = 0;
    take(&s, 0, 0);
    expect(&s, LINEARIZABLE);
    take(&s, 1, 1);
    expect(&s, NOT_LINEARIZABLE); /* but not for a moment */
}
