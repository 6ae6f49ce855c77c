/*
 * link: one connection to one Redis, with its pipeline: commands are sent together, and answered
 * in their order.
 *
 * A link that has failed stays so: whoever has sent something over it does not know whether it was
 * done. It is closed, and another one opened.
 *
 *   Threads   one at a time
 *   Blocking  opening and answers, no longer than the limits say
 */
#ifndef REDIS_LINK_H
#define REDIS_LINK_H

#include "redis/command.h"
#include "redis/hiredis_library.h"

enum { LINK_HOST_CAP = 256 };

/* Why a link is broken that had bytes left (link_is_drained()). */
#define LINK_SURPLUS "Redis sent more than claimd requested"

/* Where a Redis is. */
struct link_address {
    char host[LINK_HOST_CAP]; /* or, with port 0, the path of a Unix socket */
    uint16_t port;
};

static inline bool
link_address_equal(const struct link_address *a, const struct link_address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* "host:port", or the path of a socket. */
enum { LINK_NAME_CAP = LINK_HOST_CAP + 8 };
void link_name(const struct link_address *address, char out[LINK_NAME_CAP]);

struct link_config {
    struct hiredis_library *library;
    const char *user, *password; /* "": none */
    int64_t connect_ms;          /* until a connection must be there */
    int64_t answer_ms;           /* between two pieces of answers */
};

struct link {
    struct hiredis_library *library;
    redisContext *context;
    bool timed_out; /* it has failed because nothing came */
};

/* Connects and logs in. ST_UNAVAILABLE with a reason. */
enum status link_open(struct link *l, const struct link_config *config,
                      const struct link_address *to, struct reason *why);

/* From now on it waits so long for pieces of answers. */
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

/* Makes it one that has failed: Redis does not answer what was asked. */
void link_fail(struct link *l, const char *what);

/* Has everything that was read been parsed? If not after the last response, link_fail(): Redis has sent
 * more than it was asked for, and each later response would be taken for that of another request. */
bool link_is_drained(const struct link *l);

/* The next answer, after which nothing may be left, owned: link_free(). NULL: it has failed, with a
 * reason. */
redisReply *link_answer(struct link *l, struct reason *why);
void link_free(const struct link *l, redisReply *reply);

/*
 * For one whose answers are not waited for: writes what was added, as far as there is room, or all of
 * it (link_flush()); reads a piece of what has come, once something has; what was read whole, owned:
 * NULL: nothing (more). False: it has failed. *all: nothing is left to be written. *more: there may be
 * another piece.
 */
bool link_push(struct link *l, bool *all);
bool link_flush(struct link *l);
bool link_fill(struct link *l, bool *more);
redisReply *link_parsed(struct link *l);

/* One command and its answer, owned. ST_UNAVAILABLE with a reason, also if the answer is an error:
 * *out is NULL then. */
enum status link_say(struct link *l, const struct bytes *words, size_t count,
                     redisReply **out, struct reason *why);

#endif
