/* Subscriptions (docs/api.md 18). */
#include "api/openapi/operation.h"

#define TAG "subscriptions"

#define LOCATION "'Location':<headers/Location>"

#define PARAMETERS                                                                       \
    "<parameters/SubscriptionsLimit>,"                                                   \
    "{'name':'marker','in':'query','description':'the marker in the next link of the "   \
    "previous page',"                                                                    \
    "'schema':{'type':'string'}}"

#define PAGE_OF(schema)                                                                  \
    "{'type':'object','required':['subscriptions','links'],'properties':{"               \
    "'subscriptions':{'type':'array','maxItems':$max_subscriptions_per_page,'items':"    \
    "" schema "},'links':<schemas/Links>}}"

const struct operation operation_subscription_list = {
    .name = "listSubscriptions",
    .tag = TAG,
    .summary = "List the subscriptions in the order of their creation",
    .parameters = PARAMETERS,
    .answers = {{.code = 200,
                 .what = "A page",
                 .schema = PAGE_OF("<schemas/Subscription>")}},
};

const struct operation operation_subscription_create = {
    .name = "createSubscription",
    .tag = TAG,
    .summary = "Create a subscription, and the queue if it does not exist",
    .body_required = true,
    .body = "{'type':'object','required':['subscriber'],'properties':{"
            "'subscriber':<schemas/Subscriber>,"
            "'ttl':{'type':['integer','null'],'minimum':60,"
            "'default':$default_subscription_ttl},"
            "'options':<schemas/DeliveryOptions>}}",
    .answers =
        {{.code = 201,
          .what =
              "The subscription is created, or the subscriber is asked again to confirm",
          .headers = LOCATION,
          .schema = "{'type':'object','required':['subscription_id'],"
                    "'properties':{'subscription_id':{'type':'string'}}}"}},
    .refuses = {409},
};

const struct operation operation_subscription_show = {
    .name = "showSubscription",
    .tag = TAG,
    .summary = "Show a subscription",
    .answers = {{.code = 200,
                 .what = "The subscription",
                 .schema = "<schemas/Subscription>"}},
};

const struct operation operation_subscription_update = {
    .name = "updateSubscription",
    .tag = TAG,
    .summary = "Change the members that the body gives. A new ttl starts now",
    .body_required = true,
    .body = "{'type':'object','minProperties':1,'properties':{"
            "'subscriber':<schemas/Subscriber>,'ttl':{'type':'integer','minimum':60},"
            "'options':<schemas/DeliveryOptions>}}",
    .answers = {{.code = 204, .what = "Changed", .headers = LOCATION}},
    .refuses = {409},
};

const struct operation operation_subscription_delete = {
    .name = "deleteSubscription",
    .tag = TAG,
    .summary = "Delete a subscription",
    .answers = {{.code = 204, .what = "The subscription is deleted or did not exist"}},
};

const struct operation operation_subscription_confirm = {
    .name = "confirmSubscription",
    .tag = TAG,
    .summary = "Confirm a subscription, or revoke its confirmation",
    .body_required = true,
    .body = "{'type':'object','required':['confirmed'],'properties':{"
            "'confirmed':{'type':'boolean'}}}",
    .answers = {{.code = 204, .what = "Done", .headers = LOCATION}},
};

/* ------------------------------------------------------------------ for operators */

const struct operation operation_progress_list = {
    .name = "listProgress",
    .tag = TAG,
    .summary = "List the delivery progress of the subscriptions of a queue",
    .parameters = PARAMETERS,
    .answers = {{.code = 200, .what = "A page", .schema = PAGE_OF("<schemas/Progress>")}},
};

const struct operation operation_progress_show = {
    .name = "showProgress",
    .tag = TAG,
    .summary = "Show the delivery progress of a subscription",
    .answers = {{.code = 200, .what = "Its progress", .schema = "<schemas/Progress>"}},
};
