/*
 * graveyard: what purge and deletion took away in O(1), freed a little at a time.
 *
 * Backlogs lose their messages, and with the last one of each their claims; whatever is
 * empty is freed. Nothing in here can be found by anybody. All functions need the shard's
 * lock.
 */
#ifndef ENGINE_GRAVEYARD_H
#define ENGINE_GRAVEYARD_H

#include "engine/queue.h"

/* Takes the dead backlog over; an empty one is freed. */
void graveyard_add(struct shard *sh, struct backlog *b);

bool graveyard_empty(const struct shard *sh);

/* Frees messages and backlogs as far as the budget goes. True when nothing is left. */
bool graveyard_slice(struct shard *sh, size_t *budget);

bool graveyard_audit(const struct shard *sh);

#endif
