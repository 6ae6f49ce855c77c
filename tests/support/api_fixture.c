#include "support/api_fixture.h"

#include "claimd/engine/engine.h"
#include "claimd/schedule/zones.h"
#include "support/due.h"
#include "support/redis_server.h"
#include "support/store_fixture.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void
api_fixture_open(struct api_fixture *f)
{
    api_fixture_open_with(f, &api_limits_default);
}

static struct mem *
make_mem(void)
{
    struct mem *mem = mem_new(0);

    ck_assert_ptr_nonnull(mem);
    return mem;
}

static void
count_move(void *ctx)
{
    struct api_fixture *f = ctx;

    f->moves++;
}

static void
make_testapi(struct api_fixture *f)
{
    ck_assert_int_eq(testapi_new(f->mem, &f->testapi), ST_OK);
    clock_init_manual(testapi_clock(f->testapi), API_FIXTURE_START_MS);
}

bool
api_fixture_on_redis(void)
{
    const char *store = getenv("CLAIMD_TEST_STORE");

    return store != NULL && strcmp(store, "redis") == 0;
}

static void
open_redis(struct api_fixture *f, const struct engine_config *like)
{
    f->redis = calloc(1, sizeof(*f->redis));
    ck_assert_ptr_nonnull(f->redis);
    redis_server_start(f->redis);
    ck_assert_int_eq(fixture_redis(like, f->redis->url, &f->store), ST_OK);
}

/* Takes what f has by now: the memory, and perhaps an auth. */
static void
open_api(struct api_fixture *f, const struct api_limits *limits)
{
    static const struct log quiet = {.fd = -1, .level = LOG_ERROR};
    struct mem *mem = f->mem;
    struct engine_config engine = {
        .mem = mem,
        .shards = 4,
        .now_ms = API_FIXTURE_START_MS,
        .message_ttl_s = limits->default_message_ttl,
        .message_delay_s = limits->default_message_delay,
        .claim_ttl_s = limits->default_claim_ttl,
        .claim_grace_s = limits->default_claim_grace,
        .max_message_ttl_s = limits->max_message_ttl,
        .key_window_ms = limits->idempotency_window * 1000,
        .keys = API_FIXTURE_KEYS,
        .shown_queues = API_FIXTURE_SHOWN,
        .seeded = true,
        .seed = 1,
    };
    struct api_config config = {.limits = *limits,
                                .mem = mem,
                                .auth = f->auth,
                                .access = f->access,
                                .signer = f->signer,
                                .seal = f->seal,
                                .real = &f->real,
                                .condition = &f->condition,
                                .metrics = &f->metrics,
                                .testapi = f->testapi};

    ck_assert_int_eq(zones_open(mem, ZONEINFO, &f->zones), ST_OK);
    config.zones = f->zones;
    clock_init_manual(&f->real, API_FIXTURE_START_MS);
    if (f->testapi != NULL)
        engine.log = testapi_log(f->testapi, NULL);
    f->metrics = (struct metrics){.shown_queues = API_FIXTURE_SHOWN};
    if (f->testapi == NULL &&
        api_fixture_on_redis()) /* the test API sees the changes of an engine */
        open_redis(f, &engine);
    else
        ck_assert_int_eq(engine_open(&engine, &f->store), ST_OK);
    config.store = f->store;
    if (f->testapi != NULL) {
        const struct sampler_config sampler = {.mem = mem,
                                               .store = f->store,
                                               .clock = testapi_clock(f->testapi),
                                               .log = &quiet,
                                               .queues = API_FIXTURE_SHOWN};

        ck_assert_int_eq(sampler_open(&sampler, &f->sampler), ST_OK);
        testapi_attach(f->testapi, f->store, f->sampler, count_move, f);
    }
    config.sampler = f->sampler;
    ck_assert_int_eq(api_new(&config, &f->api), ST_OK);
    api_caller_init(&f->c, f->api, mem, API_FIXTURE_START_MS);
    arena_init(&f->kept, mem);
}

void
api_fixture_open_with(struct api_fixture *f, const struct api_limits *limits)
{
    *f = (struct api_fixture){.mem = make_mem()};
    open_api(f, limits);
}

void
api_fixture_open_testapi(struct api_fixture *f, const struct api_limits *limits)
{
    *f = (struct api_fixture){.mem = make_mem()};
    make_testapi(f);
    open_api(f, limits);
    f->c.clock = testapi_clock(f->testapi);
}

void
api_fixture_open_identity(struct api_fixture *f, const char *users)
{
    struct auth_config auth = {
        .key = {1, 2}, .token_life_s = 3600, .region = "DFW", .users = bytes_str(users)};
    struct api_limits limits = api_limits_default;
    size_t bad_line;

    limits.ui = true;
    *f = (struct api_fixture){.mem = make_mem()};
    make_testapi(f);
    auth.mem = f->mem;
    ck_assert_int_eq(auth_new(&auth, &f->auth, &bad_line), ST_OK);
    open_api(f, &limits);
}

/* All but the API, with an access without any token yet. */
static void
prepare_access(struct api_fixture *f)
{
    *f = (struct api_fixture){.mem = make_mem()};
    ck_assert_int_eq(access_new(f->mem, &f->access), ST_OK);
}

static void
open_with_health(struct api_fixture *f)
{
    struct api_limits limits = api_limits_default;

    limits.admin_mode = true;
    limits.ui = true;
    open_api(f, &limits);
}

void
api_fixture_open_access(struct api_fixture *f)
{
    prepare_access(f);
    make_testapi(f);
    open_with_health(f);
}

static void
make_signer(struct api_fixture *f, const char *keys)
{
    struct reason why;
    size_t bad_line;

    ck_assert_int_eq(signer_new(f->mem, &f->signer), ST_OK);
    ck_assert_int_eq(signer_replace(f->signer, bytes_str(keys), &bad_line, &why), ST_OK);
}

void
api_fixture_open_signing(struct api_fixture *f, const char *keys)
{
    prepare_access(f);
    make_signer(f, keys);
    open_with_health(f);
}

void
api_fixture_open_signing_with(struct api_fixture *f, const struct api_limits *limits,
                              const char *keys)
{
    *f = (struct api_fixture){.mem = make_mem()};
    make_signer(f, keys);
    open_api(f, limits);
}

void
api_fixture_open_sealing(struct api_fixture *f, const struct api_limits *limits,
                         const char *keys)
{
    struct seal_config config;
    struct reason why;
    size_t bad_line;

    *f = (struct api_fixture){.mem = make_mem()};
    config = (struct seal_config){.mem = f->mem};
    ck_assert_int_eq(seal_new(&config, &f->seal), ST_OK);
    if (keys != NULL)
        ck_assert_int_eq(seal_replace(f->seal, bytes_str(keys), &bad_line, &why), ST_OK);
    open_api(f, limits);
}

void
api_fixture_open_keystone(struct api_fixture *f, const struct role_map *roles)
{
    struct keystone_config config = {.wire = &f->fake.wire,
                                     .roles = *roles,
                                     .cache_ms = 60000,
                                     .cache_tokens = 100,
                                     .timeout_ms = 60000};

    prepare_access(f);
    make_testapi(f);
    fake_keystone_init(&f->fake);
    config.mem = f->mem;
    ck_assert_int_eq(keystone_new(&config, &f->keystone), ST_OK);
    access_use_keystone(f->access, f->keystone);
    open_with_health(f);
}

void
api_allow(struct api_fixture *f, const char *const *lines, size_t count)
{
    api_allow_by(f, lines, count, &policy_default);
}

void
api_allow_by(struct api_fixture *f, const char *const *lines, size_t count,
             const struct policy *policy)
{
    struct token_digest digest;
    struct reason why;
    struct buf list;
    size_t bad_line;

    buf_init(&list, f->mem);
    for (size_t i = 0; i < count; i++) {
        token_digest_of(bytes_of(lines[i], strcspn(lines[i], " ")), &digest);
        buf_printf(&list, "%s sha256:", lines[i]);
        for (size_t k = 0; k < sizeof(digest.bytes); k++)
            buf_printf(&list, "%02x", digest.bytes[k]);
        buf_byte(&list, '\n');
    }
    ck_assert_int_eq(access_replace(f->access, buf_view(&list), policy, &bad_line, &why),
                     ST_OK);
    buf_fini(&list);
}

void
api_fixture_close(struct api_fixture *f)
{
    ck_assert(store_audit(f->store));
    arena_fini(&f->kept);
    api_caller_fini(&f->c);
    api_free(f->api);
    access_free(f->access);
    signer_free(f->signer);
    seal_free(f->seal);
    keystone_free(f->keystone);
    if (f->fake.wire.ask != NULL)
        fake_keystone_fini(&f->fake);
    auth_free(f->auth);
    sampler_close(f->sampler);
    store_close(f->store);
    zones_close(f->zones);
    testapi_free(f->testapi);
    mem_destroy(f->mem);
    if (f->redis != NULL)
        redis_server_stop(f->redis);
    free(f->redis);
}

/* ------------------------------------------------------------------ JSON */

static json_t *
parse(const char *text)
{
    return json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

static bool is_like(const json_t *expected, const json_t *got);

static bool
is_like_object(const json_t *expected, const json_t *got)
{
    const char *name;
    json_t *value;

    if (json_object_size(expected) != json_object_size(got))
        return false;
    json_object_foreach(
        (json_t *)expected, name,
        value) if (!is_like(value, json_object_get(got, name))) return false;
    return true;
}

static bool
is_like_array(const json_t *expected, const json_t *got)
{
    if (json_array_size(expected) != json_array_size(got))
        return false;
    for (size_t i = 0; i < json_array_size(expected); i++)
        if (!is_like(json_array_get(expected, i), json_array_get(got, i)))
            return false;
    return true;
}

/* Equal, but for "*", which is like everything that is there. */
static bool
is_like(const json_t *expected, const json_t *got)
{
    if (got == NULL)
        return false;
    if (json_is_string(expected) && strcmp(json_string_value(expected), "*") == 0)
        return true;
    if (json_is_object(expected) && json_is_object(got))
        return is_like_object(expected, got);
    if (json_is_array(expected) && json_is_array(got))
        return is_like_array(expected, got);
    return json_equal(expected, got) != 0;
}

void
api_check_body(struct api_fixture *f, const char *expected, const char *file, int line)
{
    struct bytes copy = arena_copy(&f->kept, bytes_str(expected));
    json_t *want, *got = parse(api_body(&f->c));

    ck_assert(bytes_present(copy));
    for (char *at = (char *)copy.data; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    want = parse(copy.data);
    ck_assert_msg(want != NULL, "%s:%d: the expectation is not JSON: %s", file, line,
                  copy.data);
    ck_assert_msg(is_like(want, got), "%s:%d: got %s\nwanted %s", file, line,
                  api_body(&f->c), copy.data);
    json_decref(want);
    json_decref(got);
}

static json_t *
step(json_t *at, struct bytes name)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%.*s", (int)name.len, name.data);
    return json_is_array(at) ? json_array_get(at, (size_t)atoi(text))
                             : json_object_get(at, text);
}

const char *
api_pick(struct api_fixture *f, const char *path)
{
    json_t *top = parse(api_body(&f->c)), *at = top;
    struct bytes rest = bytes_str(path), copy;

    while (bytes_present(rest) && at != NULL)
        at = step(at, bytes_cut(&rest, '.'));
    ck_assert_msg(json_is_string(at), "no text at %s in %s", path, api_body(&f->c));
    copy = arena_copy(&f->kept, bytes_str(json_string_value(at)));
    json_decref(top);
    return copy.data;
}

const char *
api_pick_id(struct api_fixture *f, const char *path)
{
    struct bytes href = bytes_str(strrchr(api_pick(f, path), '/') + 1);

    return arena_copy(&f->kept, bytes_cut(&href, '?')).data;
}

const char *
api_text(struct api_fixture *f, const char *format, ...)
{
    char text[16384];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return arena_copy(&f->kept, bytes_str(text)).data;
}

/* ------------------------------------------------------------------ requests */

static void
check_title(struct api_fixture *f, const struct api_row *row, size_t at)
{
    json_t *got = parse(api_body(&f->c));
    const char *title = json_string_value(json_object_get(got, "title"));

    ck_assert_msg(title != NULL && strcmp(title, row->title) == 0,
                  "row %zu: %s %s: title %s, wanted %s", at, row->method, row->target,
                  title, row->title);
    ck_assert_pstr_eq(api_response_header(&f->c, "Content-Type"), "application/json");
    json_decref(got);
}

void
api_check_rows(struct api_fixture *f, const struct api_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int code = api_call(&f->c, rows[i].method, rows[i].target, rows[i].body);

        ck_assert_msg(code == rows[i].code, "row %zu: %s %s: %d, wanted %d: %s", i,
                      rows[i].method, rows[i].target, code, rows[i].code,
                      api_body(&f->c));
        if (rows[i].title != NULL)
            check_title(f, &rows[i], i);
    }
}

void
api_post_letters(struct api_fixture *f, const char *queue, const char *letters)
{
    char body[2048] = "{\"messages\":[";

    for (const char *at = letters; *at != '\0'; at++) {
        size_t len = strlen(body);

        (void)snprintf(body + len, sizeof(body) - len, "%s{\"ttl\":300,\"body\":\"%c\"}",
                       at == letters ? "" : ",", *at);
    }
    strcat(body, "]}");
    ck_api(f, "POST", api_text(f, "/v2/queues/%s/messages", queue), body, 201, NULL);
}

const char *
api_take(struct api_fixture *f, const char *queue, int limit)
{
    const char *target = api_text(f, "/v2/queues/%s/claims?limit=%d", queue, limit);
    int code = api_call(&f->c, "POST", target, "{\"ttl\":60,\"grace\":60}");
    const char *location = api_response_header(&f->c, "Location");

    ck_assert(code == 201 || code == 204);
    if (code == 204)
        return NULL;
    return arena_copy(&f->kept, bytes_str(strrchr(location, '/') + 1)).data;
}
