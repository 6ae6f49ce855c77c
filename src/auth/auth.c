#include "auth/auth_private.h"

/* ------------------------------------------------------------------ the list */

static size_t
count_lines(struct bytes text)
{
    size_t lines = 1;

    for (size_t i = 0; i < text.len; i++)
        lines += text.data[i] == '\n';
    return lines;
}

/* "name:password" or "name:password:project", none of them empty. */
static bool
user_parse(struct bytes line, struct user *out)
{
    struct bytes rest = line;

    out->name = bytes_cut(&rest, ':');
    if (!bytes_present(rest))
        return false;
    out->password = bytes_cut(&rest, ':');
    out->project = rest;
    return out->name.len > 0 && out->password.len > 0 &&
           (!bytes_present(rest) || rest.len > 0);
}

static bool
is_blank(struct bytes line)
{
    return line.len == 0 || line.data[0] == '#';
}

bool
auth_line_check(struct bytes line)
{
    struct user user;

    line = bytes_trim(line);
    return is_blank(line) || user_parse(line, &user);
}

static enum status
parse_users(struct auth *auth, struct bytes text, size_t *bad_line)
{
    size_t number = 0;

    while (bytes_present(text)) {
        struct bytes line = bytes_trim(bytes_cut(&text, '\n'));

        number++;
        if (is_blank(line))
            continue;
        if (!user_parse(line, &auth->list[auth->count])) {
            *bad_line = number;
            return ST_BAD_VALUE;
        }
        auth->count++;
    }
    return ST_OK;
}

static enum status
take_users(struct auth *auth, struct bytes users, size_t *bad_line)
{
    auth->users = mem_alloc(auth->mem, users.len + 1);
    auth->list = mem_calloc(auth->mem, count_lines(users), sizeof(*auth->list));
    if (auth->users == NULL || auth->list == NULL)
        return ST_NO_MEMORY;
    if (users.len > 0)
        memcpy(auth->users, users.data, users.len);
    return parse_users(auth, bytes_of(auth->users, users.len), bad_line);
}

/* ------------------------------------------------------------------ life */

enum status
auth_new(const struct auth_config *config, struct auth **out, size_t *bad_line)
{
    struct auth *auth = mem_calloc(config->mem, 1, sizeof(*auth));
    enum status st = ST_OK;

    if (auth == NULL)
        return ST_NO_MEMORY;
    auth->mem = config->mem;
    auth->key = config->key;
    auth->token_life_s = config->token_life_s;
    auth->region = config->region;
    if (bytes_present(config->users))
        st = take_users(auth, config->users, bad_line);
    if (st != ST_OK) {
        auth_free(auth);
        return st;
    }
    *out = auth;
    return ST_OK;
}

void
auth_free(struct auth *auth)
{
    if (auth == NULL)
        return;
    mem_free(auth->mem, auth->list);
    mem_free(auth->mem, auth->users);
    mem_free(auth->mem, auth);
}

bool
auth_is_required(const struct auth *auth)
{
    return auth->users != NULL;
}

const char *
auth_region(const struct auth *auth)
{
    return auth->region;
}

/* ------------------------------------------------------------------ logging in */

static bool
user_admits(const struct user *u, struct bytes name, struct bytes password,
            struct bytes wanted)
{
    if (!bytes_equal(u->name, name))
        return false;
    if (bytes_present(password) && !bytes_equal_secret(u->password, password))
        return false;
    return wanted.len == 0 || !bytes_present(u->project) ||
           bytes_equal(u->project, wanted);
}

enum status
auth_admit(const struct auth *auth, struct bytes user, struct bytes password,
           struct bytes wanted, struct bytes *project)
{
    struct bytes usual = wanted.len > 0 ? wanted : user;

    if (user.len == 0)
        return ST_UNAUTHORIZED;
    if (!auth_is_required(auth)) {
        *project = usual;
        return ST_OK;
    }
    for (size_t i = 0; i < auth->count; i++)
        if (user_admits(&auth->list[i], user, password, wanted)) {
            *project =
                bytes_present(auth->list[i].project) ? auth->list[i].project : usual;
            return ST_OK;
        }
    return ST_UNAUTHORIZED;
}
