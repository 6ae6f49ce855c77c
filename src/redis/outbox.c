/*
 * outbox: sends transfers to other queues. Declared in outbox.h and call.h.
 *
 *     1. A script moves a message out of its queue into key X of the queue, the outbox,
 *        or puts the post of a finish there (scripts/lib/outbox.lua). The response has
 *        the transfers.
 *     2. outbox_deliver() sorts them by age, and outbox_send() sends them. A claim and a
 *        redrive also get transfers that began long ago, whose process may have ended.
 *     3. read_batch() takes messages in a row to the same queue together, for one call.
 *     4. send_batch() runs dead_letter_post or transfer_post on the other queue. If that
 *        queue encrypts, it runs it again with encrypted bodies. The queue remembers the
 *        id of a transfer, so each arrives once.
 *     5. outbox_done removes those that have arrived from X. transfer_return does so
 *        with those that the other queue has refused, and makes them dead letters of
 *        this queue again. The other queue remembers a refusal like an arrival, so that
 *        no process can deliver a message that another one takes back.
 *     6. forget_transfers() has the other queue forget their ids (transfer_forget),
 *        later than any process can still send them.
 *
 * If a process ends between 1 and 5, another one continues with step 2: at the next
 * claim or redrive, at a look (claim_ends.h), or in outbox_resume() for a scan of the
 * metrics.
 */
#include "redis/outbox.h"
#include "claimd/base/invariant.h"
#include "redis/delivery_ops.h"
#include "redis/waiting.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------- contents */

enum { MARK_SIZE = 8, KIND_AT = MARK_SIZE, ID_LEN = 24, CLIENT_SIZE = 8 };

enum kind { TO_DEAD_LETTERS = 1, BACK, POST, POST_UNIQUE, BACK_UNIQUE };

static const char mark[] = "\xff\xff\xff\xff\xff\xff\xff\xff";

/* Offsets in a message. */
enum {
    POSTED_AT = KIND_AT + 1,
    EXPIRES_AT = POSTED_AT + 8,
    COUNT_AT = EXPIRES_AT + 8,
    CLIENT_AT = COUNT_AT + 4,
    NAME_LEN_AT = CLIENT_AT + CLIENT_SIZE,
    SUM_LEN_AT,
    DETAILS_LEN_AT,
    ID_AT = DETAILS_LEN_AT + 2,
    TEXTS_AT = ID_AT + ID_LEN
};

/* Offsets in a dead letter of an older version. */
enum {
    OLD_POSTED_AT = 0,
    OLD_EXPIRES_AT = 8,
    OLD_CLIENT_AT = 16,
    OLD_NAME_LEN_AT = 24,
    OLD_SUM_LEN_AT,
    OLD_ID_AT,
    OLD_TEXTS_AT = OLD_ID_AT + ID_LEN
};

/* Offsets in a post, in its key behind the name of the queue, and in each of its
 * messages. */
enum {
    POST_CLIENT_AT = KIND_AT + 1,
    POST_NAME_LEN_AT = POST_CLIENT_AT + CLIENT_SIZE,
    POST_COUNT_AT,
    POST_TEXTS_AT = POST_COUNT_AT + 4
};
enum { UNTIL_CLAIMED_AT = 0, KEY_LEN_AT, DUE_AT, KEY_HEAD_SIZE = DUE_AT + 8 };
enum { TTL_AT = 0, DELAY_AT = 8, BODY_LEN_AT = 16, DRAFT_SUM_LEN_AT = 20, DRAFT_SIZE };

/* Maximum time from the script that leases transfers to a process until it sends the last
 * one. */
static const int64_t TRANSFER_MS = 60000;

/* Limits of one call of Redis: messages, and bytes after which no further message is
 * added. */
enum { BATCH_MOST = 64, BATCH_BYTES = 1 << 20 };

/* Calls of one batch, at most. The transfers stay in X then. */
enum { SEND_TRIES = 16 };

/* The content of a transfer. */
struct content {
    enum kind kind;
    struct bytes client, name;
    /* Of a message: */
    struct bytes id, sum, details, body;
    int64_t posted_ms, expires_ms;
    uint32_t claim_count;
    /* Of a post: */
    uint32_t count;
    struct store_unique unique; /* without a key if it has none */
    struct bytes drafts;
};

/* Takes `len` bytes off the beginning of a text. False: it is shorter. */
static bool
cut(struct bytes *text, size_t len, struct bytes *out)
{
    if (text->len < len)
        return false;
    *out = bytes_of(text->data, len);
    *text = bytes_of(text->data + len, text->len - len);
    return true;
}

static bool
read_old_dead_letter(struct bytes text, struct content *out)
{
    const size_t name_len = (uint8_t)text.data[OLD_NAME_LEN_AT];
    const size_t sum_len = (uint8_t)text.data[OLD_SUM_LEN_AT];

    *out = (struct content){.kind = TO_DEAD_LETTERS,
                            .client = bytes_of(text.data + OLD_CLIENT_AT, CLIENT_SIZE),
                            .id = bytes_of(text.data + OLD_ID_AT, ID_LEN)};
    if (!message_time_read(text, OLD_POSTED_AT, &out->posted_ms) ||
        !message_time_read(text, OLD_EXPIRES_AT, &out->expires_ms))
        return false;
    out->body = bytes_of(text.data + OLD_TEXTS_AT, text.len - OLD_TEXTS_AT);
    return cut(&out->body, name_len, &out->name) && cut(&out->body, sum_len, &out->sum);
}

static bool
read_message(struct bytes text, struct content *out)
{
    uint16_t details_len;

    if (text.len < TEXTS_AT || !message_time_read(text, POSTED_AT, &out->posted_ms) ||
        !message_time_read(text, EXPIRES_AT, &out->expires_ms))
        return false;
    memcpy(&out->claim_count, text.data + COUNT_AT, sizeof(out->claim_count));
    memcpy(&details_len, text.data + DETAILS_LEN_AT, sizeof(details_len));
    out->client = bytes_of(text.data + CLIENT_AT, CLIENT_SIZE);
    out->id = bytes_of(text.data + ID_AT, ID_LEN);
    out->body = bytes_of(text.data + TEXTS_AT, text.len - TEXTS_AT);
    return cut(&out->body, (uint8_t)text.data[NAME_LEN_AT], &out->name) &&
           cut(&out->body, (uint8_t)text.data[SUM_LEN_AT], &out->sum) &&
           cut(&out->body, details_len, &out->details);
}

/* True for the kinds of a post. */
static bool
is_post(enum kind kind)
{
    return kind == POST || kind == POST_UNIQUE;
}

static bool
cut_unique(struct bytes *text, struct store_unique *out)
{
    struct bytes head;

    if (!cut(text, KEY_HEAD_SIZE, &head) ||
        !cut(text, (uint8_t)head.data[KEY_LEN_AT], &out->key))
        return false;
    out->until_claimed = head.data[UNTIL_CLAIMED_AT] != 0;
    memcpy(&out->due_ms, head.data + DUE_AT, sizeof(out->due_ms));
    return out->key.len > 0 && out->key.len <= STORE_UNIQUE_MAX;
}

static bool
read_post(struct bytes text, struct content *out)
{
    if (text.len < POST_TEXTS_AT)
        return false;
    out->client = bytes_of(text.data + POST_CLIENT_AT, CLIENT_SIZE);
    memcpy(&out->count, text.data + POST_COUNT_AT, sizeof(out->count));
    out->drafts = bytes_of(text.data + POST_TEXTS_AT, text.len - POST_TEXTS_AT);
    return cut(&out->drafts, (uint8_t)text.data[POST_NAME_LEN_AT], &out->name) &&
           (out->kind == POST || cut_unique(&out->drafts, &out->unique));
}

/* The queue that a transfer of the queue `where` goes to. */
static struct store_queue
target_of(const struct store_queue *where, const struct content *content)
{
    return (struct store_queue){
        .project = where->project,
        .name = content->name,
        .kind = is_post(content->kind) ? store_post_kind(where->kind) : where->kind};
}

/* False: it is no transfer, or one of a later version. */
static bool
content_read(const struct transfer *t, struct content *out)
{
    const struct bytes text = t->content;

    if (!bytes_present(t->id) || text.len <= KIND_AT)
        return false; /* the empty field that X always has */
    if (memcmp(text.data, mark, MARK_SIZE) != 0)
        return text.len >= OLD_TEXTS_AT && read_old_dead_letter(text, out);
    *out = (struct content){.kind = (enum kind)text.data[KIND_AT]};
    if (is_post(out->kind))
        return read_post(text, out);
    return (out->kind == TO_DEAD_LETTERS || out->kind == BACK ||
            out->kind == BACK_UNIQUE) &&
           read_message(text, out);
}

void
outbox_write_post(struct buf *out, struct bytes queue, const struct store_post *post)
{
    const uint32_t count = (uint32_t)post->count;

    ENSURE(queue.len <= UINT8_MAX && post->count <= UINT32_MAX &&
           !bytes_present(post->replaces) && post->ready_ms == 0);
    buf_add(out, mark, MARK_SIZE);
    buf_byte(out, post->unique == NULL ? POST : POST_UNIQUE);
    buf_add(out, &post->client,
            CLIENT_SIZE); /* numbers as on this machine, little-endian */
    buf_byte(out, (char)queue.len);
    buf_add(out, &count, sizeof(count));
    buf_bytes(out, queue);
    if (post->unique != NULL) {
        buf_byte(out, post->unique->until_claimed);
        buf_byte(out, (char)post->unique->key.len);
        buf_add(out, &post->unique->due_ms, sizeof(post->unique->due_ms));
        buf_bytes(out, post->unique->key);
    }
    for (size_t i = 0; i < post->count; i++) {
        const struct store_draft *draft = &post->drafts[i];
        const uint32_t len = (uint32_t)draft->body.len;
        const struct store_checksum *sum =
            post->checksums == NULL ? NULL : &post->checksums[i];

        ENSURE(draft->body.len <= UINT32_MAX);
        buf_add(out, &draft->ttl_s, sizeof(draft->ttl_s));
        buf_add(out, &draft->delay_s, sizeof(draft->delay_s));
        buf_add(out, &len, sizeof(len));
        buf_byte(out, sum == NULL ? 0 : (char)sizeof(*sum));
        if (sum != NULL)
            buf_add(out, sum->digest, sizeof(sum->digest));
        buf_bytes(out, draft->body);
    }
}

/* ---------------------------------------------------------------------- sending */

/* Encrypts a body for the queue. The caller ends the buffer in any case. */
static enum status
seal_body(struct redis_store *s, const struct store_queue *to, struct bytes body,
          struct buf *out)
{
    const struct store_sealer *sealer = s->config.sealer;
    size_t size;

    buf_init(out, s->config.mem);
    if (sealer == NULL)
        return ST_NO_KEY;
    size = body.len + sealer->overhead;
    if (!buf_reserve(out, size))
        return ST_NO_MEMORY;
    out->len = size;
    return sealer->seal(sealer->arg, to, body, out->data);
}

/* Adds a body as a word, encrypted if `seal`, unless it is already. */
static enum status
call_add_body(struct call *c, struct bytes body, bool seal)
{
    enum status st = ST_OK;
    struct buf sealed;

    if (seal && !store_is_sealed(body)) {
        st = seal_body(c->store, c->where, body, &sealed);
        if (st == ST_OK)
            call_buf(c, &sealed);
        else
            buf_fini(&sealed);
        return st;
    }
    call_word(c, body);
    return ST_OK;
}

/* Transfers that one call sends to one queue. */
struct batch {
    struct transfer *transfers;
    const struct content *contents;
    size_t count;
};

/* Notes the transfers that the other queue has refused, from word `from` of the response
 * on. */
static void
note_refused(const struct batch *batch, const struct call *c, size_t from)
{
    for (size_t word = from; call_has(c, word); word++)
        for (size_t i = 0; i < batch->count; i++)
            if (bytes_equal(batch->transfers[i].id, call_item(c, word)))
                batch->transfers[i].returned = true;
}

/* Adds the messages of a batch in one step. */
static enum status
send_messages(struct redis_store *s, const struct store_op *op,
              const struct store_queue *to, const struct batch *batch, bool seal)
{
    enum { UNLISTED = 1, POSTED_TAG, DELIVERY_DUE, REFUSED };
    struct call c = call_begin(s, op, to);
    enum status st = ST_OK;

    call_random_digits(&c, TAG_DIGITS);
    call_number(&c, batch->contents[0].kind == TO_DEAD_LETTERS ? -1
                                                               : s->config.message_ttl_s);
    call_number(&c, (int64_t)s->config.feed_bytes);
    for (size_t i = 0; st == ST_OK && i < batch->count; i++) {
        const struct content *m = &batch->contents[i];

        call_word(&c, batch->transfers[i].id);
        call_word(&c, m->id);
        call_number(&c, m->posted_ms);
        call_number(&c, m->expires_ms);
        call_word(&c, m->client);
        call_word(&c, m->sum);
        st = call_add_body(&c, m->body, seal);
        call_word(&c, m->details);
        call_number(&c, m->claim_count);
    }
    c.most = batch->count;
    if (st == ST_OK)
        st = call_run(&c, SCRIPT_dead_letter_post, CALL_CHANGE);
    if (st == ST_OK)
        note_refused(batch, &c, REFUSED);
    if (st == ST_OK && call_integer(&c, DELIVERY_DUE) != 0)
        delivery_mark_due(s, op, to, 0);
    if (st == ST_OK && call_integer(&c, UNLISTED) != 0)
        st = queue_index_add(s, op, to, call_item(&c, POSTED_TAG));
    call_end(&c);
    return st;
}

/* Adds the messages of a post as words. ST_BAD_VALUE: the content is broken. */
static enum status
call_add_drafts(struct call *c, const struct content *post, bool seal)
{
    struct bytes left = post->drafts, head, sum, body;
    enum status st = ST_OK;

    for (uint32_t i = 0; st == ST_OK && i < post->count; i++) {
        int64_t ttl_s, delay_s;
        uint32_t len;

        if (!cut(&left, DRAFT_SIZE, &head))
            return ST_BAD_VALUE;
        memcpy(&ttl_s, head.data + TTL_AT, sizeof(ttl_s));
        memcpy(&delay_s, head.data + DELAY_AT, sizeof(delay_s));
        memcpy(&len, head.data + BODY_LEN_AT, sizeof(len));
        if (!cut(&left, (uint8_t)head.data[DRAFT_SUM_LEN_AT], &sum) ||
            !cut(&left, len, &body))
            return ST_BAD_VALUE;
        call_number(c, ttl_s);
        call_number(c, delay_s);
        st = call_add_body(c, body, seal);
        call_word(c, sum);
    }
    return st;
}

static enum status
send_post(struct redis_store *s, const struct store_op *op, const struct store_queue *to,
          struct transfer *t, const struct content *post, bool seal)
{
    enum { POSTED_TAG = 1, FIRST, UNLISTED, DELIVERY_DUE, EXISTING };
    struct call c = call_begin(s, op, to);
    enum status st;

    call_random_digits(&c, TAG_DIGITS);
    call_word(&c, post->client);
    call_word(&c, t->id);
    call_number(&c, s->config.message_ttl_s);
    call_number(&c, s->config.message_delay_s);
    call_number(&c, (int64_t)s->config.feed_bytes);
    call_unique(&c, post->kind == POST_UNIQUE ? &post->unique : NULL, BYTES_NONE, 0);
    st = call_add_drafts(&c, post, seal);
    if (st == ST_OK)
        st = call_run(&c, SCRIPT_transfer_post, CALL_CHANGE);
    t->existing = st == ST_OK && call_has(&c, EXISTING);
    if (t->existing && t->ids != NULL)
        call_copy_id(call_item(&c, EXISTING), &t->ids[0]);
    for (uint32_t i = 0; st == ST_OK && !t->existing && t->ids != NULL && i < post->count;
         i++)
        message_id_write(call_item(&c, POSTED_TAG), (uint64_t)call_integer(&c, FIRST) + i,
                         BYTES_NONE, &t->ids[i]);
    if (st == ST_OK && call_integer(&c, DELIVERY_DUE) != 0)
        delivery_mark_due(s, op, to, 0);
    if (st == ST_OK && call_integer(&c, UNLISTED) != 0)
        st = queue_index_add(s, op, to, call_item(&c, POSTED_TAG));
    call_end(&c);
    return st;
}

static enum status
send_batch(struct redis_store *s, const struct store_op *op,
           const struct store_queue *where, const struct batch *batch)
{
    const struct content *first = &batch->contents[0];
    const struct store_queue to = target_of(where, first);
    enum status st = ST_AGAIN;
    bool seal = false;

    /* AGAIN: much was due in a queue that looks for a key. */
    for (int i = 0; st == ST_AGAIN && i < SEND_TRIES; i++) {
        st = is_post(first->kind) ? send_post(s, op, &to, batch->transfers, first, seal)
                                  : send_messages(s, op, &to, batch, seal);
        if (st == ST_NOT_SEALED && !seal) {
            seal = true;
            st = ST_AGAIN;
        }
    }
    waiting_wake(s, op, &to);
    if (st == ST_OK && is_post(first->kind))
        counters_add(s, &to, STORE_COUNT_POSTED,
                     batch->transfers->existing ? 0 : first->count);
    else if (st == ST_OK && first->kind == TO_DEAD_LETTERS)
        counters_add(s, &to, STORE_COUNT_DEAD_LETTERS, batch->count);
    return st;
}

/* Reads the contents of the next transfers that one call can send, at most BATCH_MOST. 0:
 * the first one cannot be read. */
static size_t
read_batch(const struct transfer *all, size_t count, struct content *contents)
{
    size_t n = 0, bytes = 0;

    while (
        n < count && n < BATCH_MOST && bytes < BATCH_BYTES &&
        content_read(&all[n], &contents[n]) &&
        (n == 0 || (!is_post(contents[0].kind) && contents[n].kind == contents[0].kind &&
                    bytes_equal(contents[n].name, contents[0].name)))) {
        bytes += all[n].content.len;
        n++;
    }
    return n;
}

/*
 * Transfers that have arrived have left X, so the other queues may forget them. If this
 * call is lost, they forget them after a week. Consecutive transfers to the same queue
 * share a call.
 */
static void
forget_transfers(struct redis_store *s, const struct store_op *op,
                 const struct store_queue *where, const struct transfer *all,
                 size_t count)
{
    const struct cluster_config *config = &s->cluster.config;
    const int64_t run_ms = config->patience_ms + 2 * config->link.response_ms;
    /* Twice as long as a lease and its last transfer can take, because another process
     * may have leased the same transfers before. */
    const int64_t remembered_ms = 2 * (TRANSFER_MS + 2 * run_ms);
    struct store_queue to = *where, next;
    struct content content;
    struct call notice;
    bool open = false;

    for (size_t i = 0; i < count; i++) {
        if (!all[i].arrived || !content_read(&all[i], &content))
            continue;
        next = target_of(where, &content);
        if (open && !store_queue_equal(&next, &to)) {
            (void)call_finish(&notice, SCRIPT_transfer_forget, CALL_BEST_EFFORT);
            open = false;
        }
        if (!open) {
            to = next;
            notice = call_begin(s, op, &to);
            call_number(&notice, remembered_ms);
            open = true;
        }
        call_word(&notice, all[i].id);
    }
    if (open)
        (void)call_finish(&notice, SCRIPT_transfer_forget, CALL_BEST_EFFORT);
}

/* Can only this batch not arrive? Another program wrote it, or a message cannot be
 * encrypted. */
static bool
is_of_batch(struct redis_store *s, enum status st)
{
    if (st == ST_NO_KEY)
        redis_warn(s, "a message stays in the outbox, because its queue is encrypted and "
                      "claimd has no key");
    return st == ST_NO_KEY || st == ST_BAD_VALUE;
}

/* Removes transfers from X: `arrived` ones, and `returned` ones that were refused. */
static enum status
remove_transfers(struct call *done, size_t arrived, struct call *back, size_t returned)
{
    enum status st = ST_OK;

    if (arrived > 0)
        st = call_run(done, SCRIPT_outbox_done, CALL_CHANGE);
    if (st == ST_OK && returned > 0)
        st = call_run(back, SCRIPT_transfer_return, CALL_CHANGE);
    return st;
}

enum status
outbox_send(struct redis_store *s, const struct store_op *op,
            const struct store_queue *where, struct transfer *all, size_t count,
            int64_t begun_ns)
{
    struct content contents[BATCH_MOST];
    enum status st = ST_OK, skipped = ST_OK;
    size_t arrived = 0, returned = 0,
           alone = 0; /* those before `alone` are sent one by one */
    struct call done = call_begin(s, op, where), back = call_begin(s, op, where);

    for (size_t i = 0, n; i < count; i += n) {
        const size_t most = i < alone ? 1 : count - i;
        const struct batch batch = {&all[i], contents,
                                    n = read_batch(&all[i], most, contents)};

        if (clock_stopwatch_ns() - begun_ns > TRANSFER_MS * 1000000)
            break; /* the lease has ended */
        if (n > 0)
            st = send_batch(s, op, where, &batch);
        if (n == 0 || is_of_batch(s, st)) {
            skipped = n > 0 && st == ST_NO_KEY ? st : skipped;
            st = ST_OK;
            alone = n > 1 ? i + n : alone;
            n = n > 1 ? 0 : 1;
            continue;
        }
        if (st != ST_OK)
            break;
        for (size_t k = i; k < i + n; k++) {
            call_word(all[k].returned ? &back : &done, all[k].id);
            all[k].arrived = true;
            returned += all[k].returned;
        }
        arrived += n;
    }
    if (arrived > 0) {
        enum status removed =
            remove_transfers(&done, arrived - returned, &back, returned);

        if (removed == ST_OK)
            forget_transfers(s, op, where, all, count);
        st = st == ST_OK ? removed : st;
    }
    call_end(&done);
    call_end(&back);
    return st == ST_OK ? skipped : st;
}

static int
compare_ids(const void *a, const void *b)
{
    const struct transfer *x = a, *y = b;

    return bytes_compare(x->id, y->id);
}

void
outbox_sort(struct transfer *all, size_t count)
{
    qsort(all, count, sizeof(*all), compare_ids);
}

void
outbox_resume(struct redis_store *s, const struct store_op *op,
              const struct store_queue *where)
{
    struct call c = call_begin(s, op, where);

    if (call_run(&c, SCRIPT_outbox_lease, CALL_CHANGE) == ST_OK)
        (void)outbox_deliver(&c, 1, op, where);
    call_end(&c);
}

enum status
outbox_deliver(const struct call *c, size_t from, const struct store_op *op,
               const struct store_queue *where)
{
    struct redis_store *s = c->store;
    const size_t words = call_count(c), count = words > from ? (words - from) / 2 : 0;
    struct transfer *all;
    enum status st;

    if (count == 0)
        return ST_OK;
    all = mem_calloc(s->config.mem, count, sizeof(*all));
    if (all == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        all[i] = (struct transfer){.id = call_item(c, from + 2 * i),
                                   .content = call_item(c, from + 2 * i + 1)};
    outbox_sort(all, count);
    st = outbox_send(s, op, where, all, count, c->begun_ns);
    mem_free(s->config.mem, all);
    return st;
}
