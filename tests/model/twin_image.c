/* The twin's images: each is one piece with copies of everything. */
#include "model/twin_state.h"

#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------------- showing */

static struct bytes
copied(const char *text, size_t len)
{
    return bytes_of(twin_copy(bytes_of(text, len)), len);
}

static void
free_text(struct bytes text)
{
    free((char *)(uintptr_t)text.data);
}

void
twin_image_release(const struct store *s, struct store_image *image)
{
    (void)s; /* everything shown is a copy */
    for (size_t i = 0; i < image->message_count; i++) {
        free_text(image->messages[i].body);
        free(image->messages[i].pin);
    }
    for (size_t i = 0; i < image->subscription_count; i++) {
        free_text(image->subscriptions[i].subscriber);
        free_text(image->subscriptions[i].options);
    }
    free_text(image->metadata.json);
    free_text(image->metadata.settings.dead_letter);
    free(image->claims);
    free(image->messages);
    free(image->subscriptions);
}

/* 1 + index of the claim in the image. */
static size_t
show_claim(const struct twin_claim *c, struct store_image *out)
{
    for (size_t i = 0; i < out->claim_count; i++)
        if (strcmp(out->claims[i].id.text, c->id.text) == 0)
            return i + 1;
    out->claims[out->claim_count++] =
        (struct store_image_claim){c->id, c->started_ms, c->started_ms + c->ttl_ms};
    return out->claim_count;
}

static void
show_message(const struct twin_queue *q, const struct twin_message *m, int64_t now_ms,
             struct store_image *out)
{
    const struct twin_claim *c = twin_holder(q, m, now_ms);
    struct store_checksum *checksum = twin_alloc(sizeof(*checksum));

    *checksum = m->checksum;
    out->messages[out->message_count++] = (struct store_image_message){
        .id = m->id,
        .claim = c == NULL ? 0 : show_claim(c, out),
        .body = copied(m->body, m->body_len),
        .checksum = m->has_checksum ? checksum : NULL,
        .client = m->client,
        .posted_ms = m->posted_ms,
        .expires_ms = m->expires_ms,
        .delayed_until_ms = twin_message_delayed(m, now_ms) ? m->ready_ms : 0,
        .claim_count = m->claim_count,
        .pin = checksum,
    };
}

static void
show_subscription(const struct twin_subscription *s, struct store_image *out)
{
    unsigned notice = s->notice;

    out->subscriptions[out->subscription_count++] = (struct store_image_subscription){
        .id = s->id,
        .subscriber = copied(s->subscriber, s->subscriber_len),
        .options = copied(s->options, s->options_len),
        .started_ms = s->started_ms,
        .ttl_s = s->ttl_s,
        .confirmed = s->confirmed,
        .asked = notice == 1 + STORE_NOTICE_CONFIRM,
        .delivered = s->delivered,
        .given_up = s->given_up,
        .fallen_out = s->fallen_out,
    };
}

enum status
twin_queue_image(struct store *s, struct store_visit *visit,
                 const struct store_queue *where, struct store_image *image)
{
    const struct twin_queue *q = twin_find_queue(twin_of(s), where);
    struct store_image out = {.store = s, .first = true};

    if (q == NULL)
        return ST_NOT_FOUND;
    out.claims = twin_alloc((q->claim_count + 1) * sizeof(*out.claims));
    out.messages = twin_alloc((q->message_count + 1) * sizeof(*out.messages));
    out.subscriptions =
        twin_alloc((q->subscription_count + 1) * sizeof(*out.subscriptions));
    out.metadata.settings = q->settings;
    out.metadata.json = copied(q->json, q->json_len);
    if (bytes_present(q->settings.dead_letter))
        out.metadata.settings.dead_letter =
            copied(q->settings.dead_letter.data, q->settings.dead_letter.len);
    for (size_t i = 0; i < q->message_count; i++)
        if (twin_message_live(q->messages[i], visit->now_ms))
            show_message(q, q->messages[i], visit->now_ms, &out);
    for (size_t i = 0; i < q->subscription_count; i++) {
        const struct twin_subscription *sub = q->subscriptions[i];

        if (visit->now_ms < sub->started_ms + sub->ttl_s * 1000)
            show_subscription(sub, &out);
    }
    *image = out;
    return ST_OK;
}

/* ---------------------------------------------------------------------- loading */

static bool
has_message(const struct twin_queue *q, const struct store_id *id)
{
    for (size_t i = 0; i < q->message_count; i++)
        if (id->text[0] != '\0' && strcmp(q->messages[i]->id.text, id->text) == 0)
            return true;
    return false;
}

static bool
has_subscription(const struct twin_queue *q, const struct store_image_subscription *view)
{
    for (size_t i = 0; i < q->subscription_count; i++) {
        const struct twin_subscription *s = q->subscriptions[i];

        if (strcmp(s->id.text, view->id.text) == 0 ||
            bytes_equal(bytes_of(s->subscriber, s->subscriber_len), view->subscriber))
            return true;
    }
    return false;
}

/* Another claim than the one that goes on has the same number. */
static bool
has_number(const struct twin_queue *q, const struct store_image_claim *view)
{
    for (size_t i = 0; i < q->claim_count; i++)
        if (view->id.text[0] != '\0' &&
            strcmp(q->claims[i].id.text, view->id.text) != 0 &&
            store_id_number(&q->claims[i].id) == store_id_number(&view->id))
            return true;
    return false;
}

static enum status
check(const struct twin_queue *q, const struct store_image *image)
{
    if (image->message_count > 0 && q->subscription_count > 0)
        return ST_CONFLICT;
    for (size_t i = 0; i < image->message_count; i++)
        if (has_message(q, &image->messages[i].id))
            return ST_CONFLICT;
    for (size_t i = 0; i < image->claim_count; i++)
        if (has_number(q, &image->claims[i]))
            return ST_CONFLICT;
    for (size_t i = 0; i < image->subscription_count; i++)
        if (has_subscription(q, &image->subscriptions[i]))
            return ST_CONFLICT;
    return ST_OK;
}

static bool
may_lie(const struct store_settings *settings, const struct store_image *image)
{
    for (size_t i = 0; settings->encrypt && i < image->message_count; i++)
        if (!store_is_sealed(image->messages[i].body))
            return false;
    return true;
}

/* The number of a claim, which is made unless an earlier piece has. */
static uint64_t
load_claim(struct twin *t, struct twin_queue *q, const struct store_image_claim *view)
{
    const struct store_terms terms = {.ttl_s = 1};
    struct twin_claim *c = NULL;

    for (size_t i = 0; i < q->claim_count; i++)
        if (strcmp(q->claims[i].id.text, view->id.text) == 0)
            c = &q->claims[i];
    if (c == NULL)
        c = twin_add_claim(t, q, &terms, view->started_ms);
    if (view->id.text[0] != '\0')
        c->id = view->id;
    c->started_ms = view->started_ms;
    c->ttl_ms = view->ends_ms - view->started_ms;
    return c->number;
}

static void
load_message(struct twin_queue *q, const struct store_image_message *view, uint64_t claim)
{
    struct twin_message *m = twin_alloc(sizeof(*m));

    m->body = twin_copy(view->body);
    m->body_len = view->body.len;
    m->has_checksum = view->checksum != NULL;
    if (m->has_checksum)
        m->checksum = *view->checksum;
    m->client = view->client;
    m->posted_ms = view->posted_ms;
    m->expires_ms = view->expires_ms;
    m->ready_ms = view->delayed_until_ms;
    m->claim_count = view->claim_count;
    m->claim = claim;
    m->dead_letter = view->id.text[0] != '\0'; /* as one of those it came with its id */
    twin_append(q, m);
    m->id = view->id;
    if (m->id.text[0] == '\0')
        twin_message_name(q, m);
}

static void
load_subscription(struct twin *t, struct twin_queue *q,
                  const struct store_image_subscription *view)
{
    struct twin_subscription *s = twin_alloc(sizeof(*s));

    s->id = view->id;
    s->number = ++q->last_subscription;
    if (s->id.text[0] == '\0')
        twin_subscription_name(t, s);
    s->subscriber = twin_copy(view->subscriber);
    s->subscriber_len = view->subscriber.len;
    s->options = twin_copy(view->options);
    s->options_len = view->options.len;
    s->started_ms = view->started_ms;
    s->ttl_s = view->ttl_s;
    s->confirmed = view->confirmed;
    if (view->asked && t->config.require_confirmation)
        s->notice = 1 + STORE_NOTICE_CONFIRM;
    s->delivered = view->delivered;
    s->given_up = view->given_up;
    s->fallen_out = view->fallen_out;
    q->subscriptions =
        twin_grow(q->subscriptions, (q->subscription_count + 1) * sizeof(s));
    q->subscriptions[q->subscription_count++] = s;
}

enum status
twin_queue_load(struct store *s, struct store_visit *visit,
                const struct store_queue *where, const struct store_image *image)
{
    struct twin *t = twin_of(s);
    struct twin_queue *q = twin_find_queue(t, where);
    struct store_flaw flaw;
    enum status st = store_image_check(t->config.mem, image, &flaw);

    if (st == ST_OK && image->first && q != NULL)
        st = ST_CONFLICT;
    if (st == ST_OK && !image->first && q == NULL)
        st = ST_NOT_FOUND;
    if (st == ST_OK &&
        !may_lie(q == NULL ? &image->metadata.settings : &q->settings, image))
        st = ST_NOT_SEALED;
    if (st == ST_OK && q != NULL) {
        twin_forget(t, q, visit->now_ms);
        st = check(q, image);
    }
    if (st != ST_OK)
        return st;
    if (q == NULL)
        q = twin_add_queue(t, where, &image->metadata);
    for (size_t i = 0; i < image->message_count; i++) {
        size_t claim = image->messages[i].claim;

        load_message(q, &image->messages[i],
                     claim == 0 ? 0 : load_claim(t, q, &image->claims[claim - 1]));
    }
    for (size_t i = 0; i < image->subscription_count; i++)
        load_subscription(t, q, &image->subscriptions[i]);
    return ST_OK;
}
