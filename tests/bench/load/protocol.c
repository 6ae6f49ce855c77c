#include "load/protocol.h"

#include <strings.h>

const struct protocol *
protocol_find(const char *name)
{
    static const struct protocol *const all[] = {&protocol_zaqar, &protocol_beanstalk,
                                                 &protocol_redis};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    }
    return NULL;
}

enum reading
protocol_read(const struct plan *plan, struct actor *a, const struct step *step,
              struct bytes in, bool ended, struct reply *out)
{
    struct bytes rest = in;
    enum reading r;

    *out = (struct reply){.length = 0};
    r = plan->protocol->read(plan, a, step, &rest, ended, out);
    out->length = in.len - rest.len;
    return r == READING_MORE && ended ? READING_BROKEN : r;
}

void
protocol_add_body(const struct plan *plan, struct actor *a, struct buf *out)
{
    char number[BODY_NUMBER];

    if (plan->scenario == SCENARIO_DELIVERY)
        hex_write(number, (uint64_t)a->due_ns, BODY_NUMBER);
    else
        hex_write(number, a->serial++, BODY_NUMBER);
    buf_bytes(out, plan->body_head);
    buf_add(out, number, sizeof number);
    buf_bytes(out, plan->body_tail);
}

void
actor_apply_step(struct actor *a, const struct step *step)
{
    if (step->op == OP_DELETE || step->op == OP_BULK_DELETE)
        a->next += step->count;
    if (step->op == OP_RELEASE)
        actor_drop_messages(a);
}

static bool
is_header(struct bytes line, const char *name, size_t name_len, struct bytes *value)
{
    if (line.len <= name_len || line.data[name_len] != ':' ||
        strncasecmp(line.data, name, name_len) != 0)
        return false;
    *value = bytes_trim(bytes_of(line.data + name_len + 1, line.len - name_len - 1));
    return true;
}

/* Compares the first letter first, because most headers do not matter. False if
 * invalid. */
static bool
read_header(struct bytes line, struct http_response *head)
{
    struct bytes value;

    switch (line.data[0] | 0x20) {
    case 'c':
        if (is_header(line, "content-length", 14, &value)) {
            head->has_length = true;
            return bytes_to_u64(value, &head->body_length);
        }
        if (is_header(line, "connection", 10, &value))
            head->close = bytes_equal_nocase(value, bytes_str("close"));
        return true;
    case 'l':
        if (is_header(line, "location", 8, &value))
            head->location = value;
        return true;
    case 't':
        return !is_header(line, "transfer-encoding", 17, &value);
    default:
        return true;
    }
}

/* Reads a head, which ends with the CRLF of the last header. */
static bool
read_head(struct bytes text, struct http_response *head)
{
    struct bytes line;
    int64_t status;

    /* "HTTP/1.1 201 Created" */
    if (!line_cut(&text, &line) || line.len < 12 ||
        memcmp(line.data, "HTTP/1.", 7) != 0 || line.data[8] != ' ' ||
        !bytes_to_i64(bytes_of(line.data + 9, 3), &status) || status < 100)
        return false;
    *head = (struct http_response){.status = (int)status, .close = line.data[7] == '0'};
    while (line_cut(&text, &line))
        if (line.len == 0 || !read_header(line, head))
            return false;
    return true;
}

enum reading
http_response_read(struct bytes in, bool ended, struct http_response *out)
{
    const char *end = in.len == 0 ? NULL : memmem(in.data, in.len, "\r\n\r\n", 4);
    size_t head_len;

    if (end == NULL)
        return ended ? READING_BROKEN : READING_MORE;
    head_len = (size_t)(end - in.data) + 4;
    if (!read_head(bytes_of(in.data, head_len - 2), out))
        return READING_BROKEN;
    if (out->status == 204 || out->status == 304)
        out->body_length = 0;
    else if (!out->has_length && !ended)
        return READING_MORE;
    else if (!out->has_length)
        out->body_length = in.len - head_len;
    if (out->body_length > in.len - head_len)
        return ended ? READING_BROKEN : READING_MORE;
    out->length = head_len + (size_t)out->body_length;
    out->body = bytes_of(in.data + head_len, (size_t)out->body_length);
    return READING_DONE;
}
