/*
 * message: one message and its body, in one allocation.
 *
 * A message has one owner, its backlog. Responses pin it, so its body stays readable
 * after it was deleted. The lock of the shard guards everything but the body and the
 * pins.
 *
 *                 +--------- delayed ----(delay ends)----+
 *   posted -------+                                      v
 *                 +---------------------------------> ready <----+
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
    uint64_t seq;            /* its number in the queue; messages are ordered by it */
    struct backlog *backlog; /* owner */
    struct claim *claim;     /* that holds it; NULL: not claimed */
    struct extra *extra;     /* owned; NULL: none */
    uint64_t client;         /* id of the client that posted it */
    uint32_t body_len;
    _Atomic uint32_t pins; /* of the backlog, and of batches and feed entries */
    uint32_t claim_count;  /* delivery count in this queue */
    bool delayed;          /* neither ready nor claimed until due.due_ms */
    bool has_checksum : 1; /* behind the body */
    bool lacks_body : 1;   /* during a replay: a body file has the body */
    char body[];
};

/* The details of a message (store/types.h). They never change, and batches pin them. */
struct details {
    _Atomic uint32_t pins;
    struct store_details view; /* texts point behind this structure */
    struct details *claimed;   /* owned: those after the first claim, which frees the key;
                                * NULL: the same, or the claim has them already */
    char text[];
};

/* A few messages have this: an id from another queue, which they keep, and details. */
struct extra {
    struct hashnode node;     /* with an original id: in its backlog's `originals` */
    struct hashnode key_node; /* if holds_key: in its backlog's `unique` */
    struct message *message;
    struct details *details; /* owned pin; NULL: none */
    struct ident id;         /* the original id */
    bool has_id;
    bool holds_key; /* that of its details, which no other message of the queue has */
};

/* Makes a message with one pin, with a copy of the checksum (NULL: without). The caller
 * writes the body. NULL without memory. */
struct message *message_make(struct mem *mem, size_t body_len,
                             const struct store_checksum *checksum, uint64_t client);

/* The same with a copy of the body. */
struct message *message_new(struct mem *mem, struct bytes body,
                            const struct store_checksum *checksum, uint64_t client);

/* Ensures that a message has an `extra`. ST_NO_MEMORY. */
enum status message_ensure_extra(struct mem *mem, struct message *m);

/* Sets the original id. ST_BAD_VALUE: the text is no id; ST_NO_MEMORY. */
enum status
message_set_original(struct mem *mem, struct message *m, const struct store_id *text);

/* Makes a copy with one pin. NULL without memory. */
struct details *details_new(struct mem *mem, const struct store_details *view);
void details_unpin(struct mem *mem, struct details *d);

static inline const struct store_details *
details_pin(struct details *d)
{
    atomic_fetch_add_explicit(&d->pins, 1, memory_order_relaxed);
    return &d->view;
}

/* The details that a view is part of. */
static inline struct details *
details_of(const struct store_details *view)
{
    return (struct details *)((uintptr_t)view - offsetof(struct details, view));
}

/* Gives a message a copy of these details. ST_NO_MEMORY. */
enum status message_copy_details(struct mem *mem, struct message *m,
                                 const struct store_details *view);

/* Replaces the details of a message that has an `extra` and holds no key; NULL: none.
 * Takes over the pin. */
void message_set_details(struct mem *mem, struct message *m, struct details *details);

/* NULL: the message has none. */
static inline struct details *
message_details(const struct message *m)
{
    return m->extra == NULL ? NULL : m->extra->details;
}

/* The key of its details; empty: none. */
static inline struct bytes
message_key(const struct message *m)
{
    const struct details *d = message_details(m);

    return d == NULL ? BYTES_NONE : d->view.unique.key;
}

static inline bool
message_has_original(const struct message *m)
{
    return m->extra != NULL && m->extra->has_id;
}

/* True for a dead letter, until it is put back. A message that came with its id from
 * elsewhere counts as one. */
static inline bool
message_is_dead_letter(const struct message *m)
{
    return message_has_original(m) &&
           (m->extra->details == NULL || m->extra->details->view.dead_lettered_ms != 0);
}

void message_pin(struct message *m);

/* Drops a pin. The last one frees the message. */
void message_unpin(struct mem *mem, struct message *m);

/* Drops a pin of each message of a list linked by due.link, which becomes empty. */
void message_unpin_all(struct mem *mem, struct list *messages);

/* Sets what a record says of a message after its post. due.due_ms is set, not armed. */
static inline void
message_update(struct message *m, const struct store_message_record *record)
{
    m->claim_count = record->claim_count;
    m->expires_ms = record->expires_ms;
    m->due.due_ms = m->delayed ? record->delayed_until_ms : m->expires_ms;
}

/* Makes the message of a record, without a number. `original`: its id is from another
 * queue. NULL with ST_BAD_VALUE: the text is no id; with ST_NO_MEMORY. Inline: recovery
 * makes a message for almost every record. */
static inline struct message *
message_of_record(struct mem *mem, const struct store_message_record *record,
                  bool original, enum status *st)
{
    struct message *m = message_new(mem, record->body, record->checksum, record->client);

    *st = m == NULL ? ST_NO_MEMORY : ST_OK;
    if (m == NULL)
        return NULL;
    m->posted_ms = record->posted_ms;
    m->delayed = record->delayed_until_ms != 0;
    message_update(m, record);
    if (original)
        *st = message_set_original(mem, m, &record->id);
    if (*st == ST_OK && record->details != NULL)
        *st = message_copy_details(mem, m, record->details);
    if (*st == ST_OK)
        return m;
    message_unpin(mem, m);
    return NULL;
}

static inline bool
message_live(const struct message *m, int64_t now_ms)
{
    return now_ms < m->expires_ms;
}

/* The id of a message of a queue with this tag: the original one, or its own. */
static inline struct ident
message_ident(const struct message *m, uint32_t tag)
{
    return message_has_original(m) ? m->extra->id : (struct ident){tag, m->seq};
}

static inline struct bytes
message_body(const struct message *m)
{
    return bytes_of(m->body, m->body_len);
}

/* NULL: the message has none. */
static inline const struct store_checksum *
message_checksum(const struct message *m)
{
    return m->has_checksum ? (const struct store_checksum *)(m->body + m->body_len)
                           : NULL;
}

#endif
