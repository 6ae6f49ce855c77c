#include "notify/compose.h"

#include <inttypes.h>
#include <stdio.h>

void
composer_init(struct composer *c, const struct notify_config *config)
{
    c->config = config;
    arena_init(&c->arena, config->mem);
}

void
composer_fini(struct composer *c)
{
    arena_fini(&c->arena);
}

void
hook_id(const struct store_delivery *d, char out[HOOK_ID_CAP])
{
    if (d->notice == STORE_NOTICE_MESSAGE)
        (void)snprintf(out, HOOK_ID_CAP, "%s-%" PRIu64, d->subscription.text, d->number);
    else
        (void)snprintf(out, HOOK_ID_CAP, "%s-%s-%" PRId64, d->subscription.text,
                       d->notice == STORE_NOTICE_CONFIRM ? "confirm" : "unsubscribed",
                       d->expires_ms);
}

/* ------------------------------------------------------------------ invitations */

struct signed_invitation {
    struct invitation invitation;
    char expires[CLOCK_TEXT_CAP], signature[SIGNATURE_DIGITS + 1];
};

/* Whoever was unsubscribed may come back for as long as a subscription lives by default. */
static int64_t
end_of(const struct composer *c, const struct store_delivery *d)
{
    return d->notice == STORE_NOTICE_CONFIRM
               ? d->expires_ms
               : clock_now_ms(c->config->real) + c->config->subscription_ttl_s * 1000;
}

static enum status
invite(struct composer *c, const struct store_delivery *d, struct signed_invitation *out)
{
    struct grant grant = {.methods = bytes_str("PUT"), .project = d->queue.project};
    enum status st;

    clock_text(end_of(c, d), out->expires);
    out->expires[CLOCK_TEXT_CAP - 2] = '\0'; /* without the Z */
    grant.expires = bytes_str(out->expires);
    grant.paths =
        arena_printf(&c->arena, "/v2/queues/%.*s/subscriptions/%s/confirm",
                     (int)d->queue.name.len, d->queue.name.data, d->subscription.text);
    if (!bytes_present(grant.paths))
        return ST_NO_MEMORY;
    if (memchr(grant.project.data == NULL ? "" : grant.project.data, '\\',
               grant.project.len) != NULL)
        return ST_BAD_VALUE; /* it could be read as more than one field (17) */
    st = signer_sign(c->config->signer, &grant, &c->arena, out->signature);
    if (st != ST_OK)
        return st;
    out->invitation = (struct invitation){.again = d->notice == STORE_NOTICE_UNSUBSCRIBED,
                                          .queue = d->queue.name,
                                          .project = d->queue.project,
                                          .path = grant.paths,
                                          .expires = grant.expires,
                                          .signature = bytes_str(out->signature),
                                          .url = bytes_str(c->config->public_url)};
    return ST_OK;
}

/* ------------------------------------------------------------------ web hooks */

static void
write_document(const struct store_delivery *d, const struct wishes *wishes,
               struct buf *out)
{
    struct buf document;

    if (!bytes_present(wishes->post_data)) {
        document_message(out, d);
        return;
    }
    buf_init(&document, out->mem);
    document_message(&document, d);
    document_fill(out, wishes->post_data, buf_view(&document));
    out->failed = out->failed || document.failed;
    buf_fini(&document);
}

/* A message whose body may have to be opened first. */
static enum status
write_message(const struct composer *c, const struct store_delivery *d,
              const struct wishes *wishes, struct buf *out)
{
    struct store_delivery opened = *d;
    enum status st = ST_OK;
    struct buf body;

    buf_init(&body, out->mem);
    if (c->config->open_body != NULL) {
        st = c->config->open_body(c->config->open_ctx, &d->queue, d->body, &body);
        opened.body = buf_view(&body);
    }
    if (st == ST_OK)
        write_document(&opened, wishes, out);
    out->failed = out->failed || body.failed;
    buf_fini(&body);
    return st == ST_OK || st == ST_NO_MEMORY ? st : ST_UNAVAILABLE;
}

static enum status
write_invitation(struct composer *c, const struct store_delivery *d, struct buf *out)
{
    struct signed_invitation i;
    enum status st = invite(c, d, &i);

    if (st == ST_OK)
        document_invitation(out, &i.invitation);
    arena_reset(&c->arena);
    return st;
}

enum status
compose_hook(struct composer *c, const struct store_delivery *d,
             const struct wishes *wishes, struct buf *out)
{
    enum status st = d->notice == STORE_NOTICE_MESSAGE ? write_message(c, d, wishes, out)
                                                       : write_invitation(c, d, out);

    return st == ST_OK && out->failed ? ST_NO_MEMORY : st;
}
