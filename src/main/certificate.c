#include "main/certificate.h"

#include "claimd/base/clock.h"
#include "main/text_file.h"

#include <string.h>

enum { FILE_MOST = 1 << 20 };

static bool
is_named(const char *path)
{
    return strcmp(path, "none") != 0;
}

bool
certificate_wanted(const struct listen_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].kind == LISTEN_TLS)
            return true;
    return false;
}

/* No key is left behind in memory that others get. */
static void
forget(struct mem *mem, struct bytes text)
{
    explicit_bzero((void *)(uintptr_t)text.data, text.len);
    mem_free(mem, (void *)(uintptr_t)text.data);
}

static enum status
make_pair(const struct config *config, struct mem *mem, struct bytes chain,
          struct bytes key, struct tls_pair **out, struct config_errors *errors)
{
    struct reason why;
    enum status st;

    reason_init(&why);
    st = tls_pair_read(mem, chain, key, out, &why);
    if (st == ST_BAD_VALUE)
        config_error(errors, "tls_certificate: %s, tls_key: %s: %s",
                     config->tls_certificate, config->tls_key, why.text);
    return st;
}

enum status
certificate_read(const struct config *config, struct mem *mem, struct tls_pair **out,
                 struct config_errors *errors)
{
    const struct text_file chain_file = {
        .path = config->tls_certificate, .option = "tls_certificate", .most = FILE_MOST};
    const struct text_file key_file = {
        .path = config->tls_key, .option = "tls_key", .most = FILE_MOST, .secret = true};
    struct bytes chain, key;
    enum status st = text_file_read(&chain_file, mem, &chain, errors);

    if (st != ST_OK)
        return st;
    st = text_file_read(&key_file, mem, &key, errors);
    if (st == ST_OK) {
        st = make_pair(config, mem, chain, key, out, errors);
        forget(mem, key);
    }
    mem_free(mem, (void *)(uintptr_t)chain.data);
    return st;
}

/* Takes the pin of the pair. */
static enum status
make_tls(const struct config *config, struct mem *mem, struct tls_pair *pair,
         struct tls **out, struct config_errors *errors)
{
    const struct text_file file = {.path = config->tls_client_ca,
                                   .option = "tls_client_ca",
                                   .most = FILE_MOST,
                                   .once = true};
    struct bytes authorities = BYTES_NONE;
    struct reason why;
    enum status st = ST_OK;

    reason_init(&why);
    if (is_named(config->tls_client_ca))
        st = text_file_read(&file, mem, &authorities, errors);
    if (st != ST_OK) {
        tls_pair_drop(pair);
        return st;
    }
    st = tls_new(mem, pair, authorities, out, &why);
    mem_free(mem, (void *)(uintptr_t)authorities.data);
    if (st == ST_BAD_VALUE)
        config_error(errors, "tls_client_ca: %s: %s", config->tls_client_ca, why.text);
    return st;
}

enum status
certificate_open(const struct config *config, const struct listen_list *list,
                 struct mem *mem, struct tls **out, struct config_errors *errors)
{
    struct tls_pair *pair;
    enum status st;

    *out = NULL;
    if (!certificate_wanted(list))
        return ST_OK;
    if (!is_named(config->tls_certificate) || !is_named(config->tls_key)) {
        config_error(errors, "a TLS address in listen needs tls_certificate and tls_key");
        return ST_BAD_VALUE;
    }
    st = certificate_read(config, mem, &pair, errors);
    return st == ST_OK ? make_tls(config, mem, pair, out, errors) : st;
}

void
certificate_check(const struct config *config, struct mem *mem,
                  struct config_errors *errors)
{
    struct tls_pair *pair;

    if (!is_named(config->tls_certificate) && !is_named(config->tls_key))
        return;
    if (!is_named(config->tls_certificate) || !is_named(config->tls_key))
        config_error(errors, "%s has no effect without %s",
                     is_named(config->tls_key) ? "tls_key" : "tls_certificate",
                     is_named(config->tls_key) ? "tls_certificate" : "tls_key");
    else if (certificate_read(config, mem, &pair, errors) == ST_OK)
        tls_pair_drop(pair);
}

void
certificate_log(struct tls *tls, const struct log *log, int64_t now_ms)
{
    struct tls_pair *pair = tls_pin(tls);
    char begins[CLOCK_TEXT_CAP], ends[CLOCK_TEXT_CAP];

    clock_text(tls_pair_begins_ms(pair), begins);
    clock_text(tls_pair_ends_ms(pair), ends);
    if (now_ms < tls_pair_begins_ms(pair) || now_ms >= tls_pair_ends_ms(pair))
        log_event(log, LOG_WARN, "certificate_not_valid", LOG_S("from", begins),
                  LOG_S("until", ends));
    else
        log_event(log, LOG_INFO, "certificate", LOG_S("until", ends));
    tls_pair_drop(pair);
}
