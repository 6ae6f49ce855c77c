#include "main/admission.h"

#include "claimd/auth/keystone.h"
#include "claimd/base/entropy.h"
#include "main/text_file.h"

#include <string.h>

/* KEYSTONE_LINE: maximum number of requests that wait for a thread. */
enum { KEYSTONE_THREADS = 8, KEYSTONE_LINE = 256 };

static enum status
parse_policy(void *policy, struct mem *mem, struct bytes text, size_t *line,
             struct reason *why)
{
    (void)mem;
    (void)line; /* the reason names the line */
    return policy_read(policy, text, why);
}

/* ctx: struct token_list **, the result. */
static enum status
parse_certificates(void *ctx, struct mem *mem, struct bytes text, size_t *line,
                   struct reason *why)
{
    return token_list_read(mem, text, certificate_line_read, ctx, line, why);
}

struct token_parser {
    struct access *access;
    const struct policy *policy;
};

static enum status
parse_tokens(void *ctx, struct mem *mem, struct bytes text, size_t *line,
             struct reason *why)
{
    const struct token_parser *new = ctx;

    (void)mem;
    return access_replace(new->access, text, new->policy, line, why);
}

enum status
admission_reload(struct admission *a, const struct config *config,
                 struct config_errors *errors)
{
    struct token_list *certificates = NULL;
    struct policy policy = policy_default;
    struct token_parser new = {a->access, &policy};
    struct reason unused;
    size_t line;
    enum status st =
        option_file_parse(config, "policy", a->mem, parse_policy, &policy, errors);

    if (st == ST_OK)
        st = option_file_parse(config, "certificates", a->mem, parse_certificates,
                               &certificates, errors);
    /* Put the policy and the tokens in force. Only `auth = tokens` has tokens. */
    if (st == ST_OK && config->auth == AUTH_BY_TOKENS)
        st = option_file_parse(config, "tokens", a->mem, parse_tokens, &new, errors);
    else if (st == ST_OK)
        st = access_replace(a->access, BYTES_NONE, &policy, &line, &unused);
    if (st != ST_OK) {
        token_list_free(certificates);
        return st;
    }
    access_use_certificates(a->access, certificates);
    if (a->keystone != NULL)
        keystone_forget(a->keystone);
    return ST_OK;
}

static enum status
random_key(void *out, size_t size)
{
    struct entropy entropy;
    enum status st;

    entropy_init_system(&entropy);
    st = entropy_reserve(&entropy, size);
    if (st == ST_OK)
        entropy_take(&entropy, out, size);
    return st;
}

/* Reads the service token from its file. */
static enum status
service_token_read(const struct admission *a, char out[KEYSTONE_TOKEN_MAX + 1],
                   struct config_errors *errors)
{
    const struct text_file file = option_file(a->config, "keystone_token_file");
    struct bytes text, token;
    bool good;
    enum status st = text_file_read(&file, a->mem, &text, errors);

    if (st != ST_OK)
        return st;
    token = bytes_trim(text);
    good = token.len > 0 && token.len <= KEYSTONE_TOKEN_MAX;
    for (size_t i = 0; i < token.len; i++)
        good = good && token.data[i] > 0x20 && token.data[i] < 0x7f;
    if (good) {
        memcpy(out, token.data, token.len);
        out[token.len] = '\0';
    } else {
        config_error(errors, "keystone_token_file: %s must contain one token", file.path);
        st = ST_BAD_VALUE;
    }
    text_file_drop(a->mem, text);
    return st;
}

/* Keystone's client reads the token before each request. */
static enum status
service_token_get(void *ctx, char out[KEYSTONE_TOKEN_MAX + 1], struct reason *why)
{
    struct config_errors errors = {.to = NULL};
    enum status st = service_token_read(ctx, out, &errors);

    if (st == ST_BAD_VALUE)
        return reason_give(why, ST_UNAVAILABLE, "%s", errors.last);
    return st;
}

static void
log_keystone_health(void *ctx, enum keystone_health health, const char *why)
{
    const struct admission *a = ctx;

    if (a->log == NULL)
        return;
    if (health == KEYSTONE_WELL)
        log_event(a->log, LOG_INFO, "keystone_available",
                  LOG_S("url", a->config->keystone_url));
    else
        log_event(a->log, LOG_ERROR,
                  health == KEYSTONE_AWAY ? "keystone_unavailable"
                                          : "keystone_refuses_service_token",
                  LOG_S("error", why));
}

static enum status
open_keystone(struct admission *a, struct config_errors *errors)
{
    const struct executor_config executor = {
        .mem = a->mem, .threads = KEYSTONE_THREADS, .line = KEYSTONE_LINE};
    const bool system = strcmp(a->config->keystone_ca, "system") == 0;
    const struct keystone_wire_config wire = {.mem = a->mem,
                                              .url = a->config->keystone_url,
                                              .ca =
                                                  system ? NULL : a->config->keystone_ca,
                                              .service_token = service_token_get,
                                              .ctx = a};
    struct keystone_config keystone = {
        .mem = a->mem,
        .cache_ms = a->config->keystone_cache_seconds * 1000,
        .timeout_ms = a->config->keystone_timeout_ms,
        .cache_tokens = (size_t)a->config->keystone_cache_tokens,
        .health = log_keystone_health,
        .ctx = a,
    };
    struct reason why;
    char token[KEYSTONE_TOKEN_MAX + 1];
    enum status st = service_token_read(a, token, errors);

    explicit_bzero(token, sizeof(token));
    reason_init(&why);
    if (st == ST_OK)
        st = keystone_wire_open(&wire, &a->wire, &why);
    if (st == ST_UNAVAILABLE) {
        config_error(errors, "auth keystone %s", why.text);
        st = ST_BAD_VALUE;
    }
    if (st == ST_OK)
        st = executor_open(&executor, &a->executor);
    if (st == ST_UNAVAILABLE) {
        config_error(errors, "cannot start the threads for Keystone");
        st = ST_BAD_VALUE;
    }
    if (st == ST_OK)
        st = role_map_read(&keystone.roles, bytes_str(a->config->keystone_roles), &why);
    if (st == ST_OK)
        st = random_key(&keystone.key, sizeof(keystone.key));
    keystone.wire = a->wire;
    keystone.executor = a->executor;
    if (st == ST_OK)
        st = keystone_new(&keystone, &a->keystone);
    if (st == ST_OK)
        access_use_keystone(a->access, a->keystone);
    return st;
}

enum status
admission_open(struct admission *a, const struct config *config, struct mem *mem,
               const struct log *log, struct config_errors *errors)
{
    enum status st;

    *a = (struct admission){.config = config, .mem = mem, .log = log};
    if (config->auth == AUTH_BY_NONE)
        return ST_OK;
    st = access_new(mem, &a->access);
    if (st == ST_OK && config->auth == AUTH_BY_KEYSTONE)
        st = open_keystone(a, errors);
    if (st == ST_OK)
        st = admission_reload(a, config, errors);
    return st;
}

void
admission_close(struct admission *a)
{
    executor_close(a->executor);
    access_free(a->access);
    keystone_free(a->keystone);
    keystone_wire_close(a->wire);
    *a = (struct admission){.access = NULL};
}

enum status
identity_open(const struct config *config, struct mem *mem, struct auth **out,
              struct config_errors *errors)
{
    enum { TOKEN_LIFE_S = 12 * 3600 };
    const struct text_file file = option_file(config, "identity_users");
    struct auth_config auth = {
        .mem = mem, .token_life_s = TOKEN_LIFE_S, .region = config->identity_region};
    size_t bad_line = 0;
    struct bytes rest;
    enum status st;

    *out = NULL;
    if (!config->identity_stub)
        return ST_OK;
    st = text_file_read(&file, mem, &auth.users, errors);
    rest = st == ST_OK ? auth.users : BYTES_NONE;
    for (size_t number = 1; bytes_present(rest); number++) {
        if (auth_line_check(bytes_cut(&rest, '\n')))
            continue;
        config_error(errors,
                     "identity_users: %s:%zu: a line must be name:password[:project]",
                     file.path, number);
        st = ST_BAD_VALUE;
    }
    if (st == ST_OK)
        st = random_key(&auth.key, sizeof(auth.key));
    if (st == ST_OK)
        st = auth_new(&auth, out, &bad_line);
    text_file_drop(mem, auth.users);
    return st;
}
