/*
 * testapi/history: the events of a server with the test API, in order (docs/api.md 23.5).
 *
 * The log of the store adds an entry for each change, under the lock of the change. So
 * the entries of a queue are in the order of its changes. The API adds entries for
 * refused requests and for messages that it showed.
 *
 *   Bounds   HISTORY_MOST entries, and HISTORY_BYTES of memory. Beyond, the oldest are
 *            dropped. `lost` counts them, and entries that were not added because there
 *            was no memory
 *   Cost     adding O(length of the entry); reading O(entries read)
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
    X(SHOWN, "shown") /* listed, or read by id */                                        \
    X(CLAIMED, "claimed")                                                                \
    X(RENEWED, "renewed")                                                                \
    X(RELEASED, "released")                                                              \
    X(FINISHED, "finished") /* deleted with their claim */                               \
    X(DELETED, "deleted")   /* deleted without a claim, or popped */                     \
    X(SUBSCRIBED, "subscribed")                                                          \
    X(UNSUBSCRIBED, "unsubscribed")                                                      \
    X(CLAIM_ENDED, "claim_ended") /* time causes this event and the next four */         \
    X(DELAY_ENDED, "delay_ended")                                                        \
    X(EXPIRED, "message_expired")                                                        \
    X(DEAD_LETTER, "dead_letter_moved")                                                  \
    X(SCHEDULE, "schedule_posted") /* besides POSTED */                                  \
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

/* A member that is unknown or does not apply is absent, 0 or NULL. */
struct history_entry {
    uint64_t number; /* from 1; set by history_add() */
    int64_t at_ms;   /* the store's time */
    enum history_event event;
    struct store_queue queue;
    struct store_queue target; /* DEAD_LETTER: the dead-letter queue */
    struct bytes client;       /* the Client-ID of the request */
    const char *action;        /* of the request, by its name in a policy; a literal */
    struct bytes claim;        /* id */
    int64_t ends_ms;           /* CLAIMED, RENEWED: end of the claim */
    int status;                /* REFUSED */
    struct bytes text;         /* REFUSED, FAULT: description */
    size_t count;              /* messages */
    struct bytes ids;          /* the first HISTORY_IDS of them, joined by spaces */
};

struct history;

/* Owned. ST_NO_MEMORY. */
enum status history_new(struct mem *mem, struct history **out);

/* All listeners must be removed before. NULL is fine. */
void history_free(struct history *h);

/* Adds a copy of the entry, with the next number, and notifies the listeners. */
void history_add(struct history *h, const struct history_entry *entry);

/* Number of the latest entry. 0: there was none. */
uint64_t history_last(struct history *h);

/* Number of the latest entry with one of the events from `first` to `last`. 0: there was
 * none. */
uint64_t
history_last_of(struct history *h, enum history_event first, enum history_event last);

/* Number of entries that were dropped or not added. */
uint64_t history_lost(struct history *h);

/* Number of dropped entries with a number above `since`. */
uint64_t history_missing(struct history *h, uint64_t since);

/*
 * Visits the entries with numbers above `since`, oldest first, until `visit` returns
 * false. The history calls it under its lock, so it must only copy.
 */
typedef bool history_visit_fn(void *ctx, const struct history_entry *entry);
void history_read(struct history *h, uint64_t since, history_visit_fn *visit, void *ctx);

/* Adds or removes a listener, which gets STORE_READY after each new entry. */
void history_watch(struct history *h, struct store_listener *listener);
void history_unwatch(struct history *h, struct store_listener *listener);

/* ------------------------------------------------------------------ leaks */

/*
 * Leaks are claims and messages that tests left behind (docs/api.md 23.8). The store
 * knows the live claims, and the messages that no client ever claimed. The history knows
 * the clients, and the messages that a client read, as far as it reaches back. If the
 * entries of a message were dropped, the message counts as never read.
 */

/* X(NAME, text) */
#define LEAK_LIST(X)                                                                     \
    X(NONE, "none")                                                                      \
    X(CLAIM, "claim")             /* a live claim */                                     \
    X(UNREAD, "unread")           /* a message that was never claimed and never shown */ \
    X(DEAD_LETTER, "dead_letter") /* a dead letter, likewise since it was moved */

enum leak_kind {
#define LEAK_ENUM(name, text) LEAK_##name,
    LEAK_LIST(LEAK_ENUM)
#undef LEAK_ENUM
};

extern const char *const leak_kind_names[];

/* Why the store no longer has a leak. X(NAME, text) */
#define LEAK_END_LIST(X)                                                                 \
    X(NONE, "none")    /* it still has it */                                             \
    X(EXPIRED, "time") /* its TTL or its lease ended */                                  \
    X(RESET, "reset")  /* a request deleted or replaced everything */

enum leak_end {
#define LEAK_END_ENUM(name, text) LEAK_END_##name,
    LEAK_END_LIST(LEAK_END_ENUM)
#undef LEAK_END_ENUM
};

extern const char *const leak_end_names[];

struct leak {
    enum leak_kind kind;
    enum leak_end end;
    struct store_queue queue; /* borrowed */
    struct store_id id;       /* of the claim or the message */
    size_t messages;          /* CLAIM: number of its messages */
    int64_t at_ms;            /* time of the claim, the post, or the move */
    int64_t ended_ms;         /* if the store no longer has it */
    struct bytes client; /* that posted it (UNREAD) or last claimed it; absent: unknown */
    struct bytes from;   /* DEAD_LETTER: the queue from which it was moved */
};

/*
 * Looks up suspects in the history. The caller sets the kind to CLAIM for a live claim,
 * or to UNREAD for a message that was never claimed in its queue, and at_ms to the time
 * in the store. The function sets the client and the time, and may change UNREAD to
 * DEAD_LETTER or NONE. Texts belong to the arena. ST_NO_MEMORY.
 *
 *   Cost   O(suspects + all ids in the history); holds the lock for a slice of the
 *          history at a time
 */
enum status
leak_look_up(struct history *h, struct arena *arena, struct leak *suspects, size_t count);

#endif
