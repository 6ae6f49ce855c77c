/* The server itself (docs/api.md 6). */
#include "api/openapi/operation.h"

#define TAG "service"

const struct operation operation_versions = {
    .name = "listVersions",
    .tag = TAG,
    .summary = "List the versions",
    .answers = {{.code = 300,
                 .what = "The enabled versions",
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
    .summary = "Check whether the server is alive",
    .answers = {{.code = 204, .what = "Yes"}},
};

const struct operation operation_ready = {
    .name = "isReady",
    .tag = TAG,
    .summary = "Check whether the server is ready for requests",
    .answers = {{.code = 204,
                 .what = "The server is ready. If it is not, the status is 503"}},
};

const struct operation operation_openapi = {
    .name = "describe",
    .tag = TAG,
    .summary = "Show this document",
    .answers = {{.code = 200,
                 .what = "The API of this server, with the limits in force",
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
    .summary = "Show the metrics in the format of Prometheus, or of OpenMetrics if "
               "Accept asks for it",
    .answers = {{.code = 200,
                 .what = "The metrics",
                 .media = "text/plain",
                 .schema = "{'type':'string'}"}},
};

const struct operation operation_home = {
    .name = "showHome",
    .tag = TAG,
    .summary = "Show the home document",
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
    .summary = "Check whether the store works",
    .answers = {{.code = 204,
                 .what = "The store works. If it does not, the status is 503"}},
};

const struct operation operation_health = {
    .name = "showHealth",
    .tag = TAG,
    .summary = "Try the main operations and count the messages",
    .answers =
        {{.code = 200,
          .what = "The store works",
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
    .summary = "Dump all queues and topics with their contents as lines of JSON",
    .parameters =
        "{'name':'marker','in':'query','description':'the member next in the last line "
        "of the previous page','schema':{'type':'string','examples':['0...0.0.0']}},"
        "{'name':'project','in':'query','description':'only the queues and topics of "
        "this project',"
        "'schema':{'type':'string'}}",
    .needs_token = true,
    .answers = {{.code = 200,
                 .what = "A page of lines. The last line has the member next or end",
                 .schema = "{'type':'string'}",
                 .media = "application/jsonl"}},
    .refuses = {400},
};

const struct operation operation_load = {
    .name = "load",
    .tag = TAG,
    .summary = "Load lines of a dump",
    .parameters = "{'name':'replace','in':'query','description':'true: replace queues "
                  "that exist','schema':{'type':'boolean','default':false}}",
    .body =
        "{'type':'object','description':'one line of any number of lines. A line of a "
        "topic has the member topic instead of queue','required':['project','queue'],"
        "'properties':{'project':{'type':'string'},'queue':{'type':'string',"
        "'pattern':'^[A-Za-z0-9_.-]{1,64}$'},'metadata':{'type':'object'},"
        "'message':{'type':'object','required':['body'],'properties':{'body':{}}},"
        "'subscription':{'type':'object','required':['subscriber'],'properties':{"
        "'subscriber':{'type':'string','examples':['http://example.org/hook']}}}}}",
    .body_media = "application/jsonl",
    .body_required = true,
    .needs_token = true,
    .answers = {{.code = 200,
                 .what = "The numbers of objects loaded",
                 .schema = "{'type':'object','required':['queues','messages',"
                           "'subscriptions'],'properties':{'queues':{'type':'integer'},"
                           "'messages':{'type':'integer'},"
                           "'subscriptions':{'type':'integer'}}}"}},
    .refuses = {400, 409, 413},
};
