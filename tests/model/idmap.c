#include "model/idmap.h"

#include <stdlib.h>

enum { LEFT, RIGHT };

void
idmap_init(struct idmap *map)
{
    *map = (struct idmap){.pairs = NULL};
}

void
idmap_fini(struct idmap *map)
{
    free(map->pairs);
    free(map->slots[LEFT]);
    free(map->slots[RIGHT]);
    idmap_init(map);
}

static const char *
side_text(const struct id_pair *pair, int side)
{
    return side == LEFT ? pair->left.text : pair->right.text;
}

/* The slot where this text is, or where it would be entered (FNV-1a, linear probing). */
static size_t *
find_slot(const struct idmap *map, int side, const char *text)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    size_t i;

    for (const char *c = text; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3ULL;
    for (i = (size_t)hash % map->slot_count; map->slots[side][i] != 0;
         i = (i + 1) % map->slot_count)
        if (strcmp(side_text(&map->pairs[map->slots[side][i] - 1], side), text) == 0)
            break;
    return &map->slots[side][i];
}

static void *
must(void *block)
{
    if (block == NULL)
        abort();
    return block;
}

/* Doubles the space; both tables stay at most half full. */
static void
grow(struct idmap *map)
{
    map->capacity = map->capacity == 0 ? 256 : map->capacity * 2;
    map->slot_count = map->capacity * 2 + 1;
    map->pairs = must(realloc(map->pairs, map->capacity * sizeof(*map->pairs)));
    for (int side = LEFT; side <= RIGHT; side++) {
        free(map->slots[side]);
        map->slots[side] = must(calloc(map->slot_count, sizeof(size_t)));
        for (size_t i = 0; i < map->count; i++)
            *find_slot(map, side, side_text(&map->pairs[i], side)) = i + 1;
    }
}

bool
idmap_learn(struct idmap *map, const struct id_pair *pair)
{
    if (map->count == map->capacity)
        grow(map);
    for (int side = LEFT; side <= RIGHT; side++)
        if (*find_slot(map, side, side_text(pair, side)) != 0)
            return false;
    map->pairs[map->count++] = *pair;
    for (int side = LEFT; side <= RIGHT; side++)
        *find_slot(map, side, side_text(pair, side)) = map->count;
    return true;
}

bool
idmap_same(const struct idmap *map, const struct store_id *left,
           const struct store_id *right)
{
    size_t found;

    if (left->text[0] == '\0' || right->text[0] == '\0' || map->count == 0)
        return left->text[0] == right->text[0];
    found = *find_slot(map, LEFT, left->text);
    return found != 0 && strcmp(map->pairs[found - 1].right.text, right->text) == 0;
}

const struct store_id *
idmap_left(const struct idmap *map, const struct store_id *right)
{
    size_t found = map->count == 0 ? 0 : *find_slot(map, RIGHT, right->text);

    return found == 0 ? NULL : &map->pairs[found - 1].left;
}
