/*
 * ledger: what is known of every queue, message and claim from the responses alone.
 *
 * The ledger stands at the server's door: it sees each response as it leaves, also those
 * that the network then loses. So nothing in it is uncertain, and the checker is stricter
 * than any client could be. It is written from the API's document and knows nothing of
 * the engine: arrays, loops, and times compared with now.
 *
 *   Cost     O(messages of the queue) an operation; it is meant to be believed, not fast
 *   Memory   aborts when out of it: it is a test
 */
#ifndef TESTS_SIM_LEDGER_H
#define TESTS_SIM_LEDGER_H

#include "claimd/schedule/definition.h"
#include "claimd/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Queues are known by their place: every name exists in every project. */
enum { PROJECTS = 2, NAMES = 4, PLACES = PROJECTS * NAMES, NOWHERE = -1 };

/* A waiter is a number below that. */
enum { WAITERS_MAX = 64, NONE = -1 };

/* Subscribers are known by a number: each may subscribe to each queue. */
enum { SUBSCRIBERS = 4 };

const char *place_project(int place);
const char *place_name(int place);

static inline int
place_of(int project, int name)
{
    return project * NAMES + name;
}

/* Why something is no longer there. */
enum ending {
    ENDING_UNKNOWN, /* it never was */
    ENDING_DELETED,
    ENDING_POPPED,
    ENDING_PURGED,
    ENDING_EXPIRED,
    ENDING_MOVED, /* to the dead letter queue */
    ENDING_RELEASED,
    ENDING_FINISHED, /* a claim whose last message went */
    ENDING_QUEUE_DELETED
};

const char *ending_text(enum ending ending);

struct known_claim {
    struct store_id id;
    int place;
    int64_t started_ms, ttl_ms; /* ends at their sum */
    uint64_t number;
};

/* The key of a unique message. */
struct known_unique {
    int number; /* of the key; 0: it has none */
    bool until_claimed;
};

struct known_message {
    struct store_id id;
    uint64_t order;  /* position in its queue */
    uint64_t number; /* in its body, for the reader of a history */
    int64_t posted_ms, expires_ms;
    int64_t own_expires_ms; /* as it would be if it had never been claimed */
    int64_t ready_ms;       /* end of its delay */
    int client;
    uint32_t claim_count;
    struct known_claim *claim; /* live; NULL: free */
    bool freed_by_time;        /* its last claim was not released, but expired */
    bool given_back;           /* a claim of it was, whose response was lost */
    bool retried;              /* it was released by a finish */
    bool letter;               /* a dead letter that has not gone back */
    bool returned;             /* it was one once */
    int origin;                /* the place from which the letter came; NOWHERE */
    struct known_unique unique;
    size_t drafted; /* length that its body was drafted with */
    size_t body_len;
    char body[]; /* owned; body_len bytes */
};

/* The settings that change what a queue does; STORE_UNSET: not set. */
enum setting {
    SETTING_POST_BYTES,
    SETTING_TTL,
    SETTING_DELAY,
    SETTING_CLAIM_COUNT,
    SETTING_DEAD_LETTER_TTL,
    SETTING_DEAD_LETTER, /* number of a name in the same project */
    SETTING_COUNT
};

const char *setting_member(enum setting s);

/* A message posted to a place, for its subscribers: its body follows from number and
 * len. */
struct known_post {
    uint64_t number;
    size_t len, bytes; /* as it was drafted; of the body */
    int64_t expires_ms, ttl_s, delay_s;
};

/* So many deliveries of a subscription may be made again after a crash
 * (docs/engine.md). */
enum { AGAIN_MOST = 16 };

/*
 * A subscription. Of the posts of its place those before `first` are none of its
 * business, and those before `at` it is done with, or has lost; after a restart it may go
 * on from `low` again.
 */
struct known_subscription {
    struct store_id id;
    int place, subscriber;
    int64_t options, started_ms, ttl_s;
    bool confirmed, listens;
    size_t first, low, at;
    size_t done[AGAIN_MOST]; /* the last ones that it was done with, oldest first */
    size_t done_count;
    bool unlogged; /* the log may know of none of them: it had no memory */
    int notice;    /* 1 + the notice it has to get first; 0: nothing */
    int old;       /* 1 + the notice it got, of which the log may know nothing; 0 */
    int maybe;     /* 1 + the notice it may get again after a restart; 0 */
    bool leased, leased_post; /* now; and of its posts */
    int leased_notice;        /* 1 + what is leased besides; 0: a post */
    bool changed;             /* since it was leased */
    int64_t again_ms;         /* it is not leased before; 0: it does not wait */
    uint64_t delivered, permanent_failures, dropped, failures;
    size_t missed; /* in front of what is leased: they count when that is done with */
    uint32_t failed;
    bool exact; /* the counts of the server are these */
    /* They add up to what was posted for it: `fed`, and what came since `first`. */
    bool adds_up;
    uint64_t fed;
};

struct known_queue {
    bool exists, transient;
    uint64_t incarnation; /* counts the queues there were at this place */
    uint64_t last_order;
    int64_t settings[SETTING_COUNT];
    unsigned paused;                 /* of enum store_pause */
    struct known_message **messages; /* owned; live ones in order */
    size_t count, cap;
    uint64_t last_number;     /* of the claims in all queues there were at this place */
    int waiters[WAITERS_MAX]; /* waiters, longest first */
    size_t waiter_count;
    struct known_subscription *subscriptions[SUBSCRIBERS]; /* owned; in order */
    size_t subscription_count;
    struct known_post *posts; /* owned; in all queues there were at this place */
    size_t post_count, post_cap;
};

/* Something that was once there. */
struct gone {
    struct store_id id;
    int place;
    enum ending ending;
};

/* The effect of a request with an Idempotency-Key. */
struct known_effect {
    uint64_t key;
    int place;
    uint64_t incarnation; /* of its queue, which takes its keys along; 0: it has */
    int64_t made_ms;
    struct store_id claim; /* CLAIM */
    uint64_t digest;       /* of what a repeated response has to show, but of a claim */
};

/* Schedules are known by a number: it is their name. */
enum { SCHEDULES = 3 };

/* How a schedule is set. Its due times are the multiples of `every_s`. */
struct schedule_terms {
    int64_t every_s;
    bool cron; /* the expression of each minute says so */
    enum schedule_missed missed;
    enum schedule_overlap overlap;
    bool paused;
};

struct known_schedule {
    bool exists;
    struct schedule_terms terms;
    int64_t posted;    /* messages since it was made, and */
    bool unseen;       /* perhaps some that have expired during a restart */
    int64_t done;      /* due times at the last look: posted, missed and skipped */
    int64_t next_ms;   /* the first due time behind those; 0: it is paused */
    int64_t due_ms;    /* of its latest message */
    int64_t before_ms; /* likewise, of those with its name before */
};

struct ledger {
    struct known_queue queues[PLACES];
    struct known_schedule schedules[SCHEDULES];
    int64_t wall_ms; /* the latest time of the wall clock at which the scheduler ran */
    bool set_back;   /* the wall clock was */
    struct store_id scheduled;   /* the newest message of schedules; empty: none */
    struct known_claim **claims; /* owned; live ones */
    size_t claim_count, claim_cap;
    struct gone *gone; /* owned; messages and claims */
    size_t gone_count, gone_cap;
    struct known_effect *effects; /* owned */
    size_t effect_count, effect_cap;
    int64_t soonest_ms;          /* no deadline is earlier than this */
    bool dismissed[WAITERS_MAX]; /* waited for a queue that was deleted */
    size_t wants[WAITERS_MAX];   /* messages that a waiter claims */
};

void ledger_init(struct ledger *l);
void ledger_fini(struct ledger *l);

/* Makes *to, which is not initialized, the same as *from. */
void ledger_copy(struct ledger *to, const struct ledger *from);

/* Lets everything end that has ended by now_ms. */
void ledger_advance(struct ledger *l, int64_t now_ms);

/* The queue is there from now on, without settings. */
void ledger_make_queue(struct ledger *l, int place);
void ledger_delete_queue(struct ledger *l, int place);
void ledger_purge(struct ledger *l, int place, enum store_purge what);

/* The place of the queue's dead letters, NOWHERE if it has none. */
int ledger_dead_letters(const struct ledger *l, int place);

/* The message that holds the key with this number; NULL: none does. */
struct known_message *ledger_key_holder(const struct ledger *l, int place, int key);

/* A message at the end of the queue, owned by it; the caller fills in the rest. */
struct known_message *ledger_add(struct ledger *l, int place, const char *id,
                                 struct bytes body, int64_t expires_ms);

/* It may become ready or expire earlier than anything else: time has to look at it. */
void ledger_watch(struct ledger *l, const struct known_message *m);

/* Also ends the claim that held nothing else. */
void
ledger_remove(struct ledger *l, int place, struct known_message *m, enum ending ending);

/* Moves a message to the end of another queue under the same id. */
void ledger_move(struct ledger *l, int from, int to, struct known_message *m);

struct known_message *ledger_message(const struct ledger *l, int place, const char *id);

struct known_claim *ledger_add_claim(struct ledger *l, int place, const char *id,
                                     int64_t now_ms, int64_t ttl_s);
struct known_claim *ledger_claim(const struct ledger *l, int place, const char *id);

/*
 * Releases a claim whose response was lost: as a release. uncount: no client can have
 * seen the messages, so it does not count.
 */
void ledger_release_unsent(struct ledger *l, struct known_claim *c, bool uncount);

/* Frees one message of its claim, which ends if it holds nothing else. */
void ledger_release(struct ledger *l, struct known_message *m);

/* A message goes to the dead letters of its queue, also out of its claim. */
void ledger_dead_letter(struct ledger *l, int from, int to, struct known_message *m,
                        int64_t now_ms);

/* The subscribers of a place have a message to get that has come there. */
void ledger_feed_moved(struct ledger *l, int place, const struct known_message *m);

/* May a claim of its queue not have the message any more? */
bool ledger_exhausted(const struct ledger *l, int place, const struct known_message *m);

/* Does the message become a dead letter when its claim expires? */
bool ledger_dies(const struct ledger *l, int place, const struct known_message *m);

/* When the next claim expires that has a message of that kind; INT64_MAX: never. */
int64_t ledger_next_death(const struct ledger *l);

/* Frees the messages of a claim, and the claim. */
void ledger_end_claim(struct ledger *l, struct known_claim *c, enum ending ending);

/* The claim's time starts again; the message gets the life a claim gives. */
void claim_begin(struct ledger *l, struct known_claim *c, int64_t now_ms, int64_t ttl_s);
void message_lengthen(struct known_message *m, int64_t now_ms, int64_t life_s);

static inline int64_t
claim_end_ms(const struct known_claim *c)
{
    return c->started_ms + c->ttl_ms;
}

/* Enters the wait queue of a place at its end for so many messages, unless it is there;
 * leaves those of all places. */
void ledger_wait(struct ledger *l, int place, int waiter, size_t wants);
void ledger_stop_waiting(struct ledger *l, int waiter);

/* How many ready messages are reserved for those in front of the waiter, for all if it is
 * not in line; SIZE_MAX: STORE_RESERVED or more. */
size_t ledger_reserved(const struct ledger *l, int place, int waiter);

/* How many messages could be claimed: none while claims are paused. */
size_t ledger_ready(const struct ledger *l, int place, int64_t now_ms);

/* The last effect of a key; NULL: it has none. */
const struct known_effect *ledger_effect(const struct ledger *l, uint64_t key);

/* Does the server know of it, if keys live so long? */
bool ledger_remembers(const struct ledger *l, const struct known_effect *effect,
                      int64_t now_ms, int64_t window_ms);

void ledger_keep_effect(struct ledger *l, const struct known_effect *effect);

/* The end of an id at this place. */
enum ending ledger_ending(const struct ledger *l, int place, const char *id);

/*
 * Calls `each` with every deadline there is, in an order that depends on the history
 * alone.
 */
void ledger_deadlines(const struct ledger *l, void (*each)(void *ctx, int64_t due_ms),
                      void *ctx);

/* ------------------------------------------------------------------ subscriptions */

void ledger_feed(struct ledger *l, int place, const struct known_post *post);

struct known_subscription *ledger_subscribe(struct ledger *l, int place, const char *id);
void
ledger_unsubscribe(struct ledger *l, struct known_subscription *s, enum ending ending);
struct known_subscription *
ledger_subscription(const struct ledger *l, int place, const char *id);
struct known_subscription *
ledger_subscriber(const struct ledger *l, int place, int subscriber);

static inline int64_t
subscription_end_ms(const struct known_subscription *s)
{
    return s->started_ms + s->ttl_s * 1000;
}

/* It listens from now on, or does not any more. */
void ledger_listen(struct ledger *l, struct known_subscription *s, bool listens);

/* It is to get that notice before all else, at once; 0: nothing. */
void ledger_notify(struct ledger *l, struct known_subscription *s, int notice);

/* It may have come to an end or a turn earlier than any other: time has to look again. */
void ledger_hurry(struct ledger *l);

/* A leased delivery has come back. starved: memory failed, the log may not know of it. */
void
ledger_delivered(struct ledger *l, int place, const char *id, enum store_outcome outcome,
                 int64_t now_ms, int64_t again_ms, bool starved);

/* The server was started again: which of the deliveries counted is not sure,
 * queues that are in memory only are empty, and no request waits. */
void ledger_restart(struct ledger *l);

/* Bytes of bodies in all queues, with something for each message. */
size_t ledger_bytes(const struct ledger *l);

#endif
