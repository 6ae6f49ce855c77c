/*
 * model: a queue as one thread at a time would see it, small enough to be copied at every
 * step of a search. Nothing expires: the recorder sets long lifetimes.
 */
#ifndef TESTS_LINEAR_MODEL_H
#define TESTS_LINEAR_MODEL_H

#include "model/linear/operation.h"

enum { MODEL_UNTIL_CLAIMED = 128 };

/* Unused places are zero, so that equal states are equal bytes. */
struct model {
    uint64_t posted; /* bit n - 1: message n was posted */
    uint8_t count;
    bool paused;                      /* claims are */
    uint8_t unused[6];                /* no holes: states are compared as bytes */
    uint8_t message[LINEAR_MESSAGES]; /* oldest first */
    uint8_t holder[LINEAR_MESSAGES];  /* the claim that holds it, 0: ready */
    uint8_t key[LINEAR_MESSAGES];     /* that it holds, 0: none; + MODEL_UNTIL_CLAIMED */
};

/*
 * How many of the oldest free messages are reserved for waiters in front of an operation
 * that waits: these at least, and at most.
 */
struct reserved {
    size_t least, most;
};

/*
 * Does the operation if this state could have given its response; false (and then *m
 * means nothing) if it could not. `reserved` counts for operations that wait.
 */
bool model_step(struct model *m, const struct operation *op, struct reserved reserved);

/*
 * The operation with the response that it would get in this state: for one without a
 * response. Not for those that wait, since it depends on the waiters in front of them.
 */
struct operation model_response(const struct model *m, const struct operation *op);

/* True if the operation, given its response, leaves alone every state in which it
 * fits. */
bool model_only_looks(const struct operation *op);

#endif
