#include "main/admission.h"

#include "main/text_file.h"

#include <string.h>

enum { FILE_MOST = 16 << 20 };

static enum status
read_policy(const struct config *config, struct mem *mem, struct policy *out,
            struct complaints *complaints)
{
    const struct text_file file = {
        .path = config->policy, .option = "policy", .most = FILE_MOST};
    struct reason why;
    struct bytes text;
    enum status st;

    *out = policy_default;
    if (strcmp(config->policy, "none") == 0)
        return ST_OK;
    st = text_file_read(&file, mem, &text, complaints);
    if (st != ST_OK)
        return st;
    reason_init(&why);
    st = policy_read(out, text, &why);
    mem_free(mem, (void *)text.data);
    if (st == ST_BAD_VALUE)
        complain(complaints, "policy: %s: %s", file.path, why.text);
    return st;
}

static enum status
read_tokens(const struct config *config, struct mem *mem, struct access *access,
            const struct policy *policy, struct complaints *complaints)
{
    const struct text_file file = {
        .path = config->tokens, .option = "tokens", .most = FILE_MOST, .secret = true};
    struct reason why;
    struct bytes text = BYTES_NONE;
    size_t line = 0;
    enum status st = ST_OK;

    if (config->auth == AUTH_BY_TOKENS)
        st = text_file_read(&file, mem, &text, complaints);
    if (st != ST_OK)
        return st;
    reason_init(&why);
    st = access_replace(access, text, policy, &line, &why);
    mem_free(mem, (void *)text.data);
    if (st == ST_BAD_VALUE)
        complain(complaints, "tokens: %s:%zu: %s", file.path, line, why.text);
    return st;
}

/* NULL in *out: no file is named. */
static enum status
read_certificates(const struct config *config, struct mem *mem, struct certificates **out,
                  struct complaints *complaints)
{
    const struct text_file file = {
        .path = config->certificates, .option = "certificates", .most = FILE_MOST};
    struct reason why;
    struct bytes text;
    size_t line = 0;
    enum status st;

    if (strcmp(config->certificates, "none") == 0)
        return ST_OK;
    st = text_file_read(&file, mem, &text, complaints);
    if (st != ST_OK)
        return st;
    reason_init(&why);
    st = certificates_read(mem, text, out, &line, &why);
    mem_free(mem, (void *)text.data);
    if (st == ST_BAD_VALUE)
        complain(complaints, "certificates: %s:%zu: %s", file.path, line, why.text);
    return st;
}

enum status
admission_reload(const struct config *config, struct mem *mem, struct access *access,
                 struct complaints *complaints)
{
    struct certificates *certificates = NULL;
    struct policy policy;
    enum status st = read_policy(config, mem, &policy, complaints);

    if (st == ST_OK)
        st = read_certificates(config, mem, &certificates, complaints);
    if (st == ST_OK)
        st = read_tokens(config, mem, access, &policy, complaints);
    if (st == ST_OK)
        access_use_certificates(access, certificates);
    else
        certificates_free(certificates);
    return st;
}

enum status
admission_open(const struct config *config, struct mem *mem, struct access **out,
               struct complaints *complaints)
{
    enum status st;

    *out = NULL;
    if (config->auth == AUTH_BY_NONE)
        return ST_OK;
    st = access_new(mem, out);
    if (st == ST_OK)
        st = admission_reload(config, mem, *out, complaints);
    return st;
}
