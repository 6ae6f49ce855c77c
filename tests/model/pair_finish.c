/*
 * Finish and redrive on both sides of a pair: calls the twin and the store under test,
 * and compares their results. Declared in model/pair.h. pair.c has the other operations.
 */
#include "model/pair_private.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---------------------------------------------------------------------- finish */

/* One side of a finish. */
struct side {
    struct store_finish request;
    struct store_finish_item items[PAIR_ITEMS];
    struct store_finish_post posts[PAIR_POSTS];
    struct store_id posted[PAIR_POSTS];
};

static void
make_side(struct side *out, const struct pair_finish *f, bool right)
{
    *out = (struct side){
        .request = {.claim_id = store_id_bytes(right ? &f->claim.right : &f->claim.left),
                    .client = bytes_str("worker"),
                    .items = out->items,
                    .count = f->count,
                    .posts = out->posts,
                    .post_count = f->post_count,
                    .renew = f->renew,
                    .atomic = f->atomic}};
    for (size_t i = 0; i < f->count; i++) {
        const struct pair_item *item = &f->items[i];

        out->items[i] = (struct store_finish_item){
            .action = item->action,
            .id = store_id_bytes(right ? &item->id.right : &item->id.left),
            .reason = item->reason == NULL ? BYTES_NONE : bytes_str(item->reason),
            .delay_s = item->delay_s,
            .uncounted = item->uncounted};
    }
    for (size_t i = 0; i < f->post_count; i++) {
        out->posts[i] = f->posts[i];
        out->posts[i].ids = &out->posted[i];
    }
}

bool
pair_finish(struct pair *p, const struct store_queue *queue, struct pair_finish *f)
{
    struct side twin, engine;
    enum status st;

    if (f->renew != NULL)
        pair_pass_before_claim(p, queue, f->renew);
    make_side(&twin, f, false);
    make_side(&engine, f, true);
    pair_note(p, queue, "finish %s/%s: %zu items, %zu posts%s%s", f->claim.left.text,
              f->claim.right.text, f->count, f->post_count, f->atomic ? " atomic" : "",
              f->renew == NULL ? "" : " renew");
    for (size_t i = 0; i < f->count; i++)
        pair_note(p, queue, "       %s/%s %s after %" PRId64 "%s",
                  f->items[i].id.left.text, f->items[i].id.right.text,
                  f->items[i].action == STORE_FINISH_DELETE    ? "delete"
                  : f->items[i].action == STORE_FINISH_RELEASE ? "release"
                                                               : "dead-letter",
                  f->items[i].delay_s, f->items[i].reason == NULL ? "" : " reason");
    st = pair_agree_status(
        p, store_claim_finish(p->twin, STORE_AT(p->now_ms), queue, &twin.request),
        store_claim_finish(p->engine, STORE_AT(p->now_ms), queue, &engine.request));
    if (st == ST_OK || st == ST_NOT_CLAIMED)
        for (size_t i = 0; i < f->count; i++)
            pair_agree(p, "held", twin.items[i].held, engine.items[i].held);
    for (size_t i = 0; st == ST_OK && i < f->count; i++)
        pair_agree(p, "exhausted", twin.items[i].exhausted, engine.items[i].exhausted);
    pair_agree(p, "failed post", (int64_t)twin.request.failed_post,
               (int64_t)engine.request.failed_post);
    if (st != ST_OK)
        return false;
    pair_agree(p, "renewed", twin.request.number != 0, engine.request.number != 0);
    for (size_t i = 0; i < f->post_count; i++) {
        const bool known = engine.posts[i].pending && f->posts[i].post.unique != NULL;

        f->posted[i] = (struct id_pair){twin.posted[i], engine.posted[i]};
        if (!known)
            pair_agree(p, "existing", twin.posts[i].existing, engine.posts[i].existing);
        if (twin.posts[i].existing && !known)
            pair_agree_id(p, "existing id", &twin.posted[i], &engine.posted[i]);
        else if (!twin.posts[i].existing)
            pair_learn(p, &f->posted[i]);
    }
    return true;
}

size_t
pair_held(struct pair *p, const struct store_queue *queue, const struct id_pair *claim,
          struct id_pair *out, size_t capacity)
{
    struct store_batch twin = STORE_BATCH_INIT, engine = STORE_BATCH_INIT;
    enum status st;
    size_t count = 0;

    pair_note(p, queue, "held by %s/%s", claim->left.text, claim->right.text);
    st = pair_agree_status(p,
                           store_claim_get(p->twin, STORE_AT(p->now_ms), queue,
                                           store_id_bytes(&claim->left), &twin),
                           store_claim_get(p->engine, STORE_AT(p->now_ms), queue,
                                           store_id_bytes(&claim->right), &engine));
    if (st == ST_OK) {
        pair_agree(p, "held", (int64_t)twin.count, (int64_t)engine.count);
        for (; count < twin.count && count < capacity; count++)
            out[count] =
                (struct id_pair){twin.messages[count].id, engine.messages[count].id};
    }
    store_batch_release(&twin);
    store_batch_release(&engine);
    return count;
}

/* ---------------------------------------------------------------------- redrive */

enum { TARGETS = 256, IDS = 16 };

/* The sum of the results of all calls. */
struct driven {
    size_t moved, unknown_origin, key_held;
    uint64_t remaining;
    char order[TARGETS]; /* the first letters of the targets, a message each */
};

static enum status
redrive_all(struct store *s, int64_t now_ms, const struct store_queue *queue,
            struct store_redrive which, struct driven *all)
{
    const size_t limit = which.limit;
    struct store_redriven out;
    enum status st;

    *all = (struct driven){.moved = 0};
    do {
        which.limit = limit - all->moved;
        st = store_redrive(s, STORE_AT(now_ms), queue, &which, &out);
        if (st != ST_OK)
            return st;
        for (size_t i = 0; i < out.moved && all->moved + i < TARGETS; i++)
            all->order[all->moved + i] = out.target.data[out.target.len - 1];
        all->moved += out.moved;
        all->unknown_origin += out.unknown_origin;
        all->key_held += out.key_held;
        all->remaining = out.remaining;
    } while (out.more && all->moved < limit);
    return ST_OK;
}

void
pair_redrive(struct pair *p, const struct store_queue *queue,
             const struct store_redrive *which, const struct id_pair *ids, size_t count)
{
    struct store_redrive left = *which, right = *which;
    struct bytes left_ids[IDS], right_ids[IDS];
    struct driven twin, engine;
    enum status st;

    for (size_t i = 0; ids != NULL && i < count && i < IDS; i++) {
        left_ids[i] = store_id_bytes(&ids[i].left);
        right_ids[i] = store_id_bytes(&ids[i].right);
    }
    left.id_count = right.id_count = count;
    left.ids = ids == NULL ? NULL : left_ids;
    right.ids = ids == NULL ? NULL : right_ids;
    pair_note(p, queue, "redrive %zu to %.*s%s%s, %zu ids", which->limit,
              (int)which->to.len, which->to.data, which->dry_run ? " dry" : "",
              which->keeps_count ? " keeps" : "", ids == NULL ? 0 : count);
    st = pair_agree_status(p, redrive_all(p->twin, p->now_ms, queue, left, &twin),
                           redrive_all(p->engine, p->now_ms, queue, right, &engine));
    if (st != ST_OK)
        return;
    pair_agree(p, "moved", (int64_t)twin.moved, (int64_t)engine.moved);
    pair_agree(p, "remaining", (int64_t)twin.remaining, (int64_t)engine.remaining);
    for (size_t i = 0; i < twin.moved && i < TARGETS; i++)
        pair_agree(p, "target", twin.order[i], engine.order[i]);
    if (twin.moved == which->limit) /* one may have looked further */
        return;
    pair_agree(p, "unknown origins", (int64_t)twin.unknown_origin,
               (int64_t)engine.unknown_origin);
    pair_agree(p, "held keys", (int64_t)twin.key_held, (int64_t)engine.key_held);
}
