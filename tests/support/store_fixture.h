/*
 * store_fixture: one store at a manual time, and short words for what tests do with it.
 *
 * The suite of tests/store is written against the seam only and runs over every
 * implementation: `_i` of Check's loop tests chooses it. Messages are numbered by posting
 * (1, 2, 3 ... in all queues of the fixture together) and their bodies are their numbers,
 * so that a test can say whom it expects to see:
 *
 *     STORE_TEST(a_claim_gets_the_oldest_messages)
 *     {
 *         post(f, 5);
 *         take(f, 2);
 *         expect(f, 1, 2);
 *     }
 *
 * Every word audits the store when it is done.
 *
 * One that has a journal is also tried (support/restarts.h): what has happened is committed,
 * and a store that is started from a copy of the disk after a crash must show the same. That
 * is done after the first words, then after ever fewer, and at the end always; there the
 * store is closed, too, started again, and goes on with an id that nobody has.
 */
#ifndef TESTS_SUPPORT_STORE_FIXTURE_H
#define TESTS_SUPPORT_STORE_FIXTURE_H

#include "claimd/engine/engine.h"
#include "support/check_main.h"

#define FIXTURE_MESSAGES      1024
#define FIXTURE_PROJECTS      8
#define FIXTURE_DEAD_LETTER_S 100                    /* dead_letter_ttl */
#define START_MS              INT64_C(1790000000123) /* not a whole second, on purpose */

/* The implementations. */
enum fixture_kind {
    FIXTURE_TWIN,       /* the naive one, tests/model/twin.h */
    FIXTURE_ENGINE,     /* without a log */
    FIXTURE_JOURNALLED, /* the engine with a journal on a simulated disk */
    FIXTURE_REDIS,      /* src/redis, on a redis-server of its own */
    FIXTURE_KINDS
};

struct restarts;
struct redis_server;

struct fixture {
    struct mem *mem;
    struct store *store;
    int64_t now_ms;
    struct store_queue queue;                   /* the one all words are about */
    const char *projects[FIXTURE_PROJECTS + 1]; /* that were used; a NULL behind them */
    uint64_t client;                            /* who posts */
    int posted;                                 /* number of the newest message */
    struct store_id ids[FIXTURE_MESSAGES + 1];  /* of the messages, by number */
    struct store_batch seen;                    /* the last messages shown */
    struct store_subscriptions subscriptions;   /* the last ones seen */
    struct restarts *restarts;                  /* owned; NULL: it has no journal */
    struct redis_server *redis;                 /* owned; NULL: it is not on one */
    unsigned words;                             /* said so far */
};

/*
 * The configuration every fixture opens its store with. Its sealer sets the mark and turns the
 * bits of the body round; what begins with '-' it cannot seal.
 */
struct engine_config fixture_config(struct mem *mem);

/* Opens a store on the Redis that is there, as an engine of this configuration. As redis_open(). */
enum status
fixture_redis(const struct engine_config *config, const char *url, struct store **out);

/* Opens one (enum fixture_kind), with queue "q" of project "p" not made yet. */
void fixture_open(struct fixture *f, int kind);

/* The same, of a store where subscriptions have to be confirmed. */
void fixture_open_confirming(struct fixture *f, int kind);

/* What every word ends with: whatever happened, the invariants hold. */
void fixture_audit(struct fixture *f);

/* Stops a store with a journal, and starts it again; the others go on. */
void fixture_restart(struct fixture *f);

/* Closes the store, which must have given back all its memory. */
void fixture_close(struct fixture *f);

/* Begins a case whose tests run over every implementation. */
#define STORE_CASE(name) TEST_CASE(name, .times = FIXTURE_KINDS)

/* A test of one store, with the fixture `f`, which `open` makes. */
#define STORE_TEST_WITH(id, open) FIXTURE_TEST(id, struct fixture, open, fixture_close(f))
#define STORE_TEST(id)            STORE_TEST_WITH(id, fixture_open(f, _i))

/* Likewise over those that are an engine: FIXTURE_ENGINE + _i. */
#define ENGINE_CASE(name) TEST_CASE(name, .times = FIXTURE_REDIS - FIXTURE_ENGINE)

/* ------------------------------------------------------------------ where and when */

/* Goes on with another queue of the same project / of another one. */
void use(struct fixture *f, const char *queue);
void use_project(struct fixture *f, const char *project);

/* Moves the time forward. */
void wait_ms(struct fixture *f, int64_t ms);
void wait_s(struct fixture *f, int64_t seconds);

/* ------------------------------------------------------------------ queues */

/* Makes the queue with these settings (NULL: none). */
void make_queue(struct fixture *f, const struct store_settings *settings);
void delete_queue(struct fixture *f);
void purge(struct fixture *f);
struct store_stats stats(struct fixture *f);

/* ------------------------------------------------------------------ messages */

/* Posts messages for 3600 s without delay in one request. */
void post(struct fixture *f, int count);

/* Posts one message (STORE_UNSET: the default); returns its number. */
int post_with(struct fixture *f, int64_t ttl_s, int64_t delay_s);

struct bytes id_of(const struct fixture *f, int number);

/* Shows the messages with these numbers, in this order. */
#define get(f, ...)                                                                      \
    FROM_LINE(get_numbers((f), (const int[]){__VA_ARGS__},                               \
                          sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
void get_numbers(struct fixture *f, const int *numbers, size_t count);

/* Shows everything: claimed and delayed ones too. */
void list_all(struct fixture *f);

/* Shows what a plain listing shows: free messages without a delay. */
void list_free(struct fixture *f);

void list(struct fixture *f, const struct store_filter *filter);

void pop(struct fixture *f, size_t limit);

/* Deletes one message without / with a claim id. */
enum status delete_free(struct fixture *f, int number);
enum status delete_claimed(struct fixture *f, int number, struct store_id claim);

/* ------------------------------------------------------------------ claims */

/* Claims for 300 s and 60 s grace; shows the messages, returns the id (empty: none). */
struct store_id take(struct fixture *f, size_t limit);
struct store_id take_for(struct fixture *f, size_t limit, int64_t ttl_s, int64_t grace_s);

/* Shows what the claim holds. */
enum status query(struct fixture *f, struct store_id claim);
enum status
renew(struct fixture *f, struct store_id claim, int64_t ttl_s, int64_t grace_s);
void release(struct fixture *f, struct store_id claim);

/* ------------------------------------------------------------------ expectations */

/* The messages shown last are those with these numbers, in this order. */
#define expect(f, ...)                                                                   \
    expect_numbers((f), (const int[]){__VA_ARGS__},                                      \
                   sizeof((const int[]){__VA_ARGS__}) / sizeof(int), __FILE__, __LINE__)
void expect_numbers(struct fixture *f, const int *numbers, size_t count, const char *file,
                    int line);
void expect_nothing(struct fixture *f);

/* ttl and age of a message now, got by its number. */
void expect_times(struct fixture *f, int number, int64_t ttl_s, int64_t age_s);

/* Claimed and free messages of the queue. */
void expect_stats(struct fixture *f, uint64_t claimed, uint64_t free);

/* These note the line of the test. */
#ifndef STORE_FIXTURE_WITHOUT_LINES
#define post(f, n)                     FROM_LINE(post(f, n))
#define post_with(f, ttl, delay)       FROM_LINE(post_with(f, ttl, delay))
#define list_all(f)                    FROM_LINE(list_all(f))
#define list_free(f)                   FROM_LINE(list_free(f))
#define pop(f, n)                      FROM_LINE(pop(f, n))
#define take(f, n)                     FROM_LINE(take(f, n))
#define take_for(f, n, ttl, grace)     FROM_LINE(take_for(f, n, ttl, grace))
#define query(f, claim)                FROM_LINE(query(f, claim))
#define renew(f, claim, ttl, grace)    FROM_LINE(renew(f, claim, ttl, grace))
#define release(f, claim)              FROM_LINE(release(f, claim))
#define expect_nothing(f)              FROM_LINE(expect_nothing(f))
#define expect_times(f, n, ttl, age)   FROM_LINE(expect_times(f, n, ttl, age))
#define expect_stats(f, claimed, free) FROM_LINE(expect_stats(f, claimed, free))
#define make_queue(f, settings)        FROM_LINE(make_queue(f, settings))
#define delete_queue(f)                FROM_LINE(delete_queue(f))
#define purge(f)                       FROM_LINE(purge(f))
#define delete_free(f, n)              FROM_LINE(delete_free(f, n))
#define delete_claimed(f, n, claim)    FROM_LINE(delete_claimed(f, n, claim))
#endif

static inline bool
id_empty(struct store_id id)
{
    return id.text[0] == '\0';
}

static inline bool
id_same(struct store_id a, struct store_id b)
{
    return strcmp(a.text, b.text) == 0;
}

/* An id of this text, which may be nonsense. */
static inline struct store_id
text_id(const char *text)
{
    struct store_id id = {""};

    memcpy(id.text, text, strlen(text) + 1);
    return id;
}

/*
 * An id in a form that is none, though a lenient reader of numbers would find the same one in it: the
 * digits behind `at` zeros begin with these characters.
 */
static inline struct store_id
lenient_id(struct store_id id, size_t at, const char *begin)
{
    memcpy(id.text + at, begin, strlen(begin));
    return id;
}

/* What such a reader skips. */
static const char *const lenient_begins[] = {"0x", "0X", "+", " ", "\t"};
enum { LENIENT_BEGINS = sizeof(lenient_begins) / sizeof(lenient_begins[0]) };

#define ck_assert_status(expression, expected)                                           \
    ck_assert_str_eq(status_name(expression), status_name(expected))

#endif
