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
    struct zones *zones;        /* of this machine's tzdata. Schedules are never run */
    /* NULL: without the test API. Its clock stands until a test moves it. */
    struct testapi *testapi;
    struct sampler *sampler; /* owned, only with the test API */
    unsigned moves;          /* clock moves that the test API reported */
    struct clock real;       /* manual; tokens expire by it */
    struct api_condition condition;
    struct metrics metrics;
    struct fake_keystone fake;
    struct keystone *keystone; /* sends requests to fake; NULL: none */
    struct api *api;
    struct api_caller c;
    struct arena kept; /* texts that api_fixture_close() frees */
};

/* The clock begins at 2026-01-31T12:00:00Z. */
#define API_FIXTURE_START_MS INT64_C(1769860800000)

/* Maximum number of queues with metrics of their own. */
enum { API_FIXTURE_SHOWN = 3 };

/* Value of idempotency_keys. */
enum { API_FIXTURE_KEYS = 20 };

/* True if the store is on Redis. Promises of an engine about memory and slices do not
 * hold there. */
bool api_fixture_on_redis(void);

/* Opens an API with the default limits, or with others. */
void api_fixture_open(struct api_fixture *f);
void api_fixture_open_with(struct api_fixture *f, const struct api_limits *limits);

/* Opens one with the test API, the page, and the identity stub with this list of users.
 * NULL: every user may log in. */
void api_fixture_open_identity(struct api_fixture *f, const char *users);

/* Opens one with the test API. Requests have the time of its clock. */
void api_fixture_open_testapi(struct api_fixture *f, const struct api_limits *limits);

/* Opens one with the test API, admin_mode, the page, and an access that refuses all
 * tokens until api_allow(). */
void api_fixture_open_access(struct api_fixture *f);

/* The same without the test API, and with keys for pre-signed URLs, one a line. */
void api_fixture_open_signing(struct api_fixture *f, const char *keys);

/* Opens one with these keys for pre-signed URLs and these limits, and without access
 * control. */
void api_fixture_open_signing_with(struct api_fixture *f, const struct api_limits *limits,
                                   const char *keys);

/* Opens one with keys for encryption, one a line; NULL: none yet. */
void api_fixture_open_sealing(struct api_fixture *f, const struct api_limits *limits,
                              const char *keys);

/*
 * Replaces the allowed tokens. Each line is as in the file of tokens ("NAME ROLE PROJECTS
 * EXPIRES"). The text of a token is its name.
 */
void api_allow(struct api_fixture *f, const char *const *lines, size_t count);

/* The same with another policy than the default. */
void api_allow_by(struct api_fixture *f, const char *const *lines, size_t count,
                  const struct policy *policy);

/* Opens one as api_fixture_open_access(), and with a keystone that calls f->fake in the
 * thread of the caller. */
void api_fixture_open_keystone(struct api_fixture *f, const struct role_map *roles);

/* Audits the store and frees everything. */
void api_fixture_close(struct api_fixture *f);

/* A test with an API over a fresh store, the fixture `f`; `open` makes it. */
#define API_TEST_WITH(id, open)                                                          \
    FIXTURE_TEST(id, struct api_fixture, open, api_fixture_close(f))
#define API_TEST(id) API_TEST_WITH(id, api_fixture_open(f))

/* The same with other limits than the defaults: `change` sets members of `limits`. */
#define LIMITED_TEST(id, change) API_TEST_WITH(id, api_open_changed(f, change))
#define api_open_changed(f, change)                                                      \
    do {                                                                                 \
        struct api_limits limits = api_limits_default;                                   \
                                                                                         \
        change;                                                                          \
        api_fixture_open_with(f, &limits);                                               \
    } while (0)

/* A request and its expected response. */
struct api_row {
    const char *method, *target, *body;
    int code;
    const char *title; /* of the error document; NULL: not compared */
};

/* Sends the requests in order and checks each response. A failure names the row. */
void api_check_rows(struct api_fixture *f, const struct api_row *rows, size_t count);
#define ck_api_rows(f, rows)                                                             \
    FROM_LINE(api_check_rows(f, rows, sizeof(rows) / sizeof((rows)[0])))

/* The same for one request. */
#define ck_api(f, method, target, body, code, title)                                     \
    FROM_LINE(api_check_rows(                                                            \
        f, &(const struct api_row){method, target, body, code, title}, 1))

/*
 * Checks that the body of the last response is this JSON, with members in any order. "*"
 * stands for any value. `expected` may have ' instead of ".
 */
void
api_check_body(struct api_fixture *f, const char *expected, const char *file, int line);
#define ck_api_body(f, expected) api_check_body(f, expected, __FILE__, __LINE__)

/* Checks a header of the last response. */
#define ck_api_header(f, name, expected)                                                 \
    ck_assert_pstr_eq(api_response_header(&(f)->c, name), expected)

/* The text at a path ("messages.0.href") of the last response's body; borrowed until
 * close. */
const char *api_pick(struct api_fixture *f, const char *path);

/* The id at the end of a href of the last response; `path` as above. */
const char *api_pick_id(struct api_fixture *f, const char *path);

/* Formats a target or a body as printf() does; borrowed until close. */
const char *api_text(struct api_fixture *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Posts a message (v2) for each letter, with that letter as its body and a ttl of 300. */
void api_post_letters(struct api_fixture *f, const char *queue, const char *letters);

/* Claims up to `limit` messages for 60 s. Returns the id of the claim; NULL: there was no
 * message. */
const char *api_take(struct api_fixture *f, const char *queue, int limit);

#endif
