#include "main/identity.h"

#include "claimd/base/entropy.h"
#include "main/text_file.h"

#include <stdio.h>

enum { LIST_MAX = 1 << 20, TOKEN_LIFE_S = 12 * 3600 };

bool
identity_has_list(const struct config *config)
{
    return strcmp(config->identity_users, "any") != 0;
}

/* Tells of each line that cannot be understood. */
static enum status
check_list(const char *path, struct bytes list, struct config_errors *errors)
{
    enum status st = ST_OK;

    for (size_t number = 1; bytes_present(list); number++) {
        if (auth_line_check(bytes_cut(&list, '\n')))
            continue;
        config_error(errors,
                     "identity_users: %s:%zu: a line must be name:password[:project]",
                     path, number);
        st = ST_BAD_VALUE;
    }
    return st;
}

static enum status
make(const struct config *config, struct mem *mem, struct bytes users, struct auth **out)
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
    return auth_new(&auth, out, &bad_line);
}

enum status
identity_open(const struct config *config, struct mem *mem, struct auth **out,
              struct config_errors *errors)
{
    const char *path = config->identity_users;
    const struct text_file file = {
        .path = path, .option = "identity_users", .most = LIST_MAX, .once = true};
    struct bytes users = BYTES_NONE;
    enum status st;

    *out = NULL;
    if (!config->identity_stub)
        return ST_OK;
    if (!identity_has_list(config))
        return make(config, mem, users, out);
    st = text_file_read(&file, mem, &users, errors);
    if (st != ST_OK)
        return st;
    st = check_list(path, users, errors);
    if (st == ST_OK)
        st = make(config, mem, users, out);
    mem_free(mem, (void *)users.data);
    return st;
}
