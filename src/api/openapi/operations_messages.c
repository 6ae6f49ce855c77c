/* Messages (docs/api.md 8, 13, 14.4). */
#include "api/openapi/operation.h"

#define TAG "messages"

/* ------------------------------------------------------------------ listing */

#define LIST_PARAMETERS                                                                  \
    "<parameters/MessagesLimit>,"                                                        \
    "{'name':'marker','in':'query','description':'the marker in the next link of the "   \
    "previous page','schema':{'type':'string'}},"                                        \
    "{'name':'echo','in':'query','description':'true: include the messages that this "   \
    "client posted',"                                                                    \
    "'schema':{'type':'boolean','default':false}},"                                      \
    "{'name':'include_claimed','in':'query','schema':{'type':'boolean','default':false}" \
    "},"                                                                                 \
    "<parameters/Ids>"

#define PAGE                                                                             \
    "{'type':'object','required':['messages'],'properties':{"                            \
    "'messages':<schemas/Messages>,'links':<schemas/Links>}}"

const struct operation operation_message_list = {
    .name = "listMessages",
    .tag = TAG,
    .summary = "List messages, or get those named by ids",
    .parameters = LIST_PARAMETERS
    ",{'name':'include_delayed','in':'query','schema':{'type':'boolean',"
    "'default':false}}",
    .answers = {{.code = 200,
                 .what = "A page of messages. Only a listing has links",
                 .schema = PAGE}},
};

const struct operation operation_message_list_v1_1 = {
    .name = "listMessages",
    .tag = TAG,
    .summary = "List messages, or get those named by ids",
    .parameters = LIST_PARAMETERS,
    .answers = {{.code = 200,
                 .what = "A page of messages. Only a listing has links",
                 .schema = PAGE}},
};

const struct operation operation_message_list_v1 = {
    .name = "listMessages",
    .tag = TAG,
    .summary = "List messages, or get those named by ids",
    .parameters = LIST_PARAMETERS,
    .answers =
        {{.code = 200,
          .what = "A page of messages, or an array of the messages named by ids",
          .schema =
              "{'oneOf':[{'type':'object','required':['messages','links'],'properties':{"
              "'messages':<schemas/MessagesV1>,'links':<schemas/Links>}},<schemas/"
              "MessagesV1>]}"},
         {.code = 204, .what = "There are no more messages"}},
};

/* ------------------------------------------------------------------ posting */

#define TTL                                                                              \
    "'ttl':{'type':['integer','null'],'minimum':$min_message_ttl,'maximum':$max_"        \
    "message_ttl}"

#define POSTED "'resources':{'type':'array','minItems':1,'items':{'type':'string'}}"

const struct operation operation_message_post = {
    .name = "postMessages",
    .tag = TAG,
    .summary = "Post messages, all or none",
    .body_required = true,
    .body =
        "{'type':'object','required':['messages'],"
        "'description':'at most $max_messages_post_size bytes',"
        "'properties':{'messages':{'type':'array','minItems':1,'items':{'type':'object',"
        "'required':['body'],'properties':{'body':{}," TTL ","
        "'delay':{'type':['integer','null'],'minimum':0,'maximum':$max_message_delay}}}}}"
        "}",
    .answers = {{.code = 201,
                 .what = "Posted",
                 .headers = "'Location':<headers/Location>",
                 .schema =
                     "{'type':'object','required':['resources'],'properties':{" POSTED
                     "}}"}},
};

const struct operation operation_message_post_v1_1 = {
    .name = "postMessages",
    .tag = TAG,
    .summary = "Post messages, all or none",
    .body_required = true,
    .body =
        "{'type':'object','required':['messages'],"
        "'description':'at most $max_messages_post_size bytes',"
        "'properties':{'messages':{'type':'array','minItems':1,'items':{'type':'object',"
        "'required':['body'],'properties':{'body':{}," TTL "}}}}}",
    .answers = {{.code = 201,
                 .what = "Posted",
                 .headers = "'Location':<headers/Location>",
                 .schema =
                     "{'type':'object','required':['resources'],'properties':{" POSTED
                     "}}"}},
};

const struct operation operation_message_post_v1 = {
    .name = "postMessages",
    .tag = TAG,
    .summary = "Post messages to a queue that exists, all or none",
    .body_required = true,
    .body = "{'type':'array','minItems':1,'description':'at most $max_messages_post_size "
            "bytes','items':{'type':'object','required':['body','ttl'],"
            "'properties':{'body':{},'ttl':{'type':'integer','minimum':$min_message_ttl,"
            "'maximum':$max_message_ttl}}}}",
    .answers =
        {{.code = 201,
          .what = "Posted",
          .headers = "'Location':<headers/Location>",
          .schema =
              "{'type':'object','required':['resources','partial'],'properties':{" POSTED
              ",'partial':{'const':false}}}"}},
};

/* ------------------------------------------------------------------ deleting several */

#define POP                                                                              \
    "{'name':'pop','in':'query','description':'number of messages to pop, not together " \
    "with ids','schema':{'type':'integer',"                                              \
    "'minimum':1,'maximum':$max_messages_per_claim_or_pop}}"

#define POPPED                                                                           \
    {                                                                                    \
        .code = 200, .what = "Popped",                                                   \
        .headers = "'Preference-Applied':<headers/Preference>",                          \
        .schema = "<schemas/Popped>"                                                     \
    }

const struct operation operation_message_delete_many = {
    .name = "deleteMessages",
    .tag = TAG,
    .summary = "Delete the messages named by ids, or pop the oldest messages. Give one "
               "of ids and pop",
    .parameters = "<parameters/Ids>," POP ","
                  "{'name':'claim_ids','in':'query','description':'use with ids. Each "
                  "message must be held by one of these claims, or nothing is deleted. "
                  "Required with the option message_delete_with_claim_id',"
                  "'schema':{'type':'array','items':{'type':'string'}},'style':'form','"
                  "explode':false},"
                  "<parameters/Prefer>",
    .answers = {POPPED, {.code = 204, .what = "Deleted"}},
    .refuses = {403},
};

const struct operation operation_message_delete_many_v1_1 = {
    .name = "deleteMessages",
    .tag = TAG,
    .summary = "Delete the messages named by ids, or pop the oldest messages. Give one "
               "of ids and pop",
    .parameters = "<parameters/Ids>," POP ",<parameters/Prefer>",
    .answers = {POPPED, {.code = 204, .what = "Deleted"}},
};

const struct operation operation_message_delete_many_v1 = {
    .name = "deleteMessages",
    .tag = TAG,
    .summary = "Delete the messages named by ids",
    .parameters = "<parameters/IdsRequired>",
    .answers = {{.code = 204, .what = "Deleted"}},
};

/* ------------------------------------------------------------------ one message */

const struct operation operation_message_get = {
    .name = "getMessage",
    .tag = TAG,
    .summary = "Get one message",
    .answers = {{.code = 200, .what = "The message", .schema = "<schemas/Message>"}},
};

const struct operation operation_message_get_v1 = {
    .name = "getMessage",
    .tag = TAG,
    .summary = "Get one message",
    .answers = {{.code = 200, .what = "The message", .schema = "<schemas/MessageV1>"}},
};

const struct operation operation_message_delete = {
    .name = "deleteMessage",
    .tag = TAG,
    .summary = "Delete one message. A claimed message requires its claim_id",
    .parameters = "{'name':'claim_id','in':'query','schema':{'type':'string'}}",
    .answers = {{.code = 204, .what = "The message is deleted or did not exist"}},
    .refuses = {403},
};
