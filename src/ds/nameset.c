#include "claimd/ds/nameset.h"

#include "claimd/base/invariant.h"

/*
 * Invariants (nameset_audit checks them):
 *
 *   - names ascend in order left, node, right; no name is there twice
 *   - no child has a higher priority than its parent
 *   - parent pointers agree with child pointers; count is the number of nodes
 */

/* Replaces node by `heir` (may be NULL) in its parent. */
static void
replace(struct nameset *set, const struct namenode *node, struct namenode *heir)
{
    struct namenode *parent = node->parent;

    if (parent == NULL)
        set->root = heir;
    else if (parent->left == node)
        parent->left = heir;
    else
        parent->right = heir;
    if (heir != NULL)
        heir->parent = parent;
}

/*
 * Rotates a node and its parent, so that the parent becomes a child of the node:
 *
 *        parent            node
 *       /      \          /    \
 *     node      c   ->   a     parent      and the mirror image
 *     /  \                     /   \
 *    a    b                   b     c
 */
static void
rotate_up(struct nameset *set, struct namenode *node)
{
    struct namenode *parent = node->parent;
    bool from_left = parent->left == node;
    struct namenode *between = from_left ? node->right : node->left;

    replace(set, parent, node);
    if (from_left) {
        parent->left = between;
        node->right = parent;
    } else {
        parent->right = between;
        node->left = parent;
    }
    if (between != NULL)
        between->parent = parent;
    parent->parent = node;
}

void
nameset_insert(struct nameset *set, struct namenode *node, struct bytes name,
               uint64_t priority)
{
    struct namenode **link = &set->root;

    *node = (struct namenode){.priority = priority, .name = name};
    while (*link != NULL) {
        int order = bytes_compare(name, (*link)->name);

        ENSURE(order != 0); /* the name must not be in the set */
        node->parent = *link;
        link = order < 0 ? &(*link)->left : &(*link)->right;
    }
    *link = node;
    while (node->parent != NULL && node->parent->priority < priority)
        rotate_up(set, node);
    set->count++;
}

void
nameset_remove(struct nameset *set, struct namenode *node)
{
    ENSURE(set->count > 0);
    ENSURE(node->parent != NULL || set->root == node); /* in this set, or in none */
    /* Rotates it down until one side is empty, always below the child with the higher
     * priority. */
    while (node->left != NULL && node->right != NULL)
        rotate_up(set, node->left->priority > node->right->priority ? node->left
                                                                    : node->right);
    replace(set, node, node->left != NULL ? node->left : node->right);
    node->left = node->right = node->parent = NULL;
    set->count--;
}

struct namenode *
nameset_find(const struct nameset *set, struct bytes name)
{
    struct namenode *node = set->root;
    int order;

    while (node != NULL && (order = bytes_compare(name, node->name)) != 0)
        node = order < 0 ? node->left : node->right;
    return node;
}

static struct namenode *
leftmost(struct namenode *node)
{
    while (node != NULL && node->left != NULL)
        node = node->left;
    return node;
}

struct namenode *
nameset_after(const struct nameset *set, struct bytes marker)
{
    struct namenode *node = set->root, *best = NULL;

    if (!bytes_present(marker))
        return leftmost(node);
    while (node != NULL) {
        if (bytes_compare(node->name, marker) > 0) {
            best = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return best;
}

struct namenode *
nameset_next(const struct namenode *node)
{
    if (node->right != NULL)
        return leftmost(node->right);
    while (node->parent != NULL && node->parent->right == node)
        node = node->parent;
    return node->parent;
}

bool
nameset_audit(const struct nameset *set)
{
    const struct namenode *node = leftmost(set->root);
    size_t count = 0;

    for (; node != NULL && count <= set->count; count++) {
        const struct namenode *next = nameset_next(node), *parent = node->parent;

        if (parent == NULL && set->root != node)
            return false;
        if (parent != NULL && (parent->priority < node->priority ||
                               (parent->left != node && parent->right != node)))
            return false;
        if (next != NULL && bytes_compare(node->name, next->name) >= 0)
            return false;
        node = next;
    }
    return node == NULL && count == set->count;
}
