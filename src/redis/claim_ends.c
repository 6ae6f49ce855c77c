#include "redis/claim_ends.h"

#include "redis/due.h"

/* Maximum time between two polls of a list, for queues that a process has added that has ended. */
enum { POLL_MS = 10000 };

enum status
claim_ends_open(struct redis_store *s)
{
    s->claim_ends = mem_calloc(s->config.mem, 1, sizeof(*s->claim_ends));
    if (s->claim_ends == NULL)
        return ST_NO_MEMORY;
    due_init(s->claim_ends, DUE_CLAIM_ENDS, POLL_MS);
    return ST_OK;
}

void
claim_ends_close(struct redis_store *s)
{
    if (s->claim_ends == NULL)
        return;
    due_fini(s->claim_ends);
    mem_free(s->config.mem, s->claim_ends);
}

void
claim_ends_add(struct redis_store *s, const struct store_op *op,
               const struct store_queue *where, int64_t ms)
{
    due_add(s, s->claim_ends, op, where, ms);
    maintenance_wake(s->maintenance);
}

/* A due_work_fn. */
static enum status
end_claims(struct redis_store *s, const struct store_op *op,
           const struct store_queue *where, int64_t *next_ms)
{
    enum { NEXT = 1, TRANSFERS };
    struct call c = call_begin(s, op, where);
    enum status st;

    call_word(&c, where->name);
    call_number(&c, s->config.dead_letter_ttl_s);
    call_number(&c, true);
    st = call_run(&c, SCRIPT_queue_expire, CALL_CHANGE);
    if (st == ST_OK) {
        *next_ms = call_integer(&c, NEXT);
        (void)outbox_deliver(&c, TRANSFERS, op, where); /* or the next look */
    }
    call_end(&c);
    return st;
}

int64_t
claim_ends_look(struct redis_store *s, int64_t now_ms)
{
    const struct store_op op = {.now_ms = now_ms};
    int64_t poll_ms;
    const unsigned list_no = due_next_list(s->claim_ends, &poll_ms);

    enum status st = ST_OK;

    if (poll_ms <= now_ms)
        st = due_poll(s, s->claim_ends, &op, list_no, end_claims);
    /* A node that does not respond must not delay the other work of the thread again and again. */
    if (st != ST_OK && st != ST_NOT_FOUND)
        due_pause(s->claim_ends, redis_clock_ms(s, now_ms) + POLL_MS);
    return claim_ends_next_ms(s);
}

int64_t
claim_ends_next_ms(struct redis_store *s)
{
    int64_t poll_ms;

    (void)due_next_list(s->claim_ends, &poll_ms);
    return poll_ms;
}
