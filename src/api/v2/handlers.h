/*
 * handlers: what every version's table of routes leads to.
 *
 * They are written for v2; where an older version differs in form they ask
 * call->version. Each takes its input, checks all of it, calls the store once where that
 * is possible, and writes the answer.
 */
#ifndef API_V2_HANDLERS_H
#define API_V2_HANDLERS_H

#include "api/call.h"

/* queue_list.c */
enum status v2_queue_list(struct call *call);

/* queues.c */
enum status v2_queue_create(struct call *call);
enum status v2_queue_show(struct call *call);
enum status v2_queue_patch(struct call *call);
enum status v2_queue_delete(struct call *call);
enum status v2_queue_stats(struct call *call);
enum status v2_queue_purge(struct call *call);

/* Appends metadata as this version shows it. ST_NO_MEMORY. */
enum status
v2_queue_write_metadata(struct call *call, const struct store_metadata *metadata);

/* messages.c */
enum status v2_message_post(struct call *call);
enum status v2_message_list(struct call *call);
enum status v2_message_get(struct call *call);

/* message_delete.c */
enum status v2_message_delete(struct call *call);
enum status v2_message_delete_many(struct call *call);

/* claims.c */
enum status v2_claim_create(struct call *call);
enum status v2_claim_show(struct call *call);
enum status v2_claim_renew(struct call *call);
enum status v2_claim_release(struct call *call);

/* health.c */
enum status v2_ping(struct call *call);
enum status v2_health_show(struct call *call);

#endif
