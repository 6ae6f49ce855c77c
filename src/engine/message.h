/*
 * message: one message and its body, in one allocation.
 *
 * A message has one owner, its backlog; answers pin it, so that its body stays readable
 * after it was deleted. Everything but the body and the pins is guarded by the shard's
 * lock.
 *
 *                 +--------- delayed ----(delay ends)----+
 *   posted -------+                                      v
 *                 +----------------------------------> free <----+
 *                                                        |       | claim ends
 *                                                      claim ----+
 *   and from any state: deleted, purged, expired
 */
#ifndef ENGINE_MESSAGE_H
#define ENGINE_MESSAGE_H

#include "claimd/base/mem.h"
#include "claimd/ds/hashmap.h"
#include "claimd/ds/wheel.h"
#include "engine/ident.h"

#include <stdatomic.h>

struct backlog;
struct claim;

struct message {
    struct deadline due; /* in the message wheel: end of delay, then end of life */
    int64_t expires_ms;  /* end of life; due.due_ms is at most this */
    int64_t posted_ms;
    uint64_t seq;              /* its number in the backlog: its age */
    struct backlog *backlog;   /* owner */
    struct claim *claim;       /* holder; NULL: free */
    struct original *original; /* owned; the id from another queue; NULL: none */
    uint64_t client;           /* who posted it */
    uint32_t body_len;
    _Atomic uint32_t pins; /* the backlog's and those of answers */
    uint32_t claim_count;  /* how often it was claimed here */
    bool delayed;          /* neither ready nor claimed until due.due_ms */
    bool has_checksum;     /* behind the body */
    char body[];
};

/* The id of a message that was moved here as a dead letter: it keeps the one it had. */
struct original {
    struct hashnode node; /* in its backlog's `originals` */
    struct ident id;
    struct message *message;
};

/*
 * Makes a message whose body is still to be written, with a copy of a checksum unless it is NULL,
 * and one pin; NULL without memory.
 */
struct message *message_make(struct mem *mem, size_t body_len,
                             const struct store_checksum *checksum, uint64_t client);

/* The same with a copy of the body. */
struct message *message_new(struct mem *mem, struct bytes body,
                            const struct store_checksum *checksum, uint64_t client);

/* Gives it the id of this text as its original one. ST_BAD_VALUE: it is no id; ST_NO_MEMORY. */
enum status
message_set_original(struct mem *mem, struct message *m, const struct store_id *text);

void message_pin(struct message *m);

/* Takes back a pin; the last one frees the message. */
void message_unpin(struct mem *mem, struct message *m);

/* Takes the backlog's pin from each message of a list linked by due.link. */
void message_unpin_all(struct mem *mem, struct list *messages);

static inline bool
message_live(const struct message *m, int64_t now_ms)
{
    return now_ms < m->expires_ms;
}

/* Its id in a queue with this tag: the one it came with from another queue, or its own. */
static inline struct ident
message_ident(const struct message *m, uint32_t tag)
{
    return m->original == NULL ? (struct ident){tag, m->seq} : m->original->id;
}

static inline struct bytes
message_body(const struct message *m)
{
    return bytes_of(m->body, m->body_len);
}

/* NULL: posted without. */
static inline const struct store_checksum *
message_checksum(const struct message *m)
{
    return m->has_checksum ? (const struct store_checksum *)(m->body + m->body_len)
                           : NULL;
}

#endif
