/* What tests have besides (docs/api.md 23). */
#include "api/openapi/operation.h"

#define TAG "tests"

#define INTEGER(name, what)                                                              \
    "{'name':'" name "','in':'query','description':'" what                               \
    "','schema':{'type':'integer','minimum':0}}"
#define TEXT(name, what)                                                                 \
    "{'name':'" name "','in':'query','description':'" what "','schema':{'type':'string'" \
    "}}"

#define TIME_MEMBERS                                                                     \
    "'now':{'type':'string'},'now_ms':{'type':'integer'},"                               \
    "'state':{'type':'string','enum':['running','frozen']},"                             \
    "'ahead_ms':{'type':'integer'}"
#define ENTRIES                                                                          \
    "{'type':'array','items':{'type':'object','required':['number','event','at',"        \
    "'at_ms'],'properties':{'number':{'type':'integer'},'event':{'type':'string'},"      \
    "'at':{'type':'string'},'at_ms':{'type':'integer'}},"                                \
    "'additionalProperties':true}}"
#define LINKS "'links':{'type':'array','items':{'type':'object'}}"
#define MOVED                                                                            \
    "{'type':'object','required':['now','now_ms','state','ahead_ms',"                    \
    "'events'],'properties':{" TIME_MEMBERS ",'events':" ENTRIES "," LINKS "}}"

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
    .parameters = TEXT("project", "only its own (or X-Project-ID)"),
    .answers = {{.code = 204, .what = "There is nothing"}},
};

#define CLAIMS                                                                           \
    "'claims':{'type':'array','items':{'type':'object','required':['id'],'properties':{" \
    "'id':{'type':'string'},'ttl':{'type':'number'},'age':{'type':'number'}}}}"
#define MESSAGES                                                                         \
    "'messages':{'type':'array','items':{'type':'object','properties':{"                 \
    "'id':{'type':'string'},'body':{},'sealed':{'type':'string'},"                       \
    "'ttl':{'type':'number'},'age':{'type':'number'},'delay':{'type':'number'},"         \
    "'claim':{'type':'string'},'claim_count':{'type':'integer'},"                        \
    "'client':{'type':'string'},'checksum':{'type':'string'}}}}"
#define SUBSCRIPTIONS                                                                    \
    "'subscriptions':{'type':'array','items':{'type':'object',"                          \
    "'required':['subscriber'],'properties':{'id':{'type':'string'},"                    \
    "'subscriber':{'type':'string'},'options':{'type':'object'},"                        \
    "'ttl':{'type':'integer'},'age':{'type':'number'},'confirmed':{'type':'boolean'},"   \
    "'asked':{'type':'boolean'},'delivered':{'type':'integer'},"                         \
    "'given_up':{'type':'integer'},'fallen_out':{'type':'integer'}}}}"
#define QUEUE_LIST                                                                       \
    "{'type':'array','items':{'type':'object','required':['name'],'properties':{"        \
    "'name':{'type':'string'},'metadata':{'type':'object'}," CLAIMS "," MESSAGES         \
    "," SUBSCRIPTIONS "}}}"
#define STATE                                                                            \
    "{'type':'object','required':['version'],'properties':{"                             \
    "'version':{'type':'integer'},'now_ms':{'type':'integer'},"                          \
    "'queues':" QUEUE_LIST ",'topics':" QUEUE_LIST ",'projects':{'type':'object',"       \
    "'additionalProperties':{'type':'object'}}}}"

const struct operation operation_state_show = {
    .name = "showState",
    .tag = TAG,
    .summary = "All queues and topics with all they have, as one document",
    .parameters = TEXT("project", "only its own (or X-Project-ID)"),
    .answers = {{.code = 200, .what = "The document", .schema = STATE}},
};

const struct operation operation_state_set = {
    .name = "setState",
    .tag = TAG,
    .summary = "Put a document in the place of all queues and topics",
    .parameters = TEXT("project", "only of its own (or X-Project-ID)"),
    .body = STATE,
    .body_required = true,
    .answers = {{.code = 204, .what = "It is there"}},
    .refuses = {409, 413},
};

const struct operation operation_history = {
    .name = "listHistory",
    .tag = TAG,
    .summary = "What happened, in order",
    .parameters = INTEGER(
        "since",
        "entries behind this number") ","
                                      "{'name':'limit','in':'query','"
                                      "schema':{'type':'integer','"
                                      "minimum':1,"
                                      "'maximum':1000,'default':100}}"
                                      "," TEXT(
                                          "event",
                                          "names of "
                                          "events, "
                                          "joined by "
                                          "commas") "," TEXT("project",
                                                             "only of it (or "
                                                             "X-Project-ID)") "," TEXT("q"
                                                                                       "u"
                                                                                       "e"
                                                                                       "u"
                                                                                       "e",
                                                                                       "o"
                                                                                       "n"
                                                                                       "l"
                                                                                       "y"
                                                                                       " "
                                                                                       "o"
                                                                                       "f"
                                                                                       " "
                                                                                       "q"
                                                                                       "u"
                                                                                       "e"
                                                                                       "u"
                                                                                       "e"
                                                                                       "s"
                                                                                       " "
                                                                                       "o"
                                                                                       "f"
                                                                                       " "
                                                                                       "t"
                                                                                       "h"
                                                                                       "i"
                                                                                       "s"
                                                                                       " "
                                                                                       "n"
                                                                                       "a"
                                                                                       "m"
                                                                                       "e"),
    .answers = {{.code = 200,
                 .what = "Entries, oldest first",
                 .schema =
                     "{'type':'object','required':['last','lost','history'],"
                     "'properties':{'last':{'type':'integer'},"
                     "'lost':{'type':'integer'},'history':" ENTRIES "," LINKS "}}"}},
    .refuses = {400},
};

const struct operation operation_expect = {
    .name = "expect",
    .tag = TAG,
    .summary = "Wait until a queue has what is expected",
    .parameters =
        "{'name':'queue','in':'query','required':true,"
        "'schema':{'type':'string'}}," TEXT("project", "whose it is (or X-Project-ID)") "," INTEGER(
            "messages",
            "all") "," INTEGER("claimed",
                               "held by claims") "," INTEGER("free",
                                                             "the others") "," INTEGER("w"
                                                                                       "a"
                                                                                       "i"
                                                                                       "t",
                                                                                       "s"
                                                                                       "e"
                                                                                       "c"
                                                                                       "o"
                                                                                       "n"
                                                                                       "d"
                                                                                       "s"
                                                                                       " "
                                                                                       "a"
                                                                                       "t"
                                                                                       " "
                                                                                       "m"
                                                                                       "o"
                                                                                       "s"
                                                                                       "t"
                                                                                       ","
                                                                                       " "
                                                                                       "u"
                                                                                       "p"
                                                                                       " "
                                                                                       "t"
                                                                                       "o"
                                                                                       " "
                                                                                       "m"
                                                                                       "a"
                                                                                       "x"
                                                                                       "_"
                                                                                       "w"
                                                                                       "a"
                                                                                       "i"
                                                                                       "t"),
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
    TEXT("project", "only of it (or X-Project-ID)")                                      \
    ",{'name':'limit','in':'query','schema':{'type':'integer','minimum':1,"              \
    "'maximum':1000,'default':100}}," TEXT("marker", "where the last page has ended")

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

#define COUNT(least) "{'type':'integer','minimum':" least ",'maximum':1000000000}"
#define RULE                                                                             \
    "'match':{'type':'object','properties':{'action':{'type':'string'},"                 \
    "'method':{'type':'string'},'queue':{'type':'string'},"                              \
    "'project':{'type':'string'},'client':{'type':'string'}},"                           \
    "'additionalProperties':false},'every':" COUNT("1") ",'skip':" COUNT(                \
        "0") ","                                                                         \
             "'times':" COUNT("0") ",'fault':{'type':'string'}"
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
