#include "redis/map.h"

#include <stdlib.h>

void
map_init(struct map *m)
{
    *m = (struct map){.count = 0};
    lock_init(&m->lock);
    memset(m->slots, 0xff, sizeof(m->slots));
}

void
map_fini(struct map *m)
{
    lock_fini(&m->lock);
}

static void
forget_nodes(struct map *m)
{
    m->count = 0;
    m->generation++;
    memset(m->slots, 0xff, sizeof(m->slots));
}

static uint16_t
add_node(struct map *m, const struct link_address *address)
{
    for (size_t i = 0; i < m->count; i++)
        if (link_address_equal(&m->nodes[i], address))
            return (uint16_t)i;
    if (m->count == MAP_NODES)
        forget_nodes(m);
    m->nodes[m->count] = *address;
    return (uint16_t)m->count++;
}

uint16_t
map_node(struct map *m, const struct link_address *address)
{
    uint16_t node;

    lock_acquire(&m->lock);
    node = add_node(m, address);
    lock_release(&m->lock);
    return node;
}

struct link_address
map_address(struct map *m, uint16_t node)
{
    struct link_address address;

    lock_acquire(&m->lock);
    address = m->nodes[node];
    lock_release(&m->lock);
    return address;
}

unsigned
map_generation(struct map *m)
{
    unsigned generation;

    lock_acquire(&m->lock);
    generation = m->generation;
    lock_release(&m->lock);
    return generation;
}

uint16_t
map_find(struct map *m, uint16_t slot)
{
    uint16_t node;

    lock_acquire(&m->lock);
    node = m->slots[slot];
    lock_release(&m->lock);
    return node;
}

uint16_t
map_owner(struct map *m, uint16_t *at)
{
    uint16_t node = MAP_NOWHERE;

    lock_acquire(&m->lock);
    while (*at < SLOT_COUNT && (node == MAP_NOWHERE || m->slots[*at] == node))
        node = m->slots[(*at)++];
    lock_release(&m->lock);
    return node;
}

size_t
map_primaries(struct map *m)
{
    bool seen[MAP_NODES] = {false};
    size_t count = 0;

    lock_acquire(&m->lock);
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        uint16_t node = m->slots[i];

        if (node == MAP_NOWHERE || seen[node])
            continue;
        seen[node] = true;
        count++;
    }
    lock_release(&m->lock);
    return count;
}

void
map_move(struct map *m, uint16_t slot, const struct link_address *to)
{
    lock_acquire(&m->lock);
    m->slots[slot] = add_node(m, to);
    lock_release(&m->lock);
}

void
map_be_single(struct map *m, const struct link_address *node)
{
    uint16_t place;

    lock_acquire(&m->lock);
    place = add_node(m, node);
    for (size_t i = 0; i < SLOT_COUNT; i++)
        m->slots[i] = place;
    atomic_store(&m->single, true);
    lock_release(&m->lock);
}

/* [first, last, [host, port, ...] of the primary, replica ...] */
static bool
read_range(const redisReply *range, const struct link_address *asked, int64_t *first,
           int64_t *last, struct link_address *primary)
{
    const redisReply *from = reply_word(range, 0), *to = reply_word(range, 1);
    const redisReply *port = reply_word(reply_word(range, 2), 1);

    if (port == NULL || from->type != REDIS_REPLY_INTEGER ||
        to->type != REDIS_REPLY_INTEGER || port->type != REDIS_REPLY_INTEGER ||
        from->integer < 0 || to->integer >= SLOT_COUNT || from->integer > to->integer)
        return false;
    *first = from->integer;
    *last = to->integer;
    return link_address_make(reply_text(reply_word(reply_word(range, 2), 0)),
                             port->integer, asked, primary);
}

enum status
map_read(struct map *m, const redisReply *slots, const struct link_address *asked)
{
    struct link_address primary;
    int64_t first, last;
    bool good = slots->type == REDIS_REPLY_ARRAY && slots->elements > 0;

    for (size_t i = 0; good && i < slots->elements; i++)
        good = read_range(slots->element[i], asked, &first, &last, &primary);
    if (!good)
        return ST_UNAVAILABLE;
    lock_acquire(&m->lock);
    if (m->count > MAP_NODES / 2) /* not in between */
        forget_nodes(m);
    memset(m->slots, 0xff, sizeof(m->slots));
    for (size_t i = 0; i < slots->elements; i++) {
        const redisReply *range = slots->element[i];
        uint16_t node;

        if (!read_range(range, asked, &first, &last, &primary))
            continue; /* it is good */
        node = add_node(m, &primary);
        for (int64_t slot = first; slot <= last; slot++) {
            m->slots[slot] = node;
            m->replicas[slot] = (uint16_t)(range->elements - 3);
        }
    }
    atomic_store(&m->single, false);
    lock_release(&m->lock);
    return ST_OK;
}

void
map_worst(struct map *m, size_t *replicas, size_t *without_owner)
{
    *replicas = SIZE_MAX;
    *without_owner = 0;
    lock_acquire(&m->lock);
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        *without_owner += m->slots[i] == MAP_NOWHERE;
        if (m->slots[i] != MAP_NOWHERE && m->replicas[i] < *replicas)
            *replicas = m->replicas[i];
    }
    lock_release(&m->lock);
}

bool
map_read_address(const char *text, const struct link_address *asked,
                 struct link_address *out)
{
    const char *colon = strrchr(text, ':');
    char *end;
    long port;

    if (colon == NULL)
        return false;
    port = strtol(colon + 1, &end, 10);
    return end != colon + 1 && *end == '\0' &&
           link_address_make(bytes_of(text, (size_t)(colon - text)), port, asked, out);
}
