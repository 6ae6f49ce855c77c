/*
 * changelog: appends changes to the log (store/log.h).
 *
 * Each is called once for a change, under the lock, when the change has happened (what is
 * going to be removed: just before). It leaves the LSN of the change with the queue, unless time
 * did it. Only for engines with a log (has_log()), but for those that say otherwise.
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

/* Bytes of a queue's address and metadata (NULL: none), for changelog_reserve(). */
static inline size_t
queue_bytes(const struct store_queue *where, const struct store_metadata *metadata)
{
    size_t total = where->project.len + where->name.len;

    return metadata == NULL
               ? total
               : total + metadata->json.len + metadata->settings.dead_letter.len;
}

/* Asks for a change of so many messages; see the log's reserve(). ST_OK without a log. */
enum status changelog_reserve(struct shard *sh, enum store_change_kind kind, size_t count,
                              size_t bytes);

/* A message as a record, but for its claim. */
void changelog_message(const struct message *m, uint32_t tag,
                       struct store_message_record *out);

/* QUEUE, META, QUEUE_GONE, PURGE, UNSUBSCRIBED. Does nothing without a log. */
void changelog_queue(struct queue *q, enum store_change_kind kind, int64_t now_ms);

/* POST, STATE: so many messages from number `first` on. */
void changelog_row(struct queue *q, enum store_change_kind kind, uint64_t first,
                   size_t count, int64_t now_ms);

/* DELETE: messages linked by due.link, which are out of the backlog. */
void changelog_delete(struct queue *q, const struct list *messages, size_t count,
                      int64_t now_ms);

/* CLAIM, RENEW, RELEASE, CLAIM_OVER: with the messages it holds. */
void changelog_claim(struct queue *q, enum store_change_kind kind, const struct claim *c,
                     int64_t now_ms);

/* EXPIRED, DELAY_OVER. */
void changelog_single(struct queue *q, enum store_change_kind kind,
                      const struct message *m, int64_t now_ms);

/* SUBSCRIPTION, SUBSCRIPTION_GONE, CURSOR: the subscription as it is. Does nothing without a log. */
void changelog_subscription(struct queue *q, enum store_change_kind kind,
                            const struct subscription *s, int64_t now_ms);

/* FEED: so many entries of the queue's feed from number `first` on. */
void changelog_feed(struct queue *q, uint64_t first, size_t count, int64_t now_ms);

/* MOVE: messages that are in the target, and the numbers that they had in the source. */
struct moved {
    struct message *const *messages;
    const uint64_t *old_numbers;
};
void changelog_move(struct queue *source, struct queue *target, const struct moved *moved,
                    size_t count, int64_t now_ms);

/*
 * What a transient queue does is not logged, so after a restart the log does not know which numbers
 * of messages and claims it has used. It reserves them in large pieces: the log says beforehand up
 * to which they may be used, and the queue that begins anew goes on behind those. So markers that
 * clients hold, and fencing numbers, never meet a smaller one.
 */

/* Before the queue uses so many more: reserves space for a new reservation if need be. */
enum status
changelog_reserve_numbers(struct queue *q, uint64_t messages, uint64_t claims);

/* It has used them: logs the new reservation, if there is one. */
void changelog_numbers(struct queue *q, int64_t now_ms);

#endif
