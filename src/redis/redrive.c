/*
 * redrive: puts dead letters back (store/store.h), as transfers. Read outbox.h and
 * scripts/redrive.lua next.
 *
 * At most one message of the target may hold the key of a message. The target is another
 * queue, maybe in another slot, so the script cannot look. If there are keys, it moves
 * nothing and returns them. unique_find asks the target, and the script runs again with
 * the result. If another message gets the key until the dead letter arrives, the target
 * refuses it, and it returns to its queue (outbox.c).
 */
#include "claimd/base/invariant.h"
#include "redis/call.h"
#include "redis/outbox.h"
#include "redis/waiting.h"

#include <inttypes.h>
#include <stdio.h>

/* Words of the response of redrive. */
enum { TARGET = 1, MOVED, UNKNOWN_ORIGIN, KEY_HELD, REMAINING, NEXT, KEYS };
enum { TRANSFERS = KEYS + 1 }; /* without keys, behind an empty text */

enum { KEYS_MOST = 1024 }; /* messages that the script examines */

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
              const struct store_queue *where, const struct call *c,
              struct store_redriven *out)
{
    const size_t words = call_count(c), moved = out->moved;
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
    for (size_t i = 0; arrived && i < moved; i++)
        if (all[i].returned) {
            out->moved--;
            out->key_held++;
            out->remaining++;
        }
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
    out->key_held = (size_t)call_integer(c, KEY_HELD);
    out->remaining = (uint64_t)call_integer(c, REMAINING);
    out->more = next >= 0;
    which->resume = next >= 0 ? (uint64_t)next : UINT64_MAX;
    if (target.len > 0)
        memcpy(out->target_text, target.data, target.len);
    out->target = bytes_of(out->target_text, target.len);
    return ST_OK;
}

/* A redrive in work. */
struct redriving {
    struct redis_store *store;
    struct store_op *op;
    const struct store_queue *where;
    struct store_redrive *which;
};

/* Runs the script. `asked` has keys, and `held` a digit for each of them; NULL: the
 * target was not asked. */
static enum status
run_script(const struct redriving *r, const struct call *asked, struct bytes held,
           struct call *c)
{
    const struct store_redrive *which = r->which;

    *c = call_begin(r->store, r->op, r->where);
    call_number(c, redrive_start(which->resume));
    call_number(c, which->limit > INT32_MAX ? INT32_MAX : (int64_t)which->limit);
    call_word(c, which->to);
    call_word(c, r->where->name);
    call_number(c, which->keeps_count);
    call_number(c, which->dry_run);
    call_number(c, which->ids != NULL);
    call_word(c, asked == NULL ? BYTES_NONE : call_item(asked, TARGET));
    call_word(c, held);
    for (size_t i = 0; i < held.len; i++)
        call_word(c, call_item(asked, KEYS + i));
    for (size_t i = 0; which->ids != NULL && i < which->id_count; i++)
        call_id(c, which->ids[i]);
    c->most = KEYS_MOST;
    return call_run(c, SCRIPT_redrive, CALL_CHANGE);
}

/* Asks the target which of the keys its messages hold, and runs the script again. */
static enum status
run_with_keys(const struct redriving *r, const struct call *asked, struct call *c)
{
    const struct store_queue target = {.project = r->where->project,
                                       .name = call_item(asked, TARGET),
                                       .kind = r->where->kind};
    struct call find = call_begin(r->store, r->op, &target);
    size_t keys = 0;
    enum status st;

    for (; call_item(asked, KEYS + keys).len > 0; keys++)
        call_word(&find, call_item(asked, KEYS + keys));
    st = call_run(&find, SCRIPT_unique_find, CALL_READ);
    if (st == ST_OK && call_item(&find, 1).len != keys)
        st = ST_UNAVAILABLE;
    if (st == ST_OK)
        st = run_script(r, asked, call_item(&find, 1), c);
    else
        *c = call_begin(r->store, r->op, r->where);
    call_end(&find);
    return st;
}

enum status
redis_redrive(struct store *store, struct store_op *op, const struct store_queue *where,
              struct store_redrive *which, struct store_redriven *out)
{
    const struct redriving r = {redis_of(store), op, where, which};
    struct call c, asked;
    enum status st;

    ENSURE(which->limit > 0);
    out->moved = out->unknown_origin = out->key_held = 0;
    st = run_script(&r, NULL, BYTES_NONE, &c);
    if (st == ST_AGAIN && call_has(&c, KEYS)) {
        asked = c;
        st = run_with_keys(&r, &asked, &c);
        call_end(&asked);
    }
    if (st == ST_OK)
        st = read_redriven(&c, which, out);
    if (st == ST_OK && !which->dry_run)
        st = send_redriven(r.store, op, where, &c, out);
    call_end(&c);
    return st;
}
