/*
 * testapi/history: what happened in a server that tests are run against, in order.
 *
 * An entry is made when something has happened: by the store's log under the lock where
 * it happens, so those of one queue are in the order of its changes; and by the API for what it
 * has refused or shown.
 *
 *   Bounds   HISTORY_MOST entries, and HISTORY_BYTES of texts: the oldest go first. An entry for
 *            which there is no memory is missing; both are counted (`lost`)
 *   Cost     adding O(its length); reading O(entries read)
 *   Threads  any
 */
#ifndef CLAIMD_TESTAPI_HISTORY_H
#define CLAIMD_TESTAPI_HISTORY_H

#include "claimd/base/arena.h"
#include "claimd/base/mem.h"
#include "claimd/store/types.h"
#include "claimd/store/waiter.h"

enum { HISTORY_MOST = 10000, HISTORY_BYTES = 4 << 20, HISTORY_IDS = 100 };

/* X(NAME, text) */
#define HISTORY_LIST(X)                                                                  \
    X(QUEUE_MADE, "queue_made")                                                          \
    X(QUEUE_CHANGED, "queue_changed") /* its metadata */                                 \
    X(QUEUE_DELETED, "queue_deleted")                                                    \
    X(PURGED, "purged")                                                                  \
    X(POSTED, "posted")                                                                  \
    X(SHOWN, "shown") /* by a listing, or because they were named */                     \
    X(CLAIMED, "claimed")                                                                \
    X(RENEWED, "renewed")                                                                \
    X(RELEASED, "released")                                                              \
    X(FINISHED, "finished") /* deleted with the claim that held them */                  \
    X(DELETED, "deleted")   /* without one, or popped */                                 \
    X(SUBSCRIBED, "subscribed")                                                          \
    X(UNSUBSCRIBED, "unsubscribed")                                                      \
    X(CLAIM_ENDED, "claim_ended") /* these four are what time does */                    \
    X(DELAY_ENDED, "delay_ended")                                                        \
    X(EXPIRED, "message_expired")                                                        \
    X(DEAD_LETTER, "dead_letter_moved")                                                  \
    X(SERVED, "waiter_served")                                                           \
    X(REFUSED, "refused")                                                                \
    X(FAULT, "fault")                                                                    \
    X(CLOCK, "clock_moved")                                                              \
    X(RESET, "reset")

enum history_event {
#define HISTORY_ENUM(name, text) HISTORY_##name,
    HISTORY_LIST(HISTORY_ENUM)
#undef HISTORY_ENUM
        HISTORY_EVENTS
};

extern const char *const history_event_names[HISTORY_EVENTS];

/* What is not known, or does not apply, is absent, 0 or NULL. */
struct history_entry {
    uint64_t number; /* from 1; set by history_add() */
    int64_t at_ms;   /* the store's time */
    enum history_event event;
    struct store_queue queue;  /* without a name: none */
    struct store_queue target; /* DEAD_LETTER: where they went */
    struct bytes client;       /* the Client-ID of the request */
    const char *action;        /* what was asked for, as a policy names it; a literal */
    struct bytes claim;        /* id */
    int64_t ends_ms;           /* CLAIMED, RENEWED: when the claim ends */
    int status;                /* REFUSED */
    struct bytes text;         /* REFUSED, FAULT: what it is, for people */
    size_t count;              /* messages */
    struct bytes ids;          /* the first HISTORY_IDS of them, joined by spaces */
};

struct history;

/* Owned. ST_NO_MEMORY. */
enum status history_new(struct mem *mem, struct history **out);

/* No listener is left. */
void history_free(struct history *h);

/* Adds an entry, of which all is copied, and notifies the listeners. */
void history_add(struct history *h, const struct history_entry *entry);

/* The number of the latest entry; 0: there was none. */
uint64_t history_last(struct history *h);

/* The number of the latest of these events; 0: there was none. */
uint64_t
history_last_of(struct history *h, enum history_event first, enum history_event last);

/* How many entries there are no more, or never were. */
uint64_t history_lost(struct history *h);

/* How many of the entries behind this number there are no more, at the beginning. */
uint64_t history_gone(struct history *h, uint64_t since);

/*
 * Shows the entries with larger numbers, oldest first, until `show` says false. Called under
 * the lock: it only copies.
 */
typedef bool history_show_fn(void *ctx, const struct history_entry *entry);
void history_read(struct history *h, uint64_t since, history_show_fn *show, void *ctx);

/* Has a listener told (STORE_READY) of each entry, or not any more. */
void history_watch(struct history *h, struct store_listener *listener);
void history_unwatch(struct history *h, struct store_listener *listener);

/* ------------------------------------------------------------------ leaks */

/*
 * What tests have forgotten, as far as the history can tell. A store knows which claims live, and which
 * messages no client ever claimed. The history knows the clients, and which messages a client at least
 * looked at, while it reaches back: a message whose post it has forgotten counts as never read.
 */

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

extern const char *const leak_kind_names[];

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
 * claimed where they are; at_ms as the store knows it. It fills in the client, the time, and the kind
 * (UNREAD may become DEAD_LETTER or NONE); texts are the arena's. ST_NO_MEMORY.
 *
 *   Cost   O(suspects + all ids in the history); others wait for a slice of it at most
 */
enum status
leak_look_up(struct history *h, struct arena *arena, struct leak *suspects, size_t count);

#endif
