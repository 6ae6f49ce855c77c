#include "notify/compose.h"

#include "claimd/json/string.h"

#include <inttypes.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <time.h>

/* ------------------------------------------------------------------ documents */

void
document_message(struct buf *out, const struct store_delivery *d)
{
    buf_byte(out, '{');
    json_write_raw(out, "body", d->body);
    json_write_i64(out, "ttl", d->ttl_s);
    if (d->delay_s > 0)
        json_write_i64(out, "delay", d->delay_s);
    json_write_text(out, "queue_name", d->queue.name);
    json_write_text(out, "Message_Type", bytes_str("Notification"));
    buf_byte(out, '}');
}

bool
document_fill(struct buf *out, struct bytes inside, struct bytes document)
{
    static const struct bytes placeholder = BYTES_LIT("\"$zaqar_message$\"");
    size_t most = out->len + document.len + FILLED_MOST;
    struct buf text;
    struct bytes rest;
    const char *at;

    buf_init(&text, out->mem);
    option_text_write(&text, inside);
    rest = buf_view(&text);
    while (out->len <= most && (at = memmem(rest.data, rest.len, placeholder.data,
                                            placeholder.len)) != NULL) {
        buf_add(out, rest.data, (size_t)(at - rest.data));
        buf_bytes(out, document);
        rest.len -= (size_t)(at - rest.data) + placeholder.len;
        rest.data = at + placeholder.len;
    }
    buf_bytes(out, rest);
    out->failed = out->failed || text.failed;
    buf_fini(&text);
    return out->len <= most;
}

/* Writes the sentence for people in it, without quotation marks. */
static void
document_sentence(struct buf *out, const struct invitation *i)
{
    buf_str(out, i->again ? "You have been unsubscribed from the queue: "
                          : "You are about to be subscribed to the queue: ");
    buf_bytes(out, i->queue);
    buf_str(out, " of the project: ");
    buf_bytes(out, i->project);
    buf_str(out, i->again ? ". To subscribe again" : ". To confirm this");
}

/* Writes a member also for an absent project, which is the one with the empty name. */
static void
write_member(struct buf *out, const char *name, struct bytes value)
{
    json_write_name(out, name);
    json_string_write(out, value);
}

void
document_invitation(struct buf *out, const struct invitation *i)
{
    struct buf text;

    buf_byte(out, '{');
    write_member(
        out, "Message_Type",
        bytes_str(i->again ? "UnsubscribeConfirmation" : "SubscriptionConfirmation"));
    buf_init(&text, out->mem);
    document_sentence(&text, i);
    buf_str(&text,
            ", send SubscribeBody with PUT to URL-Paths, with the headers URL-Signature,"
            " URL-Methods, URL-Paths, URL-Expires and X-Project-ID as given here.");
    write_member(out, "Message", buf_view(&text));
    out->failed = out->failed || text.failed;
    buf_fini(&text);
    write_member(out, "URL-Signature", i->signature);
    write_member(out, "URL-Methods", bytes_str("PUT"));
    write_member(out, "URL-Paths", i->path);
    write_member(out, "X-Project-ID", i->project);
    write_member(out, "URL-Expires", i->expires);
    buf_str(out, ",\"SubscribeBody\":{\"confirmed\":true}"
                 ",\"UnsubscribeBody\":{\"confirmed\":false}");
    write_member(out, "queue_name", i->queue);
    if (bytes_present(i->url)) {
        buf_str(out, ",\"WSGISubscribeURL\":\"");
        buf_bytes(out,
                  i->url); /* an option that was checked, and a path without escapes */
        buf_bytes(out, i->path);
        buf_byte(out, '"');
    }
    buf_byte(out, '}');
}

/* LINE_BYTES: bytes whose base64 is a line of 76 characters. WORD_BYTES: bytes of an
 * encoded word. The first one fits into such a line after "Subject: ". */
enum { LINE_BYTES = 57, WORD_BYTES = 39, PLAIN_SUBJECT_MOST = 60 };

/* ------------------------------------------------------------------ addresses */

bool
mail_is_address(struct bytes text)
{
    const char *at = text.len == 0 ? NULL : memchr(text.data, '@', text.len);

    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] <= ' ' || text.data[i] >= 0x7f ||
            strchr("()<>[]:;,\\\"", text.data[i]) != NULL)
            return false;
    /* There must be one @, and text on each side. */
    return at != NULL && at != text.data && text.len <= MAIL_ADDRESS_MOST &&
           at + 1 < text.data + text.len &&
           memchr(at + 1, '@', (size_t)(text.data + text.len - at - 1)) == NULL;
}

static void
write_decoded(struct buf *out, struct bytes text)
{
    if (buf_reserve(out, text.len))
        out->len += uri_decode(out->data + out->len, text, false);
}

bool
mail_read(struct bytes rest, struct buf *address, struct buf *subject)
{
    size_t before = address->len;
    struct bytes to = bytes_cut(&rest, '?');

    write_decoded(address, to);
    while (bytes_present(rest)) {
        struct bytes value = bytes_cut(&rest, '&'), name = bytes_cut(&value, '=');

        if (subject->len == 0 && bytes_equal_nocase(name, bytes_str("subject")))
            write_decoded(subject, value);
    }
    return !address->failed &&
           mail_is_address(bytes_of(address->data + before, address->len - before));
}

/* ------------------------------------------------------------------ heads */

/* True if the subject is short printable ASCII that no reader could take for an encoded
 * word. */
static bool
is_plain(struct bytes subject)
{
    for (size_t i = 0; i < subject.len; i++)
        if (subject.data[i] < ' ' || subject.data[i] > '~')
            return false;
    return subject.len <= PLAIN_SUBJECT_MOST && !bytes_contain(subject, bytes_str("=?"));
}

/* The number of bytes of whole characters that fit into an encoded word. An invalid byte
 * counts as a character. */
static size_t
word_len(struct bytes text)
{
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.len;
    const unsigned char *begin = at;

    while (at < end) {
        const unsigned char *next = utf8_pass(at, end);

        if (next == NULL)
            next = at + 1;
        if (next - begin > WORD_BYTES)
            break;
        at = next;
    }
    return (size_t)(at - begin);
}

/* Encodes at most LINE_BYTES bytes. */
static void
write_base64(struct buf *out, struct bytes raw)
{
    char coded[BASE64_ENCODE_RAW_LENGTH(LINE_BYTES)];

    base64_encode_raw(coded, raw.len, (const uint8_t *)raw.data);
    buf_add(out, coded, BASE64_ENCODE_RAW_LENGTH(raw.len));
}

static void
write_subject(struct buf *out, struct bytes subject)
{
    if (subject.len > MAIL_SUBJECT_MOST)
        subject.len = MAIL_SUBJECT_MOST;
    buf_str(out, "Subject: ");
    if (is_plain(subject)) {
        buf_bytes(out, subject);
        subject.len = 0;
    }
    while (subject.len > 0) {
        char raw[WORD_BYTES];
        const size_t len = word_len(subject);

        for (size_t i = 0; i < len; i++) {
            const unsigned char c = (unsigned char)subject.data[i];

            raw[i] = c < ' ' || c == 0x7f ? ' ' : (char)c;
        }
        buf_str(out, "=?UTF-8?B?");
        write_base64(out, bytes_of(raw, len));
        buf_str(out, "?=");
        subject = bytes_of(subject.data + len, subject.len - len);
        if (subject.len > 0)
            buf_str(out, "\r\n ");
    }
    buf_str(out, "\r\n");
}

static void
write_date(struct buf *out, int64_t ms)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    if (gmtime_r(&seconds, &tm) == NULL)
        return; /* the year does not fit */
    buf_printf(out, "Date: %s, %02d %s %d %02d:%02d:%02d +0000\r\n", days[tm.tm_wday],
               tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
               tm.tm_sec);
}

void
mail_write_head(struct buf *out, const struct mail_head *head)
{
    const char *domain = memchr(head->from.data, '@', head->from.len);

    write_date(out, head->sent_ms);
    buf_str(out, "From: <");
    buf_bytes(out, head->from);
    buf_str(out, ">\r\nTo: <");
    buf_bytes(out, head->to);
    buf_str(out, ">\r\n");
    write_subject(out, head->subject);
    buf_str(out, "Message-ID: <");
    buf_bytes(out, head->id);
    buf_add(out, domain, (size_t)(head->from.data + head->from.len - domain));
    buf_str(out, ">\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                 "Content-Type: text/plain; charset=utf-8\r\n"
                 "Content-Transfer-Encoding: base64\r\n\r\n");
}

void
mail_write_text(struct buf *out, struct bytes text)
{
    while (text.len > 0) {
        size_t len = text.len < LINE_BYTES ? text.len : LINE_BYTES;

        write_base64(out, bytes_of(text.data, len));
        buf_str(out, "\r\n");
        text = bytes_of(text.data + len, text.len - len);
    }
}

/* ------------------------------------------------------------------ notifications */

void
delivery_id(const struct store_delivery *d, char out[DELIVERY_ID_CAP])
{
    if (d->notice == STORE_NOTICE_MESSAGE)
        (void)snprintf(out, DELIVERY_ID_CAP, "%s-%" PRIu64, d->subscription.text,
                       d->number);
    else
        (void)snprintf(out, DELIVERY_ID_CAP, "%s-%s-%" PRId64, d->subscription.text,
                       d->notice == STORE_NOTICE_CONFIRM ? "confirm" : "unsubscribed",
                       d->expires_ms);
}

struct signed_invitation {
    struct invitation invitation;
    char expires[CLOCK_TEXT_CAP], signature[SIGNATURE_DIGITS + 1];
};

static enum status
sign_invitation(struct composer *c, const struct store_delivery *d,
                struct signed_invitation *out)
{
    struct grant grant = {.methods = bytes_str("PUT"), .project = d->queue.project};
    int64_t end_ms = clock_to_wall_ms(c->config->time_base, d->expires_ms);
    enum status st;

    /* After an unsubscription, the link is valid for the default TTL of a
     * subscription. */
    if (d->notice != STORE_NOTICE_CONFIRM)
        end_ms = clock_wall_ms(c->config->real) + c->config->subscription_ttl_s * 1000;
    clock_text(end_ms, out->expires);
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
        return ST_BAD_VALUE; /* the signed text separates fields by \n (docs/api.md 17) */
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
write_document(const struct store_delivery *d, const struct delivery_options *options,
               struct buf *out)
{
    struct buf document;
    bool fits;

    if (!bytes_present(options->post_data)) {
        document_message(out, d);
        return ST_OK;
    }
    buf_init(&document, out->mem);
    document_message(&document, d);
    fits = document_fill(out, options->post_data, buf_view(&document));
    out->failed = out->failed || document.failed;
    buf_fini(&document);
    return fits ? ST_OK : ST_TOO_LARGE;
}

/* Writes a message. Decrypts its body first if necessary. */
static enum status
write_message(const struct composer *c, const struct store_delivery *d,
              const struct delivery_options *options, struct buf *out)
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
        st = write_document(&opened, options, out);
    else if (st != ST_NO_MEMORY && st != ST_DAMAGED)
        st = ST_UNAVAILABLE;
    out->failed = out->failed || body.failed;
    buf_fini(&body);
    return st;
}

enum status
compose_hook(struct composer *c, const struct store_delivery *d,
             const struct delivery_options *options, struct buf *out)
{
    struct signed_invitation i;
    enum status st;

    if (d->notice == STORE_NOTICE_MESSAGE) {
        st = write_message(c, d, options, out);
    } else {
        st = sign_invitation(c, d, &i);
        if (st == ST_OK)
            document_invitation(out, &i.invitation);
        arena_reset(&c->arena);
    }
    return st == ST_OK && out->failed ? ST_NO_MEMORY : st;
}

/* ------------------------------------------------------------------ mail */

static void
write_query_value(struct buf *out, const char *name, struct bytes value)
{
    buf_str(out, name);
    buf_uri(out, value);
}

static enum status
write_mail_invitation(struct composer *c, const struct store_delivery *d, struct buf *out)
{
    struct signed_invitation s;
    const struct invitation *i = &s.invitation;
    enum status st = sign_invitation(c, d, &s);

    if (st == ST_OK) {
        document_sentence(out, i);
        if (c->config->mail.confirmation_url != NULL) {
            buf_str(out, ", go to\n\n");
            buf_str(out, c->config->mail.confirmation_url);
            write_query_value(out, "?Signature=", i->signature);
            write_query_value(out, "&Methods=", bytes_str("PUT"));
            write_query_value(out, "&Paths=", i->path);
            write_query_value(out, "&Project=", i->project);
            write_query_value(out, "&Expires=", i->expires);
            write_query_value(out, "&Url=", i->url);
            if (bytes_present(i->url))
                write_query_value(out, "", i->path);
            write_query_value(out, "&Queue=", i->queue);
        } else {
            buf_str(out, ", send what this says:\n\n");
            document_invitation(out, i);
        }
        buf_str(out, "\n");
    }
    arena_reset(&c->arena);
    return st;
}

/* Appends recipient, sender and subject to their buffers. */
static enum status
read_mail_fields(const struct composer *c, const struct delivery_options *options,
                 struct bytes rest, struct buf *to, struct buf *from, struct buf *subject)
{
    if (!mail_read(rest, to, subject))
        return to->failed ? ST_NO_MEMORY : ST_BAD_VALUE;
    if (subject->len == 0)
        option_text_write(subject, options->subject);
    option_text_write(from, options->from);
    if (!mail_is_address(buf_view(from))) {
        buf_reset(from, SIZE_MAX);
        buf_str(from, c->config->mail.from);
    }
    return subject->failed || from->failed ? ST_NO_MEMORY : ST_OK;
}

enum status
compose_mail(struct composer *c, const struct store_delivery *d,
             const struct delivery_options *options, struct bytes rest, struct buf *to,
             struct buf *out)
{
    static const struct delivery_options none = {.post_data = {NULL, 0}};
    struct buf from, subject, text;
    char id[DELIVERY_ID_CAP];
    enum status st;

    buf_init(&from, out->mem);
    buf_init(&subject, out->mem);
    buf_init(&text, out->mem);
    st = read_mail_fields(c, options, rest, to, &from, &subject);
    if (st == ST_OK)
        st = d->notice == STORE_NOTICE_MESSAGE ? write_message(c, d, &none, &text)
                                               : write_mail_invitation(c, d, &text);
    out->failed = out->failed || text.failed;
    if (st == ST_OK && !text.failed) {
        delivery_id(d, id);
        mail_write_head(out,
                        &(struct mail_head){.from = buf_view(&from),
                                            .to = buf_view(to),
                                            .subject = buf_view(&subject),
                                            .id = bytes_str(id),
                                            .sent_ms = clock_wall_ms(c->config->real)});
        mail_write_text(out, buf_view(&text));
    }
    buf_fini(&from);
    buf_fini(&subject);
    buf_fini(&text);
    return st == ST_OK && out->failed ? ST_NO_MEMORY : st;
}
