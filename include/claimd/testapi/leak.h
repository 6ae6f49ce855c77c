/*
 * testapi/leak: what tests have forgotten, as far as the history can tell.
 *
 * A store knows which claims live, and which messages nobody has ever claimed. Who it was, and
 * whether somebody has looked at them at least, stands in the history while that reaches back:
 * whose post it has forgotten counts as never read.
 */
#ifndef CLAIMD_TESTAPI_LEAK_H
#define CLAIMD_TESTAPI_LEAK_H

#include "claimd/base/arena.h"
#include "claimd/testapi/history.h"

/* X(NAME, text) */
#define LEAK_LIST(X)                                                                     \
    X(NONE, "none")                                                                      \
    X(CLAIM, "claim")             /* lives: neither finished nor released */             \
    X(UNREAD, "unread")           /* a message: never claimed, nor shown */              \
    X(DEAD_LETTER, "dead_letter") /* the same since it was moved for its claims */

enum leak_kind {
#define LEAK_ENUM(name, text) LEAK_##name,
    LEAK_LIST(LEAK_ENUM)
#undef LEAK_ENUM
};

const char *leak_kind_name(enum leak_kind kind);

struct leak {
    enum leak_kind kind;
    struct store_queue queue; /* borrowed: where it is */
    struct store_id id;       /* of the claim, or the message */
    size_t messages;          /* CLAIM: that it holds */
    int64_t at_ms;            /* when it was made, posted, or moved */
    struct bytes client; /* who has claimed it (DEAD_LETTER: the last time) or, UNREAD,
                                 posted it; absent: not known */
    struct bytes from;   /* DEAD_LETTER: the queue that it was moved from */
};

/*
 * Looks up suspects in the history: CLAIM for live claims, UNREAD for messages that have not been
 * claimed where they are; at_ms as the store knows it. Who, when, and what it is after all
 * (UNREAD may become DEAD_LETTER or NONE) is filled in; texts are the arena's. ST_NO_MEMORY.
 *
 *   Cost   O(suspects + all ids in the history); others wait for a slice of it at most
 */
enum status
leak_look_up(struct history *h, struct arena *arena, struct leak *suspects, size_t count);

#endif
