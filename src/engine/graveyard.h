/*
 * graveyard: what purge and deletion took away in O(1), freed a little at a time.
 *
 * Backlogs lose their messages, and with the last one of each their claims; whatever is
 * empty is freed. Nothing in here can be found by anybody. All functions need the shard's
 * lock.
 */
#ifndef ENGINE_GRAVEYARD_H
#define ENGINE_GRAVEYARD_H

#include "engine/shard.h"

/* Takes a queue out of its shard and frees it; its backlog is dead. O(log n). */
void graveyard_bury(struct shard *sh, struct queue *q);

/* Gives the queue this empty backlog; the old one is dead. */
void graveyard_purge(struct shard *sh, struct queue *q, struct backlog *fresh);

bool graveyard_empty(const struct shard *sh);

/* Frees messages and backlogs as far as the budget goes. True when nothing is left. */
bool graveyard_slice(struct shard *sh, size_t *budget);

bool graveyard_audit(const struct shard *sh);

#endif
