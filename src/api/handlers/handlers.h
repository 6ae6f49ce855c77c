/*
 * handlers: what the versions' tables of routes lead to.
 *
 * They serve all versions; where one differs in form they ask ctx->version. Each takes its
 * input, checks all of it, calls the store once where that is possible, and writes the
 * answer.
 */
#ifndef API_HANDLERS_HANDLERS_H
#define API_HANDLERS_HANDLERS_H

#include "api/context.h"

/* queue_list.c */
handler_fn handle_queue_list;

/* queues.c */
handler_fn handle_queue_create;
handler_fn handle_queue_show;
handler_fn handle_queue_patch;
handler_fn handle_queue_delete;
handler_fn handle_queue_stats;

/* Appends metadata as this version shows it. ST_NO_MEMORY. */
enum status
queue_write_metadata(struct context *ctx, const struct store_metadata *metadata);

/* queues_v1.c: what only API v1 has */
handler_fn handle_queue_exists; /* without a word */
handler_fn handle_metadata_put; /* replaces it all */

/* purge.c */
handler_fn handle_queue_purge;

/* share.c */
handler_fn handle_queue_share;

/* messages.c */
handler_fn handle_message_post;
handler_fn handle_message_list;
handler_fn handle_message_get;

/* message_delete.c */
handler_fn handle_message_delete;
handler_fn handle_message_delete_many;
handler_fn handle_message_pop;

/* claims.c */
handler_fn handle_claim_create;
handler_fn handle_claim_any; /* of several queues */
handler_fn handle_claim_show;
handler_fn handle_claim_renew;
handler_fn handle_claim_release;

/* subscriptions.c */
handler_fn handle_subscription_list;
handler_fn handle_subscription_create;
handler_fn handle_subscription_show;
handler_fn handle_subscription_update;
handler_fn handle_subscription_delete;
handler_fn handle_subscription_confirm;

/* The same for operators: how far they have come. */
handler_fn handle_progress_list;
handler_fn handle_progress_show;

/* health.c */
handler_fn handle_ping;
handler_fn handle_livez;
handler_fn handle_readyz;
handler_fn handle_health_show;

/* Why no requests should be sent here, whatever the store can do; NULL: no reason. */
const char *health_reservation(const struct context *ctx);

/* openapi.c */
handler_fn handle_openapi;

/* metrics.c */
handler_fn handle_metrics;

/* dump.c */
handler_fn handle_dump;
handler_fn handle_load;

#endif
