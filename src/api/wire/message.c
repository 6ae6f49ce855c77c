#include "api/wire/message.h"

#include "api/wire/checksum.h"

size_t
message_room(const struct message_form *form, size_t count)
{
    /* The words and brackets of one document, its numbers and its checksum. */
    enum { FRAME = 128, NUMBERS = 3 * 20, CHECKSUM = CHECKSUM_LEN + 16 };

    return 2 + count * (FRAME + NUMBERS + CHECKSUM + form->href.len + 3 * STORE_ID_CAP);
}

/*
 * A message document is written with room for all of it reserved: `at` is where to go on.
 * Ids and hrefs are ASCII without anything to escape.
 */
static char *
put(char *at, const char *text, size_t len)
{
    memcpy(at, text, len);
    return at + len;
}

#define PUT(at, literal) put(at, literal, sizeof(literal) - 1)

static char *
put_checksum(char *at, const struct store_message *message)
{
    if (message->checksum == NULL || bytes_equal_str(message->body, "null"))
        return at;
    at = PUT(at, ",\"checksum\":\"");
    checksum_write(message->checksum, at);
    at += CHECKSUM_LEN;
    *at++ = '"';
    return at;
}

static char *
put_id(char *at, const struct store_id *id)
{
    return put(at, id->text, strlen(id->text));
}

static char *
put_number(char *at, int64_t number)
{
    if (number < 0)
        at = PUT(at, "-");
    return at + decimal_write(at, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static char *
put_href(char *at, const struct message_form *form, const struct store_message *message)
{
    at = PUT(at, "\"href\":\"");
    at = put(at, form->href.data, form->href.len);
    at = PUT(at, "/");
    at = put_id(at, &message->id);
    if (message->claim_id.text[0] != '\0' && !form->hide_claim) {
        at = PUT(at, "?claim_id=");
        at = put_id(at, &message->claim_id);
    }
    return PUT(at, "\",");
}

static char *
put_message(char *at, const struct message_form *form,
            const struct store_message *message)
{
    at = PUT(at, "{");
    if (form->shape != MESSAGE_V1) {
        at = PUT(at, "\"id\":\"");
        at = put_id(at, &message->id);
        at = PUT(at, "\",");
    }
    if (form->shape != MESSAGE_POP)
        at = put_href(at, form, message);
    at = PUT(at, "\"ttl\":");
    at = put_number(at, message->ttl_s);
    at = PUT(at, ",\"age\":");
    at = put_number(at, message->age_s);
    at = PUT(at, ",\"body\":");
    at = put(at, message->body.data, message->body.len);
    if (form->shape == MESSAGE_POP) {
        at = PUT(at, ",\"claim_id\":null,\"claim_count\":");
        at = put_number(at, message->claim_count);
    }
    return at;
}

void
message_write(struct buf *out, const struct message_form *form,
              const struct store_message *message)
{
    char *start, *at;

    if (!buf_reserve(out, message_room(form, 1) + message->body.len))
        return;
    start = out->data + out->len;
    at = put_message(start, form, message);
    if (form->checksum && form->shape != MESSAGE_V1)
        at = put_checksum(at, message);
    *at++ = '}';
    out->len += (size_t)(at - start);
}

void
message_write_all(struct buf *out, const struct message_form *form,
                  const struct store_message *messages, size_t count)
{
    buf_byte(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        message_write(out, form, &messages[i]);
    }
    buf_byte(out, ']');
}
