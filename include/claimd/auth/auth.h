/*
 * auth: users and tokens of the identity stub for development and CI.
 *
 * A client logs in with a name and a password, and gets a token for a project. Tokens are
 * stateless: they contain a keyed hash, which only this process can make, and then user,
 * project and expiry in plain hexadecimal. So memory does not grow with the number of
 * tokens. claimd cannot revoke a token before it expires. When the process ends, all its
 * tokens become invalid.
 *
 * If a client gets a token with another token, both expire at the same time. So a thief
 * cannot renew a token.
 *
 * The stub is no protection: passwords are in plain text, and the hash has 64 bits. But
 * the time to refuse a password or a token does not reveal how much of it is right.
 *
 *   Cost     of a token O(length), of a login O(users)
 *   Threads  any. Nothing changes after auth_new()
 *   Memory   the list of users
 */
#ifndef CLAIMD_AUTH_AUTH_H
#define CLAIMD_AUTH_AUTH_H

#include "claimd/base/arena.h"
#include "claimd/base/hash.h"
#include "claimd/base/status.h"

struct auth_config {
    struct mem *mem;      /* borrowed for the life of the auth, as `region` */
    struct hash_key key;  /* signs tokens */
    int64_t token_life_s; /* TTL of tokens */
    const char *region;   /* region of the endpoints in catalogs */
    /*
     * The users: a line "name:password" (all projects) or "name:password:project" for
     * each. A user may have several lines. "#" begins a comment line. Absent: any user
     * may log in, with any password, to any project.
     */
    struct bytes users;
};

struct auth; /* opaque */

/* A user in a project. */
struct auth_caller {
    struct bytes user, project;
    int64_t expires_ms; /* of the token used to log in; AUTH_NEVER: used a password */
};

#define AUTH_NEVER INT64_MAX

/* True if the line is valid in a list of users. */
bool auth_line_check(struct bytes line);

/* Makes an auth, which the caller owns, and copies the list of users. ST_BAD_VALUE:
 * *bad_line is invalid. ST_NO_MEMORY. */
enum status
auth_new(const struct auth_config *config, struct auth **out, size_t *bad_line);
void auth_free(struct auth *auth);

/* True if there is a list of users. Then requests must have a token. */
bool auth_is_required(const struct auth *auth);

const char *auth_region(const struct auth *auth);

/*
 * Checks that the user may log in to the project `wanted` with this password (absent: the
 * user has a token). If `wanted` is absent or empty, *project is the first project of the
 * user in the list, or the project with the name of the user. ST_UNAUTHORIZED: the user
 * may not log in. *project is borrowed from the arguments or from the auth.
 */
enum status auth_admit(const struct auth *auth, struct bytes user, struct bytes password,
                       struct bytes wanted, struct bytes *project);

/*
 * Writes a token, NUL-terminated. The token expires after token_life_s, or at
 * caller->expires_ms if that is earlier. Sets caller->expires_ms to the expiry of the
 * token. ST_NO_MEMORY.
 */
enum status
auth_token_write(const struct auth *auth, int64_t now_ms, struct auth_caller *caller,
                 struct arena *arena, struct bytes *out);

/* Reads a token. ST_UNAUTHORIZED: this process has not made it, or it has expired.
 * ST_NO_MEMORY. */
enum status auth_token_read(const struct auth *auth, int64_t now_ms, struct bytes token,
                            struct arena *arena, struct auth_caller *out);

#endif
