#include "claimd/auth/auth.h"

#include "claimd/json/line_list.h"

/* A line of the list of users; the texts point into auth->users. */
struct user {
    struct bytes name, password;
    struct bytes project; /* absent: any */
};

struct auth {
    struct mem *mem;
    struct hash_key key;
    int64_t token_life_s;
    const char *region;
    char *users;       /* owned copy of the list; NULL: any user may log in */
    struct user *list; /* owned, in the order of the lines */
    size_t count;
};

/* ------------------------------------------------------------------ the list */

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

bool
auth_line_check(struct bytes line)
{
    struct user user;

    line = bytes_trim(line);
    return line_is_comment(line) || user_parse(line, &user);
}

static enum status
users_add_line(void *ctx, struct bytes line, struct reason *why)
{
    struct auth *auth = ctx;

    (void)why; /* the number of the line is enough */
    if (!user_parse(line, &auth->list[auth->count]))
        return ST_BAD_VALUE;
    auth->count++;
    return ST_OK;
}

/* ------------------------------------------------------------------ life */

enum status
auth_new(const struct auth_config *config, struct auth **out, size_t *bad_line)
{
    struct auth *auth = mem_calloc(config->mem, 1, sizeof(*auth));
    const struct bytes users = config->users;
    enum status st = ST_OK;
    struct reason unused;

    if (auth == NULL)
        return ST_NO_MEMORY;
    auth->mem = config->mem;
    auth->key = config->key;
    auth->token_life_s = config->token_life_s;
    auth->region = config->region;
    if (bytes_present(users)) {
        auth->users = mem_alloc(auth->mem, users.len + 1);
        auth->list = mem_calloc(auth->mem, line_list_count(users), sizeof(*auth->list));
        if (auth->users == NULL || auth->list == NULL) {
            st = ST_NO_MEMORY;
        } else {
            memcpy(auth->users, users.data, users.len);
            st = line_list_read(bytes_of(auth->users, users.len), users_add_line, auth,
                                bad_line, &unused);
        }
    }
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
    for (size_t i = 0; i < auth->count; i++) {
        const struct user *u = &auth->list[i];

        if (!bytes_equal(u->name, user) ||
            (bytes_present(password) && !bytes_equal_secret(u->password, password)) ||
            (wanted.len > 0 && bytes_present(u->project) &&
             !bytes_equal(u->project, wanted)))
            continue;
        *project = bytes_present(u->project) ? u->project : usual;
        return ST_OK;
    }
    return ST_UNAUTHORIZED;
}

/* ------------------------------------------------------------------ tokens */

/*
 * A token is
 *
 *     claimd.HASH.END.USER.PROJECT
 *
 * HASH is the keyed hash of the text after its dot, in 16 digits. END is the time of the
 * end in ms, in 16 digits. USER and PROJECT are the bytes of these names. All are in
 * lower-case hexadecimal.
 */
static const struct bytes prefix = BYTES_LIT("claimd");

enum { NUMBER_DIGITS = 16 };

enum status
auth_token_write(const struct auth *auth, int64_t now_ms, struct auth_caller *caller,
                 struct arena *arena, struct bytes *out)
{
    size_t head = prefix.len + 1 + NUMBER_DIGITS + 1; /* with the hash and its dot */
    size_t len =
        head + NUMBER_DIGITS + 1 + 2 * caller->user.len + 1 + 2 * caller->project.len;
    char *text = arena_alloc(arena, len + 1), *to;

    if (text == NULL)
        return ST_NO_MEMORY;
    if (caller->expires_ms > now_ms + auth->token_life_s * 1000)
        caller->expires_ms = now_ms + auth->token_life_s * 1000;
    to = text + head;
    hex_write(to, (uint64_t)caller->expires_ms, NUMBER_DIGITS);
    to += NUMBER_DIGITS;
    *to++ = '.';
    to = hex_write_bytes(to, caller->user);
    *to++ = '.';
    to = hex_write_bytes(to, caller->project);
    *to = '\0';
    memcpy(text, prefix.data, prefix.len);
    text[prefix.len] = text[head - 1] = '.';
    hex_write(text + prefix.len + 1,
              hash_bytes(&auth->key, bytes_of(text + head, len - head)), NUMBER_DIGITS);
    *out = bytes_of(text, len);
    return ST_OK;
}

/* Reads a name of a token. ST_UNAUTHORIZED: not hexadecimal, which the hash excludes. */
static enum status
read_name(struct bytes digits, struct arena *arena, struct bytes *out)
{
    char *name = arena_alloc(arena, digits.len / 2 + 1);

    if (name == NULL)
        return ST_NO_MEMORY;
    if (!hex_read_bytes(digits, name, digits.len / 2))
        return ST_UNAUTHORIZED;
    name[digits.len / 2] = '\0';
    *out = bytes_of(name, digits.len / 2);
    return ST_OK;
}

enum status
auth_token_read(const struct auth *auth, int64_t now_ms, struct bytes token,
                struct arena *arena, struct auth_caller *out)
{
    struct bytes rest = token, hash_digits, end_digits, user_digits;
    struct auth_caller caller;
    char own[NUMBER_DIGITS];
    enum status st;
    uint64_t end;

    if (!bytes_equal(bytes_cut(&rest, '.'), prefix) || !bytes_present(rest))
        return ST_UNAUTHORIZED;
    hash_digits = bytes_cut(&rest, '.');
    if (!bytes_present(rest))
        return ST_UNAUTHORIZED;
    hex_write(own, hash_bytes(&auth->key, rest), NUMBER_DIGITS);
    if (!bytes_equal_secret(bytes_of(own, sizeof(own)), hash_digits))
        return ST_UNAUTHORIZED;
    end_digits = bytes_cut(&rest, '.');
    user_digits = bytes_cut(&rest, '.');
    if (end_digits.len != NUMBER_DIGITS || !hex_read(end_digits, &end) ||
        now_ms >= (int64_t)end)
        return ST_UNAUTHORIZED;
    caller.expires_ms = (int64_t)end;
    st = read_name(user_digits, arena, &caller.user);
    if (st == ST_OK)
        st = read_name(rest, arena, &caller.project);
    if (st == ST_OK)
        *out = caller;
    return st;
}
