#include "redis/hiredis_library.h"

#include "claimd/base/library.h"

#include <dlfcn.h>

enum { ELEMENTS_MOST = 1 << 20 }; /* an image has 256 heads of messages, a page fewer */

static void *
create_array(const redisReadTask *task, int elements)
{
    const struct hiredis_library *l = task->privdata;

    return elements > ELEMENTS_MOST ? NULL : l->create_array(task, elements);
}

/* hiredis does not export its functions of a reader: a reader shows them. */
static bool
copy_reader_functions(void *library, struct hiredis_library *l)
{
    redisReader *(*create)(void);
    void (*release)(redisReader * r);
    redisReader *reader;

    if (!library_find(library, "redisReaderCreate", &create) ||
        !library_find(library, "redisReaderFree", &release))
        return false;
    reader = create();
    if (reader == NULL)
        return false;
    l->limited = *reader->fn;
    l->create_array = l->limited.createArray;
    l->limited.createArray = create_array;
    release(reader);
    return true;
}

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
           library_find(library, "freeReplyObject", &l->free_reply) &&
           copy_reader_functions(library, l);
}

void
hiredis_library_limit(struct hiredis_library *l, redisContext *c)
{
    c->reader->fn = &l->limited;
    c->reader->privdata = l;
}

enum status
hiredis_library_load(struct hiredis_library *out, struct reason *why)
{
    /* The version is that of the headers: a build against another hiredis loads that one. */
    void *library =
        dlopen("libhiredis.so." CLAIMD_HIREDIS_VERSION, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return reason_give(why, ST_UNAVAILABLE,
                           "a store on Redis needs hiredis " CLAIMD_HIREDIS_VERSION
                           " (Debian: libhiredis" CLAIMD_HIREDIS_VERSION "): %s",
                           dlerror());
    if (!find_all(library, out))
        return reason_give(why, ST_UNAVAILABLE,
                           "hiredis lacks a function that claimd needs: %s", dlerror());
    return ST_OK;
}
