#include "main/signing.h"

#include "main/text_file.h"

#include <string.h>

enum { FILE_MOST = 65536 };

static enum status
read_keys(const struct text_file *file, struct mem *mem, struct signer *signer,
          struct config_errors *errors)
{
    struct reason why;
    struct bytes text;
    size_t line;
    enum status st = text_file_read(file, mem, &text, errors);

    if (st != ST_OK)
        return st;
    reason_init(&why);
    st = signer_replace(signer, text, &line, &why);
    if (st != ST_OK && line == 0)
        config_error(errors, "%s: %s: %s", file->option, file->path, why.text);
    else if (st != ST_OK)
        config_error(errors, "%s: %s:%zu: %s", file->option, file->path, line, why.text);
    explicit_bzero((void *)text.data, text.len);
    mem_free(mem, (void *)text.data);
    return st;
}

enum status
signing_open(const char *option, const char *path, struct mem *mem, struct signer **out,
             struct config_errors *errors)
{
    const struct text_file file = {
        .path = path, .option = option, .most = FILE_MOST, .secret = true};
    struct signer *signer = NULL;
    enum status st = signer_new(mem, &signer);

    if (st == ST_OK && strcmp(path, "none") != 0)
        st = read_keys(&file, mem, signer, errors);
    if (st == ST_OK)
        *out = signer;
    else
        signer_free(signer);
    return st;
}
