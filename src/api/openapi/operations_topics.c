/* Topics (docs/api.md 19). Their messages and subscriptions are those of queues. */
#include "api/openapi/operation.h"

#define TAG "topics"

#define LOCATION "'Location':<headers/Location>"

const struct operation operation_topic_list = {
    .name = "listTopics",
    .tag = TAG,
    .summary = "List topics. Any other parameter filters by a member of the metadata",
    .parameters =
        "<parameters/QueuesLimit>,"
        "{'name':'marker','in':'query','description':'start after this name',"
        "'schema':{'type':'string'}},"
        "{'name':'detailed','in':'query','description':'true: include the metadata',"
        "'schema':{'type':'boolean','default':false}},"
        "{'name':'name','in':'query','description':'only names that contain this text',"
        "'schema':{'type':'string'}}",
    .answers = {{.code = 200,
                 .what = "A page",
                 .schema = "{'type':'object','required':['topics','links'],'properties':{"
                           "'topics':{'type':'array','maxItems':$max_queues_per_page,"
                           "'items':{'type':'object','required':['name','href'],"
                           "'properties':{'name':<schemas/QueueName>,"
                           "'href':{'type':'string'},'metadata':{'type':'object'}}}},"
                           "'links':<schemas/Links>}}"}},
};

const struct operation operation_topic_show = {
    .name = "showTopic",
    .tag = TAG,
    .summary = "Show the metadata",
    .answers = {{.code = 200, .what = "The metadata", .schema = "<schemas/Metadata>"}},
};

const struct operation operation_topic_create = {
    .name = "createTopic",
    .tag = TAG,
    .summary = "Create the topic",
    .body = "<schemas/Metadata>",
    .answers = {{.code = 201, .what = "Made", .headers = LOCATION},
                {.code = 204,
                 .what = "The topic existed and is unchanged",
                 .headers = LOCATION}},
};

const struct operation operation_topic_update = {
    .name = "updateTopic",
    .tag = TAG,
    .summary = "Change the metadata with a JSON patch, all or nothing",
    .body_media = "application/openstack-messaging-v2.0-json-patch",
    .body_required = true,
    .body = "<schemas/Patch>",
    .answers = {{.code = 200, .what = "The metadata", .schema = "<schemas/Metadata>"}},
    .refuses = {409, 415},
};

const struct operation operation_topic_delete = {
    .name = "deleteTopic",
    .tag = TAG,
    .summary = "Delete the topic, its messages and subscriptions",
    .answers = {{.code = 204, .what = "Gone"}},
};

const struct operation operation_topic_stats = {
    .name = "showTopicStats",
    .tag = TAG,
    .summary = "Count the messages",
    .answers = {{.code = 200, .what = "The message counts", .schema = "<schemas/Stats>"}},
};

const struct operation operation_topic_purge = {
    .name = "purgeTopic",
    .tag = TAG,
    .summary = "Delete all messages, all subscriptions, or both",
    .body = "<schemas/Purge>",
    .answers = {{.code = 204, .what = "Empty"}},
};
