/*
 * changelog: appends changes to the log (store/log.h).
 *
 * Each function appends one change, under the lock, when the change has happened. Only
 * for removals the caller appends it just before. The queue keeps the LSN of the change,
 * unless the change is an expiry. Without a log (has_log()) only the functions that say
 * so may be called.
 */
#ifndef ENGINE_CHANGELOG_H
#define ENGINE_CHANGELOG_H

#include "claimd/store/log.h"
#include "engine/claim.h"

struct subscription;

static inline bool
has_log(const struct core *core)
{
    return __builtin_expect(core->log != NULL, 0);
}

/* Bytes of a queue's address and metadata (NULL: without), for changelog_reserve(). */
static inline size_t
queue_bytes(const struct store_queue *where, const struct store_metadata *metadata)
{
    size_t total = where->project.len + where->name.len;

    return metadata == NULL
               ? total
               : total + metadata->json.len + metadata->settings.dead_letter.len +
                     metadata->settings.paused_by.len;
}

/* Reserves space in the log for a change of `count` messages, see reserve() in
 * store/log.h. ST_OK without a log. */
enum status changelog_reserve(struct shard *sh, enum store_change_kind kind, size_t count,
                              size_t bytes);

/* A change of a group, and the queues that it changes; target: of a MOVE, else NULL. */
struct grouped_change {
    struct store_change change;
    struct queue *queue, *target;
};

/*
 * Append the changes that were collected in the groups of their shards. If they do not
 * fit into one write of the log (changelog_group_fits()), they are appended one by one.
 */
void changelog_end_group(struct change_group *group, const struct core *core);
bool changelog_group_fits(const struct change_group *group, const struct core *core);

/* Describes a message as a record, without its claim. */
void changelog_message(const struct message *m, uint32_t tag,
                       struct store_message_record *out);

/* QUEUE, META, QUEUE_GONE, PURGE, UNSUBSCRIBED. Does nothing without a log. */
void changelog_queue(struct queue *q, enum store_change_kind kind, int64_t now_ms);

/* POST, STATE: `count` messages from number `first` on; STATE: without those of which a
 * RUN says all (backlog_is_stored()). */
void changelog_row(struct queue *q, enum store_change_kind kind, uint64_t first,
                   size_t count, int64_t now_ms);

/* RETRY, DETAILS: the messages of an array; DETAILS: those with details. */
void changelog_array(struct queue *q, enum store_change_kind kind,
                     struct message *const *messages, size_t count, int64_t now_ms);

/* DETAILS of those of `count` messages from number `first` on that have some, and the
 * bytes of their texts. */
void changelog_row_details(struct queue *q, uint64_t first, size_t count, int64_t now_ms);
size_t details_bytes(const struct message *m);

/* DELETE: messages linked by due.link, which the backlog no longer has. */
void changelog_delete(struct queue *q, const struct list *messages, size_t count,
                      int64_t now_ms);

/* CLAIM, RENEW, RELEASE, CLAIM_OVER: a claim with the messages that it holds. */
void changelog_claim(struct queue *q, enum store_change_kind kind, const struct claim *c,
                     int64_t now_ms);

/* RUN: with the messages that are stored. Reserved: 8 bytes for each. */
struct run;
void changelog_run(struct queue *q, const struct run *r, int64_t now_ms);

/* EXPIRED: of unloaded messages, which are not read for it. */
void changelog_run_expired(struct queue *q, int64_t now_ms);

/* EXPIRED, DELAY_OVER. */
void changelog_single(struct queue *q, enum store_change_kind kind, struct message *m,
                      int64_t now_ms);

/* KEY, with the messages of a pop: of a queue, whose change came before; of a checkpoint,
 * for the queue with this tag. The record must stay until the end of a group. */
void changelog_key(struct queue *q, const struct store_key_record *record,
                   struct message *const *messages, size_t count, int64_t now_ms);
void
changelog_key_read(struct shard *sh, uint32_t tag, const struct store_key_record *record,
                   struct message *const *messages, size_t count);

/* SUBSCRIPTION, SUBSCRIPTION_GONE, CURSOR. Does nothing without a log. */
void changelog_subscription(struct queue *q, enum store_change_kind kind,
                            const struct subscription *s, int64_t now_ms);

/* FEED: `count` entries of the queue's feed from number `first` on. */
void changelog_feed(struct queue *q, uint64_t first, size_t count, int64_t now_ms);

/* MOVE: messages that are in the target now, and their numbers in the source. */
void changelog_move(struct queue *source, struct queue *target,
                    struct message *const *messages, const uint64_t *old_numbers,
                    size_t count, int64_t now_ms);

/*
 * Changes of a transient queue are not logged, so after a restart the log does not know
 * which numbers of messages and claims the queue has used. The queue reserves numbers in
 * large pieces: the log says up to which they may be used, and the queue continues behind
 * those after a restart. So markers that clients hold, and fencing tokens, never meet a
 * smaller number. The functions do nothing without a log.
 */

/* True if the queue needs no new reservation to use so many more numbers. */
bool changelog_has_numbers(const struct queue *q, uint64_t messages, uint64_t claims);

/* Reserves space in the log for a new reservation, if the queue needs one to use so many
 * more numbers. */
enum status
changelog_reserve_numbers(struct queue *q, uint64_t messages, uint64_t claims);

/* Logs the new reservation, if the numbers that were used need one. */
void changelog_numbers(struct queue *q, int64_t now_ms);

#endif
