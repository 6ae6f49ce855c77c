#include "main/admission.h"

#include "claimd/auth/keystone_wire.h"
#include "claimd/base/entropy.h"
#include "main/text_file.h"

#include <string.h>

/* KEYSTONE_LINE: questions that may wait for a thread. */
enum { FILE_MOST = 16 << 20, KEYSTONE_THREADS = 8, KEYSTONE_LINE = 256 };

/* ------------------------------------------------------------------ files */

static enum status
read_policy(const struct config *config, struct mem *mem, struct policy *out,
            struct config_errors *errors)
{
    const struct text_file file = {
        .path = config->policy, .option = "policy", .most = FILE_MOST};
    struct reason why;
    struct bytes text;
    enum status st;

    *out = policy_default;
    if (strcmp(config->policy, "none") == 0)
        return ST_OK;
    st = text_file_read(&file, mem, &text, errors);
    if (st != ST_OK)
        return st;
    reason_init(&why);
    st = policy_read(out, text, &why);
    mem_free(mem, (void *)text.data);
    if (st == ST_BAD_VALUE)
        config_error(errors, "policy: %s: %s", file.path, why.text);
    return st;
}

/* The list, to be freed; an empty one unless there are tokens. */
static enum status
read_list(const struct config *config, struct mem *mem, struct bytes *out,
          struct config_errors *errors)
{
    const struct text_file file = {.path = config->tokens,
                                   .option = "tokens",
                                   .most = FILE_MOST,
                                   .hint = "`claimd token new` makes one",
                                   .secret = true};

    *out = BYTES_NONE;
    if (config->auth != AUTH_BY_TOKENS)
        return ST_OK;
    return text_file_read(&file, mem, out, errors);
}

/* NULL in *out: no file is named. */
static enum status
read_certificates(const struct config *config, struct mem *mem, struct certificates **out,
                  struct config_errors *errors)
{
    const struct text_file file = {
        .path = config->certificates, .option = "certificates", .most = FILE_MOST};
    struct reason why;
    struct bytes text;
    size_t line = 0;
    enum status st;

    if (strcmp(config->certificates, "none") == 0)
        return ST_OK;
    st = text_file_read(&file, mem, &text, errors);
    if (st != ST_OK)
        return st;
    reason_init(&why);
    st = certificates_read(mem, text, out, &line, &why);
    mem_free(mem, (void *)text.data);
    if (st == ST_BAD_VALUE)
        config_error(errors, "certificates: %s:%zu: %s", file.path, line, why.text);
    return st;
}

/* Takes the policy and the list of tokens. */
static enum status
replace_list(struct admission *a, const struct config *config,
             const struct policy *policy, struct config_errors *errors)
{
    struct reason why;
    struct bytes text = BYTES_NONE;
    size_t line = 0;
    enum status st = read_list(config, a->mem, &text, errors);

    if (st != ST_OK)
        return st;
    reason_init(&why);
    st = access_replace(a->access, text, policy, &line, &why);
    mem_free(a->mem, (void *)text.data);
    if (st == ST_BAD_VALUE)
        config_error(errors, "tokens: %s:%zu: %s", config->tokens, line, why.text);
    return st;
}

enum status
admission_reload(struct admission *a, const struct config *config,
                 struct config_errors *errors)
{
    struct certificates *certificates = NULL;
    struct policy policy;
    enum status st = read_policy(config, a->mem, &policy, errors);

    if (st == ST_OK)
        st = read_certificates(config, a->mem, &certificates, errors);
    if (st == ST_OK)
        st = replace_list(a, config, &policy, errors);
    if (st != ST_OK) {
        certificates_free(certificates);
        return st;
    }
    access_use_certificates(a->access, certificates);
    if (a->keystone != NULL)
        keystone_forget(a->keystone);
    return ST_OK;
}

/* ------------------------------------------------------------------ keystone */

static bool
is_service_token(struct bytes token)
{
    for (size_t i = 0; i < token.len; i++)
        if (token.data[i] <= 0x20 || token.data[i] >= 0x7f)
            return false;
    return token.len > 0 && token.len <= KEYSTONE_TOKEN_MAX;
}

/* Reads the service token as it is now, with a NUL behind it. */
static enum status
read_service_token(const struct admission *a, char out[KEYSTONE_TOKEN_MAX + 1],
                   struct config_errors *errors)
{
    const struct text_file file = {.path = a->config->keystone_token_file,
                                   .option = "keystone_token_file",
                                   .most = FILE_MOST,
                                   .secret = true};
    struct bytes text, token;
    enum status st = text_file_read(&file, a->mem, &text, errors);

    if (st != ST_OK)
        return st;
    token = bytes_trim(text);
    if (is_service_token(token)) {
        memcpy(out, token.data, token.len);
        out[token.len] = '\0';
    } else {
        config_error(errors, "keystone_token_file: %s must contain one token", file.path);
        st = ST_BAD_VALUE;
    }
    explicit_bzero((void *)text.data, text.len);
    mem_free(a->mem, (void *)text.data);
    return st;
}

/* The wire asks for it each time. */
static enum status
give_service_token(void *ctx, char out[KEYSTONE_TOKEN_MAX + 1], struct reason *why)
{
    struct config_errors errors = {.to = NULL};
    enum status st = read_service_token(ctx, out, &errors);

    if (st == ST_BAD_VALUE)
        return reason_give(why, ST_UNAVAILABLE, "%s", errors.last);
    return st;
}

static void
tell_health(void *ctx, enum keystone_health health, const char *why)
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
open_wire(struct admission *a, struct config_errors *errors)
{
    const bool system = strcmp(a->config->keystone_ca, "system") == 0;
    const struct keystone_wire_config wire = {.mem = a->mem,
                                              .url = a->config->keystone_url,
                                              .ca =
                                                  system ? NULL : a->config->keystone_ca,
                                              .service_token = give_service_token,
                                              .ctx = a};
    struct reason why;
    enum status st;

    reason_init(&why);
    st = keystone_wire_open(&wire, &a->wire, &why);
    if (st != ST_UNAVAILABLE)
        return st;
    config_error(errors, "auth keystone %s", why.text);
    return ST_BAD_VALUE;
}

static enum status
open_executor(struct admission *a, struct config_errors *errors)
{
    const struct executor_config executor = {
        .mem = a->mem, .threads = KEYSTONE_THREADS, .line = KEYSTONE_LINE};
    enum status st = executor_open(&executor, &a->executor);

    if (st != ST_UNAVAILABLE)
        return st;
    config_error(errors, "cannot start the threads for Keystone");
    return ST_BAD_VALUE;
}

static enum status
make_key(struct hash_key *out)
{
    struct entropy entropy;
    enum status st;

    entropy_init_system(&entropy);
    st = entropy_reserve(&entropy, sizeof(*out));
    if (st == ST_OK)
        entropy_take(&entropy, out, sizeof(*out));
    return st;
}

static enum status
make_keystone(struct admission *a)
{
    struct keystone_config keystone = {
        .mem = a->mem,
        .wire = a->wire,
        .executor = a->executor,
        .cache_ms = a->config->keystone_cache_seconds * 1000,
        .timeout_ms = a->config->keystone_timeout_ms,
        .cache_tokens = (size_t)a->config->keystone_cache_tokens,
        .health = tell_health,
        .ctx = a,
    };
    struct reason why;
    enum status st =
        role_map_read(&keystone.roles, bytes_str(a->config->keystone_roles), &why);

    if (st == ST_OK)
        st = make_key(&keystone.key);
    return st == ST_OK ? keystone_new(&keystone, &a->keystone) : st;
}

static enum status
open_keystone(struct admission *a, struct config_errors *errors)
{
    char token[KEYSTONE_TOKEN_MAX + 1];
    enum status st = read_service_token(a, token, errors);

    explicit_bzero(token, sizeof(token));
    if (st == ST_OK)
        st = open_wire(a, errors);
    if (st == ST_OK)
        st = open_executor(a, errors);
    if (st == ST_OK)
        st = make_keystone(a);
    if (st == ST_OK)
        access_trust(a->access, a->keystone);
    return st;
}

/* ------------------------------------------------------------------ all together */

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

void
admission_check(const struct config *config, struct config_errors *errors)
{
    struct role_map roles;
    struct reason why;

    if (config->auth != AUTH_BY_KEYSTONE)
        return;
    if (!keystone_url_check(bytes_str(config->keystone_url)))
        config_error(errors,
                     "keystone_url must be such as https://keystone.example.org:5000/v3,"
                     " not %s",
                     config->keystone_url);
    reason_init(&why);
    if (role_map_read(&roles, bytes_str(config->keystone_roles), &why) != ST_OK)
        config_error(errors, "keystone_roles: %s", why.text);
}
