#include "main/key_files.h"

#include "claimd/base/clock.h"
#include "main/process_metrics.h"
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

enum status
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

enum status
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

static enum status
seal_body(void *arg, const struct store_queue *queue, struct bytes body, char *to)
{
    const struct seal_scope scope = {queue->project, (uint32_t)queue->kind};

    return seal_close(arg, &scope, body, to);
}

struct store_sealer
sealing_sealer(struct seal *seal)
{
    return (struct store_sealer){SEAL_OVERHEAD, seal, seal_body};
}

enum status
sealing_open_body(void *seal, const struct store_queue *queue, struct bytes body,
                  struct buf *out)
{
    const struct seal_scope scope = {queue->project, (uint32_t)queue->kind};
    size_t len = seal_open_len(body);
    enum status st;

    if (!store_is_sealed(body)) {
        buf_bytes(out, body);
        return out->failed ? ST_NO_MEMORY : ST_OK;
    }
    if (!buf_reserve(out, len))
        return ST_NO_MEMORY;
    st = seal_open(seal, &scope, body, out->data + out->len);
    if (st == ST_OK)
        out->len += len;
    return st;
}

static void
write_sealing(struct metrics_source *source, struct exposition *x)
{
    static const struct family failures = {
        "claimd_decryption_failures", FAMILY_COUNTER, NULL,
        "Number of failed body decryptions, by reason."};
    const struct label no_key = {"reason", BYTES_LIT("no_key")},
                       damaged = {"reason", BYTES_LIT("damaged")};
    struct seal_metrics f;

    seal_measure(container_of(source, struct sealing_source, source)->seal, &f);
    if (f.keys == 0 && f.no_key + f.damaged == 0)
        return;
    metric_write(x, FAMILY_GAUGE, "claimd_encryption_keys", NULL,
                 "Number of encryption keys loaded.", f.keys, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_bodies_encrypted", NULL,
                 "Number of bodies encrypted.", f.sealed, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_bodies_decrypted", NULL,
                 "Number of body decryptions. Each decryption of the same body counts.",
                 f.opened, 0);
    exposition_family(x, &failures);
    exposition_sample(x, &no_key, 1, f.no_key);
    exposition_sample(x, &damaged, 1, f.damaged);
}

void
sealing_add_metrics(struct sealing_source *source, struct seal *seal,
                    struct metrics *metrics)
{
    *source = (struct sealing_source){.source.write = write_sealing, .seal = seal};
    metrics_add(metrics, &source->source);
}

void
sealing_log(struct seal *seal, const struct log *log)
{
    char ids[SEAL_KEYS_MAX][SEAL_KEY_ID_DIGITS + 1];
    size_t count = seal_key_ids(seal, ids);

    for (size_t i = 0; i < count; i++)
        log_event(log, LOG_INFO, "encryption_key", LOG_S("key", ids[i]),
                  LOG_S("for", i == 0 ? "encrypting" : "decrypting"));
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

enum status
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

enum status
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

void
certificate_log(struct tls *tls, const struct log *log, int64_t now_ms)
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
