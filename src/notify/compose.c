#include "notify/compose.h"

#include "notify/mail.h"

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
        arena_printf(&c->arena, "/v2/%s/%.*s/subscriptions/%s/confirm",
                     d->queue.kind == STORE_TOPIC ? "topics" : "queues",
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

static enum status
write_document(const struct store_delivery *d, const struct wishes *wishes,
               struct buf *out)
{
    struct buf document;
    bool fits;

    if (!bytes_present(wishes->post_data)) {
        document_message(out, d);
        return ST_OK;
    }
    buf_init(&document, out->mem);
    document_message(&document, d);
    fits = document_fill(out, wishes->post_data, buf_view(&document));
    out->failed = out->failed || document.failed;
    buf_fini(&document);
    return fits ? ST_OK : ST_TOO_LARGE;
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
        st = write_document(&opened, wishes, out);
    else if (st != ST_NO_MEMORY && st != ST_DAMAGED)
        st = ST_UNAVAILABLE;
    out->failed = out->failed || body.failed;
    buf_fini(&body);
    return st;
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

/* ------------------------------------------------------------------ mail */

/* Of a query: what is not unreserved becomes %XX (RFC 3986). */
static void
write_value(struct buf *out, const char *name, struct bytes value)
{
    static const char digits[] = "0123456789ABCDEF";

    buf_str(out, name);
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.data[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                     (c >= 'a' && c <= 'z') || (c != '\0' && strchr("-._~", c) != NULL);

        if (!plain)
            buf_byte(out, '%');
        buf_byte(out, plain ? (char)c : digits[c >> 4]);
        if (!plain)
            buf_byte(out, digits[c & 15]);
    }
}

/* The page that asks people whether they want it. */
static void
write_link(const struct composer *c, const struct invitation *i, struct buf *out)
{
    buf_str(out, c->config->mail.confirmation_url);
    write_value(out, "?Signature=", i->signature);
    write_value(out, "&Methods=", bytes_str("PUT"));
    write_value(out, "&Paths=", i->path);
    write_value(out, "&Project=", i->project);
    write_value(out, "&Expires=", i->expires);
    write_value(out, "&Url=", i->url);
    if (bytes_present(i->url))
        write_value(out, "", i->path);
    write_value(out, "&Queue=", i->queue);
}

static enum status
write_mail_invitation(struct composer *c, const struct store_delivery *d, struct buf *out)
{
    struct signed_invitation i;
    enum status st = invite(c, d, &i);

    if (st == ST_OK) {
        document_sentence(out, &i.invitation);
        if (c->config->mail.confirmation_url != NULL) {
            buf_str(out, ", go to\n\n");
            write_link(c, &i.invitation, out);
        } else {
            buf_str(out, ", send what this says:\n\n");
            document_invitation(out, &i.invitation);
        }
        buf_str(out, "\n");
    }
    arena_reset(&c->arena);
    return st;
}

static enum status
write_mail_text(struct composer *c, const struct store_delivery *d, struct buf *out)
{
    static const struct wishes none = {.post_data = {NULL, 0}};
    enum status st = d->notice == STORE_NOTICE_MESSAGE ? write_message(c, d, &none, out)
                                                       : write_mail_invitation(c, d, out);

    return st == ST_OK && out->failed ? ST_NO_MEMORY : st;
}

/* What the head has, appended: whom it goes to, who it is from, what it is about. */
static enum status
find_head(const struct composer *c, const struct wishes *wishes, struct bytes rest,
          struct buf *to, struct buf *from, struct buf *subject)
{
    if (!mail_read(rest, to, subject))
        return to->failed ? ST_NO_MEMORY : ST_BAD_VALUE;
    if (subject->len == 0)
        wish_write(subject, wishes->subject);
    wish_write(from, wishes->from);
    if (!mail_is_address(buf_view(from))) {
        buf_reset(from, SIZE_MAX);
        buf_str(from, c->config->mail.from);
    }
    return subject->failed || from->failed ? ST_NO_MEMORY : ST_OK;
}

enum status
compose_mail(struct composer *c, const struct store_delivery *d,
             const struct wishes *wishes, struct bytes rest, struct buf *to,
             struct buf *out)
{
    struct buf from, subject, text;
    char id[HOOK_ID_CAP];
    enum status st;

    buf_init(&from, out->mem);
    buf_init(&subject, out->mem);
    buf_init(&text, out->mem);
    st = find_head(c, wishes, rest, to, &from, &subject);
    if (st == ST_OK)
        st = write_mail_text(c, d, &text);
    if (st == ST_OK) {
        hook_id(d, id);
        mail_write_head(out,
                        &(struct mail_head){.from = buf_view(&from),
                                            .to = buf_view(to),
                                            .subject = buf_view(&subject),
                                            .id = bytes_str(id),
                                            .sent_ms = clock_now_ms(c->config->real)});
        mail_write_text(out, buf_view(&text));
    }
    buf_fini(&from);
    buf_fini(&subject);
    buf_fini(&text);
    return st == ST_OK && out->failed ? ST_NO_MEMORY : st;
}
