/*
 * metadata: a queue's metadata as words of calls: the document, and eight settings.
 */
#ifndef REDIS_METADATA_H
#define REDIS_METADATA_H

#include "redis/call.h"

enum { METADATA_WORDS = 9 };

/* NULL: none. */
void metadata_add(struct call *c, const struct store_metadata *metadata);

/* Those of an answer, from its `at`-th word on; texts are valid as long as the answer. */
void metadata_read(const struct call *c, size_t at, struct store_metadata *out);

#endif
