/*
 * faults: reads, writes and shows fault rules (docs/api.md 23.7). Declared in
 * handlers.h. The rules are in claimd/testapi/faults.h, and decorator.c applies them to
 * requests.
 */
#include "api/response.h"
#include "api/testapi/handlers.h"
#include "claimd/json/string.h"
#include "claimd/testapi/testapi.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* ------------------------------------------------------------------ faults in words */

/* A number of a fault. */
struct amount {
    const char *name; /* NULL: there is none */
    int64_t least, most;
    size_t offset; /* in struct fault */
    bool optional;
};

enum { AMOUNTS = 2 };

struct word {
    const char *text;
    enum fault_kind kind;
    int status;
    struct amount amounts[AMOUNTS];
};

enum { MS_MOST = 600000, BYTES_MOST = 65536, RETRY_MOST_S = 86400 };

#define OFFSET(member) offsetof(struct fault, member)
#define RETRY                                                                            \
    {                                                                                    \
        {                                                                                \
            "retry_after", 0, RETRY_MOST_S, OFFSET(retry_after_s), true                  \
        }                                                                                \
    }

static const struct word words[] = {
    {"latency", FAULT_LATENCY, 0, {{"ms", 1, MS_MOST, OFFSET(ms), false}}},
    {"status=429", FAULT_STATUS, 429, RETRY},
    {"status=503", FAULT_STATUS, 503, RETRY},
    {"cut=before", FAULT_CUT_BEFORE, 0, {{0}}},
    {"cut=after", FAULT_CUT_AFTER, 0, {{0}}},
    {"half", FAULT_HALF, 0, {{0}}},
    {"slow",
     FAULT_SLOW,
     0,
     {{"bytes", 1, BYTES_MOST, OFFSET(bytes), false},
      {"every_ms", 1, MS_MOST, OFFSET(ms), false}}},
    {"end_claim", FAULT_END_CLAIM, 0, {{0}}},
    {"clock",
     FAULT_CLOCK,
     0,
     {{"seconds", 1, TESTAPI_STEP_MOST_S, OFFSET(seconds), false}}},
};

enum { WORDS = sizeof(words) / sizeof(words[0]) };

static int64_t *
amount_at(struct fault *fault, const struct amount *amount)
{
    return (int64_t *)((char *)fault + amount->offset);
}

static enum status
set_amount(const struct amount *amount, struct bytes text, struct fault *out,
           struct reason *why)
{
    int64_t value;

    if (!bytes_to_i64(text, &value) || value < amount->least || value > amount->most)
        return reason_give(
            why, ST_BAD_VALUE,
            "%s must be an integer between %" PRId64 " and %" PRId64 " (received \"%s\")",
            amount->name, amount->least, amount->most, received(text).text);
    *amount_at(out, amount) = value;
    return ST_OK;
}

/* Reads "; name=N; name=N". */
static enum status
read_amounts(const struct word *word, struct bytes rest, struct fault *out,
             struct reason *why)
{
    bool set[AMOUNTS] = {false};
    enum status st = ST_OK;

    while (bytes_present(rest) && st == ST_OK) {
        struct bytes value = bytes_trim(bytes_cut(&rest, ';'));
        struct bytes name = bytes_cut(&value, '=');
        size_t i = 0;

        while (i < AMOUNTS && (word->amounts[i].name == NULL || set[i] ||
                               !bytes_equal_str(name, word->amounts[i].name)))
            i++;
        if (i == AMOUNTS)
            return reason_give(why, ST_BAD_VALUE, "%s does not have the setting \"%s\"",
                               word->text, received(name).text);
        st = set_amount(&word->amounts[i], value, out, why);
        set[i] = true;
    }
    for (size_t i = 0; i < AMOUNTS && st == ST_OK; i++)
        if (word->amounts[i].name != NULL && !set[i] && !word->amounts[i].optional)
            st = reason_give(why, ST_BAD_VALUE, "%s requires %s=N", word->text,
                             word->amounts[i].name);
    return st;
}

enum status
fault_read(struct bytes text, struct fault *out, struct reason *why)
{
    struct bytes rest = text, first = bytes_trim(bytes_cut(&rest, ';'));
    struct fault fault = {.retry_after_s = -1};
    enum status st;

    for (size_t i = 0; i < WORDS; i++) {
        if (!bytes_equal_str(first, words[i].text))
            continue;
        fault.kind = words[i].kind;
        fault.status = words[i].status;
        st = read_amounts(&words[i], rest, &fault, why);
        if (st == ST_OK)
            *out = fault;
        return st;
    }
    return reason_give(why, ST_BAD_VALUE,
                       "a fault must be latency, status=429, status=503, cut=before, "
                       "cut=after, half, slow, end_claim or clock, with its settings "
                       "after a semicolon (received \"%s\")",
                       received(text).text);
}

void
fault_text(const struct fault *fault, char out[FAULT_TEXT_CAP])
{
    struct fault copy = *fault;
    size_t len = 0;

    for (size_t i = 0; i < WORDS; i++) {
        const struct word *word = &words[i];

        if (word->kind != fault->kind || word->status != fault->status)
            continue;
        len = (size_t)snprintf(out, FAULT_TEXT_CAP, "%s", word->text);
        for (size_t k = 0; k < AMOUNTS; k++) {
            const struct amount *amount = &word->amounts[k];
            int64_t value = amount->name == NULL ? -1 : *amount_at(&copy, amount);

            if (value >= 0)
                len += (size_t)snprintf(out + len, FAULT_TEXT_CAP - len, "; %s=%" PRId64,
                                        amount->name, value);
        }
        return;
    }
    out[0] = '\0';
}

enum { COUNT_MOST = 1000000000 }; /* for the counts of a rule */

/* ------------------------------------------------------------------ showing */

static void
write_rule(void *arg, const struct fault_rule *rule)
{
    const struct fault_match *m = &rule->match;
    struct buf *out = arg;
    char text[FAULT_TEXT_CAP];

    fault_text(&rule->fault, text);
    json_write_comma(out);
    buf_str(out, "{\"match\":{");
    json_write_text(out, "action", m->action);
    json_write_text(out, "method", m->method);
    json_write_text(out, "queue", m->queue);
    json_write_text(out, "project", m->project);
    json_write_text(out, "client", m->client);
    buf_printf(out,
               "},\"skip\":%" PRIu64 ",\"every\":%" PRIu64 ",\"times\":%" PRIu64
               ",\"fault\":\"%s\",\"matched\":%" PRIu64 ",\"struck\":%" PRIu64 "}",
               rule->skip, rule->every, rule->times, text, rule->matched, rule->struck);
}

/* GET /claimd/faults */
enum status
handle_faults_show(struct context *ctx)
{
    struct buf *out = &ctx->res->body;

    buf_str(out, "{\"faults\":[");
    faults_read(testapi_faults(ctx->config->testapi), write_rule, out);
    buf_str(out, "]}");
    return response_json(ctx, 200);
}

/* ------------------------------------------------------------------ reading */

/* The rule that is read. */
struct rule_place {
    struct context *ctx;
    size_t at;
};

static enum status
refuse_rule(const struct rule_place *place, const char *name, const char *what)
{
    return context_refuse(place->ctx, ST_BAD_VALUE, "faults[%zu].%s: %s", place->at, name,
                          what);
}

/* Refuses a member of the match, with the value that was received. */
static enum status
refuse_match(const struct rule_place *place, const char *name, const char *what,
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

/* The same with a list of all names, so the text is longer than that of
 * context_refuse(). */
static enum status
refuse_name(const struct rule_place *place, const char *member, struct bytes value,
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
    ctx->detail =
        arena_copy(ctx->req->arena, bytes_str(text)); /* absent without memory */
    return ST_BAD_VALUE;
}

static struct bytes
text_of(const json_t *value)
{
    return bytes_of(json_string_value(value), json_string_length(value));
}

/* Checks the value of a member of a match. */
static enum status
check_match(const struct rule_place *place, const char *name, struct bytes value)
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

/* Reads a match, whose texts are borrowed from the tree. */
static enum status
read_match(const struct rule_place *place, json_t *object, struct fault_match *out)
{
    enum status st = ST_OK;
    const char *name;
    json_t *value;

    if (!json_is_object(object))
        return refuse_rule(place, "match", "it must be an object");
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
read_count(const struct rule_place *place, const char *name, const json_t *value,
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
read_fault(const struct rule_place *place, const json_t *value, struct fault *out)
{
    struct reason why;

    reason_init(&why);
    if (!json_is_string(value))
        return refuse_rule(place, "fault", "it must be a string");
    if (fault_read(text_of(value), out, &why) != ST_OK)
        return refuse_rule(place, "fault", why.text);
    return ST_OK;
}

static enum status
read_member(const struct rule_place *place, const char *name, json_t *value,
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
read_rule(const struct rule_place *place, json_t *object, struct fault_rule *out)
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
        return refuse_rule(place, "fault", "it is required");
    return ST_OK;
}

/* PUT /claimd/faults */
enum status
handle_faults_set(struct context *ctx)
{
    struct fault_rule *rules = NULL;
    const json_t *list;
    json_t *body;
    size_t count;
    enum status st = testapi_read_body(ctx, &body);

    if (st != ST_OK)
        return st;
    list = json_object_get(body, "faults");
    count = json_array_size(list);
    if (!json_is_array(list) || json_object_size(body) != 1)
        st = context_refuse(ctx, ST_BAD_BODY, "the body must be {\"faults\": [...]}");
    else if (count > FAULT_RULES_MOST)
        st = context_refuse(ctx, ST_BAD_VALUE, "faults has %zu rules. The maximum is %d",
                            count, FAULT_RULES_MOST);
    else
        rules = arena_array(ctx->req->arena, count + 1, sizeof(*rules));
    if (st == ST_OK && rules == NULL)
        st = ST_NO_MEMORY;
    for (size_t i = 0; st == ST_OK && i < count; i++)
        st = read_rule(&(const struct rule_place){ctx, i}, json_array_get(list, i),
                       &rules[i]);
    if (st == ST_OK)
        st = faults_replace(testapi_faults(ctx->config->testapi), rules, count);
    json_decref(body);
    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* DELETE /claimd/faults */
enum status
handle_faults_delete(struct context *ctx)
{
    enum status st = faults_replace(testapi_faults(ctx->config->testapi), NULL, 0);

    return st == ST_OK ? response_empty(ctx, 204) : st;
}
