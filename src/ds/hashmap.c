#include "claimd/ds/hashmap.h"

#include "claimd/base/invariant.h"

/*
 * Invariants (hashmap_audit checks them):
 *
 *   - table[1] exists only while growing; then the chains [0, moved) of table[0] are
 *     empty, and their nodes hang in table[1]. Every hash has one chain it can be in.
 *   - a node hangs in the chain of its hash; count is the number of nodes.
 *
 * Each insert moves MOVES chains. Growing begins when a reserve finds the table too
 * small, and takes size / MOVES inserts: it ends long before the larger table is full.
 * A removal moves nothing, so that a walk may remove what it has passed.
 */
enum { MIN_BUCKETS = 8, MOVES = 4 };

void
hashmap_init(struct hashmap *map, struct mem *mem)
{
    *map = (struct hashmap){.mem = mem};
}

void
hashmap_fini(struct hashmap *map)
{
    mem_free(map->mem, map->table[0]);
    mem_free(map->mem, map->table[1]);
    hashmap_init(map, map->mem);
}

static bool
is_growing(const struct hashmap *map)
{
    return map->table[1] != NULL;
}

/* The chain of a hash. A table must exist. */
static struct hashnode **
chain_of(const struct hashmap *map, uint64_t hash)
{
    size_t old = hash & map->mask[0];

    if (is_growing(map) && old < map->moved)
        return &map->table[1][hash & map->mask[1]];
    return &map->table[0][old];
}

static enum status
make_table(struct hashmap *map, int which, size_t want)
{
    size_t buckets = MIN_BUCKETS;

    while (buckets < want) {
        if (buckets > SIZE_MAX / 2 / sizeof(*map->table[which]))
            return ST_NO_MEMORY;
        buckets *= 2;
    }
    map->table[which] = mem_calloc(map->mem, buckets, sizeof(*map->table[which]));
    if (map->table[which] == NULL)
        return ST_NO_MEMORY;
    map->mask[which] = buckets - 1;
    return ST_OK;
}

enum status
hashmap_reserve(struct hashmap *map, size_t extra)
{
    size_t want = map->count + extra;

    if (want < extra)
        return ST_NO_MEMORY;
    if (map->table[0] == NULL)
        return make_table(map, 0, want);
    /* While growing, the chains become a little longer instead. A third table is not
     * worth its code, and the next reserve after the move grows the table enough. */
    if (is_growing(map) || want <= map->mask[0] + 1)
        return ST_OK;
    map->moved = 0;
    return make_table(map, 1, want);
}

static void
push(struct hashnode **chain, struct hashnode *node)
{
    node->next = *chain;
    *chain = node;
}

/* Moves some chains to the larger table, which replaces the other one after the last
 * chain. */
static void
move_chains(struct hashmap *map)
{
    for (int i = 0; i < MOVES && map->moved <= map->mask[0]; i++) {
        struct hashnode **chain = &map->table[0][map->moved++], *node;

        while ((node = *chain) != NULL) {
            *chain = node->next;
            push(&map->table[1][node->hash & map->mask[1]], node);
        }
    }
    if (map->moved <= map->mask[0])
        return;
    mem_free(map->mem, map->table[0]);
    map->table[0] = map->table[1];
    map->mask[0] = map->mask[1];
    map->table[1] = NULL;
}

void
hashmap_insert(struct hashmap *map, struct hashnode *node, uint64_t hash)
{
    ENSURE(map->table[0] != NULL); /* hashmap_reserve() comes first */
    if (is_growing(map))
        move_chains(map);
    node->hash = hash;
    push(chain_of(map, hash), node);
    map->count++;
}

struct hashnode *
hashmap_find(const struct hashmap *map, uint64_t hash, hashmap_equal_fn *equal,
             const void *key)
{
    struct hashnode *node;

    if (map->count == 0)
        return NULL;
    node = *chain_of(map, hash);
    while (node != NULL && (node->hash != hash || !equal(node, key)))
        node = node->next;
    return node;
}

void
hashmap_remove(struct hashmap *map, struct hashnode *node)
{
    struct hashnode **link;

    ENSURE(map->count > 0);
    link = chain_of(map, node->hash);
    while (*link != node) {
        ENSURE(*link != NULL); /* the node must be in the map */
        link = &(*link)->next;
    }
    *link = node->next;
    node->next = NULL;
    map->count--;
}

/* The first node of chains [from, end) of a table. */
static struct hashnode *
first_node(struct hashnode *const *table, size_t from, size_t end)
{
    for (size_t i = from; i < end; i++)
        if (table[i] != NULL)
            return table[i];
    return NULL;
}

struct hashnode *
hashmap_walk(const struct hashmap *map, const struct hashnode *last)
{
    size_t old = last == NULL ? 0 : last->hash & map->mask[0];
    size_t from = 0; /* where to continue in table[1] */
    struct hashnode *node = NULL;

    if (map->count == 0)
        return NULL;
    if (last != NULL && last->next != NULL)
        return last->next;
    if (last != NULL && is_growing(map) && old < map->moved)
        from = (last->hash & map->mask[1]) + 1;
    else
        node = first_node(map->table[0], last == NULL ? 0 : old + 1, map->mask[0] + 1);
    if (node == NULL && is_growing(map))
        node = first_node(map->table[1], from, map->mask[1] + 1);
    return node;
}

/* Counts the nodes of a table; SIZE_MAX if one is in a wrong chain. */
static size_t
audit_table(const struct hashmap *map, int which)
{
    size_t nodes = 0;

    if (map->table[which] == NULL)
        return 0;
    for (size_t i = 0; i <= map->mask[which]; i++) {
        struct hashnode **chain = &map->table[which][i];

        for (const struct hashnode *node = *chain; node != NULL; node = node->next) {
            if (chain_of(map, node->hash) != chain || nodes == map->count)
                return SIZE_MAX;
            nodes++;
        }
    }
    return nodes;
}

bool
hashmap_audit(const struct hashmap *map)
{
    size_t old = audit_table(map, 0);
    size_t new = audit_table(map, 1);

    if (map->table[0] == NULL && (is_growing(map) || map->count != 0))
        return false;
    if (is_growing(map) && (map->moved > map->mask[0] || map->mask[1] <= map->mask[0]))
        return false;
    return old != SIZE_MAX && new != SIZE_MAX &&old + new == map->count;
}
