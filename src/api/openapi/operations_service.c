/* The server itself (docs/api.md 6). */
#include "api/openapi/operation.h"

#define TAG "service"

const struct operation operation_versions = {
    .name = "listVersions",
    .tag = TAG,
    .summary = "List the versions",
    .answers = {{.code = 300,
                 .what = "Those that are switched on",
                 .schema =
                     "{'type':'object','required':['versions'],"
                     "'properties':{'versions':{'type':'array','minItems':1,"
                     "'items':{'type':'object','required':['id','status','updated',"
                     "'media-types','links'],'properties':{'id':{'type':'string'},"
                     "'status':{'type':'string','enum':['CURRENT','DEPRECATED']},"
                     "'updated':{'type':'string'},'media-types':{'type':'array',"
                     "'items':{'type':'object','properties':{'base':{'type':'string'},"
                     "'type':{'type':'string'}}}},'links':{'type':'array',"
                     "'items':{'type':'object','properties':{"
                     "'href':{'type':'string'},'rel':{'type':'string'}}}}}}}}}"}},
};

const struct operation operation_live = {
    .name = "isAlive",
    .tag = TAG,
    .summary = "Is it alive? Whoever can answer is",
    .answers = {{.code = 204, .what = "Yes"}},
};

const struct operation operation_ready = {
    .name = "isReady",
    .tag = TAG,
    .summary = "May requests be sent here?",
    .answers = {{.code = 204, .what = "Yes (503: not now)"}},
};

const struct operation operation_openapi = {
    .name = "describe",
    .tag = TAG,
    .summary = "This document",
    .answers = {{.code = 200,
                 .what = "What is served, with the limits in force",
                 .headers =
                     "'Cache-Control':{'required':true,'schema':{'type':'string'}}",
                 .schema =
                     "{'type':'object','required':['openapi','info','paths','components']"
                     ",'properties':{"
                     "'openapi':{'type':'string'},'info':{'type':'object'},'paths':{'"
                     "type':'object'},"
                     "'components':{'type':'object'}},'additionalProperties':true}"}},
};

const struct operation operation_metrics = {
    .name = "showMetrics",
    .tag = TAG,
    .summary =
        "Figures, as Prometheus takes them, or as OpenMetrics if Accept asks for that",
    .answers = {{.code = 200,
                 .what = "The figures",
                 .media = "text/plain",
                 .schema = "{'type':'string'}"}},
};

const struct operation operation_home = {
    .name = "showHome",
    .tag = TAG,
    .summary = "Home document",
    .answers =
        {{.code = 200,
          .what = "Resources and their URL templates",
          .headers = "'Cache-Control':{'required':true,'schema':{'type':'string'}}",
          .media = "application/json-home",
          .schema =
              "{'type':'object','required':['resources'],'properties':{'resources':{"
              "'type':'object','additionalProperties':{'type':'object',"
              "'required':['href-template','href-vars','hints'],'properties':{"
              "'href-template':{'type':'string'},"
              "'href-vars':{'type':'object','additionalProperties':{'type':'string'}},"
              "'hints':{'type':'object','properties':{"
              "'allow':{'type':'array','items':{'type':'string'}},"
              "'formats':{'type':'object'}}}}}}}}"}},
};

const struct operation operation_ping = {
    .name = "ping",
    .tag = TAG,
    .summary = "Can the store be used?",
    .answers = {{.code = 204, .what = "Yes (503: no)"}},
};

const struct operation operation_health = {
    .name = "showHealth",
    .tag = TAG,
    .summary = "Trial run of the main operations, and the number of messages",
    .answers =
        {{.code = 200,
          .what = "The store can be used",
          .schema =
              "{'type':'object','required':['storage_reachable','operation_status',"
              "'message_volume'],'properties':{'storage_reachable':{'type':'boolean'},"
              "'operation_status':{'type':'object',"
              "'additionalProperties':{'type':'object','required':['succeeded','seconds',"
              "'ref'],'properties':{'succeeded':{'type':'boolean'},"
              "'seconds':{'type':'number'},'ref':{'type':'null'}}}},"
              "'message_volume':{'type':'object','required':['free','claimed','total'],"
              "'properties':{'free':{'type':'integer'},'claimed':{'type':'integer'},"
              "'total':{'type':'integer'}}}}}"}},
};

const struct operation operation_dump = {
    .name = "dump",
    .tag = TAG,
    .summary = "All queues and topics with all they have, as lines of JSON",
    .parameters = "{'name':'marker','in':'query','description':'next of the last line of "
                  "the page before','schema':{'type':'string','examples':['0...0.0.0']}},"
                  "{'name':'project','in':'query','description':'only its own',"
                  "'schema':{'type':'string'}}",
    .needs_token = true,
    .answers = {{.code = 200,
                 .what = "A page of lines; the last has next, or end",
                 .schema = "{'type':'string'}",
                 .media = "application/jsonl"}},
    .refuses = {400},
};

const struct operation operation_load = {
    .name = "load",
    .tag = TAG,
    .summary = "Load lines of a dump",
    .parameters = "{'name':'replace','in':'query','description':'queues that are there "
                  "already go first','schema':{'type':'boolean','default':false}}",
    .body =
        "{'type':'object','description':'a line; there may be any number of them. "
        "Those of a topic have topic instead of queue','required':['project','queue'],"
        "'properties':{'project':{'type':'string'},'queue':{'type':'string',"
        "'pattern':'^[A-Za-z0-9_.-]{1,64}$'},'metadata':{'type':'object'},"
        "'message':{'type':'object','required':['body'],'properties':{'body':{}}},"
        "'subscription':{'type':'object','required':['subscriber'],'properties':{"
        "'subscriber':{'type':'string','examples':['http://example.org/hook']}}}}}",
    .body_media = "application/jsonl",
    .body_required = true,
    .needs_token = true,
    .answers = {{.code = 200,
                 .what = "How many were loaded",
                 .schema = "{'type':'object','required':['queues','messages',"
                           "'subscriptions'],'properties':{'queues':{'type':'integer'},"
                           "'messages':{'type':'integer'},"
                           "'subscriptions':{'type':'integer'}}}"}},
    .refuses = {400, 409, 413},
};
