#include "main/password.h"

#include "main/text_file.h"

#include <string.h>

enum { PASSWORD_MOST = 1024 };

enum status
password_read(const char *option, const char *path, struct mem *mem, char **out,
              struct config_errors *errors)
{
    const struct text_file file = {
        .path = path, .option = option, .most = PASSWORD_MOST, .secret = true};
    struct bytes text, line;
    enum status st;

    *out = NULL;
    if (strcmp(path, "none") == 0)
        return ST_OK;
    st = text_file_read(&file, mem, &text, errors);
    if (st != ST_OK)
        return st;
    line = bytes_trim(text);
    *out = mem_calloc(mem, 1, line.len + 1);
    if (*out != NULL && line.len > 0)
        memcpy(*out, line.data, line.len);
    if (text.len > 0)
        explicit_bzero((void *)text.data, text.len);
    mem_free(mem, (void *)text.data);
    return *out == NULL ? ST_NO_MEMORY : ST_OK;
}

void
password_free(struct mem *mem, char *password)
{
    if (password != NULL)
        explicit_bzero(password, strlen(password));
    mem_free(mem, password);
}
