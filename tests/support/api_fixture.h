/*
 * api_fixture: an API over an empty store with a manual clock, and helpers for requests.
 *
 * If the environment has CLAIMD_TEST_STORE=redis, the store is on a redis-server of its
 * own, except in fixtures with the test API.
 */
#ifndef TESTS_SUPPORT_API_FIXTURE_H
#define TESTS_SUPPORT_API_FIXTURE_H

#include "support/api_call.h"
#include "support/check_main.h"
#include "support/fake_keystone.h"

struct redis_server;

struct api_fixture {
    struct mem *mem;
    struct store *store;
    struct auth *auth;          /* NULL: no identity stub */
    struct access *access;      /* NULL: no access control */
    struct signer *signer;      /* NULL: there are no pre-signed URLs */
    struct seal *seal;          /* NULL: nothing can be encrypted */
    struct redis_server *redis; /* owned; NULL: the store is an engine */
    /* NULL: without the test API. Its clock stands until a test moves it. */
    struct testapi *testapi;
    struct sampler *sampler; /* owned, only with the test API */
    unsigned moves;          /* clock moves that the test API reported */
    struct clock real;       /* by which tokens expire: manual */
    struct api_condition condition;
    struct metrics metrics;
    struct fake_keystone fake;
    struct keystone *keystone; /* sends requests to fake; NULL: none */
    struct api *api;
    struct api_caller c;
    struct arena kept; /* texts that live until close */
};

/* Begins 2026-01-31T12:00:00Z. */
#define API_FIXTURE_START_MS INT64_C(1769860800000)

/* Maximum number of queues with metrics of their own. */
enum { API_FIXTURE_SHOWN = 3 };

/* idempotency_keys. */
enum { API_FIXTURE_KEYS = 20 };

/* True if the store is on Redis. Promises of an engine about memory and slices do not
 * hold there. */
bool api_fixture_on_redis(void);

/* With the default limits, or others. */
void api_fixture_open(struct api_fixture *f);
void api_fixture_open_with(struct api_fixture *f, const struct api_limits *limits);

/* With the identity stub and this list of users; NULL: every user may log in. And with
 * the test API. */
void api_fixture_open_identity(struct api_fixture *f, const char *users);

/* With the test API for tests, whose clock is that of the calls. */
void api_fixture_open_testapi(struct api_fixture *f, const struct api_limits *limits);

/* With an access that denies all tokens until api_allow(), and with the test API. */
void api_fixture_open_access(struct api_fixture *f);

/* The same, but with keys for pre-signed URLs: a text of lines. */
void api_fixture_open_signing(struct api_fixture *f, const char *keys);

/* With those keys and these limits, and without tokens. */
void api_fixture_open_signing_with(struct api_fixture *f, const struct api_limits *limits,
                                   const char *keys);
/* With keys for encryption, a text of lines; NULL: none yet. */
void api_fixture_open_sealing(struct api_fixture *f, const struct api_limits *limits,
                              const char *keys);

/*
 * Replaces the allowed tokens. Each line is as in the file of tokens ("NAME ROLE PROJECTS
 * EXPIRES"). The text of a token is its name.
 */
void api_allow(struct api_fixture *f, const char *const *lines, size_t count);

/* Like api_allow(), with another policy than the default. */
void api_allow_by(struct api_fixture *f, const char *const *lines, size_t count,
                  const struct policy *policy);

/* With a Keystone client that sends its requests in the caller's thread. */
void api_fixture_open_keystone(struct api_fixture *f, const struct role_map *roles);

/* Audits the store and frees everything. */
void api_fixture_close(struct api_fixture *f);

/* A test with an API over a fresh store, the fixture `f`; `open` makes it. */
#define API_TEST_WITH(id, open)                                                          \
    FIXTURE_TEST(id, struct api_fixture, open, api_fixture_close(f))
#define API_TEST(id) API_TEST_WITH(id, api_fixture_open(f))

/* A request and its expected response. */
struct api_row {
    const char *method, *target, *body;
    int code;
    const char *title; /* of the error document; NULL: not looked at */
};

/* Sends the requests in order and checks each response. A failure names the row. */
void api_check_rows(struct api_fixture *f, const struct api_row *rows, size_t count);
#define ck_api_rows(f, rows)                                                             \
    FROM_LINE(api_check_rows(f, rows, sizeof(rows) / sizeof((rows)[0])))

/* One request: the code and, unless NULL, the title must be these. */
#define ck_api(f, method, target, body, code, title)                                     \
    FROM_LINE(api_check_rows(                                                            \
        f, &(const struct api_row){method, target, body, code, title}, 1))

/*
 * The last response's body is this JSON, members in any order; the text "*" stands for
 * any value. In the expectation ' may be written for ".
 */
void
api_check_body(struct api_fixture *f, const char *expected, const char *file, int line);
#define ck_api_body(f, expected) api_check_body(f, expected, __FILE__, __LINE__)

/* The last response has this header. */
#define ck_api_header(f, name, expected)                                                 \
    ck_assert_pstr_eq(api_response_header(&(f)->c, name), expected)

/* A text out of the last response by its path ("messages.0.href"); borrowed until
 * close. */
const char *api_pick(struct api_fixture *f, const char *path);

/* The id at the end of a href of the last response; `path` as above. */
const char *api_pick_id(struct api_fixture *f, const char *path);

/* Target or body with printf(), borrowed until close. */
const char *api_text(struct api_fixture *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Posts a message (v2) for each letter, with that letter as its body and a ttl of 300. */
void api_post_letters(struct api_fixture *f, const char *queue, const char *letters);

/* Claims up to `limit` messages for 60 s and returns the claim's id; NULL: nothing. */
const char *api_take(struct api_fixture *f, const char *queue, int limit);

#endif
