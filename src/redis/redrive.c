/* redrive: puts dead letters back (store/store.h), as transfers. Read outbox.h and
 * scripts/redrive.lua next. */
#include "claimd/base/invariant.h"
#include "redis/call.h"
#include "redis/outbox.h"
#include "redis/waiting.h"

#include <inttypes.h>
#include <stdio.h>

/* Words of the response of redrive. */
enum { TARGET = 1, MOVED, UNKNOWN_ORIGIN, REMAINING, NEXT, TRANSFERS = 7 };

/* Where the script goes on: a number of a message, or an index. More than any is the
 * end. */
static int64_t
redrive_start(uint64_t resume)
{
    static const uint64_t END = UINT64_C(1) << 51;

    return (int64_t)(resume < END ? resume : END);
}

/*
 * Sends the messages. They are in transfer if they cannot arrive now, and the caller
 * should not move more of them to a queue that is away. So the status is ST_UNCONFIRMED
 * then.
 */
static enum status
send_redriven(struct redis_store *s, const struct store_op *op,
              const struct store_queue *where, const struct call *c, size_t moved)
{
    const size_t words = call_count(c);
    const size_t count = words > TRANSFERS ? (words - TRANSFERS) / 2 : 0;
    struct transfer *all;
    bool arrived = moved <= count;

    if (count == 0)
        return arrived ? ST_OK : ST_UNCONFIRMED;
    all = mem_calloc(s->config.mem, count, sizeof(*all));
    if (all == NULL)
        return ST_UNCONFIRMED;
    for (size_t i = 0; i < count; i++)
        all[i] = (struct transfer){.id = call_item(c, TRANSFERS + 2 * i),
                                   .content = call_item(c, TRANSFERS + 2 * i + 1)};
    if (count > moved) /* leased ones follow */
        outbox_sort(all + moved, count - moved);
    (void)outbox_send(s, op, where, all, count, c->begun_ns);
    for (size_t i = 0; arrived && i < moved; i++)
        arrived = all[i].arrived;
    mem_free(s->config.mem, all);
    return arrived ? ST_OK : ST_UNCONFIRMED;
}

/* Reads the response. The first transfers are those of the messages that have moved. */
static enum status
read_redriven(const struct call *c, struct store_redrive *which,
              struct store_redriven *out)
{
    const struct bytes target = call_item(c, TARGET);
    const int64_t next = call_integer(c, NEXT);

    if (target.len > sizeof(out->target_text))
        return ST_UNCONFIRMED;
    out->moved = (size_t)call_integer(c, MOVED);
    out->unknown_origin = (size_t)call_integer(c, UNKNOWN_ORIGIN);
    out->remaining = (uint64_t)call_integer(c, REMAINING);
    out->more = next >= 0;
    which->resume = next >= 0 ? (uint64_t)next : UINT64_MAX;
    if (target.len > 0)
        memcpy(out->target_text, target.data, target.len);
    out->target = bytes_of(out->target_text, target.len);
    return ST_OK;
}

enum status
redis_redrive(struct store *store, struct store_op *op, const struct store_queue *where,
              struct store_redrive *which, struct store_redriven *out)
{
    struct redis_store *s = redis_of(store);
    struct call c = call_begin(s, op, where);
    enum status st;

    ENSURE(which->limit > 0);
    out->moved = out->unknown_origin = 0;
    call_number(&c, redrive_start(which->resume));
    call_number(&c, which->limit > INT32_MAX ? INT32_MAX : (int64_t)which->limit);
    call_word(&c, which->to);
    call_word(&c, where->name);
    call_number(&c, which->keeps_count);
    call_number(&c, which->dry_run);
    call_number(&c, which->ids != NULL);
    for (size_t i = 0; which->ids != NULL && i < which->id_count; i++)
        call_id(&c, which->ids[i]);
    st = call_run(&c, SCRIPT_redrive, CALL_CHANGE);
    if (st == ST_OK)
        st = read_redriven(&c, which, out);
    if (st == ST_OK && !which->dry_run)
        st = send_redriven(s, op, where, &c, out->moved);
    call_end(&c);
    return st;
}
