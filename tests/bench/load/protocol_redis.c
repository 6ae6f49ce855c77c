/*
 * protocol_redis: the steps of a scenario for lists of Redis (protocol.h), as the manual
 * of Redis suggests for reliable queues.
 *
 * LPUSH posts, LMOVE to a list of the connection claims, LREM from there deletes. There
 * are no leases, ids or TTLs.
 */
#include "load/protocol.h"

static void
add_length(size_t len, struct buf *out)
{
    buf_byte(out, '$');
    buf_u64(out, len);
    buf_str(out, "\r\n");
}

static void
add_arg(struct buf *out, struct bytes arg)
{
    add_length(arg.len, out);
    buf_bytes(out, arg);
    buf_str(out, "\r\n");
}

static void
add_queue(const struct plan *plan, const struct actor *a, struct buf *out)
{
    char name[128];
    size_t len = strlen(plan->queue_base);

    memcpy(name, plan->queue_base, len);
    name[len] = '-';
    hex_write(name + len + 1, a->queue, 8);
    add_arg(out, bytes_of(name, len + 9));
}

/* The connection's list of claimed messages, named after the high bits of its serial. */
static void
add_held(const struct actor *a, struct buf *out)
{
    char name[14] = "held:";

    hex_write(name + 5, a->serial >> 40, 8);
    add_arg(out, bytes_of(name, 13));
}

static void
add_command(struct buf *out, unsigned args, const char *name)
{
    buf_byte(out, '*');
    buf_u64(out, args);
    buf_str(out, "\r\n");
    add_arg(out, bytes_str(name));
}

static unsigned
redis_build(const struct plan *plan, struct actor *a, const struct step *step,
            struct buf *out)
{
    unsigned i;

    switch (step->op) {
    case OP_DROP:
        add_command(out, 2, "DEL");
        add_queue(plan, a, out);
        return 1;
    case OP_POST:
        add_command(out, step->count + 2, "LPUSH");
        add_queue(plan, a, out);
        for (i = 0; i < step->count; i++) {
            add_length(plan_body_len(plan), out);
            protocol_add_body(plan, a, out);
            buf_str(out, "\r\n");
        }
        return 1;
    case OP_CLAIM:
        for (i = 0; i < step->count; i++) {
            add_command(out, 5, "LMOVE");
            add_queue(plan, a, out);
            add_held(a, out);
            buf_str(out, "$5\r\nRIGHT\r\n$4\r\nLEFT\r\n");
        }
        return step->count;
    case OP_DELETE:
    case OP_BULK_DELETE:
        for (i = 0; i < step->count; i++) {
            add_command(out, 4, "LREM");
            add_held(a, out);
            add_arg(out, bytes_str("1"));
            add_length(plan_body_len(plan), out);
            buf_bytes(out, plan->body_head);
            buf_bytes(out, id_view(&a->ids[a->next + i]));
            buf_bytes(out, plan->body_tail);
            buf_str(out, "\r\n");
        }
        return step->count;
    case OP_RELEASE:
        for (i = 0; i < a->held; i++) {
            add_command(out, 5, "LMOVE");
            add_held(a, out);
            add_queue(plan, a, out);
            buf_str(out, "$4\r\nLEFT\r\n$5\r\nRIGHT\r\n");
        }
        return a->held;
    case OP_LIST:
        add_command(out, 4, "LRANGE");
        add_queue(plan, a, out);
        add_arg(out, bytes_str("-10"));
        add_arg(out, bytes_str("-1"));
        return 1;
    default:
        return 0;
    }
}

/* One reply of Redis: a status, a number, an error, or a block, which is absent for
 * nil. */
struct redis_reply {
    char kind;
    struct bytes block;
};

static enum reading
read_reply(struct bytes *rest, struct redis_reply *out)
{
    struct bytes line;
    int64_t size;

    if (!line_cut(rest, &line))
        return READING_MORE;
    if (line.len == 0)
        return READING_BROKEN;
    *out = (struct redis_reply){.kind = line.data[0], .block = BYTES_NONE};
    if (out->kind != '$')
        return READING_DONE;
    if (!bytes_to_i64(bytes_of(line.data + 1, line.len - 1), &size))
        return READING_BROKEN;
    if (size < 0)
        return READING_DONE;
    return block_cut(rest, (size_t)size, &out->block) ? READING_DONE : READING_MORE;
}

/* Keeps the number in each body as its id. */
static enum reading
read_claimed(const struct plan *plan, struct actor *a, unsigned count, struct bytes *rest)
{
    unsigned held = 0;

    for (unsigned i = 0; i < count; i++) {
        struct redis_reply item;
        enum reading r = read_reply(rest, &item);

        if (r != READING_DONE)
            return r;
        if (!bytes_present(item.block))
            continue;
        if (item.block.len != plan_body_len(plan))
            return READING_BROKEN;
        id_set(&a->ids[held++], item.block.data + plan->body_head.len, BODY_NUMBER);
    }
    a->held = held;
    a->next = 0;
    return READING_DONE;
}

static enum reading
read_replies(unsigned count, struct bytes *rest, struct reply *out)
{
    for (unsigned i = 0; i < count; i++) {
        struct redis_reply item;
        enum reading r = read_reply(rest, &item);

        if (r != READING_DONE)
            return r;
        if (item.kind == '-')
            out->refused = 1;
    }
    return READING_DONE;
}

static enum reading
read_listing(struct bytes *rest, struct reply *out)
{
    struct bytes line;
    uint64_t count;
    enum reading r;

    if (!line_cut(rest, &line))
        return READING_MORE;
    if (!line_starts(line, "*") ||
        !bytes_to_u64(bytes_of(line.data + 1, line.len - 1), &count))
        return READING_BROKEN;
    r = read_replies((unsigned)count, rest, out);
    out->messages = (unsigned)count;
    return r;
}

static enum reading
redis_read(const struct plan *plan, struct actor *a, const struct step *step,
           struct bytes *rest, bool ended, struct reply *out)
{
    enum reading r;

    (void)ended;
    switch (step->op) {
    case OP_CLAIM:
        r = read_claimed(plan, a, step->count, rest);
        out->messages = a->held;
        return r;
    case OP_DELETE:
    case OP_BULK_DELETE:
        out->messages = step->count;
        r = read_replies(step->count, rest, out);
        break;
    case OP_RELEASE:
        r = read_replies(a->held, rest, out);
        break;
    case OP_LIST:
        return read_listing(rest, out);
    default:
        out->messages = step->op == OP_POST ? step->count : 0;
        return read_replies(1, rest, out);
    }
    if (r == READING_DONE)
        actor_apply_step(a, step);
    return r;
}

const struct protocol protocol_redis = {
    .name = "redis",
    .build = redis_build,
    .read = redis_read,
};
