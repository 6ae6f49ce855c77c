/*
 * floor: the documents that the floor servers respond with, as long as claimd's own.
 *
 * A floor server reads a request whole and responds with a fixed document. So it measures
 * the lower bound: loopback and HTTP library, without a queue.
 */
#ifndef TESTS_BENCH_FLOOR_H
#define TESTS_BENCH_FLOOR_H

#include "claimd/base/bytes.h"

enum floor_kind {
    FLOOR_POST,
    FLOOR_CLAIM,
    FLOOR_LIST,
    FLOOR_CREATE,  /* 201 without a document */
    FLOOR_NOTHING, /* 204 */
    FLOOR_KINDS
};

struct floor_response {
    int status;
    const char *location; /* NULL: none; borrowed for the program's life */
    struct bytes body;
};

/* The responses to posts and claims of batch messages with bodies of body_bytes; false
 * when out of memory. They live as long as the program. */
bool floor_responses(unsigned batch, size_t body_bytes,
                     struct floor_response out[FLOOR_KINDS]);

/* Which of them a request gets. */
enum floor_kind floor_choose(struct bytes method, struct bytes path);

/*
 * Arguments: ADDRESS [BATCH [BODY_BYTES]]. Binds and listens (not blocking) on
 * "HOST:PORT" or "unix:PATH", prints "listening on ADDRESS" with the real port, and
 * returns the socket; -1 after a message.
 */
int floor_listen(const char *address);

#endif
