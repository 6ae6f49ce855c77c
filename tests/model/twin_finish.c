/* The twin's operations on failing jobs: finish and redrive, without a thought of
 * cost. */
#include "model/twin_state.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------- finish */

/* Finds out which items the claim holds (NULL: there is none). True: all. */
static bool
find_items(const struct twin_queue *q, const struct twin_claim *c, struct store_finish *f,
           int64_t now_ms)
{
    bool all = true;

    for (size_t i = 0; i < f->count; i++) {
        struct store_finish_item *item = &f->items[i];
        size_t at = c == NULL ? 0 : twin_find_message(q, item->id, now_ms);

        item->held = c != NULL && at < q->message_count &&
                     twin_holder(q, q->messages[at], now_ms) == c;
        item->exhausted = item->held && item->action == STORE_FINISH_RELEASE &&
                          !item->uncounted && twin_exhausted(q, q->messages[at]);
        all = all && item->held;
    }
    return all;
}

/* Why nothing of it can be done; ST_OK: all of it can. */
static enum status
check_finish(struct twin *t, const struct store_queue *where, const struct twin_queue *q,
             const struct twin_claim *c, struct store_finish *f, int64_t now_ms)
{
    f->failed_post = f->post_count;
    f->number = 0;
    if (!find_items(q, c, f, now_ms) && f->atomic)
        return ST_NOT_CLAIMED;
    if (c == NULL)
        return ST_NOT_FOUND;
    for (size_t i = 0; i < f->post_count; i++) {
        struct store_queue to = *where;
        const struct twin_queue *target;
        enum status st = ST_OK;

        to.name = f->posts[i].queue;
        to.kind = store_post_kind(where->kind);
        target = twin_find_queue(t, &to);
        if (target == NULL && !f->posts[i].post.create_queue)
            st = ST_NOT_FOUND;
        else
            st = twin_check_post(t, target, &f->posts[i].post);
        if (st == ST_OK)
            continue;
        f->failed_post = i;
        return st;
    }
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].action == STORE_FINISH_DEAD_LETTER &&
            (q == NULL || !bytes_present(q->settings.dead_letter)))
            return ST_CONFLICT;
    return ST_OK;
}

/* Delayed, then ready at its old place. The rest of its life does not run meanwhile. */
static void
release_item(const struct twin *t, struct twin_message *m,
             const struct store_finish_item *item, struct bytes client, int64_t now_ms)
{
    const int64_t most_ms = twin_deadline_ms(t, now_ms, t->config.max_message_ttl_s);

    twin_note_reason(m, item->reason, client, now_ms);
    m->claim = 0;
    if (item->uncounted && m->claim_count > 0)
        m->claim_count--;
    m->ready_ms = now_ms;
    if (item->delay_s == 0 && item->ready_ms <= now_ms)
        return;
    m->ready_ms =
        item->ready_ms != 0 ? item->ready_ms : twin_deadline_ms(t, now_ms, item->delay_s);
    if (m->expires_ms >= most_ms)
        return;
    m->expires_ms += item->delay_s * 1000;
    if (m->expires_ms > most_ms)
        m->expires_ms = most_ms;
}

static void
do_item(struct twin *t, struct twin_queue *q, const struct store_finish_item *item,
        struct bytes client, int64_t now_ms)
{
    size_t at = twin_find_message(q, item->id, now_ms);

    if (item->action == STORE_FINISH_DELETE)
        twin_free_message(twin_take_out(q, at));
    else if (item->action == STORE_FINISH_RELEASE && !item->exhausted)
        release_item(t, q->messages[at], item, client, now_ms);
    else
        twin_move_dead_letter(t, q, at,
                              item->exhausted ? STORE_CAUSE_ATTEMPTS : STORE_CAUSE_WORKER,
                              item->reason, client, now_ms);
}

/* The message with the key of the post that stays in its queue; NULL: none. */
static const struct twin_message *
find_existing(const struct twin_queue *q, const struct twin_queue *to,
              const struct store_finish *f, const struct store_post *post, int64_t now_ms)
{
    const struct twin_message *m = to == NULL || post->unique == NULL
                                       ? NULL
                                       : twin_find_key(to, post->unique->key, now_ms);

    for (size_t i = 0; m != NULL && to == q && i < f->count; i++)
        if (f->items[i].held && bytes_equal(f->items[i].id, store_id_bytes(&m->id)) &&
            (f->items[i].action != STORE_FINISH_RELEASE || f->items[i].exhausted))
            return NULL;
    return m;
}

enum status
twin_claim_finish(struct store *s, struct store_op *op, const struct store_queue *where,
                  struct store_finish *f)
{
    struct twin *t = twin_of(s);
    struct twin_queue *q = twin_find_queue(t, where);
    struct twin_claim *c = q == NULL ? NULL : twin_find_claim(q, f->claim_id, op->now_ms);
    enum status st = check_finish(t, where, q, c, f, op->now_ms);

    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < f->post_count; i++) {
        struct store_queue to = *where;

        const struct twin_message *existing;

        to.name = f->posts[i].queue;
        to.kind = store_post_kind(where->kind);
        existing =
            find_existing(q, twin_find_queue(t, &to), f, &f->posts[i].post, op->now_ms);
        f->posts[i].pending = false;
        f->posts[i].existing = existing != NULL;
        if (existing != NULL)
            f->posts[i].ids[0] = existing->id;
        else
            twin_add_messages(t, &to, &f->posts[i].post, op->now_ms, f->posts[i].ids);
    }
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].held)
            do_item(t, q, &f->items[i], f->client, op->now_ms);
    if (f->renew != NULL && c != NULL &&
        twin_find_claim(q, f->claim_id, op->now_ms) != NULL)
        (void)twin_claim_renew(s, op, where, f->claim_id, f->renew, &f->number);
    return ST_OK;
}

/* ---------------------------------------------------------------------- redrive */

/* Where a dead letter goes back to; absent: that is not known. */
static struct bytes
target_of(const struct twin_queue *q, const struct twin_message *m,
          const struct store_redrive *which)
{
    if (bytes_present(which->to))
        return which->to;
    if (bytes_equal(m->details.origin, bytes_of(q->name, q->name_len)))
        return BYTES_NONE;
    return m->details.origin;
}

/* Puts the i-th message at the end of a queue, which is made if it does not exist. */
static void
put_back(struct twin *t, struct twin_queue *q, size_t i, const struct store_queue *to,
         bool keeps_count, int64_t now_ms)
{
    struct twin_queue *target = twin_find_queue(t, to);
    struct twin_message *m = twin_take_out(q, i);
    int64_t ttl_s = t->config.message_ttl_s;

    if (target == NULL)
        target = twin_add_queue(t, to, NULL);
    if (target->settings.encrypt && !store_is_sealed(bytes_of(m->body, m->body_len)))
        twin_seal_letter(t, to, m);
    if (target->settings.message_ttl_s != STORE_UNSET)
        ttl_s = target->settings.message_ttl_s;
    m->posted_ms = m->ready_ms = now_ms;
    if (m->expires_ms < twin_deadline_ms(t, now_ms, ttl_s))
        m->expires_ms = twin_deadline_ms(t, now_ms, ttl_s);
    if (!keeps_count)
        m->claim_count = 0;
    m->claim = 0;
    m->dead_letter = false;
    m->returned = true;
    m->details.dead_lettered_ms = 0;
    m->details.cause = STORE_CAUSE_UNKNOWN;
    m->details.attempts = 0;
    if (m->details.released_ms == 0)
        twin_set_text(&m->details.client, BYTES_NONE);
    m->delay_s = 0;
    twin_set_text(&m->details.origin, BYTES_NONE);
    twin_append(target, m);
    twin_feed(t, target, m);
}

/* The index of the next message to look at, and message_count behind the last one. */
static size_t
next_index(const struct twin_queue *q, const struct store_redrive *which, int64_t now_ms)
{
    size_t i = 0;

    if (which->ids != NULL)
        return twin_find_message(q, which->ids[which->resume], now_ms);
    while (i < q->message_count && q->messages[i]->position < which->resume)
        i++;
    return i;
}

/*
 * Looks at one message, and moves it if it is a ready dead letter for the target of this
 * call. False: there is none left, or it is for another target.
 */
static bool
redrive_next(struct twin *t, struct twin_queue *q, const struct store_queue *where,
             struct store_redrive *which, struct store_redriven *out, int64_t now_ms)
{
    struct store_queue to = *where;
    const struct twin_queue *target;
    const struct twin_message *m;
    size_t i;

    if (which->ids != NULL && which->resume >= which->id_count)
        return out->more = false;
    i = next_index(q, which, now_ms);
    if (i == q->message_count) {
        which->resume++; /* an id that is not there */
        return which->ids != NULL || (out->more = false);
    }
    m = q->messages[i];
    to.name = target_of(q, m, which);
    if (!m->dead_letter || !twin_ready(q, m, now_ms)) {
        which->resume = which->ids != NULL ? which->resume + 1 : m->position + 1;
        return true;
    }
    if (bytes_present(to.name) && out->moved > 0 && !bytes_equal(to.name, out->target))
        return false;
    which->resume = which->ids != NULL ? which->resume + 1 : m->position + 1;
    if (!bytes_present(to.name)) {
        out->unknown_origin++;
        return true;
    }
    target = twin_find_queue(t, &to);
    if (target != NULL &&
        store_holds_key(&(struct store_details){.unique = m->details.unique}) &&
        twin_find_key(target, m->details.unique.key, now_ms) != NULL) {
        out->key_held++;
        return true;
    }
    memcpy(out->target_text, to.name.data, to.name.len);
    out->target = bytes_of(out->target_text, to.name.len);
    out->moved++;
    if (!which->dry_run) {
        to.name = out->target; /* not a text of the message */
        put_back(t, q, i, &to, which->keeps_count, now_ms);
    }
    return true;
}

enum status
twin_redrive(struct store *s, struct store_op *op, const struct store_queue *where,
             struct store_redrive *which, struct store_redriven *out)
{
    struct twin *t = twin_of(s);
    struct twin_queue *q = twin_find_queue(t, where);

    if (q == NULL)
        return ST_NOT_FOUND;
    if (bytes_present(which->to) && bytes_equal(which->to, where->name))
        return ST_CONFLICT;
    twin_forget(t, q, op->now_ms);
    *out = (struct store_redriven){.more = true};
    while (out->moved < which->limit && redrive_next(t, q, where, which, out, op->now_ms))
        continue;
    for (size_t i = 0; i < q->message_count; i++)
        out->remaining += q->messages[i]->dead_letter;
    return ST_OK;
}
