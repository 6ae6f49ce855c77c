/*
 * operation: what /openapi.json tells of the routes (docs/api.md 6.6).
 *
 * A row of a table of routes names the operation that it is, and so cannot be without one. An
 * operation says what the row does not: what goes in, and what comes out. What goes for all of
 * them (the names in a path, Client-ID, the refusals of 3.1) is added by document.c, from the
 * row and its version. Versions share an operation where it is the same.
 *
 * Texts with JSON in them are templates (template.h).
 */
#ifndef API_OPENAPI_OPERATION_H
#define API_OPENAPI_OPERATION_H

#include <stdbool.h>

enum { ANSWERS_MAX = 3, REFUSALS_MAX = 3 };

/* What it answers when nothing is wrong. */
struct answer {
    int code; /* 0: no more of them */
    const char *what;
    const char *headers; /* template: members of "headers"; NULL: none of its own */
    const char *schema;  /* template; NULL: there is no body */
    const char *media;   /* NULL: application/json */
};

struct operation {
    const char *name; /* "listQueues"; older versions and HEAD add a word of their own */
    const char *tag, *summary;
    const char *parameters; /* template: items of "parameters"; NULL: none of its own */
    const char *body;       /* template of a schema; NULL: none is looked at */
    const char *body_media; /* NULL: application/json */
    bool body_required, needs_token; /* the latter where the version is open */
    struct answer answers[ANSWERS_MAX];
    int refuses[REFUSALS_MAX]; /* statuses besides those of all; 0: no more */
};

/* operations_service.c */
extern const struct operation operation_versions, operation_live, operation_ready,
    operation_openapi, operation_metrics, operation_home, operation_ping,
    operation_health, operation_dump, operation_load;

/* operations_queues.c */
extern const struct operation operation_queue_list, operation_queue_list_v1_1,
    operation_queue_list_v1, operation_queue_show, operation_queue_create,
    operation_queue_update, operation_queue_delete, operation_queue_stats,
    operation_queue_purge, operation_queue_share, operation_queue_exists,
    operation_queue_create_v1, operation_metadata_show, operation_metadata_replace;

/* operations_messages.c */
extern const struct operation operation_message_list, operation_message_list_v1_1,
    operation_message_list_v1, operation_message_post, operation_message_post_v1_1,
    operation_message_post_v1, operation_message_delete_many,
    operation_message_delete_many_v1_1, operation_message_delete_many_v1,
    operation_message_get, operation_message_get_v1, operation_message_delete;

/* operations_claims.c */
extern const struct operation operation_claim_create, operation_claim_create_v1,
    operation_claim_several, operation_claim_show, operation_claim_show_v1,
    operation_claim_renew, operation_claim_renew_v1, operation_claim_release;

/* operations_topics.c: what topics do not share with queues */
extern const struct operation operation_topic_list, operation_topic_show,
    operation_topic_create, operation_topic_update, operation_topic_delete,
    operation_topic_stats, operation_topic_purge;

/* operations_subscriptions.c */
extern const struct operation operation_subscription_list, operation_subscription_create,
    operation_subscription_show, operation_subscription_update,
    operation_subscription_delete, operation_subscription_confirm,
    operation_progress_list, operation_progress_show;

/* operations_testapi.c */
extern const struct operation operation_clock_show, operation_clock_set,
    operation_clock_advance, operation_reset, operation_state_show, operation_state_set,
    operation_history, operation_expect, operation_leaks, operation_faults_show,
    operation_faults_set, operation_faults_delete;

/* operations_identity.c */
extern const struct operation operation_login, operation_token_show,
    operation_token_revoke, operation_projects, operation_catalog, operation_login_v2,
    operation_tenants, operation_identity_versions, operation_identity_v3,
    operation_identity_v2;

#endif
