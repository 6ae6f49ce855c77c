#include "support/sim_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Made: it takes a name. Unlinked: it leaves one. Renamed: both. */
struct sim_change {
    struct sim_node *node;
    struct sim_name *from, *to;
    bool happened;
};

/* ------------------------------------------------------------------ names */

static struct sim_name *
find_name(const struct sim_folder *fo, const char *text)
{
    struct sim_name *name = fo->names;

    while (name != NULL && strcmp(name->text, text) != 0)
        name = name->next;
    return name;
}

static struct sim_name *
make_name(struct sim_folder *fo, const char *text)
{
    struct sim_name *name = find_name(fo, text);

    if (name != NULL)
        return name;
    name = sim_alloc(sizeof(*name));
    (void)snprintf(name->text, sizeof(name->text), "%s", text);
    name->next = fo->names;
    fo->names = name;
    return name;
}

struct sim_node *
sim_folder_find(const struct sim_folder *fo, const char *text)
{
    const struct sim_name *name = find_name(fo, text);

    return name == NULL ? NULL : name->now;
}

/* Has a file seen under this name, and no other (either may be NULL). */
static void
set_now(struct sim_name *name, struct sim_node *node)
{
    if (name != NULL && name->now != NULL)
        name->now->now = NULL;
    if (node != NULL && node->now != NULL)
        node->now->now = NULL;
    if (name != NULL)
        name->now = node;
    if (node != NULL)
        node->now = name;
}

/* The same of what is durable. */
static void
set_durable(struct sim_name *name, struct sim_node *node)
{
    if (name != NULL && name->durable != NULL)
        name->durable->durable = NULL;
    if (node->durable != NULL)
        node->durable->durable = NULL;
    if (name != NULL)
        name->durable = node;
    node->durable = name;
}

/* Frees what is out of reach. No change is under way. */
static void
checkpoint(struct sim_folder *fo)
{
    for (struct sim_name **at = &fo->names; *at != NULL;) {
        struct sim_name *name = *at;

        if (name->now != NULL || name->durable != NULL) {
            at = &name->next;
            continue;
        }
        *at = name->next;
        free(name);
    }
    for (struct sim_node **at = &fo->nodes; *at != NULL;) {
        struct sim_node *node = *at;

        if (node->now != NULL || node->durable != NULL || node->opens > 0) {
            at = &node->next;
            continue;
        }
        *at = node->next;
        sim_file_fini(&node->file);
        free(node);
    }
}

void
sim_folder_fini(struct sim_folder *fo)
{
    for (struct sim_node *node = fo->nodes; node != NULL; node = node->next) {
        set_now(NULL, node);
        set_durable(NULL, node);
        node->opens = 0;
    }
    checkpoint(fo);
    free(fo->changes);
    *fo = (struct sim_folder){0};
}

/* ------------------------------------------------------------------ changes */

static void
add_change(struct sim_folder *fo, struct sim_node *node, struct sim_name *from,
           struct sim_name *to)
{
    if (fo->count == fo->capacity) {
        fo->capacity = fo->capacity == 0 ? 16 : 2 * fo->capacity;
        fo->changes = realloc(fo->changes, fo->capacity * sizeof(*fo->changes));
        if (fo->changes == NULL)
            abort();
    }
    fo->changes[fo->count++] = (struct sim_change){node, from, to, false};
}

static struct sim_node *
new_node(struct sim_folder *fo)
{
    struct sim_node *node = sim_alloc(sizeof(*node));

    node->next = fo->nodes;
    fo->nodes = node;
    return node;
}

struct sim_node *
sim_folder_make(struct sim_folder *fo, const char *text)
{
    struct sim_name *name = make_name(fo, text);
    struct sim_node *node = new_node(fo);

    set_now(name, node);
    add_change(fo, node, NULL, name);
    return node;
}

void
sim_folder_rename(struct sim_folder *fo, struct sim_node *node, const char *text)
{
    struct sim_name *from = node->now, *to = make_name(fo, text);

    if (from == to)
        return;
    set_now(to, node);
    add_change(fo, node, from, to);
}

void
sim_folder_unlink(struct sim_folder *fo, struct sim_node *node)
{
    struct sim_name *from = node->now;

    set_now(NULL, node);
    add_change(fo, node, from, NULL);
}

/* ------------------------------------------------------------------ durable or not */

/* A name can be taken only when all who had it before have left. */
static void
complete(struct sim_folder *fo)
{
    for (size_t i = fo->count; i-- > 0;) {
        const struct sim_change *later = &fo->changes[i];

        for (size_t j = 0; later->happened && later->to != NULL && j < i; j++) {
            if (fo->changes[j].from == later->to)
                fo->changes[j].happened = true;
        }
    }
}

/* Makes durable what has happened, and forgets the rest. */
static void
settle(struct sim_folder *fo)
{
    for (size_t i = 0; i < fo->count; i++) {
        const struct sim_change *c = &fo->changes[i];

        /* Unlinked where a rename did not take it: neither of them has happened. */
        if (c->happened && (c->to != NULL || c->node->durable == c->from))
            set_durable(c->to, c->node);
    }
    fo->count = 0;
    checkpoint(fo);
}

void
sim_folder_sync(struct sim_folder *fo)
{
    for (size_t i = 0; i < fo->count; i++)
        fo->changes[i].happened = true;
    settle(fo);
}

void
sim_folder_drop(struct sim_folder *fo, struct random *dice)
{
    unsigned bias = dice == NULL ? 0 : sim_bias(dice);

    for (size_t i = 0; i < fo->count; i++)
        fo->changes[i].happened = dice != NULL && random_chance(dice, bias);
    complete(fo);
    settle(fo);
}

void
sim_folder_crash(struct sim_folder *fo, struct random *dice)
{
    sim_folder_drop(fo, dice);
    for (struct sim_name *name = fo->names; name != NULL; name = name->next)
        set_now(name, name->durable);
    checkpoint(fo);
}

/* ------------------------------------------------------------------ copies */

static void
copy_node(struct sim_node *node, struct sim_folder *to)
{
    node->copy = new_node(to);
    sim_file_copy(&node->file, &node->copy->file);
}

static void
copy_name(struct sim_name *name, struct sim_folder *to)
{
    name->copy = make_name(to, name->text);
    if (name->now != NULL)
        set_now(name->copy, name->now->copy);
    if (name->durable != NULL)
        set_durable(name->copy, name->durable->copy);
}

void
sim_folder_copy(struct sim_folder *fo, struct sim_folder *to)
{
    for (struct sim_node *node = fo->nodes; node != NULL; node = node->next)
        copy_node(node, to);
    for (struct sim_name *name = fo->names; name != NULL; name = name->next)
        copy_name(name, to);
    for (size_t i = 0; i < fo->count; i++) {
        const struct sim_change *c = &fo->changes[i];

        add_change(to, c->node->copy, c->from == NULL ? NULL : c->from->copy,
                   c->to == NULL ? NULL : c->to->copy);
    }
    /* A file that is only open has no name there: the next checkpoint frees it. */
}
