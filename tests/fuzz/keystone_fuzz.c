/*
 * Responses of a Keystone, and a table of roles. A caller has the identity of the
 * document, as jansson reads it, in its project and with no more roles than the table
 * gives; no caller is allowed by a document that says it otherwise.
 *
 * Input: the table, and behind a line "%%" the document.
 */
#include "claimd/auth/keystone.h"
#include "claimd/auth/token_line.h"
#include "claimd/json/tree.h"
#include "fuzz/fuzz.h"

static const int64_t now_ms = INT64_C(1769860800000); /* 2026-01-31T12:00:00Z */

struct keystone_response {
    struct keystone_wire wire;
    struct bytes body;
};

static enum status
give_response(struct keystone_wire *wire, struct bytes token, int64_t timeout_ms,
              int *code, struct buf *body, struct reason *why)
{
    (void)token, (void)timeout_ms, (void)why;
    *code = 200;
    buf_bytes(body, ((struct keystone_response *)wire)->body);
    return body->failed ? ST_NO_MEMORY : ST_OK;
}

/* The text of a member, absent if it is none. */
static struct bytes
text_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_string(value)
               ? bytes_of(json_string_value(value), json_string_length(value))
               : BYTES_NONE;
}

/* The roles of claimd for the roles of a token, by the words of a table. */
static role_set
meaning(struct bytes table, const json_t *roles)
{
    role_set all = 0;

    while (bytes_present(table)) {
        struct bytes rest = bytes_cut(&table, ',');
        struct bytes name = bytes_trim(bytes_cut(&rest, '='));
        enum role role = role_find(bytes_trim(rest));

        for (size_t i = 0; i < json_array_size(roles); i++)
            if (bytes_equal(text_of(json_array_get(roles, i), "name"), name))
                all |= 1U << role;
    }
    return all;
}

static void
check_caller(const struct keystone_caller *c, struct bytes table, struct bytes body)
{
    json_t *tree = json_loadb(body.data, body.len, JSON_ALLOW_NUL, NULL);
    const json_t *token = json_object_get(tree, "token");
    const json_t *project = json_object_get(token, "project");
    struct bytes expires = text_of(token, "expires_at");
    int64_t expires_ms;
    char text[21];

    if (tree == NULL && bytes_contain(body, bytes_str("\\u0000")))
        return; /* jansson cannot keep it in a name */
    fuzz_check(json_is_object(token), "allowed without a token");
    fuzz_check(bytes_equal(c->name, text_of(json_object_get(token, "user"), "id")),
               "another user");
    if (bytes_present(c->project))
        fuzz_check(bytes_equal(c->project, text_of(project, "id")), "another project");
    else
        fuzz_check(project == NULL, "a project was left out");
    fuzz_check(c->roles == meaning(table, json_object_get(token, "roles")),
               "other roles: %x", c->roles);
    fuzz_check(expires.len >= 20, "it never ends");
    memcpy(text, expires.data, 19);
    text[19] = 'Z';
    fuzz_check(token_time_read(bytes_of(text, 20), &expires_ms) &&
                   expires_ms == c->expires_ms && expires_ms > now_ms,
               "it has ended, or ends at another time");
    json_decref(tree);
}

static void
check_response(struct fuzz_memory *m, const struct role_map *roles, struct bytes table,
               struct bytes body)
{
    struct keystone_response response = {.wire.ask = give_response, .body = body};
    const struct keystone_config config = {.mem = m->mem,
                                           .wire = &response.wire,
                                           .roles = *roles,
                                           .cache_ms = 60000,
                                           .cache_tokens = 16,
                                           .timeout_ms = 60000};
    struct access_proof proof = {.verdict = NULL};
    struct keystone_caller caller;
    struct keystone *k;
    struct reason why;
    enum status st;

    reason_init(&why);
    fuzz_check(keystone_new(&config, &k) == ST_OK, "no memory");
    st = keystone_ask(k, bytes_str("token"), now_ms, &proof, &caller, &why);
    if (st == ST_OK)
        check_caller(&caller, table, body);
    else
        fuzz_check((st == ST_UNAVAILABLE || st == ST_UNAUTHORIZED) && why.text[0] != '\0',
                   "%s without a reason", status_name(st));
    access_proof_drop(&proof);
    keystone_free(k);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_input(data, size), table, body;
    struct role_map roles;
    struct fuzz_memory m;
    struct reason why;

    table = fuzz_copy(fuzz_section(&rest));
    body = fuzz_copy(rest);
    fuzz_memory_open(&m);
    reason_init(&why);
    if (role_map_read(&roles, table, &why) != ST_OK)
        fuzz_check(why.text[0] != '\0', "refused without a reason");
    else
        check_response(&m, &roles, table, body);
    fuzz_memory_close(&m);
    fuzz_free(table);
    fuzz_free(body);
    return 0;
}
