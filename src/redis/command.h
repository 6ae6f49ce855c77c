/*
 * command: words of a command for Redis as they go over the wire (RESP,
 * redis.io/docs/reference/protocol-spec), one after the other.
 *
 *   Cost     O(bytes)
 *   Memory   a buffer, which is kept for the next command; if there is none, buf.failed
 */
#ifndef REDIS_COMMAND_H
#define REDIS_COMMAND_H

#include "claimd/base/buf.h"

struct command {
    struct buf words;
    size_t count;
};

void command_init(struct command *c, struct mem *mem);
void command_fini(struct command *c);

/* Empties it. */
void command_begin(struct command *c);

void command_word(struct command *c, struct bytes word);
void command_text(struct command *c, const char *word);
void command_number(struct command *c, int64_t number);

#endif
