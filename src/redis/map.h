/*
 * map: the node of each slot, as far as is known, for all threads.
 *
 * Nodes are known by their place in the map, which does not change while the map lives; when it is
 * full of nodes that have gone it forgets all of them, and `generation` changes.
 *
 *   Threads  any
 *   Memory   64 KB, and 264 bytes a node
 */
#ifndef REDIS_MAP_H
#define REDIS_MAP_H

#include "claimd/base/lock.h"
#include "redis/link.h"

enum { MAP_NODES = 1024, MAP_NOWHERE = 0xffff };

struct map {
    struct lock lock;
    struct link_address nodes[MAP_NODES];
    size_t count;
    uint16_t slots[SLOT_COUNT];    /* place of the primary; MAP_NOWHERE: none */
    uint16_t replicas[SLOT_COUNT]; /* how many the primary has */
    unsigned generation;
    _Atomic bool
        single; /* one Redis without slots: it has all of them; without the lock, too */
};

void map_init(struct map *m);
void map_fini(struct map *m);

/* The place of a node, entered if need be. */
uint16_t map_node(struct map *m, const struct link_address *address);

struct link_address map_address(struct map *m, uint16_t node);

unsigned map_generation(struct map *m);

/* The node that has a slot; MAP_NOWHERE: none is known. */
uint16_t map_find(struct map *m, uint16_t slot);

/* The next node that has slots, from slot *at on (0 at first), which moves behind those in a row;
 * MAP_NOWHERE: there are no more. One that has several rows comes several times. O(slots) for all. */
uint16_t map_owner(struct map *m, uint16_t *at);

/* How many nodes have slots. */
size_t map_primaries(struct map *m);

/* A slot has moved there. */
void map_move(struct map *m, uint16_t slot, const struct link_address *to);

/* All slots are there. */
void map_be_single(struct map *m, const struct link_address *node);

/*
 * Reads the response to CLUSTER SLOTS. Nodes without a host of their own are at `asked`.
 * ST_UNAVAILABLE: it has another form; the map is as it was.
 */
enum status
map_read(struct map *m, const redisReply *slots, const struct link_address *asked);

/* How many replicas the worst of the slots has, and how many slots have no node. O(slots). */
void map_worst(struct map *m, size_t *replicas, size_t *without_owner);

/* Reads "host:port", as MOVED and ASK have it; a host that is empty is that of `asked`. */
bool map_read_address(const char *text, const struct link_address *asked,
                      struct link_address *out);

#endif
