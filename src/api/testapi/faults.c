/* What tests want to go wrong (docs/api.md 23.7). */
#include "api/testapi/handlers.h"
#include "claimd/json/string.h"

#include <inttypes.h>

/* Counts of a rule are at most so large. */
enum { COUNT_MOST = 1000000000 };

/* ------------------------------------------------------------------ showing */

static void
member(struct buf *out, const char *name, struct bytes value, bool *first)
{
    if (!bytes_present(value))
        return;
    buf_printf(out, "%s\"%s\":", *first ? "" : ",", name);
    json_string_write(out, value);
    *first = false;
}

static void
write_match(struct buf *out, const struct fault_match *m)
{
    bool first = true;

    buf_str(out, "\"match\":{");
    member(out, "action", m->action, &first);
    member(out, "method", m->method, &first);
    member(out, "queue", m->queue, &first);
    member(out, "project", m->project, &first);
    member(out, "client", m->client, &first);
    buf_byte(out, '}');
}

static void
write_rule(void *arg, const struct fault_rule *rule)
{
    struct buf *out = arg;
    char text[FAULT_TEXT_CAP];

    fault_text(&rule->fault, text);
    buf_str(out, out->data[out->len - 1] == '[' ? "{" : ",{");
    write_match(out, &rule->match);
    buf_printf(out,
               ",\"skip\":%" PRIu64 ",\"every\":%" PRIu64 ",\"times\":%" PRIu64
               ",\"fault\":\"%s\",\"matched\":%" PRIu64 ",\"struck\":%" PRIu64 "}",
               rule->skip, rule->every, rule->times, text, rule->matched, rule->struck);
}

/* GET /claimd/faults */
enum status
handle_faults_show(struct context *ctx)
{
    struct buf *out = &ctx->res->body;

    buf_str(out, "{\"faults\":["); /* there is room: PROBLEM_ROOM */
    faults_read(testapi_faults(ctx->testapi), write_rule, out);
    buf_str(out, "]}");
    return answer_json(ctx, 200);
}

/* ------------------------------------------------------------------ reading */

/* Where a rule is wrong. */
struct place {
    struct context *ctx;
    size_t at;
};

static enum status
refuse(const struct place *place, const char *name, const char *what)
{
    return context_refuse(place->ctx, ST_BAD_VALUE, "faults[%zu].%s: %s", place->at, name,
                          what);
}

/* A member of the match, with the value that was received. */
static enum status
refuse_match(const struct place *place, const char *name, const char *what,
             struct bytes value)
{
    return context_refuse(place->ctx, ST_BAD_VALUE,
                          "faults[%zu].match.%s: %s (received \"%s\")", place->at, name,
                          what, received(value).text);
}

static const char *
name_method(int method)
{
    return api_method_name((enum method)method);
}

static const char *
name_action(int action)
{
    return action == ACTION_CI_USE ? NULL : action_name((enum action)action);
}

/* The same with all names that there are, which may be longer than other refusals. */
static enum status
refuse_name(const struct place *place, const char *member, struct bytes value,
            const char *(*name)(int index), int count)
{
    struct context *ctx = place->ctx;
    char text[1024];
    size_t len = (size_t)snprintf(
        text, sizeof(text),
        "faults[%zu].match.%s: unknown %s (received \"%s\"). It must be one of",
        place->at, member, member, received(value).text);

    for (int i = 0; i < count && len < sizeof(text); i++)
        if (name(i) != NULL)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s",
                                    i == 0 ? "" : ",", name(i));
    ctx->detail = arena_copy(ctx->req->arena, bytes_str(text)); /* or it is absent */
    return ST_BAD_VALUE;
}

static struct bytes
text_of(const json_t *value)
{
    return bytes_of(json_string_value(value), json_string_length(value));
}

/* Is what a member of a match says possible? */
static enum status
check_match(const struct place *place, const char *name, struct bytes value)
{
    if (strcmp(name, "method") == 0)
        return api_method(value) != METHOD_OTHER
                   ? ST_OK
                   : refuse_name(place, name, value, name_method, METHOD_OTHER);
    if (strcmp(name, "action") != 0)
        return value.len > 0 || strcmp(name, "project") == 0
                   ? ST_OK
                   : refuse_match(place, name, "it must not be empty", value);
    if (action_find(value) == ACTION_CI_USE)
        return refuse_match(place, name,
                            "requests to the server itself cannot have faults", value);
    return action_find(value) != ACTION_COUNT
               ? ST_OK
               : refuse_name(place, name, value, name_action, ACTION_COUNT);
}

static struct bytes *
match_member(struct fault_match *m, const char *name)
{
    return strcmp(name, "action") == 0    ? &m->action
           : strcmp(name, "method") == 0  ? &m->method
           : strcmp(name, "queue") == 0   ? &m->queue
           : strcmp(name, "project") == 0 ? &m->project
           : strcmp(name, "client") == 0  ? &m->client
                                          : NULL;
}

/* The texts stay the tree's. */
static enum status
read_match(const struct place *place, json_t *object, struct fault_match *out)
{
    enum status st = ST_OK;
    const char *name;
    json_t *value;

    if (!json_is_object(object))
        return refuse(place, "match", "it must be an object");
    json_object_foreach(object, name, value)
    {
        struct bytes *slot = match_member(out, name);

        if (slot == NULL)
            return context_refuse(place->ctx, ST_BAD_VALUE,
                                  "faults[%zu].match: unknown member. It must be action, "
                                  "method, queue, project or client (received \"%s\")",
                                  place->at, received(bytes_str(name)).text);
        if (!json_is_string(value))
            return context_refuse(
                place->ctx, ST_BAD_VALUE,
                "faults[%zu].match.%s: it must be a string (received %s)", place->at,
                name, json_tree_received(value).text);
        *slot = text_of(value);
        st = check_match(place, name, *slot);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

static enum status
read_count(const struct place *place, const char *name, const json_t *value,
           int64_t least, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < least ||
        json_integer_value(value) > COUNT_MOST)
        return context_refuse(place->ctx, ST_BAD_VALUE,
                              "faults[%zu].%s: it must be an integer between %" PRId64
                              " and %d (received %s)",
                              place->at, name, least, COUNT_MOST,
                              json_tree_received(value).text);
    *out = (uint64_t)json_integer_value(value);
    return ST_OK;
}

static enum status
read_fault(const struct place *place, const json_t *value, struct fault *out)
{
    struct reason why;

    reason_init(&why);
    if (!json_is_string(value))
        return refuse(place, "fault", "it must be a string");
    if (fault_read(text_of(value), out, &why) != ST_OK)
        return refuse(place, "fault", why.text);
    return ST_OK;
}

static enum status
read_member(const struct place *place, const char *name, json_t *value,
            struct fault_rule *out)
{
    if (strcmp(name, "match") == 0)
        return read_match(place, value, &out->match);
    if (strcmp(name, "every") == 0)
        return read_count(place, name, value, 1, &out->every);
    if (strcmp(name, "skip") == 0)
        return read_count(place, name, value, 0, &out->skip);
    if (strcmp(name, "times") == 0)
        return read_count(place, name, value, 0, &out->times);
    if (strcmp(name, "fault") == 0)
        return read_fault(place, value, &out->fault);
    return context_refuse(place->ctx, ST_BAD_BODY,
                          "faults[%zu]: unknown member. It must be match, every, skip, "
                          "times or fault (received \"%s\")",
                          place->at, received(bytes_str(name)).text);
}

static enum status
read_rule(const struct place *place, json_t *object, struct fault_rule *out)
{
    enum status st = ST_OK;
    const char *name;
    json_t *value;

    *out = (struct fault_rule){.every = 1};
    if (!json_is_object(object))
        return context_refuse(place->ctx, ST_BAD_BODY, "faults[%zu] must be an object",
                              place->at);
    json_object_foreach(object, name, value)
    {
        st = read_member(place, name, value, out);
        if (st != ST_OK)
            return st;
    }
    if (out->fault.kind == FAULT_NONE)
        return refuse(place, "fault", "it is required");
    return ST_OK;
}

static enum status
take_rules(struct context *ctx, const json_t *list)
{
    const size_t count = json_array_size(list);
    struct fault_rule *rules =
        arena_array(ctx->req->arena, count > 0 ? count : 1, sizeof(*rules));
    enum status st = rules == NULL ? ST_NO_MEMORY : ST_OK;

    for (size_t i = 0; i < count && st == ST_OK; i++)
        st = read_rule(&(const struct place){ctx, i}, json_array_get(list, i), &rules[i]);
    return st == ST_OK ? faults_replace(testapi_faults(ctx->testapi), rules, count) : st;
}

/* PUT /claimd/faults */
enum status
handle_faults_set(struct context *ctx)
{
    const json_t *list;
    json_t *body;
    enum status st = testapi_read_body(ctx, &body);

    if (st != ST_OK)
        return st;
    list = json_object_get(body, "faults");
    if (!json_is_array(list) || json_object_size(body) != 1)
        st = context_refuse(ctx, ST_BAD_BODY, "the body must be {\"faults\": [...]}");
    else if (json_array_size(list) > FAULT_RULES_MOST)
        st = context_refuse(ctx, ST_BAD_VALUE, "faults has %zu rules. The maximum is %d",
                            json_array_size(list), FAULT_RULES_MOST);
    else
        st = take_rules(ctx, list);
    json_decref(body);
    return st == ST_OK ? answer_empty(ctx, 204) : st;
}

/* DELETE /claimd/faults */
enum status
handle_faults_delete(struct context *ctx)
{
    enum status st = faults_replace(testapi_faults(ctx->testapi), NULL, 0);

    return st == ST_OK ? answer_empty(ctx, 204) : st;
}
