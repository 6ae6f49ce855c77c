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
handler_fn handle_queue_purge;

/* Appends metadata as this version shows it. ST_NO_MEMORY. */
enum status
queue_write_metadata(struct context *ctx, const struct store_metadata *metadata);

/* Only API v1 has these. */
handler_fn handle_queue_exists; /* without a word */
handler_fn handle_metadata_put; /* replaces it all */

/* share.c */
handler_fn handle_queue_share;

/* messages.c */
handler_fn handle_message_post;
handler_fn handle_message_list;
handler_fn handle_message_get;
handler_fn handle_message_delete;
handler_fn handle_message_delete_many;
handler_fn handle_message_pop;

/* claims.c */
handler_fn handle_claim_create;
handler_fn handle_claim_any; /* of several queues */
handler_fn handle_claim_show;
handler_fn handle_claim_renew;
handler_fn handle_claim_release;

/* claims.c: encrypted bodies (docs/adr/0012-encryption.md), and delivery to workers */

/*
 * Decrypts the bodies of the first `count` messages of the context's queue, where they are
 * encrypted. ST_NO_KEY, ST_DAMAGED, explained; ST_NO_MEMORY: a retry goes on from there.
 */
enum status decrypt_batch(struct context *ctx, struct store_batch *batch, size_t count);

/*
 * Gives messages the bodies that `opened` has, which has all that are encrypted. ST_UNCONFIRMED:
 * it has not, so the store broke its promise after it delivered the messages.
 */
enum status decrypt_reuse(struct store_batch *batch, const struct store_batch *opened);

/*
 * Responses that deliver messages to a worker (claim, pop).
 *
 * A message that is delivered but not in the response is lost, at least for a while. So memory for
 * the response comes first. The store delivers only what fits, and says how much space the next
 * attempt needs.
 */

/* Delivers up to limit messages; heeds out->room and out->opened, see struct store_batch. */
typedef enum status
deliver_fn(struct context *ctx, const void *terms, size_t limit, struct store_batch *out);

/*
 * Calls `deliver` until its messages fit the memory reserved in res->body for documents of
 * this form and what surrounds them, and are decrypted. After ST_OK writing them cannot fail.
 * ST_NO_MEMORY, and any other status of `deliver`: no message was delivered.
 */
enum status deliver_messages(struct context *ctx, const struct message_form *form,
                             deliver_fn *deliver, const void *terms, size_t limit,
                             struct store_batch *out);

/* subscriptions.c */
handler_fn handle_subscription_list;
handler_fn handle_subscription_create;
handler_fn handle_subscription_show;
handler_fn handle_subscription_update;
handler_fn handle_subscription_delete;
handler_fn handle_subscription_confirm;

/* health.c */
handler_fn handle_ping;
handler_fn handle_livez;
handler_fn handle_readyz;
handler_fn handle_health_show;

/* Why no requests should be sent here, whatever the store can do; NULL: no reason. */
const char *health_reservation(const struct context *ctx);

/* openapi.c */
handler_fn handle_openapi;
handler_fn handle_versions;
handler_fn handle_home; /* of a version */

/* metrics.c */
handler_fn handle_metrics;

/* dump.c */
handler_fn handle_dump;
handler_fn handle_load;

#endif
