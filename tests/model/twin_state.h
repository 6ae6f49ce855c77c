/*
 * twin_state: what the twin remembers (queues, messages, claims), and what is true of it
 * at a given moment. The operations on it are in twin.c.
 */
#ifndef TESTS_MODEL_TWIN_STATE_H
#define TESTS_MODEL_TWIN_STATE_H

#include "claimd/engine/engine.h"

struct twin_message {
    struct store_id id;
    uint64_t position; /* place in the order of its queue */
    char *body;        /* owned */
    size_t body_len;
    bool has_checksum;
    struct store_checksum checksum;
    uint64_t client;
    int64_t posted_ms;
    int64_t expires_ms;
    int64_t ready_ms; /* end of its delay */
    int64_t delay_s;  /* as it was posted */
    uint32_t claim_count;
    uint64_t claim;               /* number of the claim that took it last; 0: none */
    bool dead_letter;             /* it came from another queue as one */
    bool returned;                /* it was put back: its details say so, even if empty */
    struct store_details details; /* owned texts; nothing if there are none */
};

struct twin_claim {
    struct store_id id;
    uint64_t number; /* 1, 2, 3 ... over all queues */
    int64_t started_ms;
    int64_t ttl_ms;
    int64_t created_ms; /* renewals do not change it */
    char client[STORE_CLIENT_MAX];
    size_t client_len; /* 0: not known */
};

/* A message that a subscription has still to get. */
struct twin_entry {
    char *body; /* owned */
    size_t body_len;
    int64_t expires_ms, ttl_s, delay_s;
};

struct twin_subscription {
    struct store_id id;
    uint64_t number;            /* in its queue */
    char *subscriber, *options; /* owned */
    size_t subscriber_len, options_len;
    int64_t started_ms, ttl_s;
    bool confirmed;
    bool leased, changed; /* changed: since it was leased */
    bool leased_entry;    /* its first entry is leased, if it is still there */
    int64_t again_ms;     /* not to be leased before */
    unsigned notice;      /* 1 + enum store_notice that it has still to get; 0: none */
    uint32_t failed;
    uint64_t delivered, permanent_failures, dropped, failures;
    struct twin_entry *entries; /* owned, oldest first */
    size_t entry_count;
};

struct twin_queue {
    char *project, *name; /* owned */
    size_t project_len, name_len;
    enum store_kind kind;
    uint64_t number; /* 1, 2, 3 ... over all queues ever made */
    char *json;      /* owned, NULL: none */
    size_t json_len;
    char *dead_letter; /* owned, what settings.dead_letter points at */
    char *paused_by;   /* the same of settings.paused_by */
    struct store_settings settings;
    uint64_t version;
    uint64_t last_position;
    struct twin_message **messages; /* owned, oldest first */
    size_t message_count;
    struct twin_claim *claims; /* those not released */
    size_t claim_count;
    struct twin_subscription **subscriptions; /* owned, in the order of creation */
    size_t subscription_count;
    uint64_t last_subscription;
    struct store_expired expired; /* of messages that are forgotten */
};

/* A waiter of a queue, which may not exist. */
struct twin_waiter {
    struct store_waiter *who;
    char *project, *name; /* owned */
    size_t project_len, name_len;
};

struct twin {
    struct store store; /* first: the seam's handle */
    struct engine_config config;
    struct twin_queue **queues; /* owned, in no order */
    size_t queue_count;
    uint64_t queues_made, claims_made, versions, subscriptions_made;
    struct twin_waiter *waiters; /* owned; of all queues, longest first */
    size_t waiter_count;
    struct twin_key *keys; /* owned, oldest first; twin_keys.c */
    size_t key_count;
};

/* malloc and realloc that end the program when there is no memory. */
void *twin_alloc(size_t size);
void *twin_grow(void *block, size_t size);
char *twin_copy(struct bytes text);

/* ------------------------------------------------------------------ at a moment */

static inline bool
twin_message_live(const struct twin_message *m, int64_t now_ms)
{
    return now_ms < m->expires_ms;
}

static inline bool
twin_message_delayed(const struct twin_message *m, int64_t now_ms)
{
    return now_ms < m->ready_ms;
}

/* When so many seconds that begin at now_ms are over. */
static inline int64_t
twin_deadline_ms(const struct twin *t, int64_t now_ms, int64_t seconds)
{
    return now_ms + seconds * 1000 + t->config.round_up_ms;
}

static inline bool
twin_claim_live(const struct twin_claim *c, int64_t now_ms)
{
    return now_ms < c->started_ms + c->ttl_ms;
}

/* The live claim that holds m, NULL if m is ready. */
struct twin_claim *
twin_holder(const struct twin_queue *q, const struct twin_message *m, int64_t now_ms);

static inline bool
twin_claims_paused(const struct twin_queue *q)
{
    return (q->settings.paused & STORE_PAUSE_CLAIMS) != 0;
}

/* True if a claim or a pop may take m, unless claims are paused. */
bool twin_ready(const struct twin_queue *q, const struct twin_message *m, int64_t now_ms);

/* ------------------------------------------------------------------ queues */

/* NULL if there is none. */
struct twin_queue *twin_find_queue(const struct twin *t, const struct store_queue *where);

struct twin_queue *twin_add_queue(struct twin *t, const struct store_queue *where,
                                  const struct store_metadata *metadata);
void twin_remove_queue(struct twin *t, struct twin_queue *q);

/* Gives the queue (a copy of) this metadata and a new version. */
void twin_set_metadata(struct twin *t, struct twin_queue *q,
                       const struct store_metadata *metadata);

/* The queue of this project whose name is the least one behind marker; NULL: none. */
struct twin_queue *
twin_queue_after(const struct twin *t, struct bytes project, struct bytes marker);

/* ------------------------------------------------------------------ messages, claims */

/* Puts m at the end of the queue. */
void twin_append(struct twin_queue *q, struct twin_message *m);

/* Takes the i-th message out of the queue; it is the caller's now. */
struct twin_message *twin_take_out(struct twin_queue *q, size_t i);

/* Gives m, which has its place, an id; the same for a subscription. Of the form of all
 * ids. */
void twin_message_name(const struct twin_queue *q, struct twin_message *m);
void twin_subscription_name(struct twin *t, struct twin_subscription *s);

void twin_free_message(struct twin_message *m);

/* Replaces an owned text by a copy; absent: none. */
void twin_set_text(struct bytes *owned, struct bytes text);

/* Sets copies of all details. */
void twin_set_details(struct twin_message *m, const struct store_details *d);

/* A worker gave the message back with this reason; absent: without one. */
void twin_note_reason(struct twin_message *m, struct bytes reason, struct bytes client,
                      int64_t now_ms);

/* Index of the live message with this id; message_count if there is none. */
size_t twin_find_message(const struct twin_queue *q, struct bytes id, int64_t now_ms);

/* The live claim with this id; NULL if there is none. */
struct twin_claim *
twin_find_claim(const struct twin_queue *q, struct bytes id, int64_t now_ms);

struct twin_claim *twin_add_claim(struct twin *t, struct twin_queue *q,
                                  const struct store_terms *terms, int64_t now_ms);
void twin_remove_claim(struct twin_queue *q, struct twin_claim *c);

/* Forgets what expired, and counts such messages. */
void twin_forget(const struct twin *t, struct twin_queue *q, int64_t now_ms);

/* May this be posted to the queue, which exists? */
enum status twin_check_post(const struct twin *t, const struct twin_queue *q,
                            const struct store_post *post);

/* expires = max(expires, now + min(ttl + grace, max_message_ttl)): docs/api.md 9.6. */
void twin_lengthen(const struct twin *t, struct twin_message *m,
                   const struct store_terms *terms, int64_t now_ms);

/* Has m been claimed as often as its queue allows, and is there a place for it then? */
bool twin_exhausted(const struct twin_queue *q, const struct twin_message *m);

/* The live message of q that holds a key; NULL: none. One whose last claim has ended is a
 * dead letter. */
struct twin_message *
twin_find_key(const struct twin_queue *q, struct bytes key, int64_t now_ms);

/* A claim takes m: it may free its key. */
void twin_free_key(struct twin_message *m);

/* Posts to a queue, which is made if it does not exist, messages that may be posted and
 * have no key that another message holds. */
void
twin_add_messages(struct twin *t, const struct store_queue *where,
                  const struct store_post *post, int64_t now_ms, struct store_id *ids);

/* Moves the i-th message of q to the end of its dead-letter queue, which is made if it
 * does not exist: docs/api.md 10. A worker may give a reason. */
void twin_move_dead_letter(struct twin *t, struct twin_queue *q, size_t i,
                           enum store_cause cause, struct bytes reason,
                           struct bytes client, int64_t now_ms);

/* A letter does not lie in clear in a queue whose messages are encrypted. */
void twin_seal_letter(const struct twin *t, const struct store_queue *where,
                      struct twin_message *m);

/* ------------------------------------------------------------------ operations */

static inline struct twin *
twin_of(struct store *s)
{
    return (struct twin *)s;
}

/* ------------------------------------------------------------------ waiting */

/* How many wait for the queue. */
size_t twin_waiters(const struct twin *t, const struct store_queue *where);

/*
 * How many of the messages that can be claimed the operation may take: all, or with a
 * waiter those that are not reserved for the waiters in front of it. *from: the place of
 * the first.
 */
size_t twin_share(struct twin *t, const struct store_op *op,
                  const struct store_queue *where, size_t *from);

/* How many messages of the queue can be claimed: none while claims are paused. */
size_t
twin_ready_count(const struct twin *t, const struct store_queue *where, int64_t now_ms);

/* Nothing was taken: the waiter, if there is one, is in the wait queue for `wants`
 * messages. */
void twin_wait(struct twin *t, struct store_op *op, const struct store_queue *where,
               size_t wants);

/* Something was: it is out of the wait queue. */
void twin_served(struct twin *t, struct store_op *op);

/* No waiter is left in this queue. */
void twin_dismiss(struct twin *t, const struct twin_queue *q);

/* ------------------------------------------------------------------ responses */

/* An empty batch for up to `space` messages. */
struct store_batch twin_open_batch(const struct store *s, size_t capacity);

/* Adds a copy of a message as it is now. */
void twin_show(struct store_batch *out, const struct twin_queue *q,
               const struct twin_message *m, int64_t now_ms);

/*
 * True if out->capacity is enough for the bodies of the first `limit` messages that can
 * be claimed; else leaves there how much would be.
 */
bool twin_fits(const struct twin_queue *q, size_t from, size_t limit, int64_t now_ms,
               struct store_batch *out);

/*
 * True if those of them that are sealed are in out->opened; else what would be taken is
 * in *out.
 */
bool twin_opened(const struct store *s, const struct twin_queue *q, size_t from,
                 size_t limit, int64_t now_ms, struct store_batch *out);

/* ------------------------------------------------------------------ subscriptions */

void twin_unsubscribe_all(struct twin_queue *q);

/* A message was posted: each subscriber, confirmed if need be, has to get it. */
void twin_feed(struct twin *t, struct twin_queue *q, const struct twin_message *m);

/* The next moment at which one of them ends, or is tried again. */
void
twin_consider_subscriptions(const struct twin_queue *q, int64_t now_ms, int64_t *next_ms);

store_subscription_create_fn twin_subscription_create;
store_subscription_get_fn twin_subscription_get;
store_subscription_list_fn twin_subscription_list;
store_subscription_update_fn twin_subscription_update;
store_subscription_confirm_fn twin_subscription_confirm;
store_subscription_delete_fn twin_subscription_delete;
store_subscriptions_release_fn twin_subscriptions_release;
store_delivery_next_fn twin_delivery_next;
store_delivery_done_fn twin_delivery_done;

/* twin_records.c */
extern const struct store_state_vtable twin_state_ops;

/* The operations of the seam in twin_message.c, twin_claim.c and twin_wait.c. */
store_message_post_fn twin_message_post;
store_batch_release_fn twin_batch_release;
store_message_list_fn twin_message_list;
store_message_get_fn twin_message_get;
store_message_find_fn twin_message_find;
store_message_delete_fn twin_message_delete;
store_message_pop_fn twin_message_pop;
store_claim_create_fn twin_claim_create;
store_claim_get_fn twin_claim_get;
store_claim_list_fn twin_claim_list;
store_claim_renew_fn twin_claim_renew;
store_claim_release_fn twin_claim_release;
store_claim_finish_fn twin_claim_finish;
store_redrive_fn twin_redrive;
store_waiter_leave_fn twin_waiter_leave;

/* With an Idempotency-Key or without one: twin_keys.c. */
store_message_post_fn twin_keyed_post;
store_message_pop_fn twin_keyed_pop;
store_claim_create_fn twin_keyed_claim;
void twin_free_keys(struct twin *t);

#endif
