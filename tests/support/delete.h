/*
 * delete: short forms of store_message_delete() for tests.
 */
#ifndef SUPPORT_DELETE_H
#define SUPPORT_DELETE_H

#include "claimd/store/store.h"

/* With claim_ids, each message must be held by one of them; without, any message is
 * deleted. */
static inline enum status
delete_messages(struct store *s, struct store_op *op, const struct store_queue *queue,
                const struct bytes *ids, size_t count, const struct bytes *claim_ids,
                size_t claim_count)
{
    return store_message_delete(s, op, queue,
                                &(struct store_delete){.rule = claim_ids == NULL
                                                                   ? STORE_DELETE_ANY
                                                                   : STORE_DELETE_HELD,
                                                       .ids = ids,
                                                       .count = count,
                                                       .claim_ids = claim_ids,
                                                       .claim_count = claim_count});
}

/* With a claim, it must hold the message; without, no claim may hold it. */
static inline enum status
delete_message(struct store *s, struct store_op *op, const struct store_queue *queue,
               struct bytes id, struct bytes claim_id)
{
    const bool held = bytes_present(claim_id);

    return store_message_delete(
        s, op, queue,
        &(struct store_delete){.rule = held ? STORE_DELETE_HELD : STORE_DELETE_READY,
                               .ids = &id,
                               .count = 1,
                               .claim_ids = &claim_id,
                               .claim_count = held});
}

#endif
