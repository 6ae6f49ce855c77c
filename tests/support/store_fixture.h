/*
 * store_fixture: one store with a manual clock, and helpers with short names for its
 * operations.
 *
 * The tests of tests/store use the public interface of a store only, and run on every
 * implementation: `_i` of Check's loop tests chooses it. Messages are numbered by posting
 * (1, 2, 3 ... in all queues of the fixture together) and their bodies are their numbers,
 * so that a test can list the messages that it expects:
 *
 *     STORE_TEST(a_claim_gets_the_oldest_messages)
 *     {
 *         post(f, 5);
 *         take(f, 2);
 *         expect(f, 1, 2);
 *     }
 *
 * Every helper audits the store at its end.
 *
 * The fixture also restarts a store that has a journal (support/restarts.h). It commits,
 * opens a second store from a copy of the disk after a crash, and compares the two. It
 * does so after the first helpers, then less and less often, and always at the end. At
 * the end it also closes the store, opens it again, and checks that the next message gets
 * a new id.
 */
#ifndef TESTS_SUPPORT_STORE_FIXTURE_H
#define TESTS_SUPPORT_STORE_FIXTURE_H

#include "claimd/engine/engine.h"
#include "support/check_main.h"

#define FIXTURE_MESSAGES      1024
#define FIXTURE_PROJECTS      8
#define FIXTURE_DEAD_LETTER_S 100                    /* dead_letter_ttl */
#define FIXTURE_KEY_S         600                    /* idempotency_window */
#define FIXTURE_KEYS          64                     /* idempotency_keys */
#define START_MS              INT64_C(1790000000123) /* not a whole second, on purpose */

/* The implementations. */
enum fixture_kind {
    FIXTURE_TWIN,       /* the simple second store, model/twin.h */
    FIXTURE_ENGINE,     /* the engine without a journal */
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
    struct store_queue queue;                   /* the queue that all helpers use */
    const char *projects[FIXTURE_PROJECTS + 1]; /* used projects, then NULL */
    uint64_t client;                            /* the client id of posts */
    int posted;                                 /* number of the newest message */
    struct store_id ids[FIXTURE_MESSAGES + 1];  /* of the messages, by number */
    struct store_batch seen;                    /* the messages of the last operation */
    struct store_subscriptions subscriptions;   /* the last ones seen */
    struct restarts *restarts;                  /* owned; NULL: no journal */
    struct redis_server *redis;                 /* owned; NULL: not on Redis */
    bool is_twin;                               /* it has no housekeeping */
    unsigned words;                             /* helper calls so far */
};

/*
 * The configuration of the store of every fixture. Its sealer sets the mark and inverts
 * the bits of the body. It fails for a body that begins with '-'.
 */
struct engine_config fixture_config(struct mem *mem);

/* Opens a store on a running Redis, with this configuration. Returns the status of
 * redis_open(). */
enum status
fixture_redis(const struct engine_config *config, const char *url, struct store **out);

/* Opens a store of a kind (enum fixture_kind). Queue "q" of project "p" does not exist
 * yet. */
void fixture_open(struct fixture *f, int kind);

/* Opens a store that requires confirmation of subscriptions. */
void fixture_open_confirming(struct fixture *f, int kind);

/* Checks the invariants of the store. Every helper calls it at its end. */
void fixture_audit(struct fixture *f);

/* Closes and reopens a store that has a journal. Does nothing to other stores. */
void fixture_restart(struct fixture *f);

/* Closes the store, which must have given back all its memory. */
void fixture_close(struct fixture *f);

/* Begins a case whose tests run over every implementation. */
#define STORE_CASE(name) TEST_CASE(name, .times = FIXTURE_KINDS)

/* A test of one store, with the fixture `f`, which `open` makes. */
#define STORE_TEST_WITH(id, open) FIXTURE_TEST(id, struct fixture, open, fixture_close(f))
#define STORE_TEST(id)            STORE_TEST_WITH(id, fixture_open(f, _i))

/* Begins a case that runs on the engines only: kind FIXTURE_ENGINE + _i. */
#define ENGINE_CASE(name) TEST_CASE(name, .times = FIXTURE_REDIS - FIXTURE_ENGINE)

/* ------------------------------------------------------------------ where and when */

/* Selects a queue of the same project / another project. */
void use(struct fixture *f, const char *queue);
void use_project(struct fixture *f, const char *project);

/* Moves the time forward. */
void wait_ms(struct fixture *f, int64_t ms);
void wait_s(struct fixture *f, int64_t seconds);

/* Does all that is due, as an idle server does (the twin does it at the next call).
 * Returns the number of slices. */
int housekeep(struct fixture *f);

/* ------------------------------------------------------------------ queues */

/* Makes the queue with these settings (NULL: none). */
void make_queue(struct fixture *f, const struct store_settings *settings);
/* Pauses what is in `paused` (enum store_pause) in the name of PAUSED_BY, and resumes the
 * rest. */
#define PAUSED_BY "1796000000000\nc\n10.0.0.7\nweb3 4711"
void pause_queue(struct fixture *f, unsigned paused);
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

/* Lists as a client does by default: ready messages only. */
void list_ready(struct fixture *f);

void list(struct fixture *f, const struct store_filter *filter);

void pop(struct fixture *f, size_t limit);

/* Deletes one message without / with a claim id. */
enum status delete_unclaimed(struct fixture *f, int number);
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

/* Checks that the last operation returned these messages, in this order. */
#define expect(f, ...)                                                                   \
    expect_numbers((f), (const int[]){__VA_ARGS__},                                      \
                   sizeof((const int[]){__VA_ARGS__}) / sizeof(int), __FILE__, __LINE__)
void expect_numbers(struct fixture *f, const int *numbers, size_t count, const char *file,
                    int line);
void expect_nothing(struct fixture *f);

/* Gets a message by its number and checks its TTL and age. */
void expect_times(struct fixture *f, int number, int64_t ttl_s, int64_t age_s);

/* Checks the numbers of claimed and free messages of the queue. */
void expect_stats(struct fixture *f, uint64_t claimed, uint64_t free);

/* These note the line of the test. */
#ifndef STORE_FIXTURE_WITHOUT_LINES
#define post(f, n)                     FROM_LINE(post(f, n))
#define post_with(f, ttl, delay)       FROM_LINE(post_with(f, ttl, delay))
#define list_all(f)                    FROM_LINE(list_all(f))
#define list_ready(f)                  FROM_LINE(list_ready(f))
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
#define pause_queue(f, paused)         FROM_LINE(pause_queue(f, paused))
#define delete_queue(f)                FROM_LINE(delete_queue(f))
#define purge(f)                       FROM_LINE(purge(f))
#define delete_unclaimed(f, n)         FROM_LINE(delete_unclaimed(f, n))
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
 * An invalid spelling of an id, which a lenient parser of numbers reads as the same id.
 * `begin` replaces the characters from `at` on.
 */
static inline struct store_id
lenient_id(struct store_id id, size_t at, const char *begin)
{
    memcpy(id.text + at, begin, strlen(begin));
    return id;
}

/* Prefixes that a lenient parser skips. */
static const char *const lenient_begins[] = {"0x", "0X", "+", " ", "\t"};
enum { LENIENT_BEGINS = sizeof(lenient_begins) / sizeof(lenient_begins[0]) };

#define ck_assert_status(expression, expected)                                           \
    ck_assert_str_eq(status_name(expression), status_name(expected))

#endif
