/*
 * hiredis_library: the functions of hiredis that are used, loaded when there is a store on Redis,
 * so that nobody else pays for it (docs/adr/0015-redis.md).
 */
#ifndef REDIS_HIREDIS_LIBRARY_H
#define REDIS_HIREDIS_LIBRARY_H

#include "claimd/json/reason.h"

#include <hiredis/hiredis.h>

struct hiredis_library {
    redisContext *(*connect)(const char *host, int port, const struct timeval limit);
    redisContext *(*connect_unix)(const char *path, const struct timeval limit);
    int (*set_timeout)(redisContext *c, const struct timeval limit);
    int (*append)(redisContext *c, const char *command, size_t len);
    int (*write)(redisContext *c, int *done);
    int (*read)(redisContext *c);
    int (*get_parsed)(redisContext *c, void **reply);
    int (*get_reply)(redisContext *c, void **reply);
    void (*free)(redisContext *c);
    void (*free_reply)(void *reply);
    void *(*create_array)(const redisReadTask *task, int elements);
    redisReplyObjectFunctions limited; /* of a reader: for hiredis_library_limit() */
};

/* ST_UNAVAILABLE: it is not there, or not as it should be. It is never unloaded. */
enum status hiredis_library_load(struct hiredis_library *out, struct reason *why);

/*
 * From now on an array of more than a million elements is an error of the connection. Otherwise
 * hiredis reserves as much as the head of an array announces, before any element has come. The
 * library outlives the connection.
 */
void hiredis_library_limit(struct hiredis_library *l, redisContext *c);

#endif
