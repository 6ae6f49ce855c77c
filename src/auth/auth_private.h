/* auth_private: what the files of this layer share. */
#ifndef AUTH_AUTH_PRIVATE_H
#define AUTH_AUTH_PRIVATE_H

#include "claimd/auth/auth.h"

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
    char *users;       /* owned copy of the list; NULL: anybody may log in */
    struct user *list; /* owned, in the order of the lines */
    size_t count;
};

#endif
