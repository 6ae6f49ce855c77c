#include "redis/hiredis_library.h"

#include "claimd/base/library.h"

#include <dlfcn.h>

static bool
find_all(void *library, struct hiredis_library *l)
{
    return library_find(library, "redisConnectWithTimeout", &l->connect) &&
           library_find(library, "redisConnectUnixWithTimeout", &l->connect_unix) &&
           library_find(library, "redisSetTimeout", &l->set_timeout) &&
           library_find(library, "redisAppendFormattedCommand", &l->append) &&
           library_find(library, "redisBufferWrite", &l->write) &&
           library_find(library, "redisBufferRead", &l->read) &&
           library_find(library, "redisGetReplyFromReader", &l->get_parsed) &&
           library_find(library, "redisGetReply", &l->get_reply) &&
           library_find(library, "redisFree", &l->free) &&
           library_find(library, "freeReplyObject", &l->free_reply);
}

enum status
hiredis_library_load(struct hiredis_library *out, struct reason *why)
{
    /* The version is that of the headers: a build against another hiredis loads that one. */
    void *library =
        dlopen("libhiredis.so." CLAIMD_HIREDIS_VERSION, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return reason_give(why, ST_UNAVAILABLE,
                           "needs hiredis " CLAIMD_HIREDIS_VERSION
                           " (Debian: libhiredis" CLAIMD_HIREDIS_VERSION "): %s",
                           dlerror());
    if (!find_all(library, out))
        return reason_give(why, ST_UNAVAILABLE, "hiredis lacks a function: %s",
                           dlerror());
    return ST_OK;
}
