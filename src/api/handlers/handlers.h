/*
 * handlers: the handlers of the routes, for all versions. ctx->version has the
 * differences in form.
 *
 * A handler reads and checks its whole input, calls the store once where that is
 * possible, and writes the response.
 *
 *   Threads  any; a context belongs to one call
 */
#ifndef API_HANDLERS_HANDLERS_H
#define API_HANDLERS_HANDLERS_H

#include "api/context.h"
#include "api/state.h"
#include "api/wire/decode.h"

/* queue_list.c */
handler_fn handle_queue_list;

/* queues.c */
handler_fn handle_queue_create;
handler_fn handle_queue_show;
handler_fn handle_queue_patch;
handler_fn handle_queue_delete;
handler_fn handle_queue_stats;
handler_fn handle_queue_purge;

/*
 * Makes changed metadata of the old one, and writes the body of the response, which must
 * not fail afterwards. It may be called again, because the queue has changed meanwhile.
 */
typedef enum status
change_fn(struct context *ctx, const void *how, const struct store_metadata *old,
          struct store_metadata *changed);

/* Changes the metadata, also while other clients change it. Does not write to the store
 * if the document and the pauses stay as they are. ST_NOT_FOUND, explained. */
enum status queue_change(struct context *ctx, change_fn *change, const void *how);

/* Writes metadata in the form of the version. ST_NO_MEMORY. */
enum status
queue_write_metadata(struct context *ctx, const struct store_metadata *metadata);

/* Only in API v1. */
handler_fn handle_queue_exists; /* its errors have no document */
handler_fn handle_metadata_put;

/* share.c */
handler_fn handle_queue_share;

/* messages.c */
handler_fn handle_message_post;
handler_fn handle_message_list;
handler_fn handle_message_get;
handler_fn handle_schedule_set;
handler_fn handle_schedule_show;
handler_fn handle_schedule_pause;
handler_fn handle_schedule_delete;
handler_fn handle_schedule_list;
handler_fn handle_message_delete;
handler_fn handle_message_delete_many;
handler_fn handle_message_pop;

/*
 * Makes the checksums of a post, once. To make them for each listing, a page of a few
 * long bodies would take a second. NULL without the option.
 */
enum status post_checksums(struct context *ctx, const struct decoded_post *post,
                           const struct store_checksum **out);

/* Replaces the drafts of a post to the context's queue by ones with encrypted bodies.
 * ST_NO_KEY, explained; ST_NO_MEMORY. */
enum status post_encrypt(struct context *ctx, struct store_post *post);

/* Checks that a body is not too large for any queue, and that the server accepts posts.
 * ST_TOO_LARGE, ST_UNAVAILABLE, explained. */
enum status post_check(struct context *ctx);

/* Posts drafts to the queue of the context, and writes the response. */
enum status post_decoded(struct context *ctx, const struct decoded_post *decoded);

/* Warns of unknown members of messages. */
void
post_warn(struct context *ctx, enum post_form form, const struct unknown_names *unknown);

/* Explains ST_NEVER_READY for a post to a queue, and returns it. */
enum status post_refuse_delay(struct context *ctx, const struct store_queue *where,
                              const struct store_post *post);

/* finish.c, redrive.c */
handler_fn handle_claim_finish;
handler_fn handle_redrive;

/* pause.c */
handler_fn handle_queue_pause;
handler_fn handle_pause_show;

/* The members claims and posts, of bits of enum store_pause. */
void pause_write(struct buf *out, unsigned paused);

/* claims.c */
handler_fn handle_claim_create;
handler_fn handle_claim_any; /* of several queues */
handler_fn handle_claim_show;
handler_fn handle_claim_renew;
handler_fn handle_claim_release;

/* Space for the header Claim-Number (docs/api.md 12), NULL without memory; adds the
 * header. */
char *claim_number_reserve(struct context *ctx);
void claim_number_add(struct context *ctx, char *text, uint64_t number);

/* Claims one message, and writes its body by raw_write(). */
enum status claim_raw(struct context *ctx);

/* raw.c */
handler_fn handle_raw_post;
handler_fn handle_raw_claim;

/* Writes the body of a message as text or as JSON, with status 201. The space is
 * reserved: it is not longer than the body. */
enum status raw_write(struct context *ctx, struct bytes body);

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

/* Why clients should not send requests, apart from the store; NULL: no reason. */
const char *health_reservation(const struct context *ctx);

/* openapi.c */
handler_fn handle_openapi;
handler_fn handle_versions;
handler_fn handle_home; /* of a version */

/* A word of a document: a condition, or a text. */
struct document_word {
    const char *name;
    bool holds;
    struct bytes text;
};

/* Writes a file of openapi/. The words end with one without a name. */
void
document_write(struct context *ctx, const char *file, const struct document_word *words);

/* views.c */
handler_fn handle_queue_survey;
handler_fn handle_queue_history;
handler_fn handle_claim_list;

/* explain.c */
handler_fn handle_message_explain;

/* Reads the claim of a message. *held: it is still live. */
enum status holder_read(struct context *ctx, const struct store_message *message,
                        struct store_claim_info *claim, bool *held);

/* Writes state, times, claim (holder NULL: none) and details into an open object. */
void explanation_write_facts(struct buf *out, const struct store_message *m,
                             const struct store_claim_info *holder, int64_t now_ms,
                             const struct clock *time_base);

/* search.c */
handler_fn handle_message_search;

/* alerts.c */
handler_fn handle_alert_list;

/* ui.c */
handler_fn handle_ui;
handler_fn handle_permissions;

/* metrics.c */
handler_fn handle_metrics;

/* Gives each sample of /metrics to a function, but those of single queues. */
void metrics_collect(struct context *ctx, const struct store_metrics *metrics,
                     exposition_take *take, void *arg);

/* dump.c */
handler_fn handle_dump;
handler_fn handle_load;

/* A load into the store, at the time of the request. */
struct record_load load_of_request(struct context *ctx);

/* Lets the scheduler read schedules that were loaded. */
void load_ended(const struct context *ctx, const struct record_load *l);

#endif
