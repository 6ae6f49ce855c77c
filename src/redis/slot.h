/*
 * slot: which of Redis Cluster's 16384 slots a key belongs to (Redis Cluster specification,
 * "Key distribution model").
 */
#ifndef REDIS_SLOT_H
#define REDIS_SLOT_H

#include "claimd/base/bytes.h"

#include <stdint.h>

enum { SLOT_COUNT = 16384 };

/* Of what stands between the first { and the next }, if that is anything; else of the whole key.
 * O(length). */
uint16_t slot_of(struct bytes key);

#endif
