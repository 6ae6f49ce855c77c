#include "api/openapi/component.h"

#include "claimd/base/invariant.h"

struct component {
    struct bytes path; /* "schemas/Links" */
    const char *text;
    const char *loose; /* NULL, or what stands there without client_id_uuid_safe */
};

#define TEXT        "'schema':{'type':'string'}"
#define QUEUE_NAME  "{'type':'string','pattern':'^[A-Za-z0-9_.-]{1,64}$'}"
#define REQUEST_ID  "'X-Request-ID':<headers/RequestId>"
#define RETRY_AFTER "{'required':true,'schema':{'type':'integer','minimum':1}}"
#define ERROR       "'content':{'application/json':{'schema':<schemas/Error>}}"
#define HEADER(name, required, more)                                                     \
    "{'name':'" name "','in':'header','required':" required "," more "}"
#define LIMIT(page, most)                                                                \
    "{'name':'limit','in':'query','schema':{'type':'integer','minimum':1,'maximum'"      \
    ":" most ",'default':" page "}}"
#define IDS(required)                                                                    \
    "{'name':'ids','in':'query','required':" required ",'schema':{'type':'array',"       \
    "'maxItems':$max_messages_per_page,'items':{'type':'string'}},"                      \
    "'style':'form','explode':false}"
#define CLAIM_TTL "'minimum':$min_claim_ttl,'maximum':$max_claim_ttl"
#define CLAIM_LIMIT                                                                      \
    "'limit':{'type':['integer','null'],'minimum':1,"                                    \
    "'maximum':$max_messages_per_claim_or_pop,'description':'used if the query "         \
    "parameter limit is absent'}"
#define RENEWED_GRACE                                                                    \
    "'grace':{'type':['integer','null'],'minimum':0,'maximum':$max_claim_grace"
#define MESSAGE_REST                                                                     \
    "'href':{'type':'string'},'ttl':{'type':'integer','minimum':1},"                     \
    "'age':{'type':'integer','minimum':0},'body':{'description':'any JSON, as posted'}"
#define SECONDS  "'type':['integer','null']"
#define MEMBER   "'path':{'type':'string','examples':['/metadata/color']}"
#define COUNT_OF "{'type':'integer','minimum':0,'description':"

/* Of the document of a state (docs/api.md 23.4). */
#define KEPT_ID  "'id':{'type':'string','pattern':'^[a-f][0-9a-f]{23}$'}"
#define LIFE     "'ttl':{'type':'number','minimum':0.001},'age':{'type':'number','minimum':0}"
#define COUNT_UP "{'type':'integer','minimum':0}"
#define STATE_CLAIMS                                                                     \
    "'claims':{'type':'array','items':{'type':'object','required':['id'],'properties':{" \
    "'id':{'type':'string','minLength':1}," LIFE "},'additionalProperties':false}}"
#define STATE_MESSAGE(body)                                                              \
    "{'type':'object','required':['" body "'],'properties':{" KEPT_ID ",'body':{},"      \
    "'sealed':{'type':'string','pattern':'^01([0-9a-f]{2})*$','examples':['01']}," LIFE  \
    ",'delay':{'type':'number','minimum':0},'claim':{'type':'string'},"                  \
    "'claim_count':{'type':'integer','minimum':0},"                                      \
    "'client':{'type':'string','pattern':'^[0-9a-f]{16}$'},"                             \
    "'checksum':{'type':'string','pattern':'^MD5:[0-9a-f]{32}$'}},"                      \
    "'additionalProperties':false}"
#define STATE_MESSAGES                                                                   \
    "'messages':{'type':'array','items':{'oneOf':[" STATE_MESSAGE(                       \
        "body") "," STATE_MESSAGE("sealed") "]}}"
#define STATE_SUBSCRIPTIONS                                                              \
    "'subscriptions':{'type':'array','items':{'type':'object',"                          \
    "'required':['subscriber'],'properties':{" KEPT_ID ",'subscriber':"                  \
    "{'type':'string','examples':['http://127.0.0.1:9000/']},"                           \
    "'options':{'type':'object'},'ttl':{'type':'integer','minimum':0},"                  \
    "'age':{'type':'number','minimum':0},'confirmed':{'type':'boolean'},"                \
    "'asked':{'type':'boolean'},'delivered':" COUNT_UP ",'given_up':" COUNT_UP           \
    ",'fallen_out':" COUNT_UP "},'additionalProperties':false}}"

static const struct component components[] = {
    /* Required, and not. */
    {BYTES_LIT("parameters/Client"),
     HEADER("Client-ID", "true", "'schema':<schemas/ClientId>"), NULL},
    {BYTES_LIT("parameters/ClientOptional"),
     HEADER("Client-ID", "false", "'schema':<schemas/ClientId>"), NULL},
    {BYTES_LIT("parameters/Project"),
     HEADER("X-Project-ID", "true",
            "'schema':{'type':'string','minLength':1,'maxLength':256}"),
     NULL},
    {BYTES_LIT("parameters/ProjectOptional"),
     HEADER("X-Project-ID", "false", "'schema':{'type':'string','maxLength':256}"), NULL},
    {BYTES_LIT("parameters/SubjectToken"), HEADER("X-Subject-Token", "true", TEXT), NULL},
    {BYTES_LIT("parameters/Prefer"),
     HEADER("Prefer", "false",
            "'description':'wait=N turns on long polling for up to N seconds, at most "
            "$max_wait'," TEXT),
     NULL},
    {BYTES_LIT("parameters/Queue"),
     "{'name':'queue','in':'path','required':true,'schema':<schemas/QueueName>}", NULL},
    {BYTES_LIT("parameters/Topic"),
     "{'name':'topic','in':'path','required':true,'schema':<schemas/QueueName>}", NULL},
    {BYTES_LIT("parameters/Id"), "{'name':'id','in':'path','required':true," TEXT "}",
     NULL},
    {BYTES_LIT("parameters/Several"),
     "{'name':'queue','in':'query','required':true,"
     "'description':'give it once for each queue, in the order of priority',"
     "'schema':{'type':'array','minItems':1,'maxItems':32,'items':<schemas/QueueName>},"
     "'style':'form','explode':true}",
     NULL},
    {BYTES_LIT("parameters/QueuesLimit"),
     LIMIT("$default_queues_page", "$max_queues_per_page"), NULL},
    {BYTES_LIT("parameters/MessagesLimit"),
     LIMIT("$default_messages_page", "$max_messages_per_page"), NULL},
    {BYTES_LIT("parameters/ClaimLimit"),
     LIMIT("$default_claim_page", "$max_messages_per_claim_or_pop"), NULL},
    {BYTES_LIT("parameters/SubscriptionsLimit"),
     LIMIT("$default_subscriptions_page", "$max_subscriptions_per_page"), NULL},
    {BYTES_LIT("parameters/Ids"), IDS("false"), NULL},
    {BYTES_LIT("parameters/IdsRequired"), IDS("true"), NULL},

    {BYTES_LIT("headers/RequestId"),
     "{'required':true,'description':'the id of the request, also in the log of the "
     "server'," TEXT "}",
     NULL},
    {BYTES_LIT("headers/Location"), "{'required':true," TEXT "}", NULL},
    {BYTES_LIT("headers/ContentLocation"),
     "{'description':'path and query as sent, unless they are too long'," TEXT "}", NULL},
    {BYTES_LIT("headers/Number"),
     "{'required':true,'description':'fencing token, larger than that of any earlier "
     "claim of this queue','schema':{'type':'integer','format':'int64','minimum':1}}",
     NULL},
    {BYTES_LIT("headers/Preference"),
     "{'description':'the number of seconds in force, such as wait=20. It is absent if "
     "the server did not use long "
     "polling','schema':{'type':'string','pattern':'^wait=[0-9]+$'}}",
     NULL},

    {BYTES_LIT("responses/Error"),
     "{'description':'The server refused the request and changed nothing. The title says "
     "why',"
     "'headers':{" REQUEST_ID "}," ERROR "}",
     NULL},
    {BYTES_LIT("responses/NoPath"),
     "{'description':'The resource does not exist, or the URL-Signature does not match "
     "the request',"
     "'headers':{" REQUEST_ID "}," ERROR "}",
     NULL},
    {BYTES_LIT("responses/Unauthorized"),
     "{'description':'The token is missing, wrong or expired','headers':{" REQUEST_ID
     ",'WWW-Authenticate':{'required':true," TEXT "}}," ERROR "}",
     NULL},
    {BYTES_LIT("responses/Forbidden"),
     "{'description':'The token is for another project, its role does not allow the "
     "action, another claim holds the message, or a request of another site (Origin) has "
     "no token','headers':{" REQUEST_ID "}," ERROR "}",
     NULL},
    {BYTES_LIT("responses/NotAcceptable"),
     "{'description':'The header Accept excludes application/json. The response has no "
     "document',"
     "'headers':{" REQUEST_ID "}}",
     NULL},
    {BYTES_LIT("responses/Late"),
     "{'description':'The request was incomplete when its time limit ended. The server "
     "closes the connection'," ERROR "}",
     NULL},
    {BYTES_LIT("responses/TooLong"),
     "{'description':'The request line or the headers exceed max_header_size or "
     "max_headers. The server closes the connection. The body may be HTML instead of "
     "JSON'}",
     NULL},
    {BYTES_LIT("responses/TooLarge"),
     "{'description':'The length of the body or of a chunk exceeds 64 bits. The server "
     "closes the connection. The body may be HTML instead of JSON. For a body above the "
     "limits the status is 400'}",
     NULL},
    {BYTES_LIT("responses/Enough"),
     "{'description':'The project has reached one of its limits. The title says which. "
     "Nothing has changed','headers':{" REQUEST_ID ",'Retry-After':" RETRY_AFTER
     "}," ERROR "}",
     NULL},
    {BYTES_LIT("responses/Busy"),
     "{'description':'The server is out of memory or disk space, in maintenance, or has "
     "too many connections. Unless the title is Outcome unknown, nothing has "
     "changed','headers':{"
     "'Retry-After':" RETRY_AFTER "}," ERROR "}",
     NULL},

    {BYTES_LIT("schemas/Error"),
     "{'type':'object','required':['title'],'properties':{'title':{'type':'string'},"
     "'description':{'type':'string'}}}",
     NULL},
    {BYTES_LIT("schemas/ClientId"), "{'type':'string','format':'uuid'}",
     "{'type':'string','minLength':$min_length_client_id,'maxLength':$max_length_client_"
     "id}"},
    {BYTES_LIT("schemas/QueueName"), QUEUE_NAME, NULL},
    {BYTES_LIT("schemas/Metadata"),
     "{'type':'object','description':'at most $max_queue_metadata bytes','properties':{"
     "'_max_messages_post_size':{'type':['integer','null'],'minimum':1,"
     "'maximum':$max_messages_post_size},"
     "'_default_message_ttl':{" SECONDS ",'minimum':$min_message_ttl,"
     "'maximum':$max_message_ttl},"
     "'_default_message_delay':{" SECONDS ",'minimum':0,'maximum':$max_message_delay},"
     "'_max_claim_count':{'type':['integer','null'],'minimum':1},"
     "'_dead_letter_queue':{'type':['string','null'],'pattern':'^[A-Za-z0-9_.-]{0,64}$'},"
     "'_dead_letter_queue_messages_ttl':{" SECONDS ",'minimum':$min_message_ttl,"
     "'maximum':$max_message_ttl},"
     "'_enable_encrypt_messages':{'type':['boolean','null'],"
     "'description':'true only if the server has an encryption key'},"
     "'_persistence':{'enum':['memory',null]},"
     "'_retry_policy':<schemas/RetryPolicy>},'additionalProperties':true}",
     NULL},
    {BYTES_LIT("schemas/Patch"),
     "{'type':'array','items':{'oneOf':["
     "{'type':'object','required':['op','path','value'],'properties':{"
     "'op':{'enum':['add','replace']}," MEMBER ",'value':{}}},"
     "{'type':'object','required':['op','path'],'properties':{"
     "'op':{'const':'remove'}," MEMBER "}}]}}",
     NULL},
    {BYTES_LIT("schemas/Stats"),
     "{'type':'object','required':['messages'],'properties':{'"
     "messages':{'type':'object',"
     "'required':['claimed','free','total'],'properties':{"
     "'claimed':{'type':'integer','minimum':0},'free':{'type':'"
     "integer','minimum':0},"
     "'total':{'type':'integer','minimum':0},"
     "'oldest':<schemas/End>,'newest':<schemas/End>}}}}",
     NULL},
    {BYTES_LIT("schemas/Purge"),
     "{'type':'object','required':['resource_types'],'properties':{"
     "'resource_types':{'type':'array','items':{'type':'string',"
     "'enum':['messages','subscriptions']}}}}",
     NULL},
    {BYTES_LIT("schemas/RetryPolicy"),
     "{'type':['object','null'],'properties':{"
     "'retries_with_no_delay':{'type':['integer','null']},"
     "'minimum_delay_retries':{'type':['integer','null']},"
     "'maximum_delay_retries':{'type':['integer','null']},"
     "'minimum_delay':{" SECONDS "},'maximum_delay':{" SECONDS ",'examples':[30],"
     "'description':'at least 10 larger than minimum_delay'},"
     "'retry_backoff_function':{'enum':['linear','arithmetic','geometric','exponential',"
     "null]},'ignore_subscription_override':{'type':['boolean','null']}},"
     "'additionalProperties':true}",
     NULL},
    {BYTES_LIT("schemas/Subscriber"),
     "{'type':'string','maxLength':60000,'pattern':'^[A-Za-z]+:[^ ]+$','description':'a "
     "URI. The option subscriber_types lists the allowed "
     "schemes','examples':['http://example.org/hook',"
     "'https://user:word@example.org','mailto:ann@example.org?subject=news']}",
     NULL},
    {BYTES_LIT("schemas/DeliveryOptions"),
     "{'type':'object','description':'at most 60000 bytes, kept unchanged',"
     "'properties':{'_retry_policy':<schemas/RetryPolicy>},'additionalProperties':true}",
     NULL},
    {BYTES_LIT("schemas/Subscription"),
     "{'type':'object','required':['id','source','subscriber','ttl','age','options',"
     "'confirmed'],'properties':{'id':{'type':'string'},'source':<schemas/QueueName>,"
     "'subscriber':{'type':'string'},'ttl':{'type':'integer','minimum':60},"
     "'age':{'type':'integer','minimum':0},"
     "'options':{'type':'object','additionalProperties':true},"
     "'confirmed':{'type':'boolean'}}}",
     NULL},
    {BYTES_LIT("schemas/Progress"),
     "{'type':'object','required':['id','confirmed','ttl','age','delivered','given_up',"
     "'fallen_out','behind','failures','failed','delivering','next_try'],'properties':{"
     "'id':{'type':'string'},'confirmed':{'type':'boolean'},"
     "'ttl':{'type':'integer','minimum':60},'age':{'type':'integer','minimum':0},"
     "'delivered':" COUNT_OF "'delivered messages'},'given_up':" COUNT_OF
     "'messages not delivered after all retries'},'fallen_out':" COUNT_OF
     "'messages dropped before delivery'},'behind':" COUNT_OF
     "'messages still to be delivered'},'failures':" COUNT_OF
     "'failed deliveries since the start of the server'},'failed':" COUNT_OF
     "'failed deliveries of the next message'},'delivering':{'type':'boolean'},"
     "'next_try':{'type':['string','null'],'format':'date-time','description':'null: "
     "immediately, or when a message is posted'}}}",
     NULL},
    {BYTES_LIT("schemas/StateQueues"),
     "{'type':'array','items':{'type':'object','required':['name'],'properties':{"
     "'name':<schemas/QueueName>,'metadata':{'type':'object'}," STATE_CLAIMS
     "," STATE_MESSAGES "," STATE_SUBSCRIPTIONS "},'additionalProperties':false}}",
     NULL},
    {BYTES_LIT("schemas/State"),
     "{'type':'object','required':['version'],'properties':{"
     "'version':{'type':'integer','enum':[1]},'now_ms':{'type':'integer','minimum':0},"
     "'queues':<schemas/StateQueues>,'topics':<schemas/StateQueues>,"
     "'projects':{'type':'object','additionalProperties':{'type':'object'}}},"
     "'additionalProperties':false,"
     "'examples':[{'version':1,'queues':[{'name':'q','metadata':{'color':'red'},"
     "'claims':[{'id':'theirs','ttl':60,'age':50.5}],'messages':[{'body':{'job':1},"
     "'claim':'theirs'},{'body':2,'delay':5,'claim_count':2}]}],'topics':[{'name':'t',"
     "'subscriptions':[{'subscriber':'http://127.0.0.1:9000/','confirmed':true}]}]}]}",
     NULL},
    {BYTES_LIT("schemas/Links"),
     "{'type':'array','maxItems':1,'items':{'type':'object','required':['rel','href'],"
     "'properties':{'rel':{'type':'string','enum':['next']},'href':{'type':'string'}}}}",
     NULL},
    {BYTES_LIT("schemas/End"),
     "{'type':'object','required':['age','created','href'],"
     "'properties':{'age':{'type':'integer','minimum':0},'created':{'type':'string',"
     "'format':'date-time'},'href':{'type':'string'}}}",
     NULL},
    {BYTES_LIT("schemas/Terms"),
     "{'type':'object','properties':{"
     "'ttl':{" SECONDS "," CLAIM_TTL ",'default':$default_claim_ttl},"
     "'grace':{" SECONDS ",'minimum':$min_claim_grace,'maximum':$max_claim_grace,"
     "'default':$default_claim_grace}," CLAIM_LIMIT "}}",
     NULL},
    {BYTES_LIT("schemas/TermsV1"),
     "{'type':'object','required':['ttl','grace'],'properties':{"
     "'ttl':{'type':'integer'," CLAIM_TTL "},"
     "'grace':{'type':'integer','minimum':$min_claim_grace,'maximum':$max_claim_grace}"
     "," CLAIM_LIMIT "}}",
     NULL},
    {BYTES_LIT("schemas/Renewal"),
     "{'type':'object','properties':{"
     "'ttl':{" SECONDS "," CLAIM_TTL ",'default':$default_claim_ttl}," RENEWED_GRACE
     ",'default':$default_claim_grace}}}",
     NULL},
    {BYTES_LIT("schemas/RenewalV1"),
     "{'type':'object','required':['ttl'],'properties':{"
     "'ttl':{'type':'integer'," CLAIM_TTL "}," RENEWED_GRACE ",'default':0}}}",
     NULL},
    {BYTES_LIT("schemas/Message"),
     "{'type':'object','required':['id','href','ttl','age','body'],'properties':{"
     "'id':{'type':'string'}," MESSAGE_REST ",'checksum':{'type':'string'}}}",
     NULL},
    {BYTES_LIT("schemas/MessageV1"),
     "{'type':'object','required':['href','ttl','age','body'],'properties':{" MESSAGE_REST
     "}}",
     NULL},
    {BYTES_LIT("schemas/Messages"), "{'type':'array','items':<schemas/Message>}", NULL},
    {BYTES_LIT("schemas/MessagesV1"), "{'type':'array','items':<schemas/MessageV1>}",
     NULL},
    {BYTES_LIT("schemas/Popped"),
     "{'type':'object','required':['messages'],'properties':{'messages':{'type':'array',"
     "'maxItems':$max_messages_per_claim_or_pop,'items':{'type':'object',"
     "'required':['id','ttl','age','body','claim_id','claim_count'],'properties':{"
     "'id':{'type':'string'},'ttl':{'type':'integer','minimum':1},"
     "'age':{'type':'integer','minimum':0},'body':{},'claim_id':{'type':'null'},"
     "'claim_count':{'type':'integer','minimum':0},'checksum':{'type':'string'}}}}}}",
     NULL},

    {BYTES_LIT("securitySchemes/token"),
     "{'type':'apiKey','in':'header','name':'X-Auth-Token'}", NULL},
    {BYTES_LIT("securitySchemes/bearer"), "{'type':'http','scheme':'bearer'}", NULL},
};

enum { COUNT = sizeof(components) / sizeof(components[0]) };

_Static_assert(COUNT <= 64, "a component set has one bit for each component");

static size_t
find(struct bytes path)
{
    size_t i = 0;

    while (i < COUNT && !bytes_equal(path, components[i].path))
        i++;
    ENSURE(i < COUNT);
    return i;
}

void
components_add(struct component_set *set, const char *text)
{
    struct bytes path;

    while (bytes_present(path = template_next(&text))) {
        size_t i = find(path);

        if ((set->named >> i & 1) != 0)
            continue;
        set->named |= UINT64_C(1) << i;
        components_add(set, components[i].text); /* none names itself: at most 3 deep */
    }
}

static const char *
text_of(const struct component *c, const struct api_limits *limits)
{
    return c->loose != NULL && !limits->client_id_strict ? c->loose : c->text;
}

/* "schemas/Links" in two. */
static void
split(const struct component *c, struct bytes *section, struct bytes *name)
{
    *name = c->path;
    *section = bytes_cut(name, '/');
}

void
components_write(struct buf *out, const struct component_set *set,
                 const struct api_limits *limits)
{
    struct bytes last = BYTES_NONE;

    buf_byte(out, '{');
    for (size_t i = 0; i < COUNT; i++) {
        struct bytes section, name;

        if ((set->named >> i & 1) == 0)
            continue;
        split(&components[i], &section, &name);
        if (!bytes_equal(section, last))
            buf_printf(out, "%s\"%.*s\":{", bytes_present(last) ? "}," : "",
                       (int)section.len, section.data);
        buf_printf(out, "%s\"%.*s\":", bytes_equal(section, last) ? "," : "",
                   (int)name.len, name.data);
        template_write(out, text_of(&components[i], limits), limits);
        last = section;
    }
    buf_str(out, bytes_present(last) ? "}}" : "}");
}
