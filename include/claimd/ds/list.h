/*
 * list: a circular doubly linked list of embedded nodes.
 *
 *   Cost     every operation O(1)
 *   Memory   never allocates
 *   Threads  the owner's lock
 */
#ifndef CLAIMD_DS_LIST_H
#define CLAIMD_DS_LIST_H

#include "claimd/base/invariant.h"

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev; /* a head: itself when empty; a node: NULL when unlinked */
};

/* The structure of this type whose `member` is at ptr. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline void
list_init(struct list *head)
{
    head->next = head->prev = head;
}

static inline bool
list_empty(const struct list *head)
{
    return head->next == head;
}

static inline bool
list_linked(const struct list *node)
{
    return node->next != NULL;
}

/* Links node before pos: at the end of the list when pos is the head. */
static inline void
list_add_before(struct list *pos, struct list *node)
{
    node->next = pos;
    node->prev = pos->prev;
    pos->prev->next = node;
    pos->prev = node;
}

static inline void
list_remove(struct list *node)
{
    ENSURE(list_linked(node));
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
}

/* Moves all nodes of one list to the end of another one. O(1). */
static inline void
list_move(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

/* Unlinks and returns the first node, NULL when empty. */
static inline struct list *
list_pop(struct list *head)
{
    struct list *first = head->next;

    if (first == head)
        return NULL;
    list_remove(first);
    return first;
}

#endif
