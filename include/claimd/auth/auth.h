/*
 * auth: who is asking, as far as the identity stub for development and CI can tell.
 *
 * Callers log in with a name and a password and get a token that says who they are and
 * in which project. Tokens are stateless: user, project and end stand in them in plain
 * hexadecimal, behind a keyed hash that only this process can make. So nothing grows with
 * the number of tokens, none can be taken back before its end, and all of them end with
 * the process.
 *
 * A token that was got for another token ends with it: whoever finds one cannot renew it.
 *
 * This is no protection: passwords are in plain text, the hash has 64 bits. But how long it
 * takes to refuse a password or a token does not tell how much of it is right.
 *
 *   Cost     a token: O(its length); a login: O(listed users)
 *   Threads  any: nothing changes after auth_new()
 */
#ifndef CLAIMD_AUTH_AUTH_H
#define CLAIMD_AUTH_AUTH_H

#include "claimd/base/arena.h"
#include "claimd/base/hash.h"
#include "claimd/base/status.h"

struct auth_config {
    struct mem *mem;      /* borrowed for the auth's life */
    struct hash_key key;  /* signs tokens */
    int64_t token_life_s; /* seconds */
    const char *region;   /* of the endpoints in catalogs; borrowed for the auth's life */
    /*
     * The users who may log in: a line "name:password" or "name:password:project" for
     * each, which may only get into that project (several lines: several projects); "#"
     * begins a comment line. Absent: anybody may, with any password, into any project.
     */
    struct bytes users;
};

struct auth; /* opaque */

/* Somebody known, in a project. */
struct auth_caller {
    struct bytes user, project;
    int64_t expires_ms; /* when the proof of it ends: a token; AUTH_NEVER: a password */
};

#define AUTH_NEVER INT64_MAX

/* True if auth_new() would understand this line of a list of users. */
bool auth_line_check(struct bytes line);

/* Makes an auth, owned; the list of users is copied. ST_BAD_VALUE: *bad_line of the list
 * cannot be understood; ST_NO_MEMORY. */
enum status
auth_new(const struct auth_config *config, struct auth **out, size_t *bad_line);
void auth_free(struct auth *auth);

/* True if there is a list of users: then requests without a token are refused too. */
bool auth_is_required(const struct auth *auth);

const char *auth_region(const struct auth *auth);

/*
 * Admits a user with this password (absent: proved otherwise, by a token) to a project.
 * Without a wanted one (absent or empty) it is the first that the list gives the user,
 * else the one named like the user. ST_UNAUTHORIZED. *project is borrowed from the
 * arguments or from auth.
 */
enum status auth_admit(const struct auth *auth, struct bytes user, struct bytes password,
                       struct bytes wanted, struct bytes *project);

/*
 * Writes a token that ends as configured, or with caller->expires_ms if that is earlier;
 * there it tells when. NUL-terminated. ST_NO_MEMORY.
 */
enum status
auth_token_write(const struct auth *auth, int64_t now_ms, struct auth_caller *caller,
                 struct arena *arena, struct bytes *out);

/* Reads a token. ST_UNAUTHORIZED: not one of ours, or ended; ST_NO_MEMORY. */
enum status auth_token_read(const struct auth *auth, int64_t now_ms, struct bytes token,
                            struct arena *arena, struct auth_caller *out);

#endif
