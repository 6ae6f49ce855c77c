/*
 * protocol_beanstalk: the steps of a scenario for beanstalkd 1.12 (protocol.h), with put,
 * reserve, delete and release.
 *
 * The protocol has no batches, so a step of several messages is a pipeline of commands.
 * The numbers of docs/performance.md compare claimd with it.
 */
#include "load/protocol.h"

static void
add_tube(const struct plan *plan, const struct actor *a, const char *command,
         struct buf *out)
{
    buf_str(out, command);
    buf_str(out, plan->queue_base);
    buf_byte(out, '-');
    buf_u64(out, a->queue);
    buf_str(out, "\r\n");
}

static void
add_with_id(const char *command, const struct id *id, const char *rest, struct buf *out)
{
    buf_str(out, command);
    buf_bytes(out, id_view(id));
    buf_str(out, rest);
}

static unsigned
beanstalk_build(const struct plan *plan, struct actor *a, const struct step *step,
                struct buf *out)
{
    unsigned i;

    switch (step->op) {
    case OP_HELLO:
        add_tube(plan, a, "use ", out);
        add_tube(plan, a, "watch ", out);
        buf_str(out, "ignore default\r\n");
        return 3;
    case OP_POST:
        for (i = 0; i < step->count; i++) {
            buf_str(out, "put 1024 0 3600 ");
            buf_u64(out, plan_body_len(plan));
            buf_str(out, "\r\n");
            protocol_add_body(plan, a, out);
            buf_str(out, "\r\n");
        }
        return step->count;
    case OP_CLAIM:
        for (i = 0; i < step->count; i++)
            buf_str(out, "reserve-with-timeout 0\r\n");
        return step->count;
    case OP_DELETE:
    case OP_BULK_DELETE:
        for (i = 0; i < step->count; i++)
            add_with_id("delete ", &a->ids[a->next + i], "\r\n", out);
        return step->count;
    case OP_RELEASE:
        for (i = 0; i < a->held; i++)
            add_with_id("release ", &a->ids[i], " 1024 0\r\n", out);
        return a->held;
    default:
        return 0;
    }
}

static enum reading
read_claim(struct actor *a, const struct step *step, struct bytes *rest,
           struct reply *out)
{
    unsigned held = 0;

    for (unsigned i = 0; i < step->count; i++) {
        struct bytes line, id, block;
        uint64_t size;

        if (!line_cut(rest, &line))
            return READING_MORE;
        if (line_starts(line, "TIMED_OUT") || line_starts(line, "DEADLINE_SOON"))
            continue;
        if (!line_starts(line, "RESERVED "))
            return READING_BROKEN;
        (void)bytes_cut(&line, ' '); /* "RESERVED <id> <bytes>", then the block */
        id = bytes_cut(&line, ' ');
        if (!id_set(&a->ids[held], id.data, id.len) || !bytes_to_u64(line, &size))
            return READING_BROKEN;
        if (!block_cut(rest, (size_t)size, &block))
            return READING_MORE;
        held++;
    }
    a->held = held;
    a->next = 0;
    out->messages = held;
    return READING_DONE;
}

/* Reads `count` lines and counts those that start with `good`. The others are
 * refusals. */
static enum reading
read_lines(unsigned count, const char *good, struct bytes *rest, struct reply *out)
{
    unsigned fine = 0;

    for (unsigned i = 0; i < count; i++) {
        struct bytes line;

        if (!line_cut(rest, &line))
            return READING_MORE;
        if (line_starts(line, good))
            fine++;
    }
    out->messages = fine;
    out->refused = fine == count ? 0 : 1;
    return READING_DONE;
}

static enum reading
beanstalk_read(const struct plan *plan, struct actor *a, const struct step *step,
               struct bytes *rest, bool ended, struct reply *out)
{
    enum reading r;

    (void)plan;
    (void)ended;
    switch (step->op) {
    case OP_POST:
        return read_lines(step->count, "INSERTED", rest, out);
    case OP_CLAIM:
        return read_claim(a, step, rest, out);
    case OP_DELETE:
    case OP_BULK_DELETE:
        r = read_lines(step->count, "DELETED", rest, out);
        break;
    case OP_RELEASE:
        r = read_lines(a->held, "RELEASED", rest, out);
        out->messages = 0;
        break;
    default:
        return read_lines(3, "", rest, out);
    }
    if (r == READING_DONE)
        actor_apply_step(a, step);
    return r;
}

const struct protocol protocol_beanstalk = {
    .name = "beanstalk",
    .build = beanstalk_build,
    .read = beanstalk_read,
};
