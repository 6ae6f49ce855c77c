#include "main/sealing.h"

#include "main/text_file.h"

#include <string.h>

enum { FILE_MOST = 65536 };

static enum status
read_keys(const struct config *config, struct mem *mem, struct seal *seal,
          struct config_errors *errors)
{
    const struct text_file file = {.path = config->encryption_keys,
                                   .option = "encryption_keys",
                                   .most = FILE_MOST,
                                   .secret = true};
    struct reason why;
    struct bytes text;
    size_t line;
    enum status st = text_file_read(&file, mem, &text, errors);

    if (st != ST_OK)
        return st;
    reason_init(&why);
    st = seal_replace(seal, text, &line, &why);
    if (st == ST_BAD_VALUE && line == 0)
        config_error(errors, "encryption_keys: %s: %s", file.path, why.text);
    else if (st == ST_BAD_VALUE)
        config_error(errors, "encryption_keys: %s:%zu: %s", file.path, line, why.text);
    explicit_bzero((void *)text.data, text.len);
    mem_free(mem, (void *)text.data);
    return st;
}

static void
tell_trouble(void *arg, enum status st, const char key_id[SEAL_KEY_ID_DIGITS + 1],
             struct bytes project)
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
                                       .trouble = log == NULL ? NULL : tell_trouble,
                                       .arg = (void *)(uintptr_t)log};
    struct seal *seal = NULL;
    enum status st = seal_new(&wanted, &seal);

    if (st == ST_OK && strcmp(config->encryption_keys, "none") != 0)
        st = read_keys(config, mem, seal, errors);
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
write_figures(struct metrics_source *source, struct exposition *x)
{
    static const struct family keys = {"claimd_encryption_keys", FAMILY_GAUGE, NULL,
                                       "Number of encryption keys loaded."};
    static const struct family encrypted = {"claimd_bodies_encrypted", FAMILY_COUNTER,
                                            NULL, "Number of bodies encrypted."};
    static const struct family decrypted = {
        "claimd_bodies_decrypted", FAMILY_COUNTER, NULL,
        "Number of body decryptions. Each decryption of the same body counts."};
    static const struct family failures = {
        "claimd_decryption_failures", FAMILY_COUNTER, NULL,
        "Number of failed body decryptions, by reason."};
    const struct label no_key = {"reason", BYTES_LIT("no_key")},
                       damaged = {"reason", BYTES_LIT("damaged")};
    struct seal_figures f;

    seal_measure(container_of(source, struct sealing_source, source)->seal, &f);
    if (f.keys == 0 && f.no_key + f.damaged == 0)
        return;
    exposition_single(x, &keys, f.keys);
    exposition_single(x, &encrypted, f.sealed);
    exposition_single(x, &decrypted, f.opened);
    exposition_family(x, &failures);
    exposition_sample(x, &no_key, 1, f.no_key);
    exposition_sample(x, &damaged, 1, f.damaged);
}

void
sealing_measure(struct sealing_source *source, struct seal *seal, struct metrics *metrics)
{
    *source = (struct sealing_source){.source.write = write_figures, .seal = seal};
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
