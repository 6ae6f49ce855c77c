/*
 * Caching of Keystone tokens (docs/api.md 15.6): how long a result is used, which entries
 * are evicted, and how requests wait in fibers for one verification. fake_keystone
 * responds instead of a network. Read claimd/auth/keystone.h next.
 */
#include "claimd/auth/keystone.h"

#include "claimd/base/fiber.h"
#include "support/arena_fixture.h"
#include "support/fake_keystone.h"

#include <sched.h>
#include <stdio.h>

enum { CACHE_MS = 60000, CACHE_TOKENS = 16, FAR_MS = 3600000 };

/* When tokens end, and long before that. */
static const int64_t end_ms = FAKE_KEYSTONE_END_MS;
static const int64_t start_ms = FAKE_KEYSTONE_END_MS - FAR_MS;

static struct fake_keystone fake;
static struct keystone *k;
static struct executor *executor;
static char health_text[512]; /* all that was reported, guarded by fake.lock */

static void
note_health(void *ctx, enum keystone_health health, const char *why)
{
    size_t len;

    (void)ctx;
    pthread_mutex_lock(&fake.lock);
    len = strlen(health_text);
    (void)snprintf(health_text + len, sizeof(health_text) - len, "%d:%s\n", (int)health,
                   why);
    pthread_mutex_unlock(&fake.lock);
}

static void
open_keystone(void)
{
    const struct keystone_config config = {.mem = f.mem,
                                           .wire = &fake.wire,
                                           .executor = executor,
                                           .roles = fake_keystone_roles,
                                           .key = {1, 2},
                                           .cache_ms = CACHE_MS,
                                           .cache_tokens = CACHE_TOKENS,
                                           .timeout_ms = 60000,
                                           .health = note_health};

    health_text[0] = '\0';
    fake_keystone_init(&fake);
    ck_assert_int_eq(keystone_new(&config, &k), ST_OK);
}

static void
setup(void)
{
    arena_fixture_open();
    executor = NULL;
    open_keystone();
}

static void
teardown(void)
{
    executor_close(executor);
    keystone_free(k);
    fake_keystone_fini(&fake);
    arena_fixture_close();
}

/* The owner of the token, or the status and the reason. */
static const char *
verify(const char *token, int64_t now_ms)
{
    static char text[REASON_CAP + 64];
    struct access_proof proof = {.verdict = NULL};
    struct keystone_caller caller;
    struct reason why;
    enum status st;

    reason_init(&why);
    st = keystone_ask(k, bytes_str(token), now_ms, &proof, &caller, &why);
    if (st == ST_OK)
        (void)snprintf(text, sizeof(text), "%.*s %.*s %x", (int)caller.name.len,
                       caller.name.data, (int)caller.project.len, caller.project.data,
                       caller.roles);
    else
        (void)snprintf(text, sizeof(text), "%s: %s", status_name(st), why.text);
    access_proof_drop(&proof);
    return text;
}

static size_t
verifications(void)
{
    return fake_keystone_requests(&fake);
}

#define NO_TOKEN "UNAUTHORIZED: the token is unknown"
#define AWAY     "UNAVAILABLE: claimd cannot reach the identity server"

TEST_CASE("what is known", .setup = setup, .teardown = teardown);

START_TEST(keystone_verifies_a_token)
{
    ck_assert_str_eq(verify("member,reader@p", start_ms), "ann p 7");
    ck_assert_str_eq(verify("other@p", start_ms), "ann p 0");
    ck_assert_str_eq(verify("admin@", start_ms), "ann  10");
    ck_assert_str_eq(verify("unknown", start_ms), NO_TOKEN);
}

START_TEST(a_response_of_keystone_is_cached_for_a_while)
{
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(verify("member@p", start_ms + i), "ann p 6");
        ck_assert_uint_eq(verifications(), 1);
    }
    ck_assert_str_eq(verify("member@p", start_ms + CACHE_MS - 1), "ann p 6");
    ck_assert_uint_eq(verifications(), 1);
    fake.code = 404; /* it was revoked */
    ck_assert_str_eq(verify("member@p", start_ms + CACHE_MS), NO_TOKEN);
    ck_assert_uint_eq(verifications(), 2);
}

START_TEST(a_refusal_is_cached_for_less_time)
{
    ck_assert_str_eq(verify("unknown", start_ms), NO_TOKEN);
    ck_assert_str_eq(verify("unknown", start_ms + KEYSTONE_REFUSED_MS - 1), NO_TOKEN);
    ck_assert_uint_eq(verifications(), 1);
    ck_assert_str_eq(verify("unknown", start_ms + KEYSTONE_REFUSED_MS), NO_TOKEN);
    ck_assert_uint_eq(verifications(), 2);
}

START_TEST(a_token_ends_at_its_time_whatever_is_known)
{
    ck_assert_str_eq(verify("member@p", end_ms - 10), "ann p 6");
    ck_assert_str_eq(verify("member@p", end_ms - 1), "ann p 6");
    ck_assert_uint_eq(verifications(), 1);
    ck_assert_str_eq(verify("member@p", end_ms), "UNAUTHORIZED: the token has expired");
    ck_assert_str_eq(verify("other@p", end_ms + 1),
                     "UNAUTHORIZED: the token has expired");
}

START_TEST(a_proof_is_good_until_the_token_ends)
{
    struct access_proof proof = {.verdict = NULL};
    struct keystone_caller caller;
    struct reason why;
    const struct bytes token = bytes_str("member@p");

    ck_assert_int_eq(keystone_ask(k, token, start_ms, &proof, &caller, &why), ST_OK);
    keystone_clear_cache(k);
    ck_assert_int_eq(keystone_ask(k, token, end_ms - 1, &proof, &caller, &why), ST_OK);
    ck_assert_uint_eq(verifications(), 1);
    ck_assert_int_eq(keystone_ask(k, token, end_ms, &proof, &caller, &why),
                     ST_UNAUTHORIZED);
    access_proof_drop(&proof);
}

START_TEST(without_a_response_access_is_denied_and_nothing_is_cached)
{
    fake.status = ST_UNAVAILABLE;
    ck_assert_str_eq(verify("member@p", start_ms), AWAY);
    ck_assert_str_eq(verify("member@p", start_ms), AWAY);
    ck_assert_uint_eq(verifications(), 2);
    ck_assert_uint_eq(keystone_count(k), 0);
    fake.status = ST_OK;
    ck_assert_str_eq(verify("member@p", start_ms), "ann p 6");
    fake.status = ST_UNAVAILABLE;
    ck_assert_str_eq(verify("member@p", start_ms + 1),
                     "ann p 6"); /* a cached token is still accepted */
    fake.status = ST_NO_MEMORY;
    ck_assert_str_eq(verify("admin@p", start_ms), "NO_MEMORY: ");
}

START_TEST(unexpected_responses_deny_access)
{
    static const struct {
        int code;
        const char *body;
    } lies[] = {
        {200, ""},
        {200, "{}"},
        {200, "<html>"},
        {200, "{\"token\":{\"expires_at\":\"2026-01-31T13:00:00Z\"}}"},
        {200, "{\"token\":{\"user\":{\"id\":\"x\"},\"roles\":[{\"name\":\"admin\"}]}}"},
        {200, "{\"token\":{\"user\":{\"id\":\"x\"},\"roles\":\"admin\","
              "\"expires_at\":\"2026-01-31T13:00:00Z\"}}"},
        {201, "{\"token\":{\"user\":{\"id\":\"x\"},\"roles\":[{\"name\":\"admin\"}],"
              "\"expires_at\":\"2026-01-31T13:00:00Z\",\"project\":{\"id\":\"p\"}}}"},
        {204, ""},
        {300, ""},
        {302, ""},
        {400, ""},
        {401, ""},
        {403, ""},
        {410, ""},
        {429, ""},
        {500, ""},
        {503, ""},
        {999, ""},
        {-1, ""},
    };

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        fake.code = lies[i].code;
        fake.body = lies[i].body;
        ck_assert_msg(strcmp(verify("admin@p", start_ms), AWAY) == 0, "%d %s",
                      lies[i].code, lies[i].body);
    }
    ck_assert_uint_eq(keystone_count(k), 0);
}

START_TEST(a_malformed_token_is_not_verified)
{
    static const char *const none[] = {"",     "a b",      "a\tb", "a\nb",
                                       "\x7f", "\xc3\xa4", " "};
    static const char reason[] = "UNAUTHORIZED: the token has an invalid format";
    char longest[KEYSTONE_TOKEN_MAX + 2];

    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        ck_assert_str_eq(verify(none[i], start_ms), reason);
    memset(longest, 'a', sizeof(longest));
    longest[KEYSTONE_TOKEN_MAX + 1] = '\0';
    ck_assert_str_eq(verify(longest, start_ms), reason);
    ck_assert_uint_eq(verifications(), 0);
    longest[KEYSTONE_TOKEN_MAX] = '\0';
    ck_assert_str_eq(verify(longest, start_ms), NO_TOKEN);
    ck_assert_uint_eq(verifications(), 1);
}

START_TEST(made_up_tokens_push_no_good_one_out)
{
    char token[32];

    ck_assert_str_eq(verify("member@p", start_ms), "ann p 6");
    for (int i = 0; i < 2 * KEYSTONE_REFUSED_MAX; i++) {
        (void)snprintf(token, sizeof(token), "t%d", i);
        ck_assert_str_eq(verify(token, start_ms), NO_TOKEN);
    }
    ck_assert_uint_eq(keystone_count(k), KEYSTONE_REFUSED_MAX + 1);
    ck_assert_uint_eq(verifications(), 2 * KEYSTONE_REFUSED_MAX + 1);
    ck_assert_str_eq(verify("member@p", start_ms), "ann p 6");
    ck_assert_uint_eq(verifications(), 2 * KEYSTONE_REFUSED_MAX + 1);
}

START_TEST(so_many_good_tokens_are_kept_and_no_more)
{
    char token[32];

    for (int i = 0; i < 3 * CACHE_TOKENS; i++) {
        (void)snprintf(token, sizeof(token), "member@p%d", i);
        (void)verify(token, start_ms);
    }
    ck_assert_uint_eq(keystone_count(k), CACHE_TOKENS);
}

START_TEST(a_forgotten_token_is_verified_again)
{
    ck_assert_str_eq(verify("member@p", start_ms), "ann p 6");
    ck_assert_str_eq(verify("unknown", start_ms), NO_TOKEN);
    keystone_clear_cache(k);
    ck_assert_uint_eq(keystone_count(k), 0);
    fake.code = 404;
    ck_assert_str_eq(verify("member@p", start_ms), NO_TOKEN);
    ck_assert_uint_eq(verifications(), 3);
}

START_TEST(a_change_of_health_is_reported_once_a_second_at_most)
{
    fake.status = ST_UNAVAILABLE;
    (void)verify("a@p", start_ms);
    (void)verify("a@p", start_ms + 2000);
    fake.status = ST_OK;
    (void)verify("a@p", start_ms + 4000);
    fake.code = 401;
    (void)verify("b@p", start_ms + 4100); /* too soon: not reported */
    (void)verify("b@p", start_ms + 6000);
    fake.code = 500;
    (void)verify("b@p", start_ms + 8000);
    ck_assert_str_eq(health_text, "1:there is no response\n"
                                  "0:\n"
                                  "2:Keystone refused the service token (status 401)\n"
                                  "1:Keystone returned status 500\n");
}

START_TEST(each_allocation_may_fail)
{
    for (uint64_t nth = 1;; nth++) {
        const char *said;

        mem_fail_nth(f.mem, nth);
        said = verify("member@p", start_ms);
        mem_fail_nth(f.mem, 0);
        if (strcmp(said, "ann p 6") == 0 && keystone_count(k) == 1)
            break;
        if (strcmp(said, "ann p 6") != 0) /* else it only was not kept */
            ck_assert_str_eq(said, "NO_MEMORY: ");
        ck_assert_uint_lt(nth, 20);
    }
    ck_assert_uint_gt(verifications(), 1);
}

/* ------------------------------------------------------------------ callers that wait */

/* WAITS: the fiber of a caller is parked; no status. */
enum { THREADS = 2, LINE = 3, CROWD = 50, WAITS = ST_COUNT };

/* A caller in a fiber. */
struct guest {
    struct access_proof proof;
    struct fiber *fiber;
    struct bytes token;
    int64_t now_ms;
    enum status st;
    bool woken; /* to go on; guarded by fake.lock, whose `moved` is signalled */
};

static struct fiber_pool fibers;

static void
wake(void *arg)
{
    struct guest *g = arg;

    pthread_mutex_lock(&fake.lock);
    g->woken = true;
    pthread_cond_broadcast(&fake.moved);
    pthread_mutex_unlock(&fake.lock);
}

static void
setup_executor(void)
{
    const struct executor_config config = {.threads = THREADS, .line = LINE};
    struct executor_config own = config;

    arena_fixture_open();
    own.mem = f.mem;
    ck_assert_int_eq(executor_open(&own, &executor), ST_OK);
    fiber_pool_init(&fibers, f.mem, NULL, KEYSTONE_WAITERS_MAX + 1, wake);
    open_keystone();
}

static void
teardown_executor(void)
{
    fiber_pool_fini(&fibers);
    teardown();
}

static void
run_guest(void *arg)
{
    struct guest *g = arg;
    struct keystone_caller caller;
    struct reason why;

    reason_init(&why);
    g->st = keystone_ask(k, g->token, g->now_ms, &g->proof, &caller, &why);
}

/* The status of a call in a fiber, or WAITS. */
static int
come_in(struct fiber_pool *pool, struct guest *g, const char *token, int64_t now_ms)
{
    g->token = bytes_str(token);
    g->now_ms = now_ms;
    g->fiber = fiber_take(pool);
    ck_assert_ptr_nonnull(g->fiber);
    if (fiber_start(g->fiber, run_guest, g) == FIBER_PARKED) {
        ck_assert(g->proof.asking);
        return WAITS;
    }
    fiber_give(pool, g->fiber);
    return (int)g->st;
}

static int
come_at(struct guest *g, const char *token, int64_t now_ms)
{
    return come_in(&fibers, g, token, now_ms);
}

static int
come(struct guest *g, const char *token)
{
    return come_at(g, token, start_ms);
}

/* Waits until the fiber is woken, and goes on with it. */
static int
finish_in(struct fiber_pool *pool, struct guest *g)
{
    pthread_mutex_lock(&fake.lock);
    while (!g->woken)
        pthread_cond_wait(&fake.moved, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
    ck_assert_int_eq(fiber_resume(g->fiber), FIBER_ENDED);
    fiber_give(pool, g->fiber);
    ck_assert(!g->proof.asking);
    access_proof_drop(&g->proof);
    g->woken = false;
    return (int)g->st;
}

static int
finish(struct guest *g)
{
    return finish_in(&fibers, g);
}

TEST_CASE("callers that wait", .setup = setup_executor, .teardown = teardown_executor);

START_TEST(concurrent_requests_with_one_token_cause_one_verification)
{
    struct guest guests[CROWD] = {{.woken = false}};

    fake_keystone_shut(&fake);
    for (int i = 0; i < CROWD; i++)
        ck_assert_int_eq(come(&guests[i], "member@p"), WAITS);
    fake_keystone_await(&fake, 1);
    fake_keystone_open(&fake);
    for (int i = 0; i < CROWD; i++)
        ck_assert_int_eq(finish(&guests[i]), ST_OK);
    ck_assert_uint_eq(verifications(), 1);
}

START_TEST(all_of_them_learn_that_there_was_no_response)
{
    struct guest guests[CROWD] = {{.woken = false}};

    fake_keystone_shut(&fake);
    fake.status = ST_UNAVAILABLE;
    for (int i = 0; i < CROWD; i++)
        ck_assert_int_eq(come(&guests[i], "member@p"), WAITS);
    fake_keystone_open(&fake);
    for (int i = 0; i < CROWD; i++)
        ck_assert_int_eq(finish(&guests[i]), ST_UNAVAILABLE);
    ck_assert_uint_eq(verifications(), 1);
}

START_TEST(over_the_limit_no_token_is_verified)
{
    struct guest guests[THREADS + LINE + 1] = {{.woken = false}};
    static const char *const tokens[] = {"a@p", "b@p", "c@p", "d@p", "e@p", "f@p"};
    enum { LAST = THREADS + LINE };

    fake_keystone_shut(&fake);
    for (int i = 0; i < LAST; i++) {
        ck_assert_int_eq(come(&guests[i], tokens[i]), WAITS);
        if (i < THREADS) /* a thread has it, it is in the wait queue no more */
            fake_keystone_await(&fake, (size_t)i + 1);
    }
    ck_assert_int_eq(come(&guests[LAST], tokens[LAST]), ST_UNAVAILABLE);
    fake_keystone_open(&fake);
    for (int i = 0; i < LAST; i++)
        ck_assert_int_eq(finish(&guests[i]), ST_OK);
    ck_assert_uint_eq(verifications(), LAST);
}

/* Fills threads and wait queue, until one has to come later. */
static void
crowd_in(struct guest guests[THREADS + LINE], const char *const *tokens)
{
    struct guest extra = {.woken = false};

    fake_keystone_shut(&fake);
    for (size_t i = 0; i < THREADS + LINE; i++) {
        ck_assert_int_eq(come(&guests[i], tokens[i]), WAITS);
        if (i < THREADS)
            fake_keystone_await(&fake, i + 1);
    }
    ck_assert_int_eq(come(&extra, "extra@p"), ST_UNAVAILABLE);
}

static void
crowd_out(struct guest guests[THREADS + LINE])
{
    fake_keystone_open(&fake);
    for (size_t i = 0; i < THREADS + LINE; i++)
        ck_assert_int_eq(finish(&guests[i]), ST_OK);
}

static const char *const crowd_tokens[] = {"a@p", "b@p", "c@p", "d@p", "e@p"};

START_TEST(unknown_tokens_do_not_evict_known_ones)
{
    struct guest known = {.woken = false}, guests[THREADS + LINE] = {{.woken = false}};

    ck_assert_int_eq(come(&known, "member@p"), WAITS);
    ck_assert_int_eq(finish(&known), ST_OK);
    crowd_in(guests, crowd_tokens);
    ck_assert_int_eq(come_at(&known, "member@p", start_ms + CACHE_MS), WAITS);
    crowd_out(guests);
    ck_assert_int_eq(finish(&known), ST_OK);
}

START_TEST(a_revoked_token_waits_like_an_unknown_one)
{
    struct guest known = {.woken = false}, guests[THREADS + LINE] = {{.woken = false}};
    int64_t later_ms = start_ms + CACHE_MS;

    ck_assert_int_eq(come(&known, "member@p"), WAITS);
    ck_assert_int_eq(finish(&known), ST_OK);
    fake.code = 404;
    ck_assert_int_eq(come_at(&known, "member@p", later_ms), WAITS);
    ck_assert_int_eq(finish(&known), ST_UNAUTHORIZED);
    fake.code = 0;
    crowd_in(guests, crowd_tokens);
    later_ms += CACHE_MS; /* a refusal is not believed for so long */
    ck_assert_int_eq(come_at(&known, "member@p", later_ms), ST_UNAVAILABLE);
    crowd_out(guests);
}

START_TEST(cached_tokens_are_accepted_while_others_wait)
{
    struct guest known = {.woken = false}, unknown[THREADS] = {{.woken = false}};

    ck_assert_int_eq(come(&known, "member@p"), WAITS);
    ck_assert_int_eq(finish(&known), ST_OK);
    fake_keystone_shut(&fake);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(come(&unknown[i], i == 0 ? "a@p" : "b@p"), WAITS);
    fake_keystone_await(&fake, THREADS);
    ck_assert_int_eq(come(&known, "member@p"), ST_OK);
    access_proof_drop(&known.proof);
    fake_keystone_open(&fake);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(finish(&unknown[i]), ST_OK);
}

START_TEST(a_verification_begun_before_a_flush_is_not_cached)
{
    struct guest g = {.woken = false};

    fake_keystone_shut(&fake);
    ck_assert_int_eq(come(&g, "member@p"), WAITS);
    keystone_clear_cache(k);
    fake_keystone_open(&fake);
    ck_assert_int_eq(finish(&g), ST_OK);
    ck_assert_uint_eq(keystone_count(k), 0);
}

START_TEST(beyond_the_limit_of_callers_that_wait_one_more_is_unavailable)
{
    static struct guest guests[KEYSTONE_WAITERS_MAX];
    struct guest extra = {.woken = false};

    memset(guests, 0, sizeof(guests));
    fake_keystone_shut(&fake);
    for (int i = 0; i < KEYSTONE_WAITERS_MAX; i++)
        ck_assert_int_eq(come(&guests[i], "member@p"), WAITS);
    ck_assert_int_eq(come(&extra, "member@p"), ST_UNAVAILABLE);
    fake_keystone_open(&fake);
    for (int i = 0; i < KEYSTONE_WAITERS_MAX; i++)
        ck_assert_int_eq(finish(&guests[i]), ST_OK);
    ck_assert_int_eq(come(&extra, "member@p"), ST_OK);
    access_proof_drop(&extra.proof);
}

START_TEST(an_unknown_token_outside_of_a_fiber_is_unavailable)
{
    ck_assert_str_eq(verify("member@p", start_ms),
                     "UNAVAILABLE: claimd is checking too many tokens");
    ck_assert_uint_eq(verifications(), 0);
}

static void *
crowd_thread(void *arg)
{
    static const char *const tokens[] = {"member@p", "reader@p", "unknown", "admin@q"};
    struct guest g = {.woken = false};
    size_t *served = arg;
    struct fiber_pool own;

    fiber_pool_init(&own, f.mem, NULL, 1, wake);
    for (int i = 0; i < 2000; i++) {
        const char *token = tokens[i % 4];
        int st;

        while ((st = come_in(&own, &g, token, start_ms)) == ST_UNAVAILABLE)
            sched_yield(); /* all came at once, before a thread has taken anything */
        if (st == WAITS)
            st = finish_in(&own, &g);
        access_proof_drop(&g.proof);
        ck_assert(st == (i % 4 == 2 ? ST_UNAUTHORIZED : ST_OK));
        if (i % 100 == 0)
            keystone_clear_cache(k);
        (*served)++;
    }
    fiber_pool_fini(&own);
    return NULL;
}

START_TEST(a_crowd_of_threads_finds_what_is_known)
{
    enum { MANY = 4 };
    pthread_t threads[MANY];
    size_t served[MANY] = {0};

    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, crowd_thread, &served[i]), 0);
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_uint_eq(served[i], 2000);
    }
    ck_assert_uint_lt(verifications(), MANY * 2000 / 2);
}
