#include "sim/operation.h"

#include <stdio.h>

const char *
operation_name(enum op_kind kind)
{
    static const char *const names[OP_COUNT] = {
#define OPERATION_NAME(name) #name,
        OPERATION_LIST(OPERATION_NAME)
#undef OPERATION_NAME
    };

    return names[kind];
}

bool
operation_adds(const struct operation *op)
{
    return op->kind == OP_POST || op->kind == OP_QUEUE_PUT ||
           op->kind == OP_QUEUE_PATCH || op->kind == OP_SUBSCRIBE ||
           op->kind == OP_SUBSCRIPTION_PATCH || op->kind == OP_SCHEDULE_SET ||
           op->kind == OP_SCHEDULE_PAUSE ||
           (op->kind == OP_FINISH && op->post_count > 0) || op->key != 0;
}

bool
operation_takes_key(const struct operation *op)
{
    return (op->kind == OP_POST && op->unique.number == 0) || op->kind == OP_POP ||
           op->kind == OP_FINISH || (op->kind == OP_CLAIM && op->any_count == 0);
}

const char *
operation_project(const struct operation *op)
{
    return operation_schedules(op) ? SCHEDULE_PROJECT : place_project(op->place);
}

/* Was it named before? Then it counts there. */
static bool
is_repeated(const struct operation *op, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (op->any[i] == op->any[at])
            return true;
    return false;
}

int
operation_place(const struct operation *op, size_t i)
{
    if (op->kind == OP_FINISH && i > 0)
        return i <= op->post_count ? op->posts[i - 1].place : NOWHERE;
    if (op->any_count == 0)
        return i == 0 ? op->place : NOWHERE;
    for (size_t at = 0; at < op->any_count; at++)
        if (!is_repeated(op, at) && i-- == 0)
            return op->any[at];
    return NOWHERE;
}

const char *
client_uuid(int client)
{
    static const char uuids[CLIENTS][37] = {
        "3381af92-2b9e-11e3-b191-718613007340", "3381af92-2b9e-11e3-b191-718613007341",
        "3381af92-2b9e-11e3-b191-718613007342", "3381af92-2b9e-11e3-b191-718613007343",
        "3381af92-2b9e-11e3-b191-718613007344", "3381af92-2b9e-11e3-b191-718613007345",
        "3381af92-2b9e-11e3-b191-718613007346", "3381af92-2b9e-11e3-b191-718613007347",
        "3381af92-2b9e-11e3-b191-718613007348", "3381af92-2b9e-11e3-b191-718613007349",
        "3381af92-2b9e-11e3-b191-71861300734a", "3381af92-2b9e-11e3-b191-71861300734b",
        "3381af92-2b9e-11e3-b191-71861300734c", "3381af92-2b9e-11e3-b191-71861300734d",
        "3381af92-2b9e-11e3-b191-71861300734e", "3381af92-2b9e-11e3-b191-71861300734f"};

    return uuids[client];
}

const char *
subscriber_uri(int subscriber)
{
    static const char *const uris[SUBSCRIBERS] = {"http://one/", "http://two/x?y=%20",
                                                  "https://three:1/", "mailto:four@five"};

    return uris[subscriber];
}

void
unique_header(struct known_unique unique, char *out, size_t cap)
{
    (void)snprintf(out, cap, "sim-unique-%d%s", unique.number,
                   unique.until_claimed ? "; until=claimed" : "");
}

/* ---------------------------------------------------------------------- bodies */

void
options_body(struct buf *out, int64_t options)
{
    buf_printf(out, "{ \"n\": %lld}", (long long)options);
}

static void
pad(struct buf *out, size_t from, size_t len)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz,:]}{[ ";

    while (out->len - from < len)
        buf_byte(out, letters[(out->len - from) % (sizeof(letters) - 1)]);
}

/* Every kind of JSON value, spelled as only the producer would: it must come back so. */
void
draft_body(struct buf *out, uint64_t number, size_t len)
{
    size_t from = out->len;

    switch (number % 4) {
    case 0:
        buf_u64(out, number);
        break;
    case 1:
        buf_printf(out, "\"%llu:", (unsigned long long)number);
        pad(out, from, len);
        buf_str(out, "\\u0041\"");
        break;
    case 2:
        buf_printf(out, "{ \"n\" :%llu, \"x\":1.50e1,\"pad\": \"",
                   (unsigned long long)number);
        pad(out, from, len);
        buf_str(out, "\" }");
        break;
    default:
        buf_printf(out, "[%llu,null , [\"", (unsigned long long)number);
        pad(out, from, len);
        buf_str(out, "\"], {}]");
    }
}

static void
write_drafts(const struct draft *drafts, size_t count, struct buf *body)
{
    buf_str(body, "\"messages\":[");
    for (size_t i = 0; i < count; i++) {
        const struct draft *d = &drafts[i];

        buf_str(body, i == 0 ? "{\"body\": " : ",{\"body\": ");
        draft_body(body, d->number, d->len);
        if (d->ttl_s != STORE_UNSET)
            buf_printf(body, " ,\"ttl\":%lld", (long long)d->ttl_s);
        if (d->delay_s != STORE_UNSET)
            buf_printf(body, ",\"delay\":%lld", (long long)d->delay_s);
        buf_byte(body, '}');
    }
    buf_str(body, "]}");
}

static void
write_terms(const struct operation *op, struct buf *body)
{
    const char *mark = "";

    buf_byte(body, '{');
    if (op->ttl_s != STORE_UNSET) {
        buf_printf(body, "\"ttl\":%lld", (long long)op->ttl_s);
        mark = ",";
    }
    if (op->grace_s != STORE_UNSET)
        buf_printf(body, "%s\"grace\":%lld", mark, (long long)op->grace_s);
    buf_byte(body, '}');
}

/* ---------------------------------------------------------------------- failing jobs */

void
operation_write_post(const struct operation *op, size_t i, size_t first, struct buf *out)
{
    const struct known_unique unique = op->posts[i].unique;

    buf_printf(out, "{\"queue\":\"%s\",", place_name(op->posts[i].place));
    if (unique.number != 0)
        buf_printf(out, "\"unique\":{\"key\":\"sim-unique-%d\",\"until\":\"%s\"},",
                   unique.number, unique.until_claimed ? "claimed" : "deleted");
    write_drafts(&op->drafts[first], op->posts[i].count, out);
}

/* The messages on which this is done; *mark: what stands in front of the next member. */
static void
write_items(const struct operation *op, enum store_finish_action action, const char *name,
            char *mark, struct buf *body)
{
    const char *between = "";

    for (size_t i = 0; i < op->id_count; i++) {
        const struct finish_item *item = &op->items[i];

        if (item->action != action)
            continue;
        if (between[0] == '\0')
            buf_printf(body, "%c\"%s\":[", *mark, name);
        *mark = ',';
        if (action == STORE_FINISH_DELETE)
            buf_printf(body, "%s\"%s\"", between, op->ids[i].text);
        else
            buf_printf(body, "%s{\"id\":\"%s\"", between, op->ids[i].text);
        between = ",";
        if (action == STORE_FINISH_DELETE)
            continue;
        if (item->delay_s > 0)
            buf_printf(body, ",\"delay\":%lld", (long long)item->delay_s);
        if (item->reason)
            buf_str(body, ",\"reason\":\"the machine at the end of the line is gone\"");
        buf_byte(body, '}');
    }
    if (between[0] != '\0')
        buf_byte(body, ']');
}

static void
write_finish(const struct operation *op, struct buf *body)
{
    char mark = '{';
    size_t first = 0;

    write_items(op, STORE_FINISH_DELETE, "delete", &mark, body);
    write_items(op, STORE_FINISH_RELEASE, "release", &mark, body);
    write_items(op, STORE_FINISH_DEAD_LETTER, "dead_letter", &mark, body);
    for (size_t i = 0; i < op->post_count; i++) {
        if (i == 0)
            buf_printf(body, "%c\"post\":[", mark);
        else
            buf_byte(body, ',');
        operation_write_post(op, i, first, body);
        first += op->posts[i].count;
        mark = ',';
    }
    if (op->post_count > 0)
        buf_byte(body, ']');
    if (op->renews) {
        buf_printf(body, "%c\"renew\":", mark);
        write_terms(op, body);
        mark = ',';
    }
    buf_printf(body, "%c\"atomic\":%s}", mark, op->atomic ? "true" : "false");
}

static void
write_redrive(const struct operation *op, struct buf *body)
{
    buf_printf(body, "{\"limit\":%d,\"dry_run\":%s,\"reset\":%s,\"to\":", op->limit,
               op->dry_run ? "true" : "false", op->keeps_count ? "false" : "true");
    buf_printf(body, "\"%s\"}", op->to == NOWHERE ? "origin" : place_name(op->to));
}

/* A subscription as it is to be, or what is to change of it. */
static void
write_subscription(const struct operation *op, struct buf *body)
{
    const char *mark = "{";

    if (op->subscriber != NONE) {
        buf_printf(body, "%s\"subscriber\":\"%s\"", mark, subscriber_uri(op->subscriber));
        mark = ",";
    }
    if (op->options != STORE_UNSET) {
        buf_printf(body, "%s\"options\":", mark);
        options_body(body, op->options);
        mark = ",";
    }
    if (op->ttl_s != STORE_UNSET)
        buf_printf(body, "%s\"ttl\":%lld", mark, (long long)op->ttl_s);
    buf_byte(body, '}');
}

static void
write_purge(const struct operation *op, struct buf *body)
{
    if (op->purge != STORE_PURGE_BOTH)
        buf_printf(body, "{\"resource_types\":[\"%s\"]}",
                   op->purge == STORE_PURGE_MESSAGES ? "messages" : "subscriptions");
}

static void
write_pause(const struct operation *op, struct buf *body)
{
    static const struct {
        unsigned bit;
        const char *name;
    } members[] = {{STORE_PAUSE_CLAIMS, "claims"}, {STORE_PAUSE_POSTS, "posts"}};
    const char *mark = "";

    buf_byte(body, '{');
    for (size_t i = 0; i < 2; i++) {
        if (((op->pauses | op->resumes) & members[i].bit) == 0)
            continue;
        buf_printf(body, "%s\"%s\":%s", mark, members[i].name,
                   (op->pauses & members[i].bit) != 0 ? "true" : "false");
        mark = ",";
    }
    buf_byte(body, '}');
}

static void
write_patch(const struct operation *op, struct buf *body)
{
    const char *member = setting_member(op->setting);

    if (op->value == STORE_UNSET) {
        buf_printf(body, "[{\"op\":\"remove\",\"path\":\"/metadata/%s\"}]", member);
        return;
    }
    buf_printf(body, "[{\"op\":\"add\",\"path\":\"/metadata/%s\",\"value\":", member);
    if (op->setting == SETTING_DEAD_LETTER)
        buf_printf(body, "\"%s\"}]", place_name((int)op->value));
    else
        buf_printf(body, "%lld}]", (long long)op->value);
}

/* ---------------------------------------------------------------------- targets */

static void
write_parameter(struct buf *target, char *mark, const char *name)
{
    buf_byte(target, *mark);
    buf_str(target, name);
    buf_byte(target, '=');
    *mark = '&';
}

static void
write_ids(const struct operation *op, struct buf *target, char *mark)
{
    write_parameter(target, mark, "ids");
    for (size_t i = 0; i < op->id_count; i++) {
        if (i > 0)
            buf_str(target, i % 2 == 0 ? "," : "%2C");
        buf_str(target, op->ids[i].text);
    }
}

static void
write_text(struct buf *target, char *mark, const char *name, struct store_id id)
{
    if (id.text[0] == '\0')
        return;
    write_parameter(target, mark, name);
    buf_str(target, id.text);
}

static void
write_number(struct buf *target, char *mark, const char *name, int value)
{
    if (value == 0)
        return;
    write_parameter(target, mark, name);
    buf_i64(target, value);
}

static void
write_flag(struct buf *target, char *mark, const char *name, bool value)
{
    if (!value)
        return;
    write_parameter(target, mark, name);
    buf_str(target, "true");
}

static void
write_page(const struct operation *op, struct buf *target)
{
    char mark = '?';

    write_number(target, &mark, "limit", op->limit);
    write_flag(target, &mark, "echo", op->echo);
    write_flag(target, &mark, "include_claimed", op->include_claimed);
    write_flag(target, &mark, "include_delayed", op->include_delayed);
    write_text(target, &mark, "marker", op->from.marker);
}

static const char *
write_messages(const struct operation *op, struct buf *target, struct buf *body)
{
    char mark = '?';

    buf_str(target, "/messages");
    switch (op->kind) {
    case OP_POST:
        buf_byte(body, '{');
        write_drafts(op->drafts, op->draft_count, body);
        return "POST";
    case OP_LIST:
        write_page(op, target);
        return "GET";
    case OP_GET_MANY:
        write_ids(op, target, &mark);
        return "GET";
    case OP_DELETE_MANY:
        write_ids(op, target, &mark);
        write_text(target, &mark, "claim_ids", op->claim);
        return "DELETE";
    case OP_POP:
        write_number(target, &mark, "pop", op->limit);
        return "DELETE";
    default: /* one message */
        buf_printf(target, "/%s", op->id.text);
        write_text(target, &mark, "claim_id", op->claim);
        return op->kind == OP_GET_ONE ? "GET" : "DELETE";
    }
}

static const char *
write_claims(const struct operation *op, struct buf *target, struct buf *body)
{
    char mark = '?';

    buf_str(target, "/claims");
    if (op->kind == OP_CLAIM) {
        write_number(target, &mark, "limit", op->limit);
        write_terms(op, body);
        return "POST";
    }
    buf_printf(target, "/%s", op->id.text);
    if (op->kind == OP_CLAIM_SHOW)
        return "GET";
    if (op->kind == OP_CLAIM_RELEASE)
        return "DELETE";
    write_terms(op, body);
    return "PATCH";
}

static const char *
write_subscriptions(const struct operation *op, struct buf *target, struct buf *body)
{
    buf_str(target, "/subscriptions");
    if (op->kind == OP_SUBSCRIPTION_LIST || op->kind == OP_PROGRESS_LIST) {
        buf_str(target, "?limit=20");
        return "GET";
    }
    if (op->kind == OP_SUBSCRIBE) {
        write_subscription(op, body);
        return "POST";
    }
    buf_printf(target, "/%s", op->id.text);
    if (op->kind == OP_SUBSCRIPTION_DELETE)
        return "DELETE";
    if (op->kind == OP_SUBSCRIPTION_PATCH) {
        write_subscription(op, body);
        return "PATCH";
    }
    buf_str(target, "/confirm");
    buf_str(body, op->confirmed ? "{\"confirmed\":true}" : "{\"confirmed\":false}");
    return "PUT";
}

static void
write_schedule(const struct operation *op, struct buf *body)
{
    const struct schedule_terms *terms = &op->terms;

    if (terms->cron)
        buf_str(body, "{\"cron\":\"* * * * *\"");
    else
        buf_printf(body, "{\"every\":%lld", (long long)terms->every_s);
    buf_printf(body,
               ",\"message\":{\"body\":%d,\"ttl\":%d},\"missed\":\"%s\","
               "\"overlap\":\"%s\",\"paused\":%s}",
               op->schedule, RUN_TTL_S, schedule_missed_names[terms->missed],
               schedule_overlap_names[terms->overlap], terms->paused ? "true" : "false");
}

static const char *
write_schedules(const struct operation *op, struct buf *target, struct buf *body)
{
    buf_str(target, "/claimd/queues/" SCHEDULE_QUEUE "/schedules");
    if (op->kind == OP_SCHEDULE_LIST)
        return "GET";
    buf_printf(target, "/%d", op->schedule);
    if (op->kind == OP_SCHEDULE_SHOW)
        return "GET";
    if (op->kind == OP_SCHEDULE_DELETE)
        return "DELETE";
    if (op->kind == OP_SCHEDULE_PAUSE) {
        buf_printf(body, "{\"paused\":%s}", op->terms.paused ? "true" : "false");
        return "PATCH";
    }
    write_schedule(op, body);
    return "PUT";
}

/* Of the first of several queues that has a message. */
static const char *
write_claim_any(const struct operation *op, struct buf *target, struct buf *body)
{
    char mark = '?';

    buf_str(target, "/claimd/claims");
    for (size_t i = 0; i < op->any_count; i++) {
        write_parameter(target, &mark, "queue");
        buf_str(target, place_name(op->any[i]));
    }
    write_number(target, &mark, "limit", op->limit);
    write_terms(op, body);
    return "POST";
}

const char *
operation_write(const struct operation *op, struct buf *target, struct buf *body)
{
    if (op->any_count > 0)
        return write_claim_any(op, target, body);
    if (operation_schedules(op))
        return write_schedules(op, target, body);
    if (op->kind == OP_QUEUE_LIST) {
        buf_str(target, "/v2/queues?limit=20&with_count=true");
        return "GET";
    }
    buf_printf(target, "/%s/queues/%s",
               op->kind == OP_PROGRESS_LIST || op->kind == OP_FINISH ||
                       op->kind == OP_REDRIVE || op->kind == OP_QUEUE_PAUSE
                   ? "claimd"
                   : "v2",
               place_name(op->place));
    switch (op->kind) {
    case OP_QUEUE_PUT:
        if (op->transient)
            buf_str(body, "{\"_persistence\":\"memory\"}");
        return "PUT";
    case OP_QUEUE_SHOW:
        return "GET";
    case OP_QUEUE_DELETE:
        return "DELETE";
    case OP_QUEUE_PATCH:
        write_patch(op, body);
        return "PATCH";
    case OP_QUEUE_PURGE:
        buf_str(target, "/purge");
        write_purge(op, body);
        return "POST";
    case OP_QUEUE_PAUSE:
        buf_str(target, "/pause");
        write_pause(op, body);
        return "POST";
    case OP_QUEUE_STATS:
        buf_str(target, "/stats");
        return "GET";
    case OP_FINISH:
        buf_printf(target, "/claims/%s/finish", op->id.text);
        write_finish(op, body);
        return "POST";
    case OP_REDRIVE:
        buf_str(target, "/redrive");
        write_redrive(op, body);
        return "POST";
    case OP_CLAIM:
    case OP_CLAIM_SHOW:
    case OP_CLAIM_RENEW:
    case OP_CLAIM_RELEASE:
        return write_claims(op, target, body);
    case OP_SUBSCRIBE:
    case OP_SUBSCRIPTION_LIST:
    case OP_SUBSCRIPTION_PATCH:
    case OP_SUBSCRIPTION_CONFIRM:
    case OP_SUBSCRIPTION_DELETE:
    case OP_PROGRESS_LIST:
        return write_subscriptions(op, target, body);
    default:
        return write_messages(op, target, body);
    }
}
