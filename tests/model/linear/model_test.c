/*
 * The model of the search (model/linear/model.h) is small and fast. The twin is its
 * reference. In random histories of one thread the model accepts each response of the
 * twin, and no other response, and says what the twin does with a request.
 */
#include "model/linear/model.h"
#include "support/delete.h"
#include "support/finishing.h"
#include "support/random.h"

#include <stdio.h>

enum { HISTORY = 150, RECENT_CLAIMS = 6, CODES_END = 500 };

/* Kinds of requests with the codes that they can get. */
enum { OUTCOMES = 23 };

struct play {
    struct fixture f; /* of a twin. It numbers the messages */
    struct random random;
    struct model model;
    struct store_id claims[LINEAR_CLAIMS + 1]; /* by number */
    uint8_t claimed;                           /* claims so far */
    bool paused;
    struct store_unique unique; /* of the last request, */
    char key[8];                /* and its key */
};

static const struct reserved nothing = {0, 0};

static uint8_t
one_to(struct play *p, uint64_t most)
{
    return (uint8_t)(1 + random_below(&p->random, most));
}

/* Any message of the history, deleted or not; 0: there is none yet. */
static uint8_t
some_message(struct play *p)
{
    return p->f.posted == 0 ? 0 : one_to(p, (uint64_t)p->f.posted);
}

/* One of the last claims, over or not; 0: there is none yet. */
static uint8_t
some_claim(struct play *p)
{
    uint8_t recent = p->claimed < RECENT_CLAIMS ? p->claimed : RECENT_CLAIMS;

    return recent == 0 ? 0 : (uint8_t)(p->claimed + 1 - one_to(p, recent));
}

/* Bodies are the numbers of the messages. */
static void
read_seen(const struct play *p, struct operation *op)
{
    ck_assert_uint_le(p->f.seen.count, LINEAR_BATCH);
    for (size_t i = 0; i < p->f.seen.count; i++) {
        int64_t number = 0;

        ck_assert(bytes_to_i64(p->f.seen.messages[i].body, &number));
        op->messages[i] = (uint8_t)number;
    }
    op->count = (uint8_t)p->f.seen.count;
}

/* ---------------------------------------------------------------------- requests */

/* Draws a key of few for a post of one message; NULL: none. */
static const struct store_unique *
draw_unique(struct play *p, struct operation *op)
{
    if (random_chance(&p->random, 40))
        return NULL;
    op->unique = one_to(p, LINEAR_KEYS);
    op->until_claimed = random_chance(&p->random, 40);
    (void)snprintf(p->key, sizeof(p->key), "k%u", op->unique);
    p->unique = (struct store_unique){.key = bytes_str(p->key),
                                      .until_claimed = op->until_claimed};
    return &p->unique;
}

static uint8_t
number_of(const struct play *p, struct store_id id)
{
    int number = 1;

    while (number <= p->f.posted && !id_same(p->f.ids[number], id))
        number++;
    ck_assert_int_le(number, p->f.posted);
    return (uint8_t)number;
}

/* Posts the next message with a key. */
static void
post_unique(struct play *p, struct operation *op, const struct store_unique *unique)
{
    struct store_op call = {.now_ms = p->f.now_ms};
    struct store_draft draft = {.ttl_s = 3600};
    const struct store_post request = {.drafts = &draft, .count = 1, .unique = unique};
    struct store_id id;
    char body[12];

    (void)snprintf(body, sizeof(body), "%d", p->f.posted + 1);
    draft.body = bytes_str(body);
    ck_assert_status(store_message_post(p->f.store, &call, &p->f.queue, &request, &id),
                     ST_OK);
    if (call.existing)
        op->existing = number_of(p, id);
    else
        p->f.ids[++p->f.posted] = id;
}

static bool
ask_post(struct play *p, struct operation *op)
{
    const uint8_t count = one_to(p, 3);
    const struct store_unique *unique;

    if (p->f.posted + count > LINEAR_MESSAGES)
        return false;
    op->code = 201;
    unique = count == 1 ? draw_unique(p, op) : NULL;
    if (unique != NULL) {
        post_unique(p, op, unique);
        op->count = op->existing == 0;
        op->messages[0] = op->existing == 0 ? (uint8_t)p->f.posted : 0;
        return true;
    }
    post(&p->f, count);
    while (op->count < count) {
        op->messages[op->count] = (uint8_t)(p->f.posted - count + 1 + op->count);
        op->count++;
    }
    return true;
}

static bool
ask_claim(struct play *p, struct operation *op)
{
    if (p->claimed == LINEAR_CLAIMS)
        return false;
    op->limit = one_to(p, 4);
    op->made = p->claimed + 1;
    p->claims[op->made] = take(&p->f, op->limit);
    read_seen(p, op);
    op->code = op->count == 0 ? 204 : 201;
    if (op->count > 0)
        p->claimed++;
    return true;
}

/* QUERY, RENEW, RELEASE. */
static bool
ask_with_claim(struct play *p, struct operation *op)
{
    enum status st = ST_OK;

    op->claim = some_claim(p);
    if (op->claim == 0)
        return false;
    if (op->kind == LINEAR_QUERY)
        st = query(&p->f, p->claims[op->claim]);
    else if (op->kind == LINEAR_RENEW)
        st = renew(&p->f, p->claims[op->claim], 300, 60);
    else
        release(&p->f, p->claims[op->claim]);
    if (st == ST_OK && op->kind == LINEAR_QUERY)
        read_seen(p, op);
    op->code = st != ST_OK ? 404 : op->kind == LINEAR_QUERY ? 200 : 204;
    return true;
}

static bool
ask_delete(struct play *p, struct operation *op)
{
    enum status st;

    op->message = some_message(p);
    if (op->message == 0)
        return false;
    if (random_chance(&p->random, 70))
        op->claim = some_claim(p);
    st = op->claim == 0 ? delete_unclaimed(&p->f, op->message)
                        : delete_claimed(&p->f, op->message, p->claims[op->claim]);
    op->code = st == ST_CLAIMED ? 403 : st == ST_NOT_CLAIMED ? 400 : 204;
    return true;
}

static bool
ask_delete_many(struct play *p, struct operation *op)
{
    struct bytes ids[3], claim;

    if (p->f.posted == 0)
        return false;
    for (; op->count < 3; op->count++) {
        op->messages[op->count] = some_message(p);
        ids[op->count] = id_of(&p->f, op->messages[op->count]);
    }
    if (random_chance(&p->random, 50))
        op->claim = some_claim(p);
    claim = store_id_bytes(&p->claims[op->claim]);
    op->code =
        delete_messages(p->f.store, STORE_AT(p->f.now_ms), &p->f.queue, ids, op->count,
                        op->claim == 0 ? NULL : &claim, op->claim != 0) == ST_OK
            ? 204
            : 400;
    return true;
}

static bool
ask_get(struct play *p, struct operation *op)
{
    op->message = some_message(p);
    if (op->message == 0)
        return false;
    get(&p->f, op->message);
    op->code = p->f.seen.count == 0 ? 404 : 200;
    return true;
}

static bool
ask_list(struct play *p, struct operation *op)
{
    struct store_filter filter = {.include_claimed = random_chance(&p->random, 50)};

    filter.limit = op->limit = one_to(p, LINEAR_BATCH);
    op->include_claimed = filter.include_claimed;
    list(&p->f, &filter);
    read_seen(p, op);
    op->code = 200;
    return true;
}

static bool
ask_stats(struct play *p, struct operation *op)
{
    const struct store_stats seen = stats(&p->f);

    op->claimed = (uint8_t)seen.claimed;
    op->total = (uint8_t)seen.total;
    op->code = 200;
    return true;
}

static bool
ask_pop(struct play *p, struct operation *op)
{
    op->limit = one_to(p, 2);
    pop(&p->f, op->limit);
    read_seen(p, op);
    op->code = 200;
    return true;
}

static bool
ask_purge(struct play *p, struct operation *op)
{
    purge(&p->f);
    op->code = 204;
    return true;
}

/* One message to delete, or one to release, or both, and perhaps a post. */
static bool
ask_finish(struct play *p, struct operation *op)
{
    struct finishing g;
    enum status st;

    op->claim = some_claim(p);
    if (op->claim == 0)
        return false;
    g = finishing_of(&p->f, p->claims[op->claim]);
    g.request.atomic = op->atomic = random_chance(&p->random, 50);
    op->messages[op->count++] = some_message(p);
    op->messages[op->count] = some_message(p);
    if (op->messages[1] != op->messages[0])
        op->count++;
    for (size_t i = 0; i < op->count; i++) {
        op->released |= (uint8_t)(random_below(&p->random, 2) << i);
        if ((op->released & 1u << i) != 0)
            then_release(&g, op->messages[i], 0, NULL);
        else
            then_delete(&g, op->messages[i]);
    }
    if (p->f.posted < LINEAR_MESSAGES && random_chance(&p->random, 40)) {
        op->posted = (uint8_t)(p->f.posted + 1);
        then_post(&g, "q", 1);
        g.posts[0].post.unique = draw_unique(p, op);
    }
    st = finish(&p->f, &g);
    op->code = st == ST_OK ? 200 : st == ST_NOT_CLAIMED ? 409 : 404;
    for (size_t i = 0; st == ST_OK && i < op->count; i++)
        op->held |= (uint8_t)(was_held(&g, i) << i);
    if (st == ST_OK && op->posted != 0 && g.posts[0].existing) {
        p->f.posted--;
        op->existing = number_of(p, p->f.ids[op->posted]);
    }
    return true;
}

static bool
ask_pause(struct play *p, struct operation *op)
{
    p->paused = op->pauses = !p->paused;
    pause_queue(&p->f, p->paused ? STORE_PAUSE_CLAIMS : 0);
    op->code = 200;
    return true;
}

static const struct {
    bool (*ask)(struct play *p, struct operation *op);
    unsigned share; /* percent */
} requests[LINEAR_KINDS] = {
    [LINEAR_POST] = {ask_post, 16},
    [LINEAR_CLAIM] = {ask_claim, 24},
    [LINEAR_QUERY] = {ask_with_claim, 6},
    [LINEAR_RENEW] = {ask_with_claim, 4},
    [LINEAR_RELEASE] = {ask_with_claim, 6},
    [LINEAR_DELETE] = {ask_delete, 9},
    [LINEAR_DELETE_MANY] = {ask_delete_many, 4},
    [LINEAR_GET] = {ask_get, 3},
    [LINEAR_LIST] = {ask_list, 7},
    [LINEAR_STATS] = {ask_stats, 6},
    [LINEAR_POP] = {ask_pop, 4},
    [LINEAR_PURGE] = {ask_purge, 1},
    [LINEAR_FINISH] = {ask_finish, 8},
    [LINEAR_PAUSE] = {ask_pause, 2},
};

/* ---------------------------------------------------------------------- the model */

static void
expect_refused(const struct play *p, struct operation op)
{
    struct model state = p->model;

    if (!model_step(&state, &op, nothing))
        return;
    operation_print(&op);
    ck_abort_msg("the model accepts a response that the twin does not give");
}

/* Another code, and fewer, other or more of what the twin returned. */
static void
expect_others_refused(const struct play *p, const struct operation *op)
{
    static const int codes[] = {200, 201, 204, 400, 403, 404, 409};
    const bool shows = op->kind == LINEAR_CLAIM || op->kind == LINEAR_QUERY ||
                       op->kind == LINEAR_LIST || op->kind == LINEAR_POP;
    struct operation other = *op;

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        other.code = codes[i];
        if (codes[i] != op->code)
            expect_refused(p, other);
    }
    other = *op;
    if (shows && op->count > 0) {
        other.messages[0] = op->messages[0] % LINEAR_MESSAGES + 1;
        expect_refused(p, other);
        other = *op;
        other.count--;
        other.code = op->kind == LINEAR_CLAIM && other.count == 0 ? 204 : op->code;
        expect_refused(p, other);
    }
    other = *op;
    other.claimed++;
    if (op->kind == LINEAR_STATS)
        expect_refused(p, other);
    other = *op;
    other.total++;
    if (op->kind == LINEAR_STATS)
        expect_refused(p, other);
    other = *op;
    other.existing = op->existing == 0 ? 1 : op->existing % LINEAR_MESSAGES + 1;
    if (op->unique != 0 && op->code < 300)
        expect_refused(p, other);
    other.existing = op->existing == 0 ? LINEAR_UNKNOWN : 0;
    if (op->unique != 0 && op->code < 300)
        expect_refused(p, other);
    other = *op;
    other.held ^= 1;
    if (op->kind == LINEAR_FINISH && op->code == 200)
        expect_refused(p, other);
}

/* The model says how the twin responds to a request that changes something, and what it
 * leaves. */
static void
expect_response(const struct play *p, const struct operation *op,
                const struct model *after)
{
    struct operation request = *op, response;
    struct model state = p->model;

    request.code = 0;
    request.held = request.existing = 0;
    if (op->kind == LINEAR_CLAIM || op->kind == LINEAR_POP)
        request.count = 0;
    response = model_response(&p->model, &request);
    ck_assert_int_eq(response.code, op->code);
    ck_assert_uint_eq(response.held, op->held);
    ck_assert_uint_eq(response.existing, op->existing);
    ck_assert_uint_eq(response.count, op->count);
    ck_assert_mem_eq(response.messages, op->messages, op->count);
    ck_assert(model_step(&state, &response, nothing));
    ck_assert_mem_eq(&state, after, sizeof(state));
}

static void
check(struct play *p, const struct operation *op)
{
    struct model after = p->model;

    if (!model_step(&after, op, nothing)) {
        operation_print(op);
        ck_abort_msg("the model refuses a response of the twin");
    }
    expect_others_refused(p, op);
    if (model_only_looks(op))
        ck_assert_mem_eq(&after, &p->model, sizeof(after));
    else
        expect_response(p, op, &after);
    p->model = after;
}

static enum linear_kind
some_kind(struct play *p)
{
    uint64_t pick = random_below(&p->random, 100);
    unsigned kind = 0;

    while (pick >= requests[kind].share)
        pick -= requests[kind++].share;
    return (enum linear_kind)kind;
}

/* Returns how many requests were possible. Notes their outcomes. */
static uint64_t
run_history(uint64_t seed, bool outcomes[LINEAR_KINDS][CODES_END])
{
    static struct play p;
    uint64_t asked = 0;

    memset(&p, 0, sizeof(p));
    p.random.state = seed;
    fixture_open(&p.f, FIXTURE_TWIN);
    make_queue(&p.f, NULL);
    for (int i = 0; i < HISTORY; i++) {
        struct operation op = {.kind = some_kind(&p)};

        if (!requests[op.kind].ask(&p, &op))
            continue;
        check(&p, &op);
        outcomes[op.kind][op.code] = true;
        asked++;
    }
    fixture_close(&p.f);
    return asked;
}

START_TEST(the_model_gives_the_responses_of_the_twin_and_no_others)
{
    static bool outcomes[LINEAR_KINDS][CODES_END];
    struct random seeds = {random_seed("linear model")};
    const uint64_t wanted = random_operations(20000);
    size_t different = 0;

    for (uint64_t asked = 0; asked < wanted;)
        asked += run_history(random_next(&seeds), outcomes);
    for (size_t kind = 0; kind < LINEAR_KINDS; kind++)
        for (size_t code = 0; code < CODES_END; code++)
            different += outcomes[kind][code];
    ck_assert_uint_eq(different, OUTCOMES);
}
