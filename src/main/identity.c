#include "main/identity.h"

#include "claimd/base/entropy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

enum { LIST_MAX = 1 << 20, TOKEN_LIFE_S = 12 * 3600 };

bool
identity_has_list(const struct config *config)
{
    return strcmp(config->identity_users, "any") != 0;
}

/* 127.0.0.0/8, in any of the ways to write it; a name never is, 127.example.org neither. */
static bool
is_loopback_ipv4(const char *listen)
{
    char host[INET_ADDRSTRLEN];
    size_t len = strcspn(listen, ":");
    struct in_addr address;

    if (len >= sizeof(host))
        return false;
    memcpy(host, listen, len);
    host[len] = '\0';
    return inet_aton(host, &address) != 0 && ntohl(address.s_addr) >> 24 == 127;
}

bool
identity_is_loopback(const char *listen)
{
    static const char *const starts[] = {"unix:", "[::1]:", "localhost:"};

    if (is_loopback_ipv4(listen))
        return true;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (strncmp(listen, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* Reads the list into a buffer of LIST_MAX bytes. */
static enum status
read_list(const char *path, char *text, struct bytes *out, struct complaints *complaints)
{
    FILE *file = fopen(path, "re");
    const char *why = NULL;
    size_t len;

    if (file == NULL) {
        complain(complaints, "identity_users: %s: %s", path, strerror(errno));
        return ST_BAD_VALUE;
    }
    len = fread(text, 1, LIST_MAX, file);
    if (ferror(file))
        why = strerror(errno);
    else if (!feof(file))
        why = "is larger than 1M";
    (void)fclose(file); /* nothing was written */
    if (why != NULL) {
        complain(complaints, "identity_users: %s: %s", path, why);
        return ST_BAD_VALUE;
    }
    *out = bytes_of(text, len);
    return ST_OK;
}

/* Tells of each line that cannot be understood. */
static enum status
check_list(const char *path, struct bytes list, struct complaints *complaints)
{
    enum status st = ST_OK;

    for (size_t number = 1; bytes_present(list); number++) {
        if (auth_line_check(bytes_cut(&list, '\n')))
            continue;
        complain(complaints,
                 "identity_users: %s:%zu: not of the form name:password[:project]", path,
                 number);
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
              struct complaints *complaints)
{
    const char *path = config->identity_users;
    struct bytes users = BYTES_NONE;
    char *text;
    enum status st;

    *out = NULL;
    if (!config->identity_stub)
        return ST_OK;
    if (!identity_has_list(config))
        return make(config, mem, users, out);
    text = mem_alloc(mem, LIST_MAX);
    if (text == NULL)
        return ST_NO_MEMORY;
    st = read_list(path, text, &users, complaints);
    if (st == ST_OK)
        st = check_list(path, users, complaints);
    if (st == ST_OK)
        st = make(config, mem, users, out);
    mem_free(mem, text);
    return st;
}
