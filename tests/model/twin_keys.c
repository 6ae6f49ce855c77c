/*
 * The twin's operations with an Idempotency-Key (store/key.h): it remembers the key and
 * what the first call returned, and looks through all of them.
 */
#include "model/twin_state.h"

#include <stdlib.h>

struct twin_key {
    struct store_key key;
    enum store_key_kind kind;
    uint64_t queue; /* its number */
    int64_t made_ms;
    struct store_id *ids;   /* owned; POST */
    size_t count;           /* POST, POP */
    struct store_id claim;  /* CLAIM */
    struct twin_message *m; /* owned; POP: copies */
};

static void
free_key(struct twin_key *key)
{
    static const struct store_details none;

    for (size_t i = 0; key->m != NULL && i < key->count; i++) {
        twin_set_details(&key->m[i], &none);
        free(key->m[i].body);
    }
    free(key->m);
    free(key->ids);
}

static bool
is_live(const struct twin *t, const struct twin_key *key, int64_t now_ms)
{
    bool there = false;

    for (size_t i = 0; i < t->queue_count; i++)
        there = there || t->queues[i]->number == key->queue;
    return there && now_ms < key->made_ms + t->config.key_window_ms;
}

static void
forget_keys(struct twin *t, int64_t now_ms)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->key_count; i++) {
        if (is_live(t, &t->keys[i], now_ms))
            t->keys[kept++] = t->keys[i];
        else
            free_key(&t->keys[i]);
    }
    t->key_count = kept;
}

void
twin_free_keys(struct twin *t)
{
    for (size_t i = 0; i < t->key_count; i++)
        free_key(&t->keys[i]);
    free(t->keys);
}

/* The kept result; NULL: there is none. */
static struct twin_key *
find_key(struct twin *t, struct store_op *op, const struct store_queue *where,
         enum store_key_kind kind, enum status *st)
{
    const struct twin_queue *q = twin_find_queue(t, where);

    *st = ST_OK;
    forget_keys(t, op->now_ms);
    for (size_t i = 0; q != NULL && i < t->key_count; i++) {
        struct twin_key *key = &t->keys[i];

        if (key->queue != q->number ||
            memcmp(key->key.hash, op->key->hash, sizeof(key->key.hash)) != 0)
            continue;
        if (key->kind != kind ||
            memcmp(key->key.digest, op->key->digest, sizeof(key->key.digest)) != 0)
            *st = ST_KEY_REUSED;
        else
            op->repeated = true;
        return key;
    }
    if (t->key_count >= t->config.keys)
        *st = ST_KEYS_FULL;
    return NULL;
}

static struct twin_key *
remember(struct twin *t, const struct store_op *op, const struct store_queue *where,
         enum store_key_kind kind)
{
    struct twin_key *key;

    t->keys = twin_grow(t->keys, (t->key_count + 1) * sizeof(*t->keys));
    key = &t->keys[t->key_count++];
    *key = (struct twin_key){.key = *op->key,
                             .kind = kind,
                             .queue = twin_find_queue(t, where)->number,
                             .made_ms = op->now_ms};
    return key;
}

enum status
twin_keyed_post(struct store *s, struct store_op *op, const struct store_queue *where,
                const struct store_post *post, struct store_id *ids)
{
    struct twin *t = twin_of(s);
    struct twin_key *key;
    enum status st;

    if (op->key == NULL)
        return twin_message_post(s, op, where, post, ids);
    key = find_key(t, op, where, STORE_KEY_POST, &st);
    if (st == ST_OK && key != NULL)
        memcpy(ids, key->ids, key->count * sizeof(*ids));
    if (st != ST_OK || key != NULL)
        return st;
    st = twin_message_post(s, op, where, post, ids);
    if (st != ST_OK)
        return st;
    key = remember(t, op, where, STORE_KEY_POST);
    key->count = post->count;
    key->ids = twin_alloc(post->count * sizeof(*ids));
    memcpy(key->ids, ids, post->count * sizeof(*ids));
    return ST_OK;
}

enum status
twin_keyed_claim(struct store *s, struct store_op *op, const struct store_queue *where,
                 const struct store_terms *terms, size_t limit, struct store_batch *out)
{
    struct twin *t = twin_of(s);
    struct twin_key *key;
    enum status st;

    if (op->key == NULL)
        return twin_claim_create(s, op, where, terms, limit, out);
    key = find_key(t, op, where, STORE_KEY_CLAIM, &st);
    if (st == ST_OK && key != NULL) {
        st = twin_claim_get(s, op, where, store_id_bytes(&key->claim), out);
        op->repeated = st == ST_OK;
        if (st == ST_OK)
            twin_served(t, op);
        return st == ST_NOT_FOUND ? ST_KEY_ENDED : st;
    }
    if (st != ST_OK && st != ST_KEYS_FULL)
        return st;
    if (st == ST_KEYS_FULL && twin_ready_count(t, where, op->now_ms) > 0)
        return st;
    st = twin_claim_create(s, op, where, terms, limit, out);
    if (st == ST_OK && out->count > 0)
        remember(t, op, where, STORE_KEY_CLAIM)->claim = out->claim_id;
    return st;
}

static void
remember_messages(struct twin_key *key, const struct store_batch *batch)
{
    key->count = batch->count;
    key->m = twin_alloc(batch->count * sizeof(*key->m));
    for (size_t i = 0; i < batch->count; i++) {
        const struct store_message *from = &batch->messages[i];
        struct twin_message *to = &key->m[i];

        *to = (struct twin_message){.id = from->id,
                                    .body = twin_copy(from->body),
                                    .body_len = from->body.len,
                                    .has_checksum = from->checksum != NULL,
                                    .posted_ms = from->posted_ms,
                                    .expires_ms = from->expires_ms,
                                    .claim_count = from->claim_count};
        if (to->has_checksum)
            to->checksum = *from->checksum;
        if (from->details != NULL)
            twin_set_details(to, from->details);
    }
}

enum status
twin_keyed_pop(struct store *s, struct store_op *op, const struct store_queue *where,
               size_t limit, struct store_batch *out)
{
    struct twin *t = twin_of(s);
    struct twin_key *key;
    enum status st;

    if (op->key == NULL)
        return twin_message_pop(s, op, where, limit, out);
    key = find_key(t, op, where, STORE_KEY_POP, &st);
    if (st == ST_OK && key != NULL) {
        *out = twin_open_batch(s, key->count);
        for (size_t i = 0; i < key->count; i++)
            twin_show(out, twin_find_queue(t, where), &key->m[i], op->now_ms);
        twin_served(t, op);
        return ST_OK;
    }
    if (st != ST_OK && st != ST_KEYS_FULL)
        return st;
    if (st == ST_KEYS_FULL && twin_ready_count(t, where, op->now_ms) > 0)
        return st;
    st = twin_message_pop(s, op, where, limit, out);
    if (st == ST_OK && out->count > 0)
        remember_messages(remember(t, op, where, STORE_KEY_POP), out);
    return st;
}
