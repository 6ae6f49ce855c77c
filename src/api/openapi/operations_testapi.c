/* What tests have besides (docs/api.md 23). */
#include "api/openapi/operation.h"

#define TAG "tests"

#define PROJECT                                                                          \
    "{'name':'project','in':'query','description':'only this project (also as "          \
    "X-Project-ID)',"                                                                    \
    "'schema':{'type':'string','maxLength':256}}"
#define LIMIT                                                                            \
    "{'name':'limit','in':'query','schema':{'type':'integer','minimum':1,"               \
    "'maximum':1000,'default':100}}"
#define EVENT                                                                            \
    "{'type':'string','enum':['queue_made','queue_changed','queue_deleted','purged',"    \
    "'posted','shown','claimed','renewed','released','finished','deleted',"              \
    "'subscribed','unsubscribed','claim_ended','delay_ended','message_expired',"         \
    "'dead_letter_moved','waiter_served','refused','fault','clock_moved','reset']}"

#define TIME_MEMBERS                                                                     \
    "'now':{'type':'string'},'now_ms':{'type':'integer'},"                               \
    "'state':{'type':'string','enum':['running','frozen']},"                             \
    "'ahead_ms':{'type':'integer'}"
#define ENTRIES                                                                          \
    "{'type':'array','items':{'type':'object','required':['number','event','at',"        \
    "'at_ms'],'properties':{'number':{'type':'integer'},'event':" EVENT                  \
    ",'at':{'type':'string'},'at_ms':{'type':'integer'}},"                               \
    "'additionalProperties':true}}"
#define LINKS "'links':{'type':'array','items':{'type':'object'}}"
#define MOVED                                                                            \
    "{'type':'object','required':['now','now_ms','state','ahead_ms','lost',"             \
    "'events'],'properties':{" TIME_MEMBERS ",'lost':{'type':'integer'},"                \
    "'events':" ENTRIES "," LINKS "}}"

const struct operation operation_clock_show = {
    .name = "showClock",
    .tag = TAG,
    .summary = "Show the clock that governs messages and claims",
    .answers = {{.code = 200,
                 .what = "The clock",
                 .schema = "{'type':'object','required':['now','now_ms','state',"
                           "'ahead_ms'],'properties':{" TIME_MEMBERS "}}"}},
};

const struct operation operation_clock_set = {
    .name = "setClock",
    .tag = TAG,
    .summary = "Stop or start the clock, or set it ahead of the wall clock",
    .body = "{'type':'object','minProperties':1,'properties':{"
            "'state':{'type':'string','enum':['running','frozen']},"
            "'ahead_seconds':{'type':'integer','minimum':0,'maximum':2000000000}},"
            "'additionalProperties':false}",
    .body_required = true,
    .answers = {{.code = 200,
                 .what = "The clock and the events that became due",
                 .schema = MOVED}},
};

const struct operation operation_clock_advance = {
    .name = "advanceClock",
    .tag = TAG,
    .summary = "Move the clock and process every event that becomes due, in order",
    .body = "{'type':'object','minProperties':1,'maxProperties':1,'properties':{"
            "'seconds':{'type':'integer','minimum':0,'maximum':31622400},"
            "'to':{'type':'string','enum':['next']}},'additionalProperties':false}",
    .body_required = true,
    .answers = {{.code = 200,
                 .what = "The clock and the events that became due",
                 .schema = MOVED}},
};

const struct operation operation_reset = {
    .name = "reset",
    .tag = TAG,
    .summary = "End all long-polling requests, then delete all queues and topics",
    .parameters = PROJECT,
    .answers = {{.code = 204, .what = "Everything is deleted"}},
};

const struct operation operation_state_show = {
    .name = "showState",
    .tag = TAG,
    .summary = "Show all queues and topics with their contents as one document",
    .parameters = PROJECT,
    .answers = {{.code = 200, .what = "The document", .schema = "<schemas/State>"}},
};

const struct operation operation_state_set = {
    .name = "setState",
    .tag = TAG,
    .summary = "Replace all queues and topics with those of a document",
    .parameters = PROJECT,
    .body = "<schemas/State>",
    .body_required = true,
    .answers = {{.code = 204, .what = "Replaced"}},
    .refuses = {409, 413},
};

#define HISTORY_PARAMETERS                                                               \
    "{'name':'since','in':'query','description':'only entries after this number',"       \
    "'schema':{'type':'integer','minimum':0}}," LIMIT ","                                \
    "{'name':'event','in':'query','description':'only these events','style':'form',"     \
    "'explode':false,'schema':{'type':'array','items':" EVENT "}}," PROJECT ","          \
    "{'name':'queue','in':'query','description':'only events of queues with this name'," \
    "'schema':{'type':'string'}}"

const struct operation operation_history = {
    .name = "listHistory",
    .tag = TAG,
    .summary = "List the events in order",
    .parameters = HISTORY_PARAMETERS,
    .answers = {{.code = 200,
                 .what = "The events, oldest first",
                 .schema =
                     "{'type':'object','required':['last','lost','history'],"
                     "'properties':{'last':{'type':'integer'},"
                     "'lost':{'type':'integer'},'history':" ENTRIES "," LINKS "}}"}},
    .refuses = {400},
};

#define HOW_MANY "'schema':{'type':'integer','minimum':0}}"
#define EXPECT_PARAMETERS                                                                \
    "{'name':'queue','in':'query','required':true,'schema':{'type':'string'}}," PROJECT  \
    ",{'name':'messages','in':'query','description':'expected number of all "            \
    "messages'," HOW_MANY ",{'name':'claimed','in':'query','description':'expected "     \
    "number of claimed messages'," HOW_MANY                                              \
    ",{'name':'free','in':'query','description':'expected number of messages that are "  \
    "not claimed'," HOW_MANY ",{'name':'wait','in':'query','description':'longest time " \
    "to wait, in seconds, at most max_wait'," HOW_MANY

const struct operation operation_expect = {
    .name = "expect",
    .tag = TAG,
    .summary = "Wait until the message counts of a queue are as expected. Give at least "
               "one of messages, claimed and free",
    .parameters = EXPECT_PARAMETERS,
    .answers = {{.code = 200,
                 .what = "The counts are as expected",
                 .schema = "{'type':'object','required':['messages','claimed','free'],"
                           "'properties':{'messages':{'type':'integer'},"
                           "'claimed':{'type':'integer'},'free':{'type':'integer'}}}"}},
    .refuses = {400, 409},
};

#define LEAK                                                                             \
    "{'type':'object','required':['kind','project','queue','client','at','at_ms'],"      \
    "'properties':{'kind':{'type':'string','enum':['claim','unread','dead_letter']},"    \
    "'project':{'type':'string'},'queue':{'type':'string'},'from':{'type':'string'},"    \
    "'claim':{'type':'string'},'id':{'type':'string'},'messages':{'type':'integer'},"    \
    "'client':{'type':['string','null']},'at':{'type':'string'},"                        \
    "'at_ms':{'type':'integer'}}}"
#define LEAKS_PARAMETERS                                                                 \
    PROJECT "," LIMIT ","                                                                \
            "{'name':'marker','in':'query','description':'the marker in the next link "  \
            "of the previous page',"                                                     \
            "'schema':{'type':'string','examples':['jobs/d4b2c1a0000000000000002a/p']}}"

const struct operation operation_leaks = {
    .name = "listLeaks",
    .tag = TAG,
    .summary =
        "List leaks of tests: claims, messages never read and dead-lettered messages",
    .parameters = LEAKS_PARAMETERS,
    .answers = {{.code = 200,
                 .what = "The leaks. Even an empty page may have a link to the next page",
                 .schema = "{'type':'object','required':['leaks'],'properties':{"
                           "'leaks':{'type':'array','items':" LEAK "}," LINKS "}}"}},
    .refuses = {400},
};

#define COUNT(name, least)                                                               \
    "'" name "':{'type':'integer','minimum':" least ",'maximum':1000000000}"
#define MATCH                                                                            \
    "'match':{'type':'object','properties':{"                                            \
    "'action':{'type':'string','examples':['messages:delete']},"                         \
    "'method':{'type':'string','examples':['DELETE']},'queue':{'type':'string'},"        \
    "'project':{'type':'string'},'client':{'type':'string'}},"                           \
    "'additionalProperties':false}"
#define FAULT                                                                            \
    "'fault':{'type':'string',"                                                          \
    "'examples':['cut=after','latency; ms=200','status=503; retry_after=2']}"
#define TIMES COUNT("every", "1") "," COUNT("skip", "0") "," COUNT("times", "0")
#define RULE  MATCH "," TIMES "," FAULT
#define RULES(required, members)                                                         \
    "{'type':'object','required':['faults'],'properties':{'faults':{'type':'array',"     \
    "'maxItems':100,'items':{'type':'object','required':[" required                      \
    "],'properties':{" members "},'additionalProperties':false}}},"                      \
    "'additionalProperties':false}"
#define RULES_SHOWN                                                                      \
    RULES("'match','every','skip','times','fault','matched','struck'",                   \
          RULE ",'matched':{'type':'integer'},'struck':{'type':'integer'}")

const struct operation operation_faults_show = {
    .name = "listFaults",
    .tag = TAG,
    .summary = "List the rules for injected faults and how often each was applied",
    .answers = {{.code = 200, .what = "The rules", .schema = RULES_SHOWN}},
};

const struct operation operation_faults_set = {
    .name = "setFaults",
    .tag = TAG,
    .summary = "Replace the rules for injected faults",
    .body = RULES("'fault'", RULE),
    .body_required = true,
    .answers = {{.code = 204, .what = "The rules are in force"}},
};

const struct operation operation_faults_delete = {
    .name = "deleteFaults",
    .tag = TAG,
    .summary = "Delete the rules for injected faults",
    .answers = {{.code = 204, .what = "Deleted"}},
};
