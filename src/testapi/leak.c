#include "claimd/testapi/leak.h"

#include "claimd/base/hash.h"
#include "claimd/ds/hashmap.h"

/* Entries that are read before others may add some. */
enum { READ_SLICE = 256 };

struct suspect {
    struct hashnode node;
    struct leak *leak; /* borrowed */
    bool shown;        /* since it was posted or moved */
    struct bytes taken_by;
};

struct lookup {
    struct arena *arena;
    struct hashmap suspects; /* by id */
    uint64_t last;           /* entry that was read */
    size_t left;             /* entries of the slice */
    enum status status;
};

const char *
leak_kind_name(enum leak_kind kind)
{
    static const char *const names[] = {
#define LEAK_NAME(name, text) text,
        LEAK_LIST(LEAK_NAME)
#undef LEAK_NAME
    };

    return names[kind];
}

/* ------------------------------------------------------------------ suspects */

/* The server makes the ids, so nobody can build a chain of them. */
static uint64_t
hash_of(struct bytes id)
{
    static const struct hash_key no_secret;

    return hash_bytes(&no_secret, id);
}

static bool
has_id(const struct hashnode *node, const void *key)
{
    const struct suspect *s = container_of(node, const struct suspect, node);

    return bytes_equal(store_id_bytes(&s->leak->id), *(const struct bytes *)key);
}

static struct suspect *
suspect_find(const struct lookup *l, struct bytes id)
{
    struct hashnode *node = hashmap_find(&l->suspects, hash_of(id), has_id, &id);

    return node == NULL ? NULL : container_of(node, struct suspect, node);
}

static enum status
suspects_add(struct lookup *l, struct leak *leaks, size_t count)
{
    struct suspect *all = arena_array(l->arena, count, sizeof(*all));
    enum status st = all == NULL ? ST_NO_MEMORY : hashmap_reserve(&l->suspects, count);

    for (size_t i = 0; i < count && st == ST_OK; i++) {
        struct bytes id = store_id_bytes(&leaks[i].id);

        if (suspect_find(l, id) != NULL)
            continue;
        all[i] = (struct suspect){.leak = &leaks[i]};
        hashmap_insert(&l->suspects, &all[i].node, hash_of(id));
    }
    return st;
}

/* ------------------------------------------------------------------ what is known */

static void
text_keep(struct lookup *l, struct bytes text, struct bytes *out)
{
    if (!bytes_present(text) || (bytes_present(*out) && bytes_equal(*out, text)))
        return;
    *out = arena_copy(l->arena, text);
    if (!bytes_present(*out))
        l->status = ST_NO_MEMORY;
}

static void
learn_of_message(struct lookup *l, struct suspect *s, const struct history_entry *e)
{
    struct leak *leak = s->leak;

    if (e->event == HISTORY_SHOWN)
        s->shown = true;
    else if (e->event == HISTORY_CLAIMED)
        text_keep(l, e->client, &s->taken_by);
    else
        leak->at_ms = e->at_ms;
    if (e->event == HISTORY_POSTED)
        text_keep(l, e->client, &leak->client);
    if (e->event != HISTORY_DEAD_LETTER)
        return;
    leak->kind = LEAK_DEAD_LETTER;
    s->shown = false;
    text_keep(l, e->queue.name, &leak->from);
}

static void
learn_from_entry(struct lookup *l, const struct history_entry *e)
{
    struct suspect *s = e->event == HISTORY_CLAIMED ? suspect_find(l, e->claim) : NULL;
    struct bytes ids = e->ids;

    if (s != NULL && s->leak->kind == LEAK_CLAIM) {
        s->leak->at_ms = e->at_ms;
        text_keep(l, e->client, &s->leak->client);
    }
    while (ids.len > 0) {
        s = suspect_find(l, bytes_cut(&ids, ' '));
        if (s != NULL && s->leak->kind != LEAK_CLAIM)
            learn_of_message(l, s, e);
    }
}

static bool
read_entry(void *ctx, const struct history_entry *e)
{
    struct lookup *l = ctx;

    l->last = e->number;
    if (e->event == HISTORY_POSTED || e->event == HISTORY_SHOWN ||
        e->event == HISTORY_CLAIMED || e->event == HISTORY_DEAD_LETTER)
        learn_from_entry(l, e);
    return --l->left > 0 && l->status == ST_OK;
}

enum status
leak_look_up(struct history *h, struct arena *arena, struct leak *suspects, size_t count)
{
    struct lookup l = {.arena = arena};
    struct hashnode *node = NULL;

    if (count == 0)
        return ST_OK;
    hashmap_init(&l.suspects, arena->mem);
    l.status = suspects_add(&l, suspects, count);
    while (l.status == ST_OK && l.left == 0) {
        l.left = READ_SLICE;
        history_read(h, l.last, read_entry, &l);
    }
    while (l.status == ST_OK && (node = hashmap_walk(&l.suspects, node)) != NULL) {
        struct suspect *s = container_of(node, struct suspect, node);

        if (s->shown)
            s->leak->kind = LEAK_NONE;
        else if (s->leak->kind == LEAK_DEAD_LETTER)
            s->leak->client = s->taken_by;
    }
    hashmap_fini(&l.suspects);
    return l.status;
}
