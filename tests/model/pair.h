/*
 * pair: the twin and the engine side by side. Every operation is done on both, and every
 * part of the two responses is compared; the first difference ends the test with the
 * operations that led to it.
 */
#ifndef TESTS_MODEL_PAIR_H
#define TESTS_MODEL_PAIR_H

#include "claimd/engine/engine.h"
#include "model/idmap.h"
#include "support/kept_runs.h"

struct redis_server;

#define PAIR_TRACE 40 /* how many operations a failure shows */

enum { PAIR_WAITERS = 48, PAIR_FENCES = 256, PAIR_LEASES = 8 };

/* A waiter on both sides for messages of one queue. */
struct pair_waiter {
    struct store_waiter twin, engine;
    struct store_listener twin_listener, engine_listener;
    struct store_queue queue; /* its texts outlive the waiting */
    bool waits;               /* in the wait queue, on both sides */
    bool notified;            /* by the engine, since its last try, that messages came */
    bool gone;                /* likewise, that the queue was deleted */
};

/* The claim numbers that the engine has shown. */
struct pair_fence {
    char queue[48]; /* project/name */
    uint64_t last;
};

/* The deliveries that both have leased, and not got back. */
struct pair_lease {
    struct store_delivery twin, engine;
};

struct pair {
    struct mem *mem; /* the engine's */
    struct store *twin, *engine;
    struct redis_server *redis; /* owned; NULL: it is an engine indeed */
    struct kept_runs kept;      /* of an engine with CLAIMD_TEST_UNLOAD */
    int64_t now_ms;
    struct idmap ids; /* left: the twin's, right: the engine's */
    struct pair_waiter waiters[PAIR_WAITERS];
    struct pair_fence fences[PAIR_FENCES];
    size_t fence_count;
    struct pair_lease leased[PAIR_LEASES];
    size_t leased_count;
    struct store_key key; /* of the next operation, if it has one */
    bool keyed;
    char key_text[32];
    uint64_t steps; /* operations done */
    char trace[PAIR_TRACE][160];
};

void pair_open(struct pair *p, size_t shards, uint64_t seed, bool require_confirmation);

/* Closes both; the engine must have given back all its memory. */
void pair_close(struct pair *p);

/* Ends the program: prints the last operations and what is wrong. */
_Noreturn void pair_fail(const struct pair *p, const char *wrong);

/* The version of a queue's metadata in both. */
struct version_pair {
    uint64_t twin, engine;
};

bool pair_create(struct pair *p, const struct store_queue *queue,
                 const struct store_metadata *metadata);

/* False if there is no such queue. */
bool
pair_show(struct pair *p, const struct store_queue *queue, struct version_pair *version);
void pair_update(struct pair *p, const struct store_queue *queue,
                 struct version_pair version, const struct store_metadata *metadata);
void pair_delete_queue(struct pair *p, const struct store_queue *queue);
void pair_list_queues(struct pair *p, struct bytes project, struct bytes marker,
                      size_t limit, bool with_metadata);
void pair_stats(struct pair *p, const struct store_queue *queue);
void pair_purge(struct pair *p, const struct store_queue *queue, enum store_purge what);

/* True if the messages were stored; then ids[post->count] are filled in. */
bool pair_post(struct pair *p, const struct store_queue *queue,
               const struct store_post *post, struct id_pair *ids);

/* A page behind a marker as both write it. Returns how many it shows, and the next. */
size_t pair_list(struct pair *p, const struct store_queue *queue,
                 const struct store_filter *filter, const struct id_pair *marker,
                 struct id_pair *next);
void pair_get(struct pair *p, const struct store_queue *queue, const struct id_pair *ids,
              size_t count);

/* claim NULL: without a claim id. */
void pair_delete(struct pair *p, const struct store_queue *queue,
                 const struct id_pair *id, const struct id_pair *claim);

/* claims NULL: any claim. */
void pair_delete_many(struct pair *p, const struct store_queue *queue,
                      const struct id_pair *ids, size_t count,
                      const struct id_pair *claims, size_t claim_count);
/*
 * space: bytes of bodies that may be taken, 0: any number. w: the waiter if there is
 * nothing; NULL: none.
 */
void pair_pop(struct pair *p, const struct store_queue *queue, size_t limit,
              size_t capacity, struct pair_waiter *w);

/* True if a claim was made. */
bool pair_claim(struct pair *p, const struct store_queue *queue,
                const struct store_terms *terms, size_t limit, size_t capacity,
                struct pair_waiter *w, struct id_pair *claim);
void
pair_query(struct pair *p, const struct store_queue *queue, const struct id_pair *claim);
void pair_renew(struct pair *p, const struct store_queue *queue,
                const struct id_pair *claim, const struct store_terms *terms);
void pair_release(struct pair *p, const struct store_queue *queue,
                  const struct id_pair *claim);
void pair_release_unsent(struct pair *p, const struct store_queue *queue,
                         const struct id_pair *claim, bool uncount);

/* An action on a message, named on both sides. */
struct pair_item {
    struct id_pair id;
    enum store_finish_action action;
    const char *reason; /* NULL: none */
    int64_t delay_s;
    bool uncounted;
};

enum { PAIR_ITEMS = 16, PAIR_POSTS = 3 };

struct pair_finish {
    struct id_pair claim;
    struct pair_item items[PAIR_ITEMS];
    size_t count;
    struct store_finish_post posts[PAIR_POSTS]; /* of one message each; without ids */
    size_t post_count;
    const struct store_terms *renew;
    bool atomic;
    struct id_pair posted[PAIR_POSTS]; /* out */
};

/* True if it was done. */
bool
pair_finish(struct pair *p, const struct store_queue *queue, struct pair_finish *finish);

/* Repeats it until the limit is reached, or nothing is left to look at. ids: NULL: the
 * oldest. */
void
pair_redrive(struct pair *p, const struct store_queue *queue,
             const struct store_redrive *which, const struct id_pair *ids, size_t count);

/* The messages that a claim holds, at most `space`; how many. */
size_t pair_held(struct pair *p, const struct store_queue *queue,
                 const struct id_pair *claim, struct id_pair *out, size_t capacity);

/* ------------------------------------------------------------------ subscriptions */

/* True if it is a new one. */
bool pair_subscribe(struct pair *p, const struct store_queue *queue,
                    const struct store_subscription_draft *draft, struct id_pair *id);
void pair_see_subscription(struct pair *p, const struct store_queue *queue,
                           const struct id_pair *id);

/* All of a queue, in pages of so many. */
void
pair_list_subscriptions(struct pair *p, const struct store_queue *queue, size_t limit);
void pair_change_subscription(struct pair *p, const struct store_queue *queue,
                              const struct id_pair *id,
                              const struct store_subscription_draft *draft);
void pair_confirm(struct pair *p, const struct store_queue *queue,
                  const struct id_pair *id, bool confirmed);
void pair_unsubscribe(struct pair *p, const struct store_queue *queue,
                      const struct id_pair *id);

/* Has the engine lease something, when it has done all that is due; the twin must lease
 * the same. False: neither has anything, or enough is leased. */
bool pair_lease_next(struct pair *p);

/* Gives back the i-th that is leased. */
void pair_give(struct pair *p, size_t i, enum store_outcome outcome, int64_t again_ms);

/* Ends a waiter's waiting. */
void pair_leave(struct pair *p, struct pair_waiter *w);

/*
 * Has the engine do all that is due; then every waiter that must be notified by now (says
 * the twin) has been.
 */
void pair_expect_notified(struct pair *p);

/* Lets time pass. Dead letters of claims that expire meanwhile go on the way. */
void pair_pass(struct pair *p, int64_t until_ms);

/* One slice of the engine's housekeeping. Returns when the next is useful. */
int64_t pair_housekeep(struct pair *p);

/* Audits the engine, and that it will wake for the next thing that falls due. */
void pair_audit(struct pair *p);

#endif
