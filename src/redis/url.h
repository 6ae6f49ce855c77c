/*
 * url: where the Redis is, and how it is to be used: what follows --store.
 *
 *     redis://[[user]:password@]host[:port][,host[:port]...][?replicas=1&...]
 *     redis+unix://[[user]:password@]/path/of/socket[?...]
 */
#ifndef REDIS_URL_H
#define REDIS_URL_H

#include "redis/cluster.h"

enum { URL_WORD_CAP = 256 };

struct url {
    char user[URL_WORD_CAP], password[URL_WORD_CAP];
    struct link_address hosts[CLUSTER_SEEDS];
    size_t host_count;
    int64_t replicas;    /* -1: not said */
    int64_t confirm_ms;  /* until they must have confirmed */
    int64_t patience_ms; /* with nodes that cannot answer now */
    bool
        restarts_held; /* restarts=held: no node comes back before another has taken over */
    bool unsafe;       /* unsafe=1: what is not fit (fitness.h) is used all the same */
};

/* ST_BAD_VALUE with a reason, which does not show the password. */
enum status url_read(const char *text, struct url *out, struct reason *why);

#endif
