#include "api/caller.h"
#include "api/wire/decode_state.h"
#include "api/wire/state/claims.h"
#include "api/wire/state/message.h"
#include "api/wire/state/queue.h"
#include "api/wire/state/subscription.h"
#include "claimd/json/fault.h"

enum {
    LINE_DUMP,
    LINE_VERSION,
    LINE_NOW,
    LINE_PROJECT,
    LINE_QUEUE,
    LINE_TOPIC,
    LINE_METADATA,
    LINE_MESSAGE,
    LINE_SUBSCRIPTION,
    LINE_END,
    LINE_NEXT,
    LINE_MEMBERS
};

static const char *const line_names[LINE_MEMBERS] = {
    "claimd",   "version", "now_ms",       "project", "queue", "topic",
    "metadata", "message", "subscription", "end",     "next"};

static enum status
read_address_of(struct state_decoder *d, const struct doc_member *m,
                struct state_line *out)
{
    const struct doc_member *name =
        m[LINE_TOPIC].value.kind != SCAN_NONE ? &m[LINE_TOPIC] : &m[LINE_QUEUE];
    const struct doc_at at = {NULL, "project", BYTES_NONE, 0};
    enum status st = doc_text(d, NULL, &m[LINE_PROJECT], &out->where.project);

    if (st != ST_OK)
        return st;
    if (m[LINE_TOPIC].value.kind != SCAN_NONE && m[LINE_QUEUE].value.kind != SCAN_NONE)
        return doc_refuse(d, NULL,
                          "it has both a queue and a topic. Only one is allowed");
    if (!bytes_present(out->where.project) || out->where.project.len > CALLER_PROJECT_MAX)
        return doc_refuse(d, &at, "it is required, and at most %d bytes long",
                          CALLER_PROJECT_MAX);
    out->where.kind = name == &m[LINE_TOPIC] ? STORE_TOPIC : STORE_QUEUE;
    return state_name_read(d, NULL, name, &out->where.name);
}

static enum status
read_line_message(struct state_decoder *d, struct bytes text, struct state_line *out)
{
    const struct doc_at at = {NULL, "message", BYTES_NONE, 0};
    const struct doc_at place_of = {&at, "claim", BYTES_NONE, 0};
    struct json_scan_value claim;
    struct bytes name;
    enum status st = state_message_read(d, &at, text, &claim, &out->message);

    if (st != ST_OK || doc_left_out(&claim))
        return st;
    st = state_claim_read(d, &place_of, claim.text, &name, &out->claim);
    if (st == ST_OK && out->claim.id.text[0] == '\0')
        return doc_refuse(d, &place_of, "its id is malformed");
    out->message.claim = 1;
    return st;
}

/* {"end":5}; {"end":true} and {"next":"MARKER"} end a page. */
static enum status
read_line_end(struct state_decoder *d, const struct doc_member *m, struct state_line *out)
{
    const enum json_scan_kind kind = m[LINE_END].value.kind;

    out->what = STATE_END;
    out->announced = DUMP_UNCOUNTED;
    if (kind == SCAN_TRUE || (kind == SCAN_NONE && m[LINE_NEXT].value.kind != SCAN_NONE))
        return ST_OK;
    if (kind != SCAN_INTEGER)
        return doc_refuse(d, NULL, "end is %s. It must be the number of records, or true",
                          json_received(&m[LINE_END].value).text);
    return doc_count(d, NULL, &m[LINE_END], INT64_MAX, &out->announced);
}

static enum status
read_line(struct state_decoder *d, const struct doc_member *m, struct state_line *out)
{
    const struct doc_at at = {NULL, "subscription", BYTES_NONE, 0};
    enum status st = read_address_of(d, m, out);

    if (st != ST_OK)
        return st;
    if (m[LINE_MESSAGE].value.kind != SCAN_NONE) {
        out->what = STATE_MESSAGE;
        return read_line_message(d, m[LINE_MESSAGE].value.text, out);
    }
    if (m[LINE_SUBSCRIPTION].value.kind != SCAN_NONE) {
        out->what = STATE_SUBSCRIPTION;
        return state_subscription_read(d, &at, m[LINE_SUBSCRIPTION].value.text,
                                       &out->subscription);
    }
    out->what = STATE_QUEUE;
    return state_metadata_read(d, NULL, &m[LINE_METADATA], &out->metadata);
}

enum status
decode_state_line(struct state_decoder *d, struct bytes text, struct state_line *out)
{
    struct doc_member m[LINE_MEMBERS] = {{.name = NULL}};
    enum status st;

    *out = (struct state_line){.what = STATE_HEAD};
    if (json_fault(text, d->why))
        return ST_BAD_BODY;
    for (size_t i = 0; i < LINE_MEMBERS; i++)
        m[i].name = line_names[i];
    st = doc_object(d, NULL, text, m, LINE_MEMBERS);
    if (st != ST_OK)
        return st;
    if (m[LINE_DUMP].value.kind != SCAN_NONE)
        return doc_version(d, &m[LINE_VERSION]);
    if (m[LINE_END].value.kind != SCAN_NONE || m[LINE_NEXT].value.kind != SCAN_NONE)
        return read_line_end(d, m, out);
    return read_line(d, m, out);
}
