/* Subscriptions (docs/api.md 18). */
#include "api/openapi/operation.h"

#define TAG "subscriptions"

#define LOCATION "'Location':<headers/Location>"

#define PARAMETERS                                                                       \
    "<parameters/SubscriptionsLimit>,"                                                   \
    "{'name':'marker','in':'query','description':'out of the link of the page before',"  \
    "'schema':{'type':'string'}}"

#define PAGE_OF(schema)                                                                  \
    "{'type':'object','required':['subscriptions','links'],'properties':{"               \
    "'subscriptions':{'type':'array','maxItems':$max_subscriptions_per_page,'items':"    \
    "" schema "},'links':<schemas/Links>}}"

const struct operation operation_subscription_list = {
    .name = "listSubscriptions",
    .tag = TAG,
    .summary = "List who is told of each message, in the order of subscribing",
    .parameters = PARAMETERS,
    .answers = {{.code = 200,
                 .what = "A page",
                 .schema = PAGE_OF("<schemas/Subscription>")}},
};

const struct operation operation_subscription_create = {
    .name = "createSubscription",
    .tag = TAG,
    .summary = "Subscribe somebody, and make the queue if there is none",
    .body_required = true,
    .body = "{'type':'object','required':['subscriber'],'properties':{"
            "'subscriber':<schemas/Subscriber>,"
            "'ttl':{'type':['integer','null'],'minimum':60,"
            "'default':$default_subscription_ttl},"
            "'options':<schemas/DeliveryOptions>}}",
    .answers = {{.code = 201,
                 .what = "Subscribed, or asked again to confirm",
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
    .summary = "Change what is given; a ttl counts from now",
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
    .answers = {{.code = 204, .what = "Gone, or never there"}},
};

const struct operation operation_subscription_confirm = {
    .name = "confirmSubscription",
    .tag = TAG,
    .summary = "Confirm a subscription, or take that back",
    .body_required = true,
    .body = "{'type':'object','required':['confirmed'],'properties':{"
            "'confirmed':{'type':'boolean'}}}",
    .answers = {{.code = 204, .what = "Done", .headers = LOCATION}},
};

/* ------------------------------------------------------------------ for operators */

const struct operation operation_progress_list = {
    .name = "listProgress",
    .tag = TAG,
    .summary = "List how far the subscriptions of a queue have come",
    .parameters = PARAMETERS,
    .answers = {{.code = 200, .what = "A page", .schema = PAGE_OF("<schemas/Progress>")}},
};

const struct operation operation_progress_show = {
    .name = "showProgress",
    .tag = TAG,
    .summary = "Show how far a subscription has come",
    .answers = {{.code = 200, .what = "Its progress", .schema = "<schemas/Progress>"}},
};
