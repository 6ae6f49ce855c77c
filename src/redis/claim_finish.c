/*
 * claim_finish: ends the work on messages of a claim, and posts messages, in one step
 * (claimd/store/store.h). Declared in call.h.
 *
 *     1. check_posts() checks each post, before anything changes.
 *     2. call_add_finish() writes the posts as transfers, whose contents go into the
 *        script (outbox.c).
 *     3. run_finish() runs scripts/claim_finish.lua, or claim_finish_post.lua with
 *        posts: all changes in the queue of the claim, and the transfers.
 *     4. send_finished() has the outbox deliver posts and dead letters. If that fails,
 *        another process does it later.
 */
#include "claimd/base/invariant.h"
#include "redis/call.h"
#include "redis/outbox.h"
#include "redis/waiting.h"

#include <inttypes.h>
#include <stdio.h>

/* Words of the response of claim_finish. */
enum { HELD = 1, TAG, NUMBER, BASE, FIRST_TRANSFER, SPANS };

struct finish_run {
    struct redis_store *store;
    struct store_op *op;
    const struct store_queue *where;
    struct store_finish *request;
    enum status refused;                  /* a post that cannot be done; ST_OK: none */
    struct buf posts[STORE_FINISH_POSTS]; /* the contents of the transfers */
    struct store_id transfer_ids[STORE_FINISH_POSTS];
    size_t counts[STORE_FINISH_DEAD_LETTER + 1]; /* of held messages */
};

/* Checks a post before anything changes. If the queue changes until the messages arrive,
 * they arrive nevertheless. */
static enum status
check_post(const struct finish_run *f, const struct store_finish_post *p)
{
    enum { METADATA = 2 };
    const struct store_queue to = {f->where->project, p->queue,
                                   store_post_kind(f->where->kind)};
    const struct store_lifetime server = {f->store->config.message_ttl_s,
                                          f->store->config.message_delay_s};
    struct store_metadata metadata = {BYTES_NONE, STORE_SETTINGS_INIT};
    struct call c = call_begin(f->store, f->op, &to);
    enum status st = call_run(&c, SCRIPT_queue_get, CALL_READ);

    if (st == ST_OK)
        call_read_metadata(&c, METADATA, &metadata);
    if (st == ST_NOT_FOUND && p->post.create_queue)
        st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < p->post.count; i++)
        if (!store_lifetime_is_useful(
                store_draft_lifetime(&p->post.drafts[i], &metadata.settings, server)))
            st = ST_NEVER_READY;
    if (st == ST_OK) {
        if ((metadata.settings.paused & STORE_PAUSE_POSTS) != 0)
            st = ST_PAUSED;
        else if (metadata.settings.max_post_bytes != STORE_UNSET &&
                 p->post.request_bytes > (uint64_t)metadata.settings.max_post_bytes)
            st = ST_TOO_LARGE;
        for (size_t i = 0; st == ST_OK && metadata.settings.encrypt && i < p->post.count;
             i++)
            if (!store_is_sealed(p->post.drafts[i].body))
                st = ST_NOT_SEALED;
    }
    call_end(&c);
    return st;
}

static enum status
check_posts(struct finish_run *f)
{
    struct store_finish *request = f->request;
    enum status st = ST_OK;

    request->failed_post = request->post_count;
    for (size_t i = 0; st == ST_OK && i < request->post_count; i++) {
        st = check_post(f, &request->posts[i]);
        if (st != ST_OK)
            request->failed_post = i;
    }
    return st;
}

/* Adds the arguments of claim_finish. */
static void
call_add_finish(struct call *c, struct finish_run *f)
{
    const struct store_finish *request = f->request;
    const struct redis_store *s = f->store;
    const struct store_terms none = {.ttl_s = 0};

    call_id(c, request->claim_id);
    call_number(c, request->atomic);
    call_number(c, f->refused != ST_OK);
    call_word(c, f->where->name);
    call_number(c, s->config.dead_letter_ttl_s);
    call_number(c, s->config.max_message_ttl_s * 1000);
    call_word(c, request->client);
    call_number(c, request->renew != NULL);
    call_claim_terms(c, request->renew == NULL ? &none : request->renew);
    call_client(c, f->op);
    call_number(c, (int64_t)request->post_count);
    for (size_t i = 0; i < request->post_count; i++) {
        outbox_write_post(&f->posts[i], request->posts[i].queue, &request->posts[i].post);
        c->words.words.failed = c->words.words.failed || f->posts[i].failed;
        call_word(c, buf_view(&f->posts[i]));
    }
    for (size_t i = 0; i < request->count; i++) {
        const struct store_finish_item *item = &request->items[i];

        call_number(c, item->action);
        call_id(c, item->id);
        call_number(c, item->delay_s);
        call_word(c, item->reason);
        call_number(c, item->uncounted);
        call_number(c, item->ready_ms);
    }
    c->most = request->count;
}

/* Reads which items are held. False: the response does not fit a finish that is done. */
static bool
read_held(struct finish_run *f, const struct call *c)
{
    const struct bytes held = call_item(c, HELD);
    bool all = true;

    memset(f->counts, 0, sizeof(f->counts));
    for (size_t i = 0; i < f->request->count; i++) {
        struct store_finish_item *item = &f->request->items[i];

        item->held = i < held.len && held.data[i] != '0';
        item->exhausted = item->held && held.data[i] == '2';
        all = all && item->held;
        f->counts[item->exhausted ? STORE_FINISH_DEAD_LETTER : item->action] +=
            item->held;
    }
    if (!all && !c->repeated)
        counters_add(f->store, f->where, STORE_COUNT_LATE_DELETES, 1);
    return held.len == f->request->count && (all || !f->request->atomic);
}

/* Counts what the script has done. Returns the word behind the counts of deleted
 * messages. */
static size_t
count_finished(const struct finish_run *f, const struct call *c)
{
    struct redis_store *s = f->store;
    size_t at = SPANS;

    for (; call_has(c, at) && !bytes_equal_str(call_item(c, at), ""); at += 2) {
        counters_span(s, f->where, STORE_SPAN_WORKED, call_integer(c, at));
        counters_span(s, f->where, STORE_SPAN_ATTEMPTS, call_integer(c, at + 1));
    }
    if (f->counts[STORE_FINISH_DELETE] > 0)
        counters_add(s, f->where, STORE_COUNT_DELETED, f->counts[STORE_FINISH_DELETE]);
    if (f->counts[STORE_FINISH_RELEASE] > 0)
        counters_add(s, f->where, STORE_COUNT_BACK_RELEASED,
                     f->counts[STORE_FINISH_RELEASE]);
    if (f->request->number != 0)
        counters_add(s, f->where, STORE_COUNT_RENEWALS, 1);
    return at;
}

/* Sends the posts, then the dead letters from word `from` on. Those that do not arrive
 * now are sent later. */
static void
send_finished(struct finish_run *f, const struct call *c, size_t from)
{
    struct store_finish *request = f->request;
    const size_t words = call_count(c), posts = request->post_count;
    const size_t count = posts + (words > from ? (words - from) / 2 : 0);
    struct transfer *all;

    if (count == 0)
        return;
    all = mem_calloc(f->store->config.mem, count, sizeof(*all));
    for (size_t i = 0; i < posts; i++) {
        message_id_write(call_item(c, TAG), (uint64_t)call_integer(c, FIRST_TRANSFER) + i,
                         BYTES_NONE, &f->transfer_ids[i]);
        request->posts[i].pending = true;
        if (all != NULL)
            all[i] = (struct transfer){.id = store_id_bytes(&f->transfer_ids[i]),
                                       .content = buf_view(&f->posts[i]),
                                       .ids = request->posts[i].ids};
    }
    if (all == NULL)
        return;
    for (size_t i = posts; i < count; i++)
        all[i] = (struct transfer){.id = call_item(c, from + 2 * (i - posts)),
                                   .content = call_item(c, from + 2 * (i - posts) + 1)};
    (void)outbox_send(f->store, f->op, f->where, all, count, c->begun_ns);
    for (size_t i = 0; i < posts; i++) {
        request->posts[i].pending = !all[i].arrived;
        request->posts[i].existing = all[i].existing;
    }
    mem_free(f->store->config.mem, all);
}

/* The result of an earlier call. Its posts are in transfer, or have arrived: nothing
 * remembers their ids for so long. */
static void
show_repeated(struct finish_run *f, const struct call *c)
{
    struct store_finish *request = f->request;

    request->failed_post = request->post_count;
    if (call_integer(c, NUMBER) > 0)
        request->number = fencing_token(c, NUMBER, BASE);
    for (size_t i = 0; i < request->post_count; i++)
        request->posts[i].pending = true;
}

static enum status
run_finish(struct finish_run *f)
{
    struct store_finish *request = f->request;
    struct call c = call_begin(f->store, f->op, f->where);
    const bool posts = request->post_count > 0 && f->refused == ST_OK;
    enum status st;

    request->number = 0;
    for (size_t i = 0; i < request->post_count; i++)
        request->posts[i].existing = false;
    call_add_finish(&c, f);
    call_key(&c, f->op->key);
    st = call_run(
        &c, posts ? CALL_SCRIPT(&c, claim_finish_post) : CALL_SCRIPT(&c, claim_finish),
        CALL_CHANGE);
    f->op->repeated = c.repeated;
    if ((st == ST_OK || st == ST_NOT_CLAIMED) && !read_held(f, &c) && st == ST_OK)
        st = ST_UNCONFIRMED;
    if (c.repeated) {
        show_repeated(f, &c);
    } else if (st == ST_OK && f->refused != ST_OK) {
        st = f->refused;
    } else if (st == ST_OK) {
        request->failed_post = request->post_count;
        if (call_integer(&c, NUMBER) > 0)
            request->number = fencing_token(&c, NUMBER, BASE);
        send_finished(f, &c, count_finished(f, &c) + 1);
    } else {
        request->failed_post = request->post_count;
    }
    call_end(&c);
    return st;
}

enum status
redis_claim_finish(struct store *store, struct store_op *op,
                   const struct store_queue *where, struct store_finish *finish)
{
    struct redis_store *s = redis_of(store);
    struct finish_run *f = mem_alloc(s->config.mem, sizeof(*f));
    enum status st;

    if (f == NULL)
        return ST_NO_MEMORY;
    ENSURE(finish->post_count <= STORE_FINISH_POSTS);
    *f = (struct finish_run){.store = s, .op = op, .where = where, .request = finish};
    for (size_t i = 0; i < finish->post_count; i++)
        buf_init(&f->posts[i], s->config.mem);
    f->refused = check_posts(f);
    st = run_finish(f);
    for (size_t i = 0; i < finish->post_count; i++)
        buf_fini(&f->posts[i]);
    mem_free(s->config.mem, f);
    waiting_wake(s, op, where);
    return st;
}
