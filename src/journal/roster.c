#include "journal/roster.h"

#include "claimd/base/hash.h"
#include "claimd/ds/list.h"

/* A queue that was named, or is gone. */
struct listed {
    struct hashnode by_tag, by_name; /* the latter of the last one of this name only */
    uint32_t tag;
    bool named, gone, replaced;
    struct store_queue where; /* of the text behind it */
    char text[];
};

enum status
roster_init(struct roster *roster)
{
    roster->mem = mem_new(0);
    if (roster->mem == NULL)
        return ST_NO_MEMORY;
    hashmap_init(&roster->by_tag, roster->mem);
    hashmap_init(&roster->by_name, roster->mem);
    return ST_OK;
}

void
roster_fini(struct roster *roster)
{
    struct hashnode *node, *next;

    if (roster->mem == NULL)
        return;
    for (node = hashmap_walk(&roster->by_tag, NULL); node != NULL; node = next) {
        next = hashmap_walk(&roster->by_tag, node);
        hashmap_remove(&roster->by_tag, node);
        mem_free(roster->mem, container_of(node, struct listed, by_tag));
    }
    hashmap_fini(&roster->by_tag);
    hashmap_fini(&roster->by_name);
    mem_destroy(roster->mem);
    roster->mem = NULL;
}

static bool
has_tag(const struct hashnode *node, const void *key)
{
    return container_of(node, const struct listed, by_tag)->tag == *(const uint32_t *)key;
}

static bool
has_name(const struct hashnode *node, const void *key)
{
    return store_queue_equal(&container_of(node, const struct listed, by_name)->where,
                             key);
}

static struct listed *
listed_find(const struct roster *roster, uint32_t tag)
{
    struct hashnode *node = hashmap_find(&roster->by_tag, hash_mix(tag), has_tag, &tag);

    return node == NULL ? NULL : container_of(node, struct listed, by_tag);
}

static enum status
listed_add(struct roster *roster, uint32_t tag, const struct store_queue *q,
           struct listed **out)
{
    size_t project = q == NULL ? 0 : q->project.len, name = q == NULL ? 0 : q->name.len;
    struct listed *l;

    if (hashmap_reserve(&roster->by_tag, 1) != ST_OK ||
        hashmap_reserve(&roster->by_name, 1) != ST_OK)
        return ST_NO_MEMORY;
    l = mem_alloc(roster->mem, sizeof(*l) + project + name);
    if (l == NULL)
        return ST_NO_MEMORY;
    *l = (struct listed){.tag = tag, .named = q != NULL};
    if (q != NULL) {
        char *to = l->text;

        l->where.kind = q->kind;
        l->where.project = bytes_lay(&to, q->project);
        l->where.name = bytes_lay(&to, q->name);
    }
    hashmap_insert(&roster->by_tag, &l->by_tag, hash_mix(tag));
    *out = l;
    return ST_OK;
}

/* From now on the name is this one's. */
static void
take_name(struct roster *roster, struct listed *l)
{
    /* Whoever chose the names is not the one who reads them here: no secret is needed. */
    static const struct hash_key key = {1, 2};
    uint64_t hash =
        hash_mix(hash_bytes(&key, l->where.project)) ^ hash_bytes(&key, l->where.name);
    struct hashnode *node = hashmap_find(&roster->by_name, hash, has_name, &l->where);
    struct listed *before;

    if (node != NULL) {
        before = container_of(node, struct listed, by_name);
        before->replaced = !before->gone;
        hashmap_remove(&roster->by_name, node);
    }
    hashmap_insert(&roster->by_name, &l->by_name, hash);
}

enum status
roster_note(struct roster *roster, const struct record *record)
{
    const bool gone = record->type == RECORD_QUEUE_GONE;
    const struct store_change *change = &record->change;
    enum status st = ST_OK;
    struct listed *l;

    if (!gone && record->type != RECORD_QUEUE)
        return ST_OK;
    l = listed_find(roster, change->tag);
    if (l == NULL) { /* else: named by a checkpoint before */
        st = listed_add(roster, change->tag, gone ? NULL : &change->queue, &l);
        if (st == ST_OK && !gone)
            take_name(roster, l);
    }
    if (st == ST_OK && gone)
        l->gone = true;
    return st;
}

const struct store_queue *
roster_name(const struct roster *roster, uint32_t tag)
{
    const struct listed *l = listed_find(roster, tag);

    return l == NULL || !l->named ? NULL : &l->where;
}

bool
roster_can_place(const struct roster *roster, uint32_t tag)
{
    const struct listed *l = listed_find(roster, tag);

    return l != NULL && (l->named || l->gone) && !l->replaced;
}

bool
roster_replaced(const struct roster *roster, uint32_t tag)
{
    const struct listed *l = listed_find(roster, tag);

    return l != NULL && l->replaced;
}
