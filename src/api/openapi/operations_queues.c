/* Queues (docs/api.md 7, 13, 14.3). */
#include "api/openapi/operation.h"

#define TAG "queues"

#define LOCATION "'Location':<headers/Location>"

/* ------------------------------------------------------------------ listing */

#define LIST_PARAMETERS                                                                  \
    "<parameters/QueuesLimit>,"                                                          \
    "{'name':'marker','in':'query','description':'start after this name',"               \
    "'schema':{'type':'string'}},"                                                       \
    "{'name':'detailed','in':'query','description':'true: include the metadata',"        \
    "'schema':{'type':'boolean','default':false}}"

#define LIST_MEMBERS                                                                     \
    "'queues':{'type':'array','maxItems':$max_queues_per_page,'items':{'type':'object'," \
    "'required':['name','href'],'properties':{'name':<schemas/QueueName>,"               \
    "'href':{'type':'string'},'metadata':{'type':'object'}}}},"                          \
    "'links':<schemas/Links>"

const struct operation operation_queue_list = {
    .name = "listQueues",
    .tag = TAG,
    .summary = "List queues. Any other parameter filters by a member of the metadata",
    .parameters = LIST_PARAMETERS ","
                                  "{'name':'name','in':'query','description':'only names "
                                  "that contain this text','schema':{'type':'string'}},"
                                  "{'name':'with_count','in':'query','description':'true:"
                                  " include the number of all queues',"
                                  "'schema':{'type':'boolean','default':false}}",
    .answers =
        {{.code = 200,
          .what = "A page",
          .schema =
              "{'type':'object','required':['queues','links'],'properties':{" LIST_MEMBERS
              ",'count':{'type':'integer','minimum':0}}}"}},
};

const struct operation operation_queue_list_v1_1 = {
    .name = "listQueues",
    .tag = TAG,
    .summary = "List queues",
    .parameters = LIST_PARAMETERS,
    .answers =
        {{.code = 200,
          .what = "A page",
          .schema =
              "{'type':'object','required':['queues','links'],'properties':{" LIST_MEMBERS
              "}}"}},
};

const struct operation operation_queue_list_v1 = {
    .name = "listQueues",
    .tag = TAG,
    .summary = "List queues",
    .parameters = LIST_PARAMETERS,
    .answers =
        {{.code = 200,
          .what = "A page",
          .schema =
              "{'type':'object','required':['queues','links'],'properties':{" LIST_MEMBERS
              "}}"},
         {.code = 204, .what = "There are no more queues"}},
};

/* ------------------------------------------------------------------ one queue */

const struct operation operation_queue_show = {
    .name = "showQueue",
    .tag = TAG,
    .summary = "Show the metadata",
    .answers = {{.code = 200, .what = "The metadata", .schema = "<schemas/Metadata>"}},
};

const struct operation operation_queue_create = {
    .name = "createQueue",
    .tag = TAG,
    .summary = "Create the queue",
    .body = "<schemas/Metadata>",
    .answers = {{.code = 201, .what = "Made", .headers = LOCATION},
                {.code = 204,
                 .what = "The queue existed and is unchanged",
                 .headers = LOCATION}},
};

const struct operation operation_queue_create_v1 = {
    .name = "createQueue",
    .tag = TAG,
    .summary = "Create the queue",
    .answers = {{.code = 201, .what = "Made", .headers = LOCATION},
                {.code = 204,
                 .what = "The queue existed and is unchanged",
                 .headers = LOCATION}},
};

const struct operation operation_queue_update = {
    .name = "updateQueue",
    .tag = TAG,
    .summary = "Change the metadata with a JSON patch, all or nothing",
    .body_media = "application/openstack-messaging-v2.0-json-patch",
    .body_required = true,
    .body = "<schemas/Patch>",
    .answers = {{.code = 200, .what = "The metadata", .schema = "<schemas/Metadata>"}},
    .refuses = {409, 415},
};

const struct operation operation_queue_delete = {
    .name = "deleteQueue",
    .tag = TAG,
    .summary = "Delete the queue and its contents",
    .answers = {{.code = 204, .what = "Gone"}},
};

const struct operation operation_queue_stats = {
    .name = "showQueueStats",
    .tag = TAG,
    .summary = "Count the messages",
    .answers = {{.code = 200, .what = "The message counts", .schema = "<schemas/Stats>"}},
};

const struct operation operation_queue_purge = {
    .name = "purgeQueue",
    .tag = TAG,
    .summary = "Delete all messages, all subscriptions, or both",
    .body = "<schemas/Purge>",
    .answers = {{.code = 204, .what = "Empty"}},
};

const struct operation operation_queue_share = {
    .name = "shareQueue",
    .tag = TAG,
    .summary = "Create a pre-signed URL for clients without credentials",
    .body_required = true,
    .body = "{'type':'object','additionalProperties':false,'properties':{"
            "'paths':{'type':['array','null'],'items':{'type':'string',"
            "'enum':['messages','claims','subscriptions']}},"
            "'methods':{'type':['array','null'],'maxItems':32,'items':{'type':'string',"
            "'pattern':'^[A-Za-z0-9_-]{1,32}$','examples':['GET','POST']}},"
            "'expires':{'type':['string','null'],'description':'ISO 8601, in the future',"
            "'examples':['2099-01-31T12:00:00','2099-01-31']}}}",
    .answers = {{.code = 200,
                 .what = "The grant. Clients send its members as URL-... headers",
                 .schema = "{'type':'object','required':['paths','methods','project',"
                           "'expires','signature'],'properties':{"
                           "'paths':{'type':'array','items':{'type':'string'}},"
                           "'methods':{'type':'array','items':{'type':'string'}},"
                           "'project':{'type':'string'},'expires':{'type':'string'},"
                           "'signature':{'type':'string','pattern':'^[0-9a-f]{64}$'}}}"}},
};

/* ------------------------------------------------------------------ version 1 */

const struct operation operation_queue_exists = {
    .name = "queueExists",
    .tag = TAG,
    .summary = "Check whether the queue exists. The 404 response has no document",
    .answers = {{.code = 204, .what = "Yes"}},
};

const struct operation operation_metadata_show = {
    .name = "showMetadata",
    .tag = TAG,
    .summary = "Show the metadata",
    .answers = {{.code = 200,
                 .what = "The metadata",
                 .schema = "{'type':'object','additionalProperties':true}"}},
};

const struct operation operation_metadata_replace = {
    .name = "replaceMetadata",
    .tag = TAG,
    .summary = "Replace the metadata",
    .body_required = true,
    .body = "{'type':'object','propertyNames':{'pattern':'^([^_]|$)'},"
            "'additionalProperties':true}",
    .answers = {{.code = 204, .what = "Replaced", .headers = LOCATION}},
};
