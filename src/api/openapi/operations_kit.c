/* What tests have besides (docs/api.md 23). */
#include "api/openapi/operation.h"

#define TAG "tests"

#define PROJECT                                                                          \
    "{'name':'project','in':'query','description':'whose (or X-Project-ID)',"            \
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
    .summary = "The time by which messages and claims live",
    .answers = {{.code = 200,
                 .what = "The clock",
                 .schema = "{'type':'object','required':['now','now_ms','state',"
                           "'ahead_ms'],'properties':{" TIME_MEMBERS "}}"}},
};

const struct operation operation_clock_set = {
    .name = "setClock",
    .tag = TAG,
    .summary = "Stop the clock, let it run, move it ahead of the wall clock",
    .body = "{'type':'object','minProperties':1,'properties':{"
            "'state':{'type':'string','enum':['running','frozen']},"
            "'ahead_seconds':{'type':'integer','minimum':0,'maximum':2000000000}},"
            "'additionalProperties':false}",
    .body_required = true,
    .answers = {{.code = 200, .what = "The clock, and what happened", .schema = MOVED}},
};

const struct operation operation_clock_advance = {
    .name = "advanceClock",
    .tag = TAG,
    .summary = "Move the clock: what falls due happens, in order",
    .body = "{'type':'object','minProperties':1,'maxProperties':1,'properties':{"
            "'seconds':{'type':'integer','minimum':0,'maximum':31622400},"
            "'to':{'type':'string','enum':['next']}},'additionalProperties':false}",
    .body_required = true,
    .answers = {{.code = 200, .what = "The clock, and what happened", .schema = MOVED}},
};

const struct operation operation_reset = {
    .name = "reset",
    .tag = TAG,
    .summary = "Answer all who wait, then delete all queues and topics",
    .parameters = PROJECT,
    .answers = {{.code = 204, .what = "There is nothing"}},
};

const struct operation operation_state_show = {
    .name = "showState",
    .tag = TAG,
    .summary = "All queues and topics with all they have, as one document",
    .parameters = PROJECT,
    .answers = {{.code = 200, .what = "The document", .schema = "<schemas/State>"}},
};

const struct operation operation_state_set = {
    .name = "setState",
    .tag = TAG,
    .summary = "Put a document in the place of all queues and topics",
    .parameters = PROJECT,
    .body = "<schemas/State>",
    .body_required = true,
    .answers = {{.code = 204, .what = "It is there"}},
    .refuses = {409, 413},
};

#define HISTORY_PARAMETERS                                                               \
    "{'name':'since','in':'query','description':'entries behind this number',"           \
    "'schema':{'type':'integer','minimum':0}}," LIMIT ","                                \
    "{'name':'event','in':'query','description':'only these','style':'form',"            \
    "'explode':false,'schema':{'type':'array','items':" EVENT "}}," PROJECT ","          \
    "{'name':'queue','in':'query','description':'only of queues of this name',"          \
    "'schema':{'type':'string'}}"

const struct operation operation_history = {
    .name = "listHistory",
    .tag = TAG,
    .summary = "What happened, in order",
    .parameters = HISTORY_PARAMETERS,
    .answers = {{.code = 200,
                 .what = "Entries, oldest first",
                 .schema =
                     "{'type':'object','required':['last','lost','history'],"
                     "'properties':{'last':{'type':'integer'},"
                     "'lost':{'type':'integer'},'history':" ENTRIES "," LINKS "}}"}},
    .refuses = {400},
};

#define HOW_MANY "'schema':{'type':'integer','minimum':0}}"
#define EXPECT_PARAMETERS                                                                \
    "{'name':'queue','in':'query','required':true,'schema':{'type':'string'}}," PROJECT  \
    ",{'name':'messages','in':'query','description':'all that there are'," HOW_MANY      \
    ",{'name':'claimed','in':'query','description':'held by claims'," HOW_MANY           \
    ",{'name':'free','in':'query','description':'the others'," HOW_MANY                  \
    ",{'name':'wait','in':'query','description':'so many seconds at most, up to "        \
    "max_wait'," HOW_MANY

const struct operation operation_expect = {
    .name = "expect",
    .tag = TAG,
    .summary = "Wait until a queue has what is expected: messages, claimed, free, "
               "at least one of them",
    .parameters = EXPECT_PARAMETERS,
    .answers = {{.code = 200,
                 .what = "It has",
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
            "{'name':'marker','in':'query','description':'out of the link of the page "  \
            "before',"                                                                   \
            "'schema':{'type':'string','examples':['jobs/d4b2c1a0000000000000002a/p']}}"

const struct operation operation_leaks = {
    .name = "listLeaks",
    .tag = TAG,
    .summary = "What tests have forgotten: claims, messages never read, dead letters",
    .parameters = LEAKS_PARAMETERS,
    .answers = {{.code = 200,
                 .what = "What was found; an empty page may have a next one",
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
    .summary = "The rules for what goes wrong, and how often they have struck",
    .answers = {{.code = 200, .what = "The rules", .schema = RULES_SHOWN}},
};

const struct operation operation_faults_set = {
    .name = "setFaults",
    .tag = TAG,
    .summary = "Rules for what goes wrong, instead of those there are",
    .body = RULES("'fault'", RULE),
    .body_required = true,
    .answers = {{.code = 204, .what = "They are in force"}},
};

const struct operation operation_faults_delete = {
    .name = "deleteFaults",
    .tag = TAG,
    .summary = "Nothing goes wrong any more",
    .answers = {{.code = 204, .what = "There are no rules"}},
};
