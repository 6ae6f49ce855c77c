#include "main/identity.h"

#include "claimd/base/entropy.h"

#include <errno.h>
#include <stdio.h>

enum { LIST_MAX = 1 << 20, TOKEN_LIFE_S = 12 * 3600 };

bool
identity_has_list(const struct config *config)
{
    return strcmp(config->identity_users, "any") != 0;
}

bool
identity_is_loopback(const char *listen)
{
    static const char *const starts[] = {"unix:", "127.", "[::1]:", "localhost:"};

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (strncmp(listen, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* Reads the list into a buffer of LIST_MAX bytes. */
static enum status
read_list(const char *path, char *text, struct bytes *out, char error[CONFIG_ERROR_CAP])
{
    FILE *file = fopen(path, "re");
    size_t len;

    if (file == NULL) {
        (void)snprintf(error, CONFIG_ERROR_CAP, "%s: %s", path, strerror(errno));
        return ST_IO;
    }
    len = fread(text, 1, LIST_MAX, file);
    if (ferror(file) || !feof(file)) {
        (void)snprintf(error, CONFIG_ERROR_CAP, "%s: %s", path,
                       ferror(file) ? "cannot be read" : "is larger than 1M");
        (void)fclose(file); /* nothing was written */
        return ST_IO;
    }
    (void)fclose(file);
    *out = bytes_of(text, len);
    return ST_OK;
}

static enum status
make(const struct config *config, struct mem *mem, struct bytes users, struct auth **out,
     char error[CONFIG_ERROR_CAP])
{
    struct auth_config auth = {.mem = mem,
                               .token_life_s = TOKEN_LIFE_S,
                               .region = config->identity_region,
                               .users = users};
    struct entropy entropy;
    size_t bad_line = 0;
    enum status st;

    entropy_init_system(&entropy);
    st = entropy_reserve(&entropy, sizeof(auth.key));
    if (st != ST_OK)
        return st;
    entropy_take(&entropy, &auth.key, sizeof(auth.key));
    st = auth_new(&auth, out, &bad_line);
    if (st == ST_BAD_VALUE)
        (void)snprintf(error, CONFIG_ERROR_CAP,
                       "%s:%zu: not of the form name:password[:project]",
                       config->identity_users, bad_line);
    return st;
}

enum status
identity_open(const struct config *config, struct mem *mem, struct auth **out,
              char error[CONFIG_ERROR_CAP])
{
    struct bytes users = BYTES_NONE;
    char *text;
    enum status st;

    *out = NULL;
    if (!config->identity_stub)
        return ST_OK;
    if (!identity_has_list(config))
        return make(config, mem, users, out, error);
    text = mem_alloc(mem, LIST_MAX);
    if (text == NULL)
        return ST_NO_MEMORY;
    st = read_list(config->identity_users, text, &users, error);
    if (st == ST_OK)
        st = make(config, mem, users, out, error);
    mem_free(mem, text);
    return st;
}
