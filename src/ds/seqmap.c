#include "claimd/ds/seqmap.h"

#include "claimd/base/invariant.h"

/*
 * A tree of height 2 over the numbers base .. base + 4095; a leaf has height 1:
 *
 *        root   live  ..11     child[i]: the numbers base + 64 i ..
 *               ready ...1
 *              /          \
 *   leaf live 1..1     leaf live ....1.     child[i]: the item of that number
 *       ready 1...         ready .......
 *
 * Invariants (seqmap_audit checks them):
 *
 *   - child[i] is defined where bit i of live is set, and never NULL there
 *   - in a leaf bit i of live (ready) means: that number is in the map (and ready);
 *     above, that child i has any bit of live (ready)
 *   - ready is a subset of live; no node has live == 0
 *   - a root that is no leaf has more than one child; base is a multiple of its span
 *   - map->live and map->ready count the bits of the leaves
 */
enum {
    FANOUT_BITS = 6,
    FANOUT = 1 << FANOUT_BITS,
    MAX_LEVELS = 11, /* 11 * 6 bits hold every number: the root has 16 children then */
    POOL_KEEP = 16
};

struct seqmap_node {
    uint64_t live, ready;
    void *child[FANOUT]; /* items in a leaf, else nodes; [0] links the spare ones */
};

enum seqmap_bits { BITS_LIVE, BITS_READY };

void
seqmap_pool_init(struct seqmap_pool *pool, struct mem *mem)
{
    *pool = (struct seqmap_pool){.mem = mem};
}

static struct seqmap_node *
pool_take(struct seqmap_pool *pool)
{
    struct seqmap_node *node = pool->spare;

    ENSURE(node != NULL); /* seqmap_pool_stock() comes first */
    pool->spare = node->child[0];
    pool->count--;
    return node;
}

static void
pool_give(struct seqmap_pool *pool, struct seqmap_node *node)
{
    node->child[0] = pool->spare;
    pool->spare = node;
    pool->count++;
}

static void
pool_shrink(struct seqmap_pool *pool, size_t keep)
{
    while (pool->count > keep)
        mem_free(pool->mem, pool_take(pool));
}

void
seqmap_pool_fini(struct seqmap_pool *pool)
{
    pool_shrink(pool, 0);
}

enum status
seqmap_pool_stock(struct seqmap_pool *pool, size_t nodes)
{
    while (pool->count < nodes) {
        struct seqmap_node *node = mem_alloc(pool->mem, sizeof(*node));

        if (node == NULL)
            return ST_NO_MEMORY;
        pool_give(pool, node);
    }
    return ST_OK;
}

void
seqmap_pool_trim(struct seqmap_pool *pool)
{
    pool_shrink(pool, POOL_KEEP);
}

/* The index of the node of the given height that covers seq, from number 0. */
static uint64_t
node_number(uint64_t seq, unsigned height)
{
    return height >= MAX_LEVELS ? 0 : seq >> (FANOUT_BITS * height);
}

static uint64_t
node_first(uint64_t seq, unsigned height)
{
    return height >= MAX_LEVELS ? 0 : node_number(seq, height) << (FANOUT_BITS * height);
}

/* The index of the child of such a node that covers seq. */
static unsigned
child_index(uint64_t seq, unsigned height)
{
    return (unsigned)(seq >> (FANOUT_BITS * (height - 1))) & (FANOUT - 1);
}

static uint64_t
bit_of(unsigned index)
{
    return (uint64_t)1 << index;
}

static uint64_t
bits_of(const struct seqmap_node *node, enum seqmap_bits which)
{
    return which == BITS_LIVE ? node->live : node->ready;
}

/* True if the root covers seq; the map is not empty. */
static bool
root_spans(const struct seqmap *map, uint64_t seq)
{
    return node_number(seq, map->levels) == node_number(map->base, map->levels);
}

/* The lowest height at which one node covers both numbers. */
static unsigned
common_height(uint64_t a, uint64_t b, unsigned height)
{
    while (node_number(a, height) != node_number(b, height))
        height++;
    return height;
}

size_t
seqmap_nodes_for(const struct seqmap *map, uint64_t first, size_t count)
{
    uint64_t last = count - 1 > UINT64_MAX - first ? UINT64_MAX : first + (count - 1);
    unsigned height = map->root == NULL ? 1 : map->levels;
    size_t nodes;

    if (count == 0)
        return 0;
    height = common_height(first, last, height);
    if (map->root != NULL)
        height = common_height(first, map->base, height);
    nodes = height - map->levels; /* new roots */
    for (unsigned h = 1; h < height; h++)
        nodes += node_number(last, h) - node_number(first, h) + 1;
    return nodes;
}

size_t
seqmap_nodes_up_to(const struct seqmap *map, uint64_t last, size_t count)
{
    unsigned height = common_height(0, last, map->root == NULL ? 1 : map->levels);

    if (count == 0)
        return 0;
    if (map->root != NULL)
        height = common_height(0, map->base, height);
    return height - map->levels +
           count * (height - 1); /* new roots, and a path for each */
}

static struct seqmap_node *
take_empty_node(struct seqmap_pool *pool)
{
    struct seqmap_node *node = pool_take(pool);

    node->live = node->ready = 0;
    return node;
}

void
seqmap_insert(struct seqmap *map, struct seqmap_pool *pool, uint64_t seq, void *item,
              bool ready)
{
    struct seqmap_node *node;

    ENSURE(item != NULL);
    if (map->root == NULL) {
        map->root = take_empty_node(pool);
        map->levels = 1;
        map->base = node_first(seq, 1);
    }
    while (!root_spans(map, seq)) {
        unsigned index = child_index(map->base, map->levels + 1);

        node = pool_take(pool); /* a new root */
        node->live = bit_of(index);
        node->ready = map->root->ready != 0 ? bit_of(index) : 0;
        node->child[index] = map->root;
        map->root = node;
        map->levels++;
        map->base = node_first(map->base, map->levels);
    }
    node = map->root;
    for (unsigned height = map->levels;; height--) {
        unsigned index = child_index(seq, height);
        bool taken = (node->live & bit_of(index)) != 0;

        node->live |= bit_of(index);
        if (ready)
            node->ready |= bit_of(index);
        if (height == 1) {
            ENSURE(!taken); /* the number must not be in the map */
            node->child[index] = item;
            break;
        }
        if (!taken)
            node->child[index] = take_empty_node(pool);
        node = node->child[index];
    }
    map->live++;
    map->ready += ready;
}

/* Collects the nodes from the root (path[levels]) to the leaf of seq (path[1]). False if
 * the number is not in the map. */
static bool
find_path(const struct seqmap *map, uint64_t seq,
          struct seqmap_node *path[MAX_LEVELS + 1])
{
    struct seqmap_node *node = map->root;

    if (node == NULL || !root_spans(map, seq))
        return false;
    for (unsigned height = map->levels;; height--) {
        unsigned index = child_index(seq, height);

        path[height] = node;
        if ((node->live & bit_of(index)) == 0)
            return false;
        if (height == 1)
            return true;
        node = node->child[index];
    }
}

/* Clears the ready bit of seq, and those above it that have no ready bit below any
 * more. */
static void
clear_ready(struct seqmap *map, uint64_t seq, struct seqmap_node *path[MAX_LEVELS + 1])
{
    for (unsigned height = 1; height <= map->levels; height++) {
        path[height]->ready &= ~bit_of(child_index(seq, height));
        if (path[height]->ready != 0)
            break;
    }
    map->ready--;
}

void *
seqmap_remove(struct seqmap *map, struct seqmap_pool *pool, uint64_t seq)
{
    struct seqmap_node *path[MAX_LEVELS + 1];
    unsigned index = child_index(seq, 1);
    void *item;

    if (!find_path(map, seq, path))
        return NULL;
    item = path[1]->child[index];
    if ((path[1]->ready & bit_of(index)) != 0)
        clear_ready(map, seq, path);
    map->live--;
    for (unsigned height = 1; height <= map->levels; height++) {
        path[height]->live &= ~bit_of(child_index(seq, height));
        if (path[height]->live != 0)
            break;
        pool_give(pool, path[height]);
        if (height == map->levels) {
            *map = (struct seqmap){.root = NULL};
            return item;
        }
    }
    while (map->levels > 1 && (map->root->live & (map->root->live - 1)) == 0) {
        struct seqmap_node *root = map->root; /* with a single child */

        index = (unsigned)__builtin_ctzll(root->live);
        map->levels--;
        map->base |= (uint64_t)index << (FANOUT_BITS * map->levels);
        map->root = root->child[index];
        pool_give(pool, root);
    }
    return item;
}

/* The leaf that covers seq, NULL if there is none. */
static struct seqmap_node *
leaf_of(const struct seqmap *map, uint64_t seq)
{
    struct seqmap_node *node = map->root;

    if (node == NULL || !root_spans(map, seq))
        return NULL;
    for (unsigned height = map->levels; height > 1; height--) {
        unsigned index = child_index(seq, height);

        if ((node->live & bit_of(index)) == 0)
            return NULL;
        node = node->child[index];
    }
    return node;
}

static struct seqmap_node *
find_leaf(const struct seqmap *map, uint64_t seq)
{
    struct seqmap_node *leaf = leaf_of(map, seq);

    return leaf != NULL && (leaf->live & bit_of(child_index(seq, 1))) != 0 ? leaf : NULL;
}

void
seqmap_bits(const struct seqmap *map, uint64_t first, uint64_t *live, uint64_t *ready)
{
    const struct seqmap_node *leaf = leaf_of(map, first);

    ENSURE(first % FANOUT == 0);
    *live = leaf == NULL ? 0 : leaf->live;
    *ready = leaf == NULL ? 0 : leaf->ready;
}

void *
seqmap_find(const struct seqmap *map, uint64_t seq)
{
    const struct seqmap_node *leaf = find_leaf(map, seq);

    return leaf == NULL ? NULL : leaf->child[child_index(seq, 1)];
}

bool
seqmap_is_ready(const struct seqmap *map, uint64_t seq)
{
    const struct seqmap_node *leaf = find_leaf(map, seq);

    return leaf != NULL && (leaf->ready & bit_of(child_index(seq, 1))) != 0;
}

void
seqmap_set_ready(struct seqmap *map, uint64_t seq, bool ready)
{
    struct seqmap_node *path[MAX_LEVELS + 1];
    bool found = find_path(map, seq, path);

    ENSURE(found); /* the number must be in the map */
    if (ready == ((path[1]->ready & bit_of(child_index(seq, 1))) != 0))
        return;
    if (!ready) {
        clear_ready(map, seq, path);
        return;
    }
    for (unsigned height = 1; height <= map->levels; height++)
        path[height]->ready |= bit_of(child_index(seq, height));
    map->ready++;
}

/* The position of a search: a child of a node. */
struct place {
    const struct seqmap_node *node; /* NULL: nowhere */
    unsigned height;
    unsigned index; /* of the child */
    uint64_t seq;   /* any number below the node */
    size_t touched; /* nodes read */
};

/* Descends to the smallest number with the bit below this place, and returns its item. */
static void *
smallest_below(struct place *at, enum seqmap_bits which)
{
    at->seq = node_first(at->seq, at->height);
    for (;;) {
        at->seq |= (uint64_t)at->index << (FANOUT_BITS * (at->height - 1));
        if (at->height == 1)
            return at->node->child[at->index];
        at->node = at->node->child[at->index];
        at->height--;
        at->index = (unsigned)__builtin_ctzll(bits_of(at->node, which));
        at->touched++;
    }
}

/*
 * Descends towards seq as far as there are bits. On the way it remembers the lowest node
 * that has a larger child with the bit: there the search continues if seq itself is not
 * there. The bit of a child says only that some number below has it, perhaps one before
 * seq.
 */
static struct place
find_from(const struct seqmap *map, uint64_t seq, enum seqmap_bits which)
{
    const struct seqmap_node *node = map->root;
    struct place larger = {.seq = seq};

    for (unsigned height = map->levels;; height--) {
        unsigned index = child_index(seq, height);
        uint64_t bits = bits_of(node, which);
        uint64_t behind = bits & (~(uint64_t)1 << index); /* none for index 63 */

        larger.touched++;
        if (behind != 0) {
            larger.node = node;
            larger.height = height;
            larger.index = (unsigned)__builtin_ctzll(behind);
        }
        if ((bits & bit_of(index)) == 0)
            return larger;
        if (height == 1) {
            larger.node = node;
            larger.height = height;
            larger.index = index;
            return larger;
        }
        node = node->child[index];
    }
}

/* The next item, and its number and the number of nodes read in *at. */
static void *
next_place(const struct seqmap *map, uint64_t seq, enum seqmap_bits which,
           struct place *at)
{
    *at = (struct place){.seq = seq};
    if (map->root == NULL)
        return NULL;
    if (seq < map->base)
        seq = map->base;
    if (!root_spans(map, seq))
        return NULL;
    *at = find_from(map, seq, which);
    return at->node == NULL ? NULL : smallest_below(at, which);
}

static void *
next_item(const struct seqmap *map, uint64_t *seq, enum seqmap_bits which)
{
    struct place at;
    void *item = next_place(map, *seq, which, &at);

    if (item != NULL)
        *seq = at.seq;
    return item;
}

void *
seqmap_next_live(const struct seqmap *map, uint64_t *seq)
{
    return next_item(map, seq, BITS_LIVE);
}

void *
seqmap_next_ready(const struct seqmap *map, uint64_t *seq)
{
    return next_item(map, seq, BITS_READY);
}

size_t
seqmap_probe_ready(const struct seqmap *map, uint64_t seq)
{
    struct place at;

    (void)next_place(map, seq, BITS_READY, &at); /* only for its cost */
    return at.touched;
}

void *
seqmap_last(const struct seqmap *map, uint64_t *seq)
{
    const struct seqmap_node *node = map->root;
    uint64_t number = map->base;

    if (node == NULL)
        return NULL;
    for (unsigned height = map->levels;; height--) {
        unsigned index = FANOUT - 1 - (unsigned)__builtin_clzll(node->live);

        number |= (uint64_t)index << (FANOUT_BITS * (height - 1));
        if (height == 1) {
            *seq = number;
            return node->child[index];
        }
        node = node->child[index];
    }
}

/* Checks a subtree and counts the bits of its leaves. Recursion is MAX_LEVELS deep. */
static bool
audit_node(const struct seqmap_node *node, unsigned height, size_t *live, size_t *ready)
{
    if (node->live == 0 || (node->ready & ~node->live) != 0)
        return false;
    if (height == 1) {
        *live += (size_t)__builtin_popcountll(node->live);
        *ready += (size_t)__builtin_popcountll(node->ready);
    }
    for (uint64_t rest = node->live; rest != 0; rest &= rest - 1) {
        unsigned index = (unsigned)__builtin_ctzll(rest);
        const struct seqmap_node *child = node->child[index];

        if (child == NULL)
            return false;
        if (height == 1)
            continue;
        if ((child->ready != 0) != ((node->ready & bit_of(index)) != 0) ||
            !audit_node(child, height - 1, live, ready))
            return false;
    }
    return true;
}

bool
seqmap_audit(const struct seqmap *map)
{
    size_t live = 0, ready = 0;

    if (map->root == NULL)
        return map->levels == 0 && map->live == 0 && map->ready == 0;
    if (map->levels < 1 || map->levels > MAX_LEVELS ||
        map->base != node_first(map->base, map->levels))
        return false;
    if (map->levels > 1 && __builtin_popcountll(map->root->live) < 2)
        return false;
    return audit_node(map->root, map->levels, &live, &ready) && live == map->live &&
           ready == map->ready;
}
