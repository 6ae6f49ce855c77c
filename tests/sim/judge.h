/*
 * judge: compares one response with what the ledger says it has to be, and enters into
 * the ledger what the response has changed.
 *
 * The rules are those of the API's document, section by section; which promise is broken
 * is decided by what the difference would mean to a client. Judging stops at the first
 * broken promise: from then on the ledger is not to be trusted.
 */
#ifndef TESTS_SIM_JUDGE_H
#define TESTS_SIM_JUDGE_H

#include "sim/ledger.h"
#include "sim/promise.h"
#include "sim/response.h"

/* Under what rules the server runs. */
struct rules {
    int64_t message_ttl_s;     /* default_message_ttl */
    int64_t max_message_ttl_s; /* a claim's ttl + grace count up to this */
    int64_t claim_ttl_s, claim_grace_s;
    int64_t post_bytes; /* max_messages_post_size */
    int page;           /* the limit when none is given */
    bool strict_delete; /* message_delete_with_claim_id */
    bool require_confirmation;
    int64_t feed_bytes;    /* of a queue's feed; 0: any number */
    int64_t key_window_ms; /* idempotency_window */
    bool few_keys;         /* idempotency_keys is so small that it refuses some */
};

struct judging {
    struct ledger *ledger;
    const struct rules *rules;
    const struct operation *op;
    const struct sim_response *response;
    int64_t now_ms;
    int64_t ahead_ms;  /* the wall clock less that */
    size_t body_bytes; /* of the request */
    bool starved;      /* an allocation has failed during the request */
    bool tight;        /* the memory budget was used up before it */
    bool impaired;     /* the disk fails: dead letters need not move at once */
    struct verdict *verdict;
    int waiter; /* the waiter of the request; NONE: it does not wait */
    bool on;    /* it may go on with that */
    bool gone;  /* its client has hung up: it must not take anything */
    bool waits; /* there is no response: it waits on */

    /*
     * Dead letters that a starved claim came upon: contrary to everything else the API
     * leaves open which of them are moved when memory runs out. These have to be looked
     * for, oldest first, before the claim is judged: moved_count is how many are in the
     * dead letter queue.
     */
    size_t moved_count;
};

/* Judges the response; false: a promise is broken. */
bool judge(struct judging *j);

/* The same of a request that has no key, or none that is known (judge.c); of one with a
 * key (judge_key.c). */
bool judge_first(struct judging *j);
bool judge_keyed(struct judging *j);

/* The work of a claim now, by the ledger: messages it takes, dead letters it moves. */
struct claim_plan {
    struct known_message *taken[IDS_MAX];
    size_t taken_count;
    struct known_message **letters; /* owned */
    size_t *taken_before; /* owned; how many of `taken` are older than a letter */
    size_t letter_count;
};

void claim_plan_make(const struct judging *j, struct claim_plan *out);
void claim_plan_fini(struct claim_plan *plan);

/*
 * One queue of those that a request may take from; *took: it has to be this one, and the
 * response was judged.
 */
bool judge_claim_from(struct judging *j, bool *took);
bool judge_pop_from(struct judging *j, bool *took);

/* The parts, in judge_take.c, judge_queue.c, judge_message.c and judge_claim.c. */
bool judge_take(struct judging *j);
bool judge_queue(struct judging *j);
bool judge_message(struct judging *j);
bool judge_claim(struct judging *j);
bool judge_subscription(struct judging *j);
bool judge_finish(struct judging *j);
bool judge_redrive(struct judging *j);
bool judge_schedule(struct judging *j);

/* Enters a message that the operation has posted to its place. `body` is space for the
 * text. */
void judging_enter_draft(struct judging *j, const struct draft *d, const char *id,
                         struct buf *body);

/* Would a draft expire at this place before its delay is over? Then its post is
 * refused. */
bool judging_expires_delayed(const struct judging *j, int place, const struct draft *d);

/*
 * Judges the post of a unique message. holder: the message that has its key until then;
 * NULL: the post adds one. said: the response names an existing message, by this id.
 */
bool judge_unique(struct judging *j, const struct known_message *holder, bool said,
                  const struct store_id *id);

/* The ids of the response from `first` on are new. */
bool judge_new_ids(struct judging *j, size_t first, size_t count);

/* How long a claim made or renewed now lasts, and makes its messages live at least. */
int64_t judging_claim_ttl(const struct judging *j);
int64_t judging_claimed_life(const struct judging *j);

/* Renews a claim in the ledger, with the terms of the operation. */
void judging_renew(struct judging *j, struct known_claim *c);

/* A schedule has posted a message for this due time under that key; false: a promise is
 * broken. */
bool judge_scheduled(struct ledger *l, struct bytes key, int64_t due_ms, int64_t now_ms,
                     struct verdict *verdict);

/* ------------------------------------------------------------------ deliveries */

/* A deliverer's view of the ledger, which knows of deliveries only what it sees of
 * them. */
struct delivering {
    struct ledger *ledger;
    const struct rules *rules;
    int64_t now_ms;
    struct verdict *verdict;
};

/* This has been leased; false: a promise is broken. */
bool judge_leased(const struct delivering *by, const struct store_delivery *d);

/* Nothing was due; settled: what time brings has been settled. */
bool judge_nothing_due(const struct delivering *by, bool settled);

/* True if something has to be leased now. */
bool judging_due(const struct delivering *by, const struct known_subscription *s);

/* ------------------------------------------------------------------ shared by them */

struct known_queue *judging_queue(const struct judging *j);

/* The code has to be this one; if it is not, `p` is broken. */
bool judge_code(struct judging *j, int expected, enum promise p);

/* How many of the first ready messages of its queue it leaves to waiters in front of
 * it. */
size_t judging_reserved(const struct judging *j);

/* Has a finish to be refused because a queue that it posts to is paused? */
bool judging_finish_paused(const struct judging *j);

/* The number of messages that it may return. */
size_t judging_limit(const struct judging *j);

/* Is it a dead letter to a claim of its queue? */
bool judging_letter(const struct judging *j, const struct known_message *m);

/* All of a message's document is as the ledger says. */
bool judge_document(struct judging *j, const struct known_message *m,
                    const struct seen_message *seen);

/* The claim number of the response has to be that of the claim. */
bool judge_claim_number(struct judging *j, const struct known_claim *c);

/*
 * How many of so many messages that are there have to be shown or taken: all, but if
 * memory has run out those of the response, if it is one at least (docs/api.md 5.3).
 */
size_t judging_shown(const struct judging *j, size_t count);

/* The messages shown have to be these, in this order. */
bool
judge_sequence(struct judging *j, struct known_message *const *expected, size_t count);

/*
 * The promise that is broken when a message that must be there is not; notes in the
 * verdict which it is, so that one can look whether it is lost or only withheld.
 */
enum promise judge_missing(struct judging *j, const struct known_message *m);

/* The promise that is broken when something that is gone is still there. */
enum promise promise_of_gone(enum ending ending);

#endif
