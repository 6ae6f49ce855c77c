/*
 * operation: one request of a history on one queue: what was requested, the response,
 * and between which instants it must have happened.
 *
 * Messages and claims have small numbers, given by the recorder; 0 is none.
 */
#ifndef TESTS_LINEAR_OPERATION_H
#define TESTS_LINEAR_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LINEAR_MESSAGES = 64, /* most messages of a history: numbers 1 to this */
    LINEAR_CLAIMS = 127,  /* most claims, likewise */
    LINEAR_BATCH = 20,    /* most messages in one response: the limit of the API */
    LINEAR_OPERATIONS = 512,
    LINEAR_KEYS = 2,     /* of unique messages: numbers 1 to this */
    LINEAR_UNKNOWN = 255 /* a message whose number no response has told */
};

/* X(name, text) */
#define LINEAR_KIND_LIST(X)                                                              \
    X(POST, "post")                                                                      \
    X(CLAIM, "claim")                                                                    \
    X(QUERY, "query")                                                                    \
    X(RENEW, "renew")                                                                    \
    X(RELEASE, "release")                                                                \
    X(DELETE, "delete")                                                                  \
    X(DELETE_MANY, "delete many")                                                        \
    X(GET, "get")                                                                        \
    X(LIST, "list")                                                                      \
    X(STATS, "stats")                                                                    \
    X(POP, "pop")                                                                        \
    X(PURGE, "purge")                                                                    \
    X(FINISH, "finish")                                                                  \
    X(PAUSE, "pause")

enum linear_kind {
#define LINEAR_KIND_ENUM(name, text) LINEAR_##name,
    LINEAR_KIND_LIST(LINEAR_KIND_ENUM)
#undef LINEAR_KIND_ENUM
        LINEAR_KINDS
};

struct operation {
    enum linear_kind kind;
    unsigned worker;              /* the client that sent it, to print */
    int64_t call_ns, response_ns; /* on one clock that only runs forward */

    /* The request. */
    uint8_t message; /* DELETE, GET */
    uint8_t claim;   /* DELETE, DELETE_MANY (0: without), QUERY, RENEW, RELEASE, FINISH */
    uint8_t released;     /* FINISH: bit i: messages[i] is released; else it is deleted */
    uint8_t posted;       /* FINISH: a new message; 0: none */
    uint8_t unique;       /* POST of one message, FINISH with a post: its key; 0: none */
    bool until_claimed;   /* likewise */
    bool atomic;          /* FINISH */
    bool pauses;          /* PAUSE: claims; else it resumes them */
    uint8_t limit;        /* CLAIM, LIST, POP */
    bool include_claimed; /* LIST */
    bool waits;           /* CLAIM, POP: would rather have waited than got nothing */
    int64_t queued_ns;    /* it waits: it was in the wait queue by then; 0: not known */

    /*
     * The response. messages: of POST, DELETE_MANY and FINISH those of the request. A
     * POST whose key a message had has none.
     * Without a response (code 0) it has happened between its two instants, or never.
     */
    int code;
    uint8_t made;     /* CLAIM: the new claim, also one whose response was lost */
    uint8_t existing; /* POST, FINISH: what had the key, or LINEAR_UNKNOWN */
    uint8_t count;
    uint8_t messages[LINEAR_BATCH]; /* in the order shown */
    uint8_t claimed, total;         /* STATS */
    uint8_t held;                   /* FINISH: bit i: the claim held messages[i] */
};

/* One line for people. */
void operation_print(const struct operation *op);

#endif
