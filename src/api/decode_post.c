#include "api/decode_post.h"

#include "api/decode_integer.h"

/* Most posts have ten messages or fewer. */
#define DRAFTS_FIRST 16

struct reader {
    struct json_scan scan;
    enum post_form form;
    const struct api_limits *limits; /* borrowed */
    struct arena *arena;             /* borrowed */
    struct store_draft *drafts;      /* from the arena */
    size_t count, cap;
    enum status st; /* the worst of the messages read so far */
};

/* What a message said; SCAN_NONE: left out. Of members named twice the last one counts.
 */
struct fields {
    struct scan_value body, ttl, delay;
};

static bool
drafts_grow(struct reader *r)
{
    size_t cap = r->cap == 0 ? DRAFTS_FIRST : r->cap * 2;
    struct store_draft *grown = arena_array(r->arena, cap, sizeof(*grown));

    if (grown == NULL)
        return false;
    if (r->count > 0)
        memcpy(grown, r->drafts, r->count * sizeof(*grown));
    r->drafts = grown;
    r->cap = cap;
    return true;
}

static void
drafts_add(struct reader *r, const struct store_draft *draft)
{
    if (r->count == r->cap && !drafts_grow(r)) {
        r->st = ST_NO_MEMORY;
        return;
    }
    r->drafts[r->count++] = *draft;
}

static void
read_fields(struct reader *r, struct fields *f)
{
    struct scan_name name;

    while (scan_member(&r->scan, &name)) {
        struct scan_value *value = NULL;

        if (scan_name_is(&name, "body"))
            value = &f->body;
        else if (scan_name_is(&name, "ttl"))
            value = &f->ttl;
        else if (scan_name_is(&name, "delay") && r->form == POST_V2)
            value = &f->delay;
        (void)scan_value(&r->scan, value); /* scan_end() tells */
    }
}

/* What is filled in for members left out: v2 leaves that to the queue. */
static struct store_draft
draft_default(const struct reader *r)
{
    struct store_draft draft = {BYTES_NONE, STORE_UNSET, STORE_UNSET};

    if (r->form == POST_V1_1)
        draft.ttl_s = r->limits->default_message_ttl;
    if (r->form != POST_V2)
        draft.delay_s = 0;
    return draft;
}

static enum status
draft_read(const struct reader *r, const struct fields *f, struct store_draft *draft)
{
    enum status ttl, delay, missing = ST_OK;

    ttl = decode_integer(&f->ttl, r->limits->min_message_ttl, r->limits->max_message_ttl,
                         &draft->ttl_s);
    delay = decode_integer(&f->delay, 0, r->limits->max_message_delay, &draft->delay_s);
    if (f->body.kind == SCAN_NONE ||
        (r->form == POST_V1 && (f->ttl.kind == SCAN_NONE || f->ttl.kind == SCAN_NULL)))
        missing = ST_BAD_BODY;
    draft->body = f->body.text;
    return decode_worse(missing, decode_worse(ttl, delay));
}

/* One item of the list of messages. After a bad one the others are only checked. */
static void
read_message(struct reader *r)
{
    struct store_draft draft = draft_default(r);
    struct fields f = {
        {SCAN_NONE, BYTES_NONE}, {SCAN_NONE, BYTES_NONE}, {SCAN_NONE, BYTES_NONE}};

    if (!scan_enter(&r->scan, SCAN_OBJECT)) {
        (void)scan_value(&r->scan, NULL);
        r->st = ST_BAD_BODY;
        return;
    }
    read_fields(r, &f);
    r->st = decode_worse(r->st, draft_read(r, &f, &draft));
    if (r->st == ST_OK)
        drafts_add(r, &draft);
}

/* A list of messages, which replaces one read before (a member named twice). */
static void
read_messages(struct reader *r)
{
    r->count = 0;
    r->st = ST_OK;
    if (!scan_enter(&r->scan, SCAN_ARRAY)) {
        (void)scan_value(&r->scan, NULL);
        r->st = ST_BAD_BODY;
        return;
    }
    while (scan_item(&r->scan))
        read_message(r);
    if (r->count == 0)
        r->st = decode_worse(r->st, ST_BAD_VALUE);
}

static void
read_object(struct reader *r)
{
    struct scan_name name;

    r->st = ST_BAD_VALUE; /* unless there is a member `messages` */
    while (scan_member(&r->scan, &name)) {
        if (scan_name_is(&name, "messages"))
            read_messages(r);
        else
            (void)scan_value(&r->scan, NULL);
    }
}

static void
read_document(struct reader *r)
{
    enum scan_kind top = scan_peek(&r->scan);

    if (r->form == POST_V1 && top == SCAN_ARRAY) {
        read_messages(r);
    } else if (r->form != POST_V1 && scan_enter(&r->scan, SCAN_OBJECT)) {
        read_object(r);
    } else {
        (void)scan_value(&r->scan, NULL);
        /* The original finds no member `messages` in an array; the rest is no document.
         */
        r->st = r->form != POST_V1 && top == SCAN_ARRAY ? ST_BAD_VALUE : ST_BAD_BODY;
    }
}

enum status
decode_post(struct bytes body, enum post_form form, const struct api_limits *limits,
            struct arena *arena, struct decoded_post *out)
{
    struct reader r = {.form = form, .limits = limits, .arena = arena};
    enum status st;

    scan_begin(&r.scan, body);
    read_document(&r);
    st = scan_end(&r.scan);
    if (st != ST_OK)
        return st;
    if (r.st != ST_OK)
        return r.st;
    out->drafts = r.drafts;
    out->count = r.count;
    return ST_OK;
}
