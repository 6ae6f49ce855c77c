/*
 * Whole requests: a series of them goes through the API into a real engine, with time
 * passing and memory failing in between. Every response must be well-formed, a refusal
 * must have changed nothing, and the engine is audited after each request.
 *
 * Input: sections, one a request, in the way of HTTP:
 *
 *     wait 60000                       before it: lines that begin with a word
 *     POST /v2/queues/q/claims?limit=2
 *     Client-ID: 3381af92-2b9e-11e3-b191-71861300734c
 *
 *     {"ttl": 60}
 *
 *     wait N      so many ms pass             keep        a slice of housekeeping
 *     fail N      the N-th allocation fails   from N      and all that follow it
 *     budget N    the store may use N bytes   with WORD   another way to be set up
 *     limit N     each project may have so much of everything
 *     policy P    so much may roles do, from now on
 *     with testapi    the clock can be moved, and what else tests have
 *     show NAMES  with this certificate, from now on; without a name: with none
 *
 * Headers left out have usual values; a name without a colon takes one away. Ids out of
 * earlier responses are named as known_ids.h says, "@t" is the token of the last login.
 *
 * "with tokens" there is a list of tokens (and of certificates): "reader", "producer" and
 * so on for the usual project, "all" for every one, "over" that has ended. "with
 * keystone" there is a Keystone besides, as fake_keystone.h has it. A request without any
 * of these is refused.
 */
#include "fuzz/fuzz.h"
#include "fuzz/known_ids.h"
#include "fuzz/response.h"

#include "claimd/auth/auth.h"
#include "claimd/engine/engine.h"
#include "support/fake_keystone.h"

#define START_MS INT64_C(1769860800000)

enum { REQUESTS_MAX = 64 }; /* more make an input slow, not better */

static const char *const usual_headers[API_HEADER_COUNT] = {
    [API_HEADER_ACCEPT] = "application/json",
    [API_HEADER_CLIENT_ID] = "3381af92-2b9e-11e3-b191-71861300734c",
    [API_HEADER_PROJECT_ID] = "480924",
    [API_HEADER_HOST] = "queues.test:8888",
};

static const char *const header_names[API_HEADER_COUNT] = {
#define HEADER_NAME(name, text) text,
    API_HEADER_LIST(HEADER_NAME)
#undef HEADER_NAME
};

struct world {
    struct fuzz_memory memory; /* of the caller: its failures are not tested */
    struct mem *mem;           /* of the API and the engine */
    struct store *store;
    /* Its clock stands at now_ms; the API has it only "with testapi". */
    struct testapi *testapi;
    bool with_testapi;
    struct auth *auth;         /* NULL: no identity stub */
    struct access *access;     /* NULL: no tokens */
    struct keystone *keystone; /* NULL: the list says who has one */
    struct fake_keystone fake;
    struct policy policy;
    struct clock real;
    struct certificate certificate; /* names: owned, fuzz_free() */
    struct metrics metrics;
    int64_t limit; /* of each project */
    struct api *api;
    struct api_limits limits;
    struct arena arena;
    struct response res;
    struct known_ids known;
    struct bytes token; /* of the last login; owned: fuzz_free() */
    int64_t now_ms;
    uint64_t fail_nth, fail_from; /* of the next request; 0: none */
};

/* ---------------------------------------------------------------------- set up */

static void
set_limit(struct world *w, int64_t limit)
{
    const uint64_t n = (uint64_t)limit;

    w->limit = limit;
    engine_limit(w->store, &(struct engine_limits){n, n, n});
    api_limit(w->api,
              &(struct api_project_limits){limit, limit, limit, limit, limit, limit});
}

static void
open_api(struct world *w)
{
    const struct api_config config = {.limits = w->limits,
                                      .store = w->store,
                                      .auth = w->auth,
                                      .access = w->access,
                                      .real = &w->real,
                                      .metrics = &w->metrics,
                                      .testapi = w->with_testapi ? w->testapi : NULL,
                                      .mem = w->mem};

    api_free(w->api);
    fuzz_check(api_new(&config, &w->api) == ST_OK, "no api");
    set_limit(w, w->limit);
}

static void
ignore_move(void *ctx)
{
    (void)ctx; /* the client finds out */
}

static void
world_open(struct world *w)
{
    struct engine_config engine = {.shards = 2, .now_ms = START_MS, .seeded = true};

    *w = (struct world){.limits = api_limits_default,
                        .policy = policy_default,
                        .certificate = {true, BYTES_NONE},
                        .metrics = {.shown_queues = 3},
                        .now_ms = START_MS};
    clock_init_manual(&w->real, START_MS);
    fake_keystone_init(&w->fake);
    fuzz_memory_open(&w->memory);
    w->mem = engine.mem = mem_new(0);
    fuzz_check(w->mem != NULL, "out of memory");
    w->limits.max_messages_post_size = 4096; /* within reach of an input */
    w->limits.max_queue_metadata = 1024;
    w->limits.enable_v1 = true;
    engine.message_ttl_s = w->limits.default_message_ttl;
    engine.claim_ttl_s = w->limits.default_claim_ttl;
    engine.claim_grace_s = w->limits.default_claim_grace;
    engine.max_message_ttl_s = w->limits.max_message_ttl;
    engine.key_window_ms = w->limits.idempotency_window * 1000;
    engine.keys = 3;
    fuzz_check(testapi_new(w->mem, &w->testapi) == ST_OK, "no testapi");
    clock_init_manual(testapi_clock(w->testapi), START_MS);
    engine.log = testapi_log(w->testapi, NULL);
    fuzz_check(engine_open(&engine, &w->store) == ST_OK, "no engine");
    testapi_attach(w->testapi, w->store, NULL, ignore_move, w);
    open_api(w);
    arena_init(&w->arena, w->mem);
    buf_init(&w->res.body, w->mem);
}

static void
world_close(struct world *w)
{
    arena_fini(&w->arena);
    buf_fini(&w->res.body);
    api_free(w->api);
    auth_free(w->auth);
    access_free(w->access);
    keystone_free(w->keystone);
    fake_keystone_fini(&w->fake);
    fuzz_free(w->token);
    fuzz_free(w->certificate.names);
    store_close(w->store);
    testapi_free(w->testapi);
    fuzz_check(mem_used(w->mem) == 0, "%zu bytes are left behind", mem_used(w->mem));
    mem_destroy(w->mem);
    fuzz_memory_close(&w->memory);
}

/* ---------------------------------------------------------------------- before it */

/* Lets a user with a project of her own and one without log in, or no user any more. */
static void
toggle_stub(struct world *w)
{
    struct auth_config config = {.mem = w->mem,
                                 .key = {1, 2},
                                 .token_life_s = 3600,
                                 .region = "DFW",
                                 .users = bytes_str("ann:x:480924\nbob:y\n")};
    size_t bad_line;

    api_free(w->api);
    w->api = NULL;
    auth_free(w->auth);
    if (w->auth == NULL)
        fuzz_check(auth_new(&config, &w->auth, &bad_line) == ST_OK, "no auth");
    else
        w->auth = NULL;
}

static void
allow_users(struct world *w)
{
    static const char *const lines[] = {
        "reader reader 480924 never",        "producer producer 480924 never",
        "worker worker 480924 never",        "operator operator 480924 never",
        "admin admin 480924,blue never",     "all admin * never",
        "over admin * 2026-01-31T11:00:00Z",
    };
    struct buf *list = &w->memory.out;
    struct token_digest digest;
    struct reason why;
    size_t bad_line;

    buf_reset(list, SIZE_MAX);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        token_digest_of(bytes_of(lines[i], strcspn(lines[i], " ")), &digest);
        buf_printf(list, "%s sha256:", lines[i]);
        for (size_t k = 0; k < sizeof(digest.bytes); k++)
            buf_printf(list, "%02x", digest.bytes[k]);
        buf_byte(list, '\n');
    }
    fuzz_check(access_replace(w->access, buf_view(list), &w->policy, &bad_line, &why) ==
                   ST_OK,
               "%s", why.text);
}

static void
use_certificates(struct world *w)
{
    static const char list[] = "p producer 480924 dns:producer.example\n"
                               "w worker 480924,blue email:worker@example\n"
                               "a admin * subject:CN=a\n";
    struct token_list *certificates;
    struct reason why;
    size_t bad_line;

    fuzz_check(token_list_read(w->mem, bytes_str(list), certificate_line_read,
                               &certificates, &bad_line, &why) == ST_OK,
               "%s", why.text);
    access_use_certificates(w->access, certificates);
}

/* Begins to require tokens, perhaps with a Keystone, or ends that. */
static void
toggle_access(struct world *w, bool with_keystone)
{
    struct keystone_config config = {.mem = w->mem,
                                     .wire = &w->fake.wire,
                                     .roles = fake_keystone_roles,
                                     .cache_ms = 60000,
                                     .timeout_ms = 1000,
                                     .cache_tokens = 4};
    bool begin = w->access == NULL;

    api_free(w->api);
    w->api = NULL;
    access_free(w->access);
    keystone_free(w->keystone);
    w->access = NULL;
    w->keystone = NULL;
    if (!begin)
        return;
    fuzz_check(access_new(w->mem, &w->access) == ST_OK, "no access");
    if (with_keystone) {
        fuzz_check(keystone_new(&config, &w->keystone) == ST_OK, "no keystone");
        access_use_keystone(w->access, w->keystone);
    }
    allow_users(w);
    use_certificates(w);
}

static void
set_policy(struct world *w, struct bytes text)
{
    struct reason why;

    if (policy_read(&w->policy, text, &why) == ST_OK && w->access != NULL)
        allow_users(w);
}

static void
show_certificate(struct world *w, struct bytes names)
{
    fuzz_free(w->certificate.names);
    w->certificate.names = fuzz_copy(names);
}

static void
set_up(struct world *w, struct bytes word)
{
    const struct {
        const char *word;
        bool *flag;
    } flags[] = {
        {"admin", &w->limits.admin_mode},
        {"checksum", &w->limits.enable_checksum},
        {"holder", &w->limits.message_delete_with_claim_id},
        {"testapi", &w->with_testapi},
        {"strict", &w->limits.client_id_strict},
        {"v1.1", &w->limits.enable_v1_1},
    };

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (bytes_equal_str(word, flags[i].word))
            *flags[i].flag = !*flags[i].flag;
    if (bytes_equal_str(word, "stub"))
        toggle_stub(w);
    if (bytes_equal_str(word, "tokens") || bytes_equal_str(word, "keystone"))
        toggle_access(w, bytes_equal_str(word, "keystone"));
    open_api(w);
}

static void
wait_ms(struct world *w, uint64_t ms)
{
    const uint64_t most = UINT64_C(400) * 86400000;

    ms = ms > most ? most : ms;
    w->now_ms += (int64_t)ms;
    clock_advance(testapi_clock(w->testapi), (int64_t)ms);
    clock_advance(&w->real, (int64_t)ms);
}

/* Obeys a line with a text; false if it is none. */
static bool
obey_text(struct world *w, struct bytes word, struct bytes text)
{
    if (bytes_equal_str(word, "with"))
        set_up(w, text);
    else if (bytes_equal_str(word, "policy"))
        set_policy(w, text);
    else if (bytes_equal_str(word, "show"))
        show_certificate(w, text);
    else
        return false;
    return true;
}

/* Obeys a line that is for us; false if it is none. */
static bool
obey(struct world *w, struct bytes line)
{
    struct bytes rest = line, word = bytes_cut(&rest, ' ');
    uint64_t number = 0;
    int64_t next_ms;

    if (obey_text(w, word, rest))
        return true;
    if (bytes_equal_str(line, "keep")) {
        store_housekeep(w->store, w->now_ms, &next_ms);
        return true;
    }
    if (!bytes_to_u64(rest, &number))
        return false;
    if (bytes_equal_str(word, "wait"))
        wait_ms(w, number);
    else if (bytes_equal_str(word, "fail"))
        w->fail_nth = number;
    else if (bytes_equal_str(word, "from"))
        w->fail_from = number;
    else if (bytes_equal_str(word, "budget"))
        mem_set_budget(w->mem, (size_t)number);
    else if (bytes_equal_str(word, "limit"))
        set_limit(w, (int64_t)(number % 1000000));
    else
        return false;
    return true;
}

/* ---------------------------------------------------------------------- the request */

/* A copy of a text with its @-names replaced; owned: fuzz_free(). */
static struct bytes
fill(struct world *w, struct bytes text)
{
    struct buf *out = &w->memory.out;

    if (!bytes_present(text))
        return text;
    buf_reset(out, SIZE_MAX);
    known_ids_fill(&w->known, text, out);
    return fuzz_copy(buf_view(out));
}

static void
take_header(struct request *req, struct bytes line)
{
    struct bytes value = line, name = bytes_cut(&value, ':');

    for (size_t i = 0; i < API_HEADER_COUNT; i++)
        if (bytes_equal_nocase(name, bytes_str(header_names[i])))
            req->headers[i] = bytes_present(value) ? bytes_trim(value) : value;
}

static struct bytes
fill_header(struct world *w, struct bytes value)
{
    return fill(w, bytes_equal_str(value, "@t") ? w->token : value);
}

/* Remembers the token of a login, so that later requests can send it. */
static void
learn_token(struct world *w)
{
    for (size_t i = 0; i < w->res.header_count; i++)
        if (strcmp(w->res.headers[i].name, "X-Subject-Token") == 0) {
            fuzz_free(w->token);
            w->token = fuzz_copy(bytes_str(w->res.headers[i].value));
        }
}

/* Reads a section into req, whose texts are then owned; absent path: there is none. */
static void
read_request(struct world *w, struct bytes section, struct request *req)
{
    struct bytes line = bytes_cut(&section, '\n'), target;

    while (obey(w, line) && bytes_present(section))
        line = bytes_cut(&section, '\n');
    target = line;
    req->method = api_method(bytes_cut(&target, ' '));
    if (!bytes_present(target))
        return;
    for (size_t i = 0; i < API_HEADER_COUNT; i++)
        req->headers[i] = bytes_str(usual_headers[i]);
    req->path = bytes_cut(&target, '?');
    req->query = target;
    while (bytes_present(section) && (line = bytes_cut(&section, '\n')).len > 0)
        take_header(req, line);
    req->body = section;
    req->path = fill(w, req->path);
    req->query = fill(w, req->query);
    req->body = fill(w, req->body);
    for (size_t i = 0; i < API_HEADER_COUNT; i++)
        req->headers[i] = fill_header(w, req->headers[i]);
}

static void
free_request(struct request *req)
{
    fuzz_free(req->path);
    fuzz_free(req->query);
    fuzz_free(req->body);
    for (size_t i = 0; i < API_HEADER_COUNT; i++)
        fuzz_free(req->headers[i]);
}

/* As the front end does: a body that is too long is not kept. */
static void
limit_body(const struct world *w, struct request *req)
{
    if (req->body.len <= api_body_limit(w->api, req->path))
        return;
    fuzz_free(req->body);
    req->body = BYTES_NONE;
    req->body_too_large = true;
}

/* Is there anything in a text that is a known secret? Keystone's tokens have an @. */
static bool
is_known(struct bytes text)
{
    static const char *const tokens[] = {"reader",   "producer", "worker",
                                         "operator", "admin",    "all"};

    if (text.len == 0)
        return false;
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
        if (memmem(text.data, text.len, tokens[i], strlen(tokens[i])) != NULL)
            return true;
    return memchr(text.data, '@', text.len) != NULL;
}

/* A caller without a known credential gets what is public. */
static void
check_stranger(const struct world *w, const struct request *req)
{
    static const char *const open[] = {"/", "/openapi.json", "/livez", "/readyz",
                                       "/v1/health"};
    const char *route = w->res.route;
    bool is_open = route == NULL || strncmp(route, "/identity", 9) == 0;

    if (w->access == NULL || bytes_present(w->certificate.names) ||
        is_known(req->headers[API_HEADER_AUTH_TOKEN]) ||
        is_known(req->headers[API_HEADER_AUTHORIZATION]))
        return;
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        is_open = is_open || strcmp(route, open[i]) == 0;
    fuzz_check(is_open || w->res.code >= 400, "%s lets a stranger in: %d", route,
               w->res.code);
}

/* Lines are loaded queue by queue; a state that is put back has nothing to be
 * delivered. */
static bool
is_done_in_pieces(const struct response *res)
{
    return res->route != NULL && (strcmp(res->route, "/claimd/load") == 0 ||
                                  strcmp(res->route, "/claimd/state") == 0);
}

static bool
is_repeated(const struct response *res)
{
    for (size_t i = 0; i < res->header_count; i++)
        if (strcmp(res->headers[i].name, "Idempotent-Replay") == 0)
            return true;
    return false;
}

/* Sends a request, and checks the response. */
static void
handle(struct world *w, struct request *req)
{
    bool starved = w->fail_nth > 0 || w->fail_from > 0 || mem_budget(w->mem) > 0;
    unsigned trouble = (starved ? TROUBLE_MEMORY : 0U) |
                       (w->limit > 0 ? TROUBLE_LIMITS : 0U) |
                       (w->keystone != NULL ? TROUBLE_REMOTE : 0U);
    struct bytes project = req->headers[API_HEADER_PROJECT_ID];
    struct state before = state_of(w->store, w->now_ms, project), after;
    const int64_t began_ms = w->now_ms;

    if (w->fail_nth > 0)
        mem_fail_nth(w->mem, w->fail_nth);
    if (w->fail_from > 0)
        mem_fail_from(w->mem, w->fail_from);
    while (api_handle(w->api, req, &w->res) == API_AGAIN)
        req->now_ms = clock_now_ms(testapi_clock(w->testapi));
    w->now_ms = clock_now_ms(testapi_clock(w->testapi));
    mem_fail_nth(w->mem, 0);
    mem_fail_from(w->mem, 0);
    w->fail_nth = w->fail_from = 0;
    api_stop_waiting(w->api, req);
    response_check(&w->res, trouble);
    check_stranger(w, req);
    fuzz_check(store_audit(w->store), "the engine's audit failed");
    after = state_of(w->store, w->now_ms, project);
    /* A claim that is refused may have moved dead letters out of its way before; and a
     * clock may have been moved before there was no memory for the response. */
    if (w->res.code >= 400 && !before.dead_letters && w->now_ms == began_ms &&
        !is_done_in_pieces(&w->res))
        fuzz_check(before.digest == after.digest, "refused with %d, but changed",
                   w->res.code);
    fuzz_check(!is_repeated(&w->res) || before.digest == after.digest,
               "a repeated request has an effect");
}

static void
do_request(struct world *w, struct bytes section)
{
    struct request req = {.arena = &w->arena};

    read_request(w, section, &req);
    if (bytes_present(req.path)) {
        req.now_ms = w->now_ms;
        if (bytes_present(w->certificate.names))
            req.certificate = &w->certificate;
        limit_body(w, &req);
        arena_reset(&w->arena);
        buf_reset(&w->res.body, 0);
        handle(w, &req);
        known_ids_learn(&w->known, buf_view(&w->res.body));
        learn_token(w);
        for (size_t i = 0; i < w->res.header_count; i++)
            known_ids_learn(&w->known, bytes_str(w->res.headers[i].value));
    }
    free_request(&req);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_input(data, size);
    struct world w;

    world_open(&w);
    for (int i = 0; i < REQUESTS_MAX && bytes_present(rest); i++)
        do_request(&w, fuzz_section(&rest));
    world_close(&w);
    return 0;
}
