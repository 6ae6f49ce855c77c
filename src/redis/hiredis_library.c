#include "redis/hiredis_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Puts the address of a function where it is kept. */
static bool
find(void *library, const char *name, void *place)
{
    void *address = dlsym(library, name);

    memcpy(place, &address, sizeof(address));
    return address != NULL;
}

static bool
find_all(void *library, struct hiredis_library *l)
{
    return find(library, "redisConnectWithTimeout", &l->connect) &&
           find(library, "redisConnectUnixWithTimeout", &l->connect_unix) &&
           find(library, "redisSetTimeout", &l->set_timeout) &&
           find(library, "redisAppendFormattedCommand", &l->append) &&
           find(library, "redisGetReply", &l->get_reply) &&
           find(library, "redisFree", &l->free) &&
           find(library, "freeReplyObject", &l->free_reply);
}

enum status
hiredis_library_load(struct hiredis_library *out, struct reason *why)
{
    void *library = dlopen("libhiredis.so.0.14", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return reason_give(why, ST_UNAVAILABLE,
                           "needs hiredis 0.14 (Debian: libhiredis0.14): %s", dlerror());
    if (!find_all(library, out))
        return reason_give(why, ST_UNAVAILABLE, "hiredis lacks a function: %s",
                           dlerror());
    return ST_OK;
}
