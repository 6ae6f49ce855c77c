/*
 * auth: users and tokens of the identity stub for development and CI.
 *
 * A client logs in with a name and a password, and gets a token for a project. Tokens are stateless: they
 * contain user, project and end in plain hexadecimal, after a keyed hash that only this process can make. So
 * memory does not grow with the number of tokens. A token cannot be revoked before its end. All tokens end with
 * the process.
 *
 * A token that was issued for another token ends at the same time, so a stolen token cannot be renewed.
 *
 * This is no protection: passwords are in plain text, and the hash has 64 bits. But the time to refuse a
 * password or a token does not reveal how much of it is right.
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
    const char *region;   /* of the endpoints in catalogs */
    /*
     * The users: a line "name:password" (all projects) or "name:password:project" for each. A user may have
     * several lines. "#" begins a comment line. Absent: any user may log in, with any password, to any project.
     */
    struct bytes users;
};

struct auth; /* opaque */

/* A user in a project. */
struct auth_caller {
    struct bytes user, project;
    int64_t expires_ms; /* end of the token of the login; AUTH_NEVER: a password */
};

#define AUTH_NEVER INT64_MAX

/* True if the line is valid in a list of users. */
bool auth_line_check(struct bytes line);

/* Makes an auth, owned, and copies the list of users. ST_BAD_VALUE: *bad_line is invalid. ST_NO_MEMORY. */
enum status
auth_new(const struct auth_config *config, struct auth **out, size_t *bad_line);
void auth_free(struct auth *auth);

/* True if there is a list of users. Requests must have a token then. */
bool auth_is_required(const struct auth *auth);

const char *auth_region(const struct auth *auth);

/*
 * Checks that the user may log in to the project `wanted` with this password (absent: the user has a token). If
 * `wanted` is absent or empty, *project is the first project of the user in the list, or the project with the
 * name of the user. ST_UNAUTHORIZED. *project is borrowed from the arguments or from the auth.
 */
enum status auth_admit(const struct auth *auth, struct bytes user, struct bytes password,
                       struct bytes wanted, struct bytes *project);

/* Writes a token, NUL-terminated. It ends after token_life_s, or at caller->expires_ms if that is earlier. Sets
 * caller->expires_ms to its end. ST_NO_MEMORY. */
enum status
auth_token_write(const struct auth *auth, int64_t now_ms, struct auth_caller *caller,
                 struct arena *arena, struct bytes *out);

/* Reads a token. ST_UNAUTHORIZED: this process has not made it, or it has expired. ST_NO_MEMORY. */
enum status auth_token_read(const struct auth *auth, int64_t now_ms, struct bytes token,
                            struct arena *arena, struct auth_caller *out);

#endif
