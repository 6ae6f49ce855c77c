/*
 * link: how to reach a Redis: the URL of the store, the library hiredis, and one connection with its pipeline.
 * Commands are sent together, and their responses come in the same order.
 *
 * A link that has failed stays so, because it is not known whether what was sent over it was done. It is
 * closed, and another one opened.
 *
 *   Threads   one at a time
 *   Blocking  opening and responses, no longer than the limits say
 */
#ifndef REDIS_LINK_H
#define REDIS_LINK_H

#include "claimd/json/reason.h"
#include "redis/script.h"

#include <hiredis/hiredis.h>

/* The functions of hiredis that are used. Only a store on Redis loads it (docs/adr/0015-redis.md). */
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
    redisReplyObjectFunctions limited; /* of a reader; see link_open() */
};

/* ST_UNAVAILABLE: it is not there, or lacks a function. It is never unloaded. */
enum status hiredis_library_load(struct hiredis_library *out, struct reason *why);

/* Where a Redis is. */
enum { LINK_HOST_CAP = 256 };
struct link_address {
    char host[LINK_HOST_CAP]; /* or, with port 0, the path of a Unix socket */
    uint16_t port;
};

static inline bool
link_address_equal(const struct link_address *a, const struct link_address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* Makes one of a host (empty: that of `asked`) and a port. False: they are not valid. */
bool link_address_make(struct bytes host, int64_t port, const struct link_address *asked,
                       struct link_address *out);

/* "host:port", or the path of a socket. */
enum { LINK_NAME_CAP = LINK_HOST_CAP + 8 };
void link_name(const struct link_address *address, char out[LINK_NAME_CAP]);

/*
 * The value of the option store: where the Redis is, and how to use it.
 *
 *     redis://[[user]:password@]host[:port][,host[:port]...][?replicas=1&...]
 *     redis+unix://[[user]:password@]/path/of/socket[?...]
 */
enum { URL_WORD_CAP = 256, URL_HOSTS = 16 };

struct url {
    char user[URL_WORD_CAP], password[URL_WORD_CAP];
    struct link_address hosts[URL_HOSTS];
    size_t host_count;
    int64_t replicas;    /* -1: not given */
    int64_t confirm_ms;  /* time limit of their confirmation */
    int64_t patience_ms; /* with nodes that cannot respond now */
    bool restarts_held;  /* restarts=held: a node restarts only after a failover */
    bool unsafe;         /* unsafe=1: a failed check (preflight.c) is only a warning */
};

/* ST_BAD_VALUE with a reason, which does not show the password. */
enum status url_read(const char *text, struct url *out, struct reason *why);

/* ---------------------------------------------------------------------- connection */

/* Why a link has failed that had bytes left (link_is_drained()). */
#define LINK_SURPLUS "Redis sent more than claimd requested"

struct link_config {
    struct hiredis_library *library;
    const char *user, *password; /* "": none */
    int64_t connect_ms;          /* time limit of connecting */
    int64_t answer_ms;           /* between two pieces of responses */
};

struct link {
    struct hiredis_library *library;
    redisContext *context;
};

/*
 * Connects and logs in. ST_UNAVAILABLE with a reason. An array of more than a million elements is an error
 * of the connection: otherwise hiredis reserves as much memory as the head of an array announces, before any
 * element has come.
 */
enum status link_open(struct link *l, const struct link_config *config,
                      const struct link_address *to, struct reason *why);

/* Changes the time limit for pieces of responses. */
void link_limit(struct link *l, int64_t answer_ms);

/* Fine if it is not open. */
void link_close(struct link *l);

static inline bool
link_is_open(const struct link *l)
{
    return l->context != NULL;
}

/* Nothing was sent, and the other side has not hung up: what is sent next may arrive. O(1), one
 * system call. */
bool link_is_fresh(const struct link *l);

/* Adds a command to what will be sent: these words, those of `rest` (NULL: none), and `last` (absent:
 * none). ST_NO_MEMORY: to be closed. */
enum status link_add(struct link *l, const struct bytes *words, size_t count,
                     const struct command *rest, struct bytes last);

/* Makes it one that has failed: Redis does not respond to what was requested. */
void link_fail(struct link *l, const char *what);

/* Has everything that was read been parsed? If not after the last response, link_fail(): Redis has sent
 * more than was requested, and each later response would be taken for that of another request. */
bool link_is_drained(const struct link *l);

/*
 * Without waiting for responses: writes what was added, as far as there is space, or all of it
 * (link_flush()); reads a piece of what has come; returns a response that was read whole, owned (NULL: none).
 * False: it has failed. *all: nothing is left to be written. *more: there may be another piece.
 */
bool link_push(struct link *l, bool *all);
bool link_flush(struct link *l);
bool link_fill(struct link *l, bool *more);
redisReply *link_parsed(struct link *l);
void link_free(const struct link *l, redisReply *reply);

/* One command and its response, behind which nothing may be left, owned: link_free(). ST_UNAVAILABLE with a
 * reason, also if the response is an error: *out is NULL then. */
enum status link_say(struct link *l, const struct bytes *words, size_t count,
                     redisReply **out, struct reason *why);

#endif
