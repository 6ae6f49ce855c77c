#include "engine/keyed.h"
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"

/* Expired keys that each operation with a key frees, apart from its own. */
enum { FREE_SOME = 4 };

enum status
keyed_begin_with_key(struct keyed *k, enum store_key_kind kind)
{
    struct txn *t = k->txn;
    struct shard *sh = t->shard;
    size_t some = FREE_SOME;
    struct key *key;

    k->group = (struct change_group){
        .all = k->changes, .capacity = KEYED_CHANGES, .space = &sh->log_reserved};
    k->grouped = has_log(sh->core) && sh->group == NULL;
    if (k->grouped)
        sh->group = &k->group;
    (void)keys_expire(sh, t->now_ms, &some);
    if (t->queue == NULL)
        return ST_OK;
    key = keys_find(sh, t->op->key, t->queue->tag);
    if (key == NULL)
        return ST_OK;
    if (t->now_ms >= key_ends_ms(sh, key)) {
        SOMETIMES(KEY_ENDS_LATE);
        key_drop(sh, key); /* housekeeping is late */
        return ST_OK;
    }
    if (key->kind != kind ||
        memcmp(key->key.digest, t->op->key->digest, sizeof(key->key.digest)) != 0)
        return ST_KEY_REUSED;
    t->op->repeated = true;
    k->known = key;
    return ST_OK;
}

/* Counts the new key for its project. ST_KEYS_FULL: sets op->key_end_ms. */
static enum status
add_key_to_project(struct keyed *k)
{
    const struct engine *e = k->txn->engine;
    struct core *core = k->txn->shard->core;
    int64_t end_ms = INT64_MAX;
    enum status st = directory_add_key(&core->directory, k->txn->where->project,
                                       core->config.keys, &k->fresh->share);

    if (st != ST_KEYS_FULL)
        return st;
    SOMETIMES(KEYS_FULL);
    for (size_t i = 0; i <= e->shard_mask; i++) {
        const int64_t one_ms =
            atomic_load_explicit(&e->shards[i].key_end_ms, memory_order_relaxed);

        end_ms = end_ms < one_ms ? end_ms : one_ms;
    }
    k->txn->op->key_end_ms = end_ms;
    return st;
}

enum status
keyed_reserve_with_key(struct keyed *k, enum store_key_kind kind, size_t messages,
                       size_t bytes)
{
    struct txn *t = k->txn;
    struct core *core = t->shard->core;
    const size_t result = kind == STORE_KEY_FINISH ? bytes : 0;
    enum status st;

    ENSURE(k->known == NULL && k->fresh == NULL);
    if (!mem_admits(core->mem,
                    sizeof(*k->fresh) + messages * sizeof(struct message *) + result))
        return ST_OVER_BUDGET;
    k->fresh = key_new(core, messages, result);
    if (k->fresh == NULL)
        return ST_NO_MEMORY;
    k->fresh->key = *t->op->key;
    k->fresh->kind = (uint8_t)kind;
    st = add_key_to_project(k);
    if (st == ST_OK)
        st = hashmap_reserve(&t->shard->keys, 1);
    if (st == ST_OK)
        st = txn_reserve_messages(t, STORE_CHANGE_KEY, messages, bytes);
    if (st == ST_OK && k->grouped && !changelog_group_fits(&k->group, core))
        st = ST_BEYOND_LOG;
    return st;
}

void
keyed_keep(struct keyed *k, uint64_t first, uint32_t count)
{
    struct key *key = k->fresh;
    struct txn *t = k->txn;

    k->fresh = NULL;
    key->first = first;
    key->count = count;
    key->tag = t->queue->tag;
    key->made_ms = t->now_ms;
    key->transient = queue_transient(t->queue);
    key_add(t->shard, key);
    shard_wake_at(t->shard, keys_next_ms(t->shard));
    if (!has_log(t->shard->core))
        return;
    key_describe(key, &k->record);
    changelog_key(t->queue, &k->record, key->messages, key_messages(key), t->now_ms);
}

void
keyed_keep_result(struct keyed *k, struct bytes result)
{
    memcpy((char *)k->fresh->messages, result.data, result.len);
    keyed_keep(k, 0, (uint32_t)result.len);
}

void
keyed_keep_messages(struct keyed *k, const struct list *messages)
{
    struct key *key = k->fresh;
    uint32_t count = 0;

    for (const struct list *link = messages->next; link != messages; link = link->next) {
        struct message *m =
            container_of((struct list *)(uintptr_t)link, struct message, due.link);

        message_pin(m);
        key->messages[count++] = m;
    }
    keyed_keep(k, 0, count);
}

void
keyed_end_with_key(struct keyed *k)
{
    struct shard *sh = k->txn->shard;

    if (k->grouped && k->group.count > 0)
        changelog_end_group(&k->group, sh->core);
    if (k->grouped)
        sh->group = NULL;
    SOMETIMES_IF(k->fresh != NULL, KEY_UNUSED);
    if (k->fresh != NULL)
        key_free(sh->core, k->fresh);
    k->fresh = NULL;
}
