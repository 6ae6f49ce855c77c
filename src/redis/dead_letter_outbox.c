/*
 * dead_letter_outbox: transfers of dead letters from one queue to another, which may be in another slot.
 *
 * A script moves a dead letter out of its queue and into that queue's key X, in one step. Then it is posted to
 * the other queue, which remembers the id of the transfer, so that it arrives once. Then it leaves X. The
 * other queue forgets the transfer when no process can still be about to post it. So a dead letter is in one
 * queue, or in X, never in two, and never lost. If a process ends in between, the next claim of the queue
 * some seconds later completes the transfer, or the queue's deletion does.
 */
#include "redis/call.h"
#include "redis/waiting.h"

/* A dead letter as the script packs it. */
enum {
    POSTED_AT = 0,
    EXPIRES_AT = 8,
    CLIENT_AT = 16,
    NAME_LEN_AT = 24,
    SUM_LEN_AT = 25,
    ID_AT = 26,
    ID_LEN = 24,
    TEXTS_AT = ID_AT + ID_LEN
};

/* A process transfers dead letters for so long after a script has leased them to it. */
static const int64_t TRANSFER_MS = 60000;

struct dead_letter {
    struct bytes transfer_id, id, client, name, sum, body;
    int64_t posted_ms, expires_ms;
};

static bool
read_dead_letter(struct bytes transfer_id, struct bytes text, struct dead_letter *out)
{
    size_t name_len, sum_len;

    if (!bytes_present(transfer_id) || text.len < TEXTS_AT)
        return false;
    name_len = (uint8_t)text.data[NAME_LEN_AT];
    sum_len = (uint8_t)text.data[SUM_LEN_AT];
    if (text.len < TEXTS_AT + name_len + sum_len)
        return false;
    *out = (struct dead_letter){.transfer_id = transfer_id,
                                .id = bytes_of(text.data + ID_AT, ID_LEN),
                                .client = bytes_of(text.data + CLIENT_AT, 8)};
    if (!message_time_read(text, POSTED_AT, &out->posted_ms) ||
        !message_time_read(text, EXPIRES_AT, &out->expires_ms))
        return false;
    out->name = bytes_of(text.data + TEXTS_AT, name_len);
    out->sum = bytes_of(out->name.data + name_len, sum_len);
    out->body =
        bytes_of(out->sum.data + sum_len, text.len - TEXTS_AT - name_len - sum_len);
    return true;
}

static enum status
post_body(struct redis_store *s, const struct store_op *op, const struct store_queue *to,
          const struct dead_letter *l, struct bytes body)
{
    struct call c = call_begin(s, op, to);
    enum status st;

    call_digits(&c, TAG_DIGITS);
    call_word(&c, l->transfer_id);
    call_word(&c, l->id);
    call_number(&c, l->posted_ms);
    call_number(&c, l->expires_ms);
    call_word(&c, l->client);
    call_word(&c, l->sum);
    call_word(&c, body);
    st = call_run(&c, SCRIPT_dead_letter_post, CALL_CHANGES);
    if (st == ST_OK && call_integer(&c, 1) != 0)
        st = queue_index_add(s, op, to, call_item(&c, 2));
    call_end(&c);
    return st;
}

/* Encrypts it for a queue with encrypted messages. */
static enum status
post_encrypted(struct redis_store *s, const struct store_op *op,
               const struct store_queue *to, const struct dead_letter *l)
{
    const struct store_sealer *sealer = s->config.sealer;
    size_t size;
    char *sealed;
    enum status st;

    if (sealer == NULL)
        return ST_NO_KEY;
    size = l->body.len + sealer->overhead;
    sealed = mem_alloc(s->config.mem, size);
    if (sealed == NULL)
        return ST_NO_MEMORY;
    st = sealer->seal(sealer->arg, to, l->body, sealed);
    if (st == ST_OK)
        st = post_body(s, op, to, l, bytes_of(sealed, size));
    mem_free(s->config.mem, sealed);
    return st;
}

/* So many dead letters have arrived and left X: their queues may forget the transfers. If that message is lost,
 * they forget them in a week. Those for the same queue in a row share a call. */
static void
forget_transfers(const struct call *c, size_t from, size_t count,
                 const struct store_op *op, const struct store_queue *where)
{
    const struct cluster_config *config = &c->store->cluster.config;
    const int64_t ask_ms = config->patience_ms + 2 * config->link.answer_ms;
    /* Another process may still be about to post what was leased to it before: twice as long as a lease and
     * its last post may take. */
    const int64_t remembered_ms = 2 * (TRANSFER_MS + 2 * ask_ms);
    struct store_queue to = {.project = where->project, .kind = where->kind};
    struct dead_letter l;
    struct call notice;
    bool open = false;

    for (size_t at = from; count > 0 && call_has(c, at + 1); at += 2) {
        if (!read_dead_letter(call_item(c, at), call_item(c, at + 1), &l))
            continue;
        if (open && !bytes_equal(l.name, to.name)) {
            (void)call_finish(&notice, SCRIPT_transfer_forget, CALL_NOTES);
            open = false;
        }
        if (!open) {
            to.name = l.name;
            notice = call_begin(c->store, op, &to);
            call_number(&notice, remembered_ms);
            open = true;
        }
        call_word(&notice, l.transfer_id);
        count--;
    }
    if (open)
        (void)call_finish(&notice, SCRIPT_transfer_forget, CALL_NOTES);
}

enum status
outbox_deliver(const struct call *c, size_t from, const struct store_op *op,
               const struct store_queue *where)
{
    struct redis_store *s = c->store;
    enum status st = ST_OK;
    size_t arrived = 0;
    struct call done;

    if (!call_has(c, from))
        return ST_OK;
    done = call_begin(s, op, where);
    for (size_t i = from; call_has(c, i + 1); i += 2) {
        struct dead_letter l;
        struct store_queue to;

        if (clock_stopwatch_ns() - c->begun_ns > TRANSFER_MS * 1000000)
            break; /* the lease is over */
        if (!read_dead_letter(call_item(c, i), call_item(c, i + 1), &l))
            continue; /* the empty member that keeps the key there */
        to = (struct store_queue){where->project, l.name, where->kind};
        st = post_body(s, op, &to, &l, l.body);
        if (st == ST_NOT_SEALED)
            st = post_encrypted(s, op, &to, &l);
        waiting_wake(s, op, &to);
        if (st != ST_OK)
            break;
        call_word(&done, l.transfer_id);
        counters_add(s, STORE_COUNT_DEAD_LETTERS, 1);
        arrived++;
    }
    if (arrived > 0) {
        enum status removed = call_run(&done, SCRIPT_outbox_done, CALL_CHANGES);

        if (removed == ST_OK)
            forget_transfers(c, from, arrived, op, where);
        st = st == ST_OK ? removed : st;
    }
    call_end(&done);
    return st;
}
