#include "engine/keys.h"
#include "claimd/base/invariant.h"

#include <stdlib.h>

/* ------------------------------------------------------------------ the table */

/* The name of a key in its shard. */
struct key_name {
    uint64_t hash[2];
    uint64_t tag;
};

static struct key_name
name_of(const struct store_key *key, uint32_t tag)
{
    return (struct key_name){.hash = {key->hash[0], key->hash[1]}, .tag = tag};
}

static uint64_t
name_hash(const struct core *core, const struct key_name *name)
{
    return hash_bytes(&core->key, bytes_of((const char *)name, sizeof(*name)));
}

static bool
has_name(const struct hashnode *node, const void *arg)
{
    const struct key *key = container_of(node, const struct key, node);
    const struct key_name *name = arg;

    return key->key.hash[0] == name->hash[0] && key->key.hash[1] == name->hash[1] &&
           key->tag == name->tag;
}

struct key *
keys_find(const struct shard *sh, const struct store_key *key, uint32_t tag)
{
    const struct key_name name = name_of(key, tag);
    struct hashnode *node;

    lock_assert_held(&sh->lock);
    if (sh->keys.count == 0)
        return NULL;
    node = hashmap_find(&sh->keys, name_hash(sh->core, &name), has_name, &name);
    return node == NULL ? NULL : container_of(node, struct key, node);
}

struct key *
key_new(struct core *core, size_t messages, size_t result)
{
    struct key *key =
        mem_alloc(core->mem, sizeof(*key) + messages * sizeof(key->messages[0]) + result);

    if (key == NULL)
        return NULL;
    *key = (struct key){.count = 0};
    return key;
}

void
key_describe(const struct key *key, struct store_key_record *out)
{
    *out = (struct store_key_record){.key = key->key,
                                     .kind = (enum store_key_kind)key->kind,
                                     .made_ms = key->made_ms,
                                     .first = key->first,
                                     .count = key->count};
    if (key->kind == STORE_KEY_CLAIM)
        ident_write(&out->claim_id, key_claim(key));
    if (key->kind == STORE_KEY_FINISH)
        out->result = key_result(key);
}

void
key_free(struct core *core, struct key *key)
{
    for (size_t i = 0; i < key_messages(key); i++)
        message_unpin(core->mem, key->messages[i]);
    if (key->share != NULL)
        directory_remove_key(&core->directory, key->share);
    mem_free(core->mem, key);
}

/* The first key has changed. */
static void
keys_publish_end(struct shard *sh)
{
    atomic_store_explicit(&sh->key_end_ms, keys_next_ms(sh), memory_order_relaxed);
}

void
key_add(struct shard *sh, struct key *key)
{
    const struct key_name name = name_of(&key->key, key->tag);

    lock_assert_held(&sh->lock);
    hashmap_insert(&sh->keys, &key->node, name_hash(sh->core, &name));
    list_add_before(&sh->key_order, &key->link);
    if (sh->key_order.next == &key->link)
        keys_publish_end(sh);
}

static void
key_remove(struct shard *sh, struct key *key)
{
    const bool first = sh->key_order.next == &key->link;

    lock_assert_held(&sh->lock);
    if (sh->checkpoint.key == &key->link)
        sh->checkpoint.key = key->link.next;
    list_remove(&key->link);
    hashmap_remove(&sh->keys, &key->node);
    if (first)
        keys_publish_end(sh);
}

void
key_drop(struct shard *sh, struct key *key)
{
    key_remove(sh, key);
    key_free(sh->core, key);
}

bool
keys_expire(struct shard *sh, int64_t now_ms, size_t *budget)
{
    for (; !list_empty(&sh->key_order); --*budget) {
        struct key *key = container_of(sh->key_order.next, struct key, link);

        if (now_ms < key_ends_ms(sh, key))
            return true;
        if (*budget == 0)
            return false;
        key_drop(sh, key);
    }
    return true;
}

bool
keys_chore(struct shard *sh, int64_t now_ms, size_t *budget)
{
    if (sh->queues.count > 0)
        return keys_expire(sh, now_ms, budget);
    for (; !list_empty(&sh->key_order) && *budget > 0; --*budget)
        key_drop(sh, container_of(sh->key_order.next, struct key, link));
    return list_empty(&sh->key_order);
}

int64_t
keys_next_ms(const struct shard *sh)
{
    return list_empty(&sh->key_order)
               ? INT64_MAX
               : key_ends_ms(sh,
                             container_of(sh->key_order.next, const struct key, link));
}

void
keys_free(struct shard *sh)
{
    while (!list_empty(&sh->key_order))
        key_drop(sh, container_of(sh->key_order.next, struct key, link));
}

/* ------------------------------------------------------------------ log */

enum status
keys_checkpoint(struct shard *sh, struct allowance *left, bool *done)
{
    struct checkpoint *c = &sh->checkpoint;

    lock_assert_held(&sh->lock);
    if (!c->in_keys) { /* later ones are in the log anyway */
        c->in_keys = true;
        c->key = sh->key_order.next;
        c->keys_left = sh->keys.count;
    }
    for (; c->key != &sh->key_order && c->keys_left > 0 && left->messages > 0 &&
           left->bytes > 0;
         c->keys_left--) {
        struct key *key = container_of(c->key, struct key, link);
        size_t bytes = 0;
        enum status st;

        for (size_t i = 0; i < key_messages(key); i++)
            bytes += key->messages[i]->body_len;
        if (!key->transient) {
            struct store_key_record record;

            key_describe(key, &record);
            bytes += record.result.len;
            st = changelog_reserve(sh, STORE_CHANGE_KEY, key_messages(key), bytes);
            if (st != ST_OK)
                return st;
            changelog_key_read(sh, key->tag, &record, key->messages, key_messages(key));
        }
        c->key = key->link.next;
        allowance_spend(left, 1 + key_messages(key), bytes);
    }
    *done = c->key == &sh->key_order || c->keys_left == 0;
    if (*done)
        c->key = NULL;
    return ST_OK;
}

static enum status
replay_messages(struct core *core, struct store_change *change, struct key *key)
{
    struct store_message_record record;
    enum status st = ST_OK;

    while (st == ST_OK && change->next(change, &record)) {
        struct message *m =
            message_of_record(core->mem, &record, record.original_id, &st);

        if (m == NULL)
            break;
        m->seq = record.number;
        key->messages[key->count++] = m;
    }
    return st;
}

enum status
keys_replay(struct shard *sh, struct store_change *change)
{
    const struct store_key_record *record = change->key;
    struct key *old, *key;
    const size_t messages = change->count;
    size_t all = SIZE_MAX;
    struct ident id = {0, record->first};
    enum status st;

    if (record->kind == STORE_KEY_CLAIM &&
        !ident_read(store_id_bytes(&record->claim_id), &id))
        return ST_BAD_VALUE;
    (void)keys_expire(sh, change->now_ms, &all);
    old = keys_find(sh, &record->key, change->tag);
    if (hashmap_reserve(&sh->keys, 1) != ST_OK)
        return ST_NO_MEMORY;
    key = key_new(sh->core, messages, record->result.len);
    if (key == NULL)
        return ST_NO_MEMORY;
    key->key = record->key;
    key->made_ms = record->made_ms;
    key->tag = change->tag;
    key->kind = (uint8_t)record->kind;
    key->first = id.low;
    key->high = id.high;
    st = ST_OK;
    if (record->kind == STORE_KEY_POP) {
        st = replay_messages(sh->core, change, key);
    } else if (record->kind == STORE_KEY_FINISH) {
        key->count = (uint32_t)record->result.len;
        if (record->result.len > 0)
            memcpy((char *)key->messages, record->result.data, record->result.len);
    } else {
        key->count = record->count;
    }
    if (st != ST_OK) {
        key_free(sh->core, key);
        return st;
    }
    if (old != NULL)
        key_drop(sh, old);
    key_add(sh, key);
    return ST_OK;
}

static int
by_age(const void *a, const void *b)
{
    const struct key *x = *(struct key *const *)a, *y = *(struct key *const *)b;

    return (x->made_ms > y->made_ms) - (x->made_ms < y->made_ms);
}

enum status
keys_sort(struct shard *sh)
{
    const size_t count = sh->keys.count;
    struct key **all;
    struct list *link;
    size_t i = 0;

    if (count == 0)
        return ST_OK;
    all = mem_alloc(sh->core->mem, count * sizeof(struct key *));
    if (all == NULL)
        return ST_NO_MEMORY;
    while ((link = list_pop(&sh->key_order)) != NULL)
        all[i++] = container_of(link, struct key, link);
    ENSURE(i == count);
    qsort(all, count, sizeof(struct key *), by_age);
    for (i = 0; i < count; i++)
        list_add_before(&sh->key_order, &all[i]->link);
    mem_free(sh->core->mem, all);
    return ST_OK;
}

enum status
key_move(struct shard *from, struct key *key, struct shard *to, struct bytes project)
{
    if (hashmap_reserve(&to->keys, 1) != ST_OK ||
        directory_add_key(&to->core->directory, project, UINT64_MAX, &key->share) !=
            ST_OK)
        return ST_NO_MEMORY;
    key_remove(from, key);
    key_add(to, key);
    shard_wake_at(to, keys_next_ms(to));
    return ST_OK;
}

/* ------------------------------------------------------------------ audit */

bool
keys_audit(const struct shard *sh)
{
    size_t count = 0;
    int64_t made_ms = INT64_MIN;

    for (const struct list *link = sh->key_order.next; link != &sh->key_order;
         link = link->next, count++) {
        const struct key *key = container_of(link, const struct key, link);

        if (key->made_ms < made_ms || keys_find(sh, &key->key, key->tag) != key)
            return false;
        made_ms = key->made_ms;
    }
    return count == sh->keys.count && hashmap_audit(&sh->keys);
}
