#include "main/resources.h"

#include "claimd/auth/keystone.h"
#include "claimd/base/clock.h"
#include "claimd/base/entropy.h"
#include "claimd/base/invariant.h"
#include "main/text_file.h"

#include <string.h>

/* ------------------------------------------------------------------ signatures */

static enum status
parse_signing_keys(void *signer, struct mem *mem, struct bytes text, size_t *line,
                   struct reason *why)
{
    (void)mem;
    return signer_replace(signer, text, line, why);
}

/*
 * Makes a signer for pre-signed URLs or web hooks, owned, with the keys of the file that
 * the option names.
 */
static enum status
signing_open(const struct config *config, const char *option, struct mem *mem,
             struct signer **out, struct config_errors *errors)
{
    struct signer *signer = NULL;
    enum status st = signer_new(mem, &signer);

    if (st == ST_OK)
        st = option_file_parse(config, option, mem, parse_signing_keys, signer, errors);
    if (st == ST_OK)
        *out = signer;
    else
        signer_free(signer);
    return st;
}

/* ------------------------------------------------------------------ encrypted queues */

static enum status
parse_encryption_keys(void *seal, struct mem *mem, struct bytes text, size_t *line,
                      struct reason *why)
{
    (void)mem;
    return seal_replace(seal, text, line, why);
}

static void
log_decryption_failure(void *arg, enum status st,
                       const char key_id[SEAL_KEY_ID_DIGITS + 1], struct bytes project)
{
    log_event(arg, LOG_ERROR,
              st == ST_NO_KEY ? "encryption_key_missing" : "encrypted_message_damaged",
              LOG_S("key", key_id), LOG_B("project", project));
}

/* Makes a seal, owned, with the keys of the file. It logs bodies that it cannot decrypt
 * (log NULL: no log). */
static enum status
sealing_open(const struct config *config, struct mem *mem, const struct log *log,
             struct seal **out, struct config_errors *errors)
{
    const struct seal_config wanted = {.mem = mem,
                                       .trouble =
                                           log == NULL ? NULL : log_decryption_failure,
                                       .arg = (void *)(uintptr_t)log};
    struct seal *seal = NULL;
    enum status st = seal_new(&wanted, &seal);

    if (st == ST_OK)
        st = option_file_parse(config, "encryption_keys", mem, parse_encryption_keys,
                               seal, errors);
    if (st == ST_OK)
        *out = seal;
    else
        seal_free(seal);
    return st;
}

/* ------------------------------------------------------------------ TLS */

bool
certificate_wanted(const struct listen_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].kind == LISTEN_TLS)
            return true;
    return false;
}

/* Reads certificate and key as a pair, pinned for the caller. */
static enum status
certificate_read(const struct config *config, struct mem *mem, struct tls_pair **out,
                 struct config_errors *errors)
{
    const struct text_file chain_file = option_file(config, "tls_certificate");
    const struct text_file key_file = option_file(config, "tls_key");
    struct reason why;
    struct bytes chain, key;
    enum status st = text_file_read(&chain_file, mem, &chain, errors);

    if (st != ST_OK)
        return st;
    st = text_file_read(&key_file, mem, &key, errors);
    if (st == ST_OK) {
        reason_init(&why);
        st = tls_pair_read(mem, chain, key, out, &why);
        if (st == ST_BAD_VALUE)
            config_error(errors, "tls_certificate: %s, tls_key: %s: %s", chain_file.path,
                         key_file.path, why.text);
        text_file_drop(mem, key);
    }
    text_file_drop(mem, chain);
    return st;
}

/* Makes a tls, owned; *out is NULL if no listener of the list has TLS. */
static enum status
certificate_open(const struct config *config, const struct listen_list *list,
                 struct mem *mem, struct tls **out, struct config_errors *errors)
{
    const struct text_file file = option_file(config, "tls_client_ca");
    struct bytes authorities;
    struct tls_pair *pair;
    struct reason why;
    enum status st;

    *out = NULL;
    if (!certificate_wanted(list))
        return ST_OK;
    if (!config_has(config->tls_certificate) || !config_has(config->tls_key)) {
        config_error(errors, "a TLS address in listen needs tls_certificate and tls_key");
        return ST_BAD_VALUE;
    }
    st = certificate_read(config, mem, &pair, errors);
    if (st != ST_OK)
        return st;
    st = text_file_read(&file, mem, &authorities, errors);
    if (st != ST_OK) {
        tls_pair_drop(pair);
        return st;
    }
    reason_init(&why);
    st = tls_new(mem, pair, authorities, out, &why); /* takes the pin of the pair */
    text_file_drop(mem, authorities);
    if (st == ST_BAD_VALUE)
        config_error(errors, "tls_client_ca: %s: %s", file.path, why.text);
    return st;
}

void
certificate_check(const struct config *config, struct mem *mem,
                  struct config_errors *errors)
{
    struct tls_pair *pair;

    if (!config_has(config->tls_certificate) && !config_has(config->tls_key))
        return;
    if (!config_has(config->tls_certificate) || !config_has(config->tls_key))
        config_error(errors, "%s has no effect without %s",
                     config_has(config->tls_key) ? "tls_key" : "tls_certificate",
                     config_has(config->tls_key) ? "tls_certificate" : "tls_key");
    else if (certificate_read(config, mem, &pair, errors) == ST_OK)
        tls_pair_drop(pair);
}

/* ------------------------------------------------------------------ access control */

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

/*
 * Reads the files that *config names, and clears the cache of Keystone. On failure
 * nothing is changed.
 */
static enum status
access_reload(struct resources *r, const struct config *config,
              struct config_errors *errors)
{
    struct token_list *certificates = NULL;
    struct policy policy = policy_default;
    struct token_parser new = {r->access, &policy};
    struct reason unused;
    size_t line;
    enum status st =
        option_file_parse(config, "policy", r->mem, parse_policy, &policy, errors);

    if (st == ST_OK)
        st = option_file_parse(config, "certificates", r->mem, parse_certificates,
                               &certificates, errors);
    /* Put the policy and the tokens in force. Only `auth = tokens` has tokens. */
    if (st == ST_OK && config->auth == AUTH_BY_TOKENS)
        st = option_file_parse(config, "tokens", r->mem, parse_tokens, &new, errors);
    else if (st == ST_OK)
        st = access_replace(r->access, BYTES_NONE, &policy, &line, &unused);
    if (st != ST_OK) {
        token_list_free(certificates);
        return st;
    }
    access_use_certificates(r->access, certificates);
    if (r->keystone != NULL)
        keystone_clear_cache(r->keystone);
    return ST_OK;
}

/* Reads the service token from its file. */
static enum status
service_token_read(const struct resources *r, char out[KEYSTONE_TOKEN_MAX + 1],
                   struct config_errors *errors)
{
    const struct text_file file = option_file(r->config, "keystone_token_file");
    struct bytes text, token;
    bool good;
    enum status st = text_file_read(&file, r->mem, &text, errors);

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
    text_file_drop(r->mem, text);
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
    const struct resources *r = ctx;

    if (r->log == NULL)
        return;
    if (health == KEYSTONE_RESPONDING)
        log_event(r->log, LOG_INFO, "keystone_available",
                  LOG_S("url", r->config->keystone_url));
    else
        log_event(r->log, LOG_ERROR,
                  health == KEYSTONE_UNAVAILABLE ? "keystone_unavailable"
                                                 : "keystone_refuses_service_token",
                  LOG_S("error", why));
}

static enum status
open_keystone(struct resources *r, struct config_errors *errors)
{
    const struct executor_config executor = {
        .mem = r->mem, .threads = KEYSTONE_THREADS, .line = KEYSTONE_LINE};
    const bool system = strcmp(r->config->keystone_ca, "system") == 0;
    const struct keystone_wire_config wire = {.mem = r->mem,
                                              .url = r->config->keystone_url,
                                              .ca =
                                                  system ? NULL : r->config->keystone_ca,
                                              .service_token = service_token_get,
                                              .ctx = r};
    struct keystone_config keystone = {
        .mem = r->mem,
        .cache_ms = r->config->keystone_cache_seconds * 1000,
        .timeout_ms = r->config->keystone_timeout_ms,
        .cache_tokens = (size_t)r->config->keystone_cache_tokens,
        .health = log_keystone_health,
        .ctx = r,
    };
    struct reason why;
    char token[KEYSTONE_TOKEN_MAX + 1];
    enum status st = service_token_read(r, token, errors);

    explicit_bzero(token, sizeof(token));
    reason_init(&why);
    if (st == ST_OK)
        st = keystone_wire_open(&wire, &r->wire, &why);
    if (st == ST_UNAVAILABLE) {
        config_error(errors, "auth keystone %s", why.text);
        st = ST_BAD_VALUE;
    }
    if (st == ST_OK)
        st = executor_open(&executor, &r->executor);
    if (st == ST_UNAVAILABLE) {
        config_error(errors, "cannot start the threads for Keystone");
        st = ST_BAD_VALUE;
    }
    if (st == ST_OK)
        st = role_map_read(&keystone.roles, bytes_str(r->config->keystone_roles), &why);
    if (st == ST_OK)
        st = entropy_make_key(&keystone.key, sizeof(keystone.key));
    keystone.wire = r->wire;
    keystone.executor = r->executor;
    if (st == ST_OK)
        st = keystone_new(&keystone, &r->keystone);
    if (st == ST_OK)
        access_use_keystone(r->access, r->keystone);
    return st;
}

/* Opens the access control. */
static enum status
access_open(struct resources *r, struct config_errors *errors)
{
    enum status st;

    if (r->config->auth == AUTH_BY_NONE)
        return ST_OK;
    st = access_new(r->mem, &r->access);
    if (st == ST_OK && r->config->auth == AUTH_BY_KEYSTONE)
        st = open_keystone(r, errors);
    if (st == ST_OK)
        st = access_reload(r, r->config, errors);
    return st;
}

/* Makes the auth of the identity stub, owned; *out is NULL if the stub is off. */
static enum status
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
        st = entropy_make_key(&auth.key, sizeof(auth.key));
    if (st == ST_OK)
        st = auth_new(&auth, out, &bad_line);
    text_file_drop(mem, auth.users);
    return st;
}

/* ------------------------------------------------------------------ all resources */

static enum status
first_error(enum status before, enum status now)
{
    return before == ST_OK ? now : before;
}

enum status
resources_open(struct resources *r, const struct config *config, struct mem *mem,
               const struct log *log, struct config_errors *errors)
{
    const struct text_file password = option_file(config, "smtp_password_file");
    struct reason why;
    enum status st;

    *r = (struct resources){.config = config, .mem = mem, .log = log};
    if (activation_wanted(config)) {
        st = activation_read(config, &r->listen, errors);
    } else {
        st = listen_read(config->listen, &r->listen, &why);
        if (st != ST_OK)
            config_error(errors, "listen %s", why.text);
    }
    if (st == ST_OK) /* certificates depend on the listeners */
        st = certificate_open(config, &r->listen, mem, &r->tls, errors);
    if (proxies_read(bytes_str(config->trusted_proxies), &r->proxies, &why) != ST_OK)
        ENSURE(false); /* config_check() has read it before */
    st = first_error(st, socket_group_find(config, &r->socket_group, errors));
    st = first_error(st, access_open(r, errors));
    st = first_error(st, signing_open(config, "signing_keys", mem, &r->signer, errors));
    st = first_error(st, signing_open(config, "webhook_keys", mem, &r->webhooks, errors));
    st = first_error(st, text_file_word(&password, mem, &r->smtp_password, errors));
    st = first_error(st, sealing_open(config, mem, log, &r->seal, errors));
    return first_error(st, identity_open(config, mem, &r->auth, errors));
}

enum status
resources_reload(struct resources *r, const struct config *config,
                 struct config_errors *errors)
{
    struct tls_pair *pair = NULL;
    struct signer *signer = NULL, *webhooks = NULL;
    struct seal *seal = NULL;
    enum status st = signing_open(config, "signing_keys", r->mem, &signer, errors);

    if (st == ST_OK)
        st = signing_open(config, "webhook_keys", r->mem, &webhooks, errors);
    if (st == ST_OK)
        st = sealing_open(config, r->mem, NULL, &seal, errors);
    if (st == ST_OK && r->tls != NULL)
        st = certificate_read(config, r->mem, &pair, errors);
    if (st == ST_OK && r->access != NULL)
        st = access_reload(r, config, errors);
    if (st != ST_OK)
        tls_pair_drop(pair);
    else if (pair != NULL)
        tls_replace(r->tls, pair);
    if (st == ST_OK) {
        signer_swap(r->signer, signer);
        signer_swap(r->webhooks, webhooks);
        seal_swap(r->seal, seal);
    }
    signer_free(signer);
    signer_free(webhooks);
    seal_free(seal);
    return st;
}

void
resources_close(struct resources *r)
{
    executor_close(r->executor);
    access_free(r->access);
    keystone_free(r->keystone);
    keystone_wire_close(r->wire);
    signer_free(r->signer);
    seal_free(r->seal);
    signer_free(r->webhooks);
    text_file_drop_word(r->mem, r->smtp_password);
    auth_free(r->auth);
    tls_free(r->tls);
}

/* Logs the end of the certificate, or a warning if it is not valid now. */
static void
log_certificate(struct tls *tls, const struct log *log, int64_t now_ms)
{
    struct tls_pair *pair = tls_pin(tls);
    char begins[CLOCK_TEXT_CAP], ends[CLOCK_TEXT_CAP];

    clock_text(pair->begins_ms, begins);
    clock_text(pair->ends_ms, ends);
    if (now_ms < pair->begins_ms || now_ms >= pair->ends_ms)
        log_event(log, LOG_WARN, "certificate_not_valid", LOG_S("from", begins),
                  LOG_S("until", ends));
    else
        log_event(log, LOG_INFO, "certificate", LOG_S("until", ends));
    tls_pair_drop(pair);
}

void
resources_log(const struct resources *r, const struct log *log, int64_t now_ms)
{
    char ids[SEAL_KEYS_MAX][SEAL_KEY_ID_DIGITS + 1];
    const size_t count = seal_key_ids(r->seal, ids);

    if (r->tls != NULL)
        log_certificate(r->tls, log, now_ms);
    for (size_t i = 0; i < count; i++)
        log_event(log, LOG_INFO, "encryption_key", LOG_S("key", ids[i]),
                  LOG_S("for", i == 0 ? "encrypting" : "decrypting"));
}
