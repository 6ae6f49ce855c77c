/*
 * link: how claimd reaches a Redis: the URL of the store, the library hiredis, and one
 * connection. A connection sends commands together and returns their responses in the
 * same order.
 *
 * A link that has failed stays failed, because Redis may or may not have executed what
 * was sent. The caller closes it and opens another one.
 *
 *   Threads   one at a time
 *   Blocking  opening and reading responses, within the configured time limits
 */
#ifndef REDIS_LINK_H
#define REDIS_LINK_H

#include "claimd/json/reason.h"
#include "redis/script.h"

#include <hiredis/hiredis.h>

/* The functions of hiredis in use, with their names here. Only a store on Redis loads the
 * library (docs/adr/0015-redis.md). */
#define HIREDIS_FUNCTIONS(X)                                                             \
    X(connect, redisConnectWithTimeout)                                                  \
    X(connect_unix, redisConnectUnixWithTimeout)                                         \
    X(set_timeout, redisSetTimeout)                                                      \
    X(append, redisAppendFormattedCommand)                                               \
    X(write, redisBufferWrite)                                                           \
    X(read, redisBufferRead)                                                             \
    X(get_parsed, redisGetReplyFromReader)                                               \
    X(get_reply, redisGetReply)                                                          \
    X(free, redisFree)                                                                   \
    X(free_reply, freeReplyObject)                                                       \
    X(reader_create, redisReaderCreate)                                                  \
    X(reader_free, redisReaderFree)

#define HIREDIS_MEMBER(name, function) __typeof__(function) *name;

/* hiredis 1.0 has changed this type. */
#if HIREDIS_MAJOR < 1
typedef int hiredis_count;
#else
typedef size_t hiredis_count;
#endif

struct hiredis_library {
    HIREDIS_FUNCTIONS(HIREDIS_MEMBER)
    void *(*create_array)(const redisReadTask *task, hiredis_count elements);
    redisReplyObjectFunctions limited; /* functions of a reader; see link_open() */
};

#undef HIREDIS_MEMBER

/* The library stays loaded. ST_UNAVAILABLE: the library, or one of its functions, is
 * missing. */
enum status hiredis_library_load(struct hiredis_library *out, struct reason *why);

/* The address of a Redis. */
enum { LINK_HOST_CAP = 256 };
struct link_address {
    char host[LINK_HOST_CAP]; /* with port 0: the path of a Unix socket */
    uint16_t port;
};

static inline bool
link_address_equal(const struct link_address *a, const struct link_address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* Makes an address of a host (empty: that of `source`) and a port. False: they are not
 * valid. */
bool link_address_make(struct bytes host, int64_t port, const struct link_address *source,
                       struct link_address *out);

/* Writes "host:port", or the path of a socket. */
enum { LINK_NAME_CAP = LINK_HOST_CAP + 8 };
void link_name(const struct link_address *address, char out[LINK_NAME_CAP]);

/*
 * The value of the option `store`: the addresses of Redis, and how to use it.
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
    int64_t confirm_ms;  /* time limit for the confirmation by replicas */
    int64_t patience_ms; /* how long claimd retries nodes that are temporarily unable */
    bool restarts_held;  /* restarts=held: a node restarts only after a failover */
    bool unsafe;         /* unsafe=1: a failed preflight check is only a warning */
};

/* ST_BAD_VALUE with a reason, which does not contain the password. */
enum status url_read(const char *text, struct url *out, struct reason *why);

/* ---------------------------------------------------------------------- connection */

/* The error of a link that had bytes left after the last response (link_is_drained()). */
#define LINK_SURPLUS "Redis sent more than claimd requested"

struct link_config {
    struct hiredis_library *library;
    const char *user, *password; /* "": none */
    int64_t connect_ms;          /* time limit for connecting */
    int64_t response_ms;         /* time limit between two pieces of responses */
};

struct link {
    struct hiredis_library *library;
    redisContext *context;
};

/*
 * Connects and logs in. ST_UNAVAILABLE with a reason. An array of more than a million
 * elements ends the connection. Without this limit, hiredis reserves as much memory as
 * the head of an array announces before any element has arrived.
 */
enum status link_open(struct link *l, const struct link_config *config,
                      const struct link_address *to, struct reason *why);

/* Changes the time limit between pieces of responses. */
void link_set_timeout(struct link *l, int64_t response_ms);

/* Does nothing if the link is not open. */
void link_close(struct link *l);

static inline bool
link_is_open(const struct link *l)
{
    return l->context != NULL;
}

/* True if no response is outstanding and Redis has not closed the connection. O(1), one
 * system call. */
bool link_is_reusable(const struct link *l);

/* Appends a command to the output: `words`, then those of `rest` (NULL: none), then
 * `last` (absent: none). ST_NO_MEMORY: the caller must close the link. */
enum status link_append(struct link *l, const struct bytes *words, size_t count,
                        const struct command_words *rest, struct bytes last);

/* Marks the link as failed, because Redis violates the protocol. */
void link_fail(struct link *l, const char *what);

/*
 * True if everything that was read has been parsed. If bytes are left after the last
 * response, the caller calls link_fail(): each later response would be taken for that of
 * another request.
 */
bool link_is_drained(const struct link *l);

/*
 * These do not wait for responses. False: the link has failed.
 *
 *   link_write()          writes as much of the output as the socket takes. *all: nothing
 *                         is left
 *   link_flush()          writes all of the output
 *   link_read()           reads what has arrived, up to a limit. *more: there may be more
 *   link_next_response()  returns the next response that was read completely, owned.
 *                         NULL: there is none
 */
bool link_write(struct link *l, bool *all);
bool link_flush(struct link *l);
bool link_read(struct link *l, bool *more);
redisReply *link_next_response(struct link *l);

/* NULL is fine. */
void link_free_response(const struct link *l, redisReply *response);

/*
 * Sends one command and returns its response, owned. ST_UNAVAILABLE with a reason: the
 * link has failed, more than one response has arrived, or the response is an error. Then
 * *out is NULL.
 */
enum status link_command(struct link *l, const struct bytes *words, size_t count,
                         redisReply **out, struct reason *why);

#endif
