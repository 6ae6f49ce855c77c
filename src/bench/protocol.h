/*
 * protocol: how the steps of a scenario are said in one server's language.
 */
#ifndef BENCH_PROTOCOL_H
#define BENCH_PROTOCOL_H

#include "bench/actor.h"
#include "bench/http_answer.h"
#include "bench/stats.h"
#include "claimd/base/buf.h"

struct step {
    enum op op;
    unsigned count; /* messages to post, to claim, to delete or to list */
    int64_t ttl;    /* POST: of the messages; CLAIM: of the claim; seconds */
};

struct reply {
    size_t length;     /* bytes of input the answer took */
    unsigned messages; /* how many messages the step has moved */
    int refused;       /* 0, or the status (HTTP) or 1 (others) of a refusal */
    bool close;        /* the server will close the connection */
};

struct protocol {
    const char *name;

    /*
     * Appends the request(s) of a step to out. Returns how many requests that makes; 0
     * if this protocol has nothing to say here.
     */
    unsigned (*ask)(const struct plan *plan, struct actor *a, const struct step *step,
                    struct buf *out);

    /*
     * Reads the whole answer to a step at the start of `in` and moves the actor on.
     * Nothing changes unless it returns READING_DONE.
     */
    enum reading (*read)(const struct plan *plan, struct actor *a,
                         const struct step *step, struct bytes in, bool ended,
                         struct reply *out);
};

extern const struct protocol protocol_zaqar;
extern const struct protocol protocol_beanstalk;
extern const struct protocol protocol_redis;

/* The protocol of this name, NULL if there is none. */
const struct protocol *protocol_find(const char *name);

/* Appends the actor's next body: with its number, in DELIVERY with its due time. */
void protocol_add_body(const struct plan *plan, struct actor *a, struct buf *out);

#endif
