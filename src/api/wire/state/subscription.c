#include "api/wire/state/subscription.h"

#include "api/wire/subscription.h"

enum {
    SUB_ID,
    SUB_SUBSCRIBER,
    SUB_OPTIONS,
    SUB_TTL,
    SUB_AGE,
    SUB_CONFIRMED,
    SUB_ASKED,
    SUB_DELIVERED,
    SUB_GIVEN_UP,
    SUB_FALLEN_OUT,
    SUB_MEMBERS
};

static const char *const subscription_names[SUB_MEMBERS] = {
    "id",        "subscriber", "options",   "ttl",      "age",
    "confirmed", "asked",      "delivered", "given_up", "fallen_out"};

static enum status
read_address(struct state_decoder *d, const struct doc_at *at, const struct doc_member *m,
             struct store_image_subscription *out)
{
    struct doc_at place_of = {at, "subscriber", BYTES_NONE, 0};
    enum status st = doc_text(d, at, &m[SUB_SUBSCRIBER], &out->subscriber);

    if (st == ST_OK && !bytes_present(out->subscriber))
        return doc_refuse(d, &place_of, "it is required");
    out->options = bytes_str("{}");
    if (m[SUB_OPTIONS].value.kind == SCAN_OBJECT) {
        out->options = m[SUB_OPTIONS].value.text;
    } else if (st == ST_OK && !doc_left_out(&m[SUB_OPTIONS].value)) {
        place_of.name = "options";
        return doc_refuse(d, &place_of, "it must be an object");
    }
    if (st == ST_OK)
        st = doc_place(
            d, at, subscription_check(out->subscriber, out->options, d->limits, d->why));
    return st;
}

enum status
state_subscription_read(struct state_decoder *d, const struct doc_at *at,
                        struct bytes text, struct store_image_subscription *out)
{
    struct doc_member m[SUB_MEMBERS] = {{.name = NULL}};
    uint64_t ttl_s = (uint64_t)d->limits->default_subscription_ttl;
    int64_t age_ms = 0;
    enum status st;

    for (size_t i = 0; i < SUB_MEMBERS; i++)
        m[i].name = subscription_names[i];
    st = doc_object(d, at, text, m, SUB_MEMBERS);
    if (st == ST_OK)
        st = doc_id(d, at, &m[SUB_ID], &out->id);
    if (st == ST_OK)
        st = read_address(d, at, m, out);
    if (st == ST_OK)
        st = doc_count(d, at, &m[SUB_TTL], STORE_IMAGE_MS_MOST / 1000, &ttl_s);
    if (st == ST_OK)
        st = doc_seconds(d, at, &m[SUB_AGE], 0, &age_ms);
    if (st == ST_OK)
        st = doc_flag(d, at, &m[SUB_CONFIRMED], &out->confirmed);
    if (st == ST_OK)
        st = doc_flag(d, at, &m[SUB_ASKED], &out->asked);
    if (st == ST_OK)
        st = doc_count(d, at, &m[SUB_DELIVERED], INT64_MAX, &out->delivered);
    if (st == ST_OK)
        st = doc_count(d, at, &m[SUB_GIVEN_UP], INT64_MAX, &out->given_up);
    if (st == ST_OK)
        st = doc_count(d, at, &m[SUB_FALLEN_OUT], INT64_MAX, &out->fallen_out);
    out->ttl_s = (int64_t)ttl_s;
    out->started_ms = d->now_ms - age_ms;
    return st;
}
