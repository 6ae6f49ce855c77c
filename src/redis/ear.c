#include "redis/ear.h"

#include "redis/key.h"

#include <string.h>

enum {
    TRY_MS = 1000,   /* between two tries */
    KEPT_MS = 30000, /* a channel that nobody has wanted for so long goes */
    SILENCE_MS =
        10000 /* then a node is asked whether it is there, and given up after as long */
};

struct channel {
    struct hashnode node; /* by the name */
    struct list link;
    struct store_queue where; /* texts stand behind the name */
    int64_t wanted_ms;
    uint16_t slot;
    bool spoken; /* it is subscribed, as far as we know */
    struct bytes name;
    char text[];
};

/* ---------------------------------------------------------------------- channels */

static bool
has_name(const struct hashnode *node, const void *key)
{
    return bytes_equal(container_of(node, struct channel, node)->name,
                       *(const struct bytes *)key);
}

static struct channel *
find_channel(const struct ear *e, struct bytes name)
{
    struct hashnode *node =
        hashmap_find(&e->channels, hash_mix(hash_bytes(&e->key, name)), has_name, &name);

    return node == NULL ? NULL : container_of(node, struct channel, node);
}

static enum status
add_channel(struct ear *e, struct bytes name, const struct store_queue *where,
            int64_t now_ms)
{
    struct channel *c;
    char *to;

    if (hashmap_reserve(&e->channels, 1) != ST_OK)
        return ST_NO_MEMORY;
    c = mem_calloc(e->channels.mem, 1,
                   sizeof(*c) + name.len + where->project.len + where->name.len);
    if (c == NULL)
        return ST_NO_MEMORY;
    to = c->text;
    c->name = bytes_lay(&to, name);
    c->where = *where;
    c->where.project = bytes_lay(&to, where->project);
    c->where.name = bytes_lay(&to, where->name);
    c->slot = slot_of(name);
    c->wanted_ms = now_ms;
    hashmap_insert(&e->channels, &c->node, hash_mix(hash_bytes(&e->key, c->name)));
    list_add_before(&e->silent, &c->link);
    e->tried_ms = INT64_MIN; /* at once */
    return ST_OK;
}

enum status
ear_want(struct ear *e, const struct store_queue *where, int64_t now_ms)
{
    enum status st = ST_NO_MEMORY;
    struct channel *c;
    struct buf name;

    buf_init(&name, e->channels.mem);
    key_of_queue(&name, where);
    buf_str(&name, KEY_CHANNEL);
    if (!name.failed) {
        c = find_channel(e, buf_view(&name));
        st = ST_OK;
        if (c == NULL) {
            st = add_channel(e, buf_view(&name), where, now_ms);
        } else {
            c->wanted_ms = now_ms;
            list_remove(&c->link);
            list_add_before(c->spoken ? &e->spoken : &e->silent, &c->link);
        }
    }
    buf_fini(&name);
    return st;
}

static void
be_silent(struct ear *e, struct channel *c)
{
    c->spoken = false;
    list_remove(&c->link);
    list_add_before(&e->silent, &c->link);
}

/* ---------------------------------------------------------------------- nodes */

/* All channels there have to be subscribed again. */
static void
give_up_node(struct ear *e, uint16_t node)
{
    struct hashnode *at = NULL;

    link_close(&e->nodes[node].link);
    while ((at = hashmap_walk(&e->channels, at)) != NULL) {
        struct channel *c = container_of(at, struct channel, node);

        if (c->spoken && map_find(&e->cluster->map, c->slot) == node)
            be_silent(e, c);
    }
}

static struct ear_node *
node_of(struct ear *e, uint16_t node, int64_t now_ms)
{
    struct ear_node *n;
    struct link_address address;
    struct reason unused;

    if (node >= EAR_NODES)
        return NULL;
    n = &e->nodes[node];
    if (link_is_open(&n->link))
        return n;
    if (n->failed_ms == now_ms)
        return NULL; /* once a round is enough */
    address = map_address(&e->cluster->map, node);
    if (link_open(&n->link, &e->cluster->config.link, &address, &unused) != ST_OK) {
        n->failed_ms = now_ms;
        return NULL;
    }
    n->heard_ms = now_ms;
    n->asked = false;
    return n;
}

static bool
say(struct ear *e, uint16_t node, int64_t now_ms, const char *word, struct bytes name)
{
    const struct bytes words[] = {bytes_str(word), name};
    struct ear_node *n = node_of(e, node, now_ms);

    if (n == NULL)
        return false;
    if (link_add(&n->link, words, bytes_present(name) ? 2 : 1, NULL, BYTES_NONE) ==
            ST_OK &&
        link_flush(&n->link))
        return true;
    give_up_node(e, node);
    return false;
}

/* ---------------------------------------------------------------------- tending */

static void
forget(struct ear *e, struct channel *c, int64_t now_ms)
{
    const uint16_t node = map_find(&e->cluster->map, c->slot);

    if (c->spoken && node < EAR_NODES && link_is_open(&e->nodes[node].link))
        (void)say(e, node, now_ms, "SUNSUBSCRIBE", c->name);
    list_remove(&c->link);
    hashmap_remove(&e->channels, &c->node);
    mem_free(e->channels.mem, c);
}

/* The list's first ones that nobody wants any more. */
static void
forget_old(struct ear *e, struct list *list, int64_t now_ms)
{
    while (!list_empty(list)) {
        struct channel *c = container_of(list->next, struct channel, link);

        if (c->wanted_ms + KEPT_MS > now_ms)
            return;
        forget(e, c, now_ms);
    }
}

static void
subscribe_silent(struct ear *e, int64_t now_ms)
{
    struct list tried, *link;

    list_init(&tried);
    e->tried_ms = now_ms;
    while ((link = list_pop(&e->silent)) != NULL) {
        struct channel *c = container_of(link, struct channel, link);
        const uint16_t node = map_find(&e->cluster->map, c->slot);

        list_add_before(&tried, &c->link);
        if (node != MAP_NOWHERE)
            (void)say(e, node, now_ms, "SSUBSCRIBE", c->name);
    }
    /* Whoever is heard from moves on to the others. */
    while ((link = list_pop(&tried)) != NULL)
        list_add_before(&e->silent, link);
}

/* A node that has said nothing for long is asked; one that does not answer is given up. */
static void
look_after_nodes(struct ear *e, int64_t now_ms)
{
    for (uint16_t i = 0; i < EAR_NODES; i++) {
        struct ear_node *n = &e->nodes[i];

        if (!link_is_open(&n->link) || n->heard_ms + SILENCE_MS > now_ms)
            continue;
        if (n->asked) {
            give_up_node(e, i);
            continue;
        }
        n->asked = say(e, i, now_ms, "PING", BYTES_NONE);
        n->heard_ms = now_ms; /* from here on it has as long to answer */
    }
}

/* The map has forgotten its places. */
static void
begin_anew(struct ear *e)
{
    for (uint16_t i = 0; i < EAR_NODES; i++)
        if (link_is_open(&e->nodes[i].link))
            give_up_node(e, i);
    while (!list_empty(&e->spoken))
        be_silent(e, container_of(e->spoken.next, struct channel, link));
    e->era = map_era(&e->cluster->map);
}

int64_t
ear_tend(struct ear *e, int64_t now_ms)
{
    if (e->era != map_era(&e->cluster->map))
        begin_anew(e);
    forget_old(e, &e->spoken, now_ms);
    if (list_empty(&e->silent) && list_empty(&e->spoken))
        return INT64_MAX;
    look_after_nodes(e, now_ms);
    if (!list_empty(&e->silent) &&
        (e->tried_ms == INT64_MIN || e->tried_ms + TRY_MS <= now_ms)) {
        forget_old(e, &e->silent, now_ms);
        subscribe_silent(e, now_ms);
    }
    return now_ms + TRY_MS;
}

/* ---------------------------------------------------------------------- listening */

size_t
ear_poll(const struct ear *e, struct pollfd *out, uint16_t *nodes, size_t most)
{
    size_t count = 0;

    for (uint16_t i = 0; i < EAR_NODES && count < most; i++) {
        if (!link_is_open(&e->nodes[i].link))
            continue;
        out[count] =
            (struct pollfd){.fd = e->nodes[i].link.context->fd, .events = POLLIN};
        nodes[count++] = i;
    }
    return count;
}

static struct bytes
word(const redisReply *reply, size_t i)
{
    const redisReply *item = reply->type == REDIS_REPLY_ARRAY && i < reply->elements
                                 ? reply->element[i]
                                 : NULL;

    return item != NULL && item->type == REDIS_REPLY_STRING
               ? bytes_of(item->str, (size_t)item->len)
               : BYTES_NONE;
}

static void
understand(struct ear *e, const redisReply *reply)
{
    struct bytes kind = word(reply, 0), name = word(reply, 1);
    struct channel *c = bytes_present(name) ? find_channel(e, name) : NULL;
    struct reason unused;
    struct cluster_client *client;

    if (reply->type == REDIS_REPLY_ERROR) { /* most of all MOVED: the map is old */
        client = cluster_take(e->cluster);
        if (client != NULL) {
            (void)cluster_refresh(client, &unused);
            cluster_give(client);
        }
    } else if (c == NULL) {
        return;
    } else if (bytes_equal_str(kind, "smessage")) {
        e->heard(e->arg, &c->where, bytes_equal_str(word(reply, 2), "gone"));
    } else if (bytes_equal_str(kind, "ssubscribe") && !c->spoken) {
        c->spoken = true;
        list_remove(&c->link);
        list_add_before(&e->spoken, &c->link);
        e->heard(e->arg, &c->where, false); /* before it was heard of nothing */
    } else if (bytes_equal_str(kind, "sunsubscribe")) {
        be_silent(e, c);
    }
}

void
ear_read(struct ear *e, uint16_t node, int64_t now_ms)
{
    struct ear_node *n = &e->nodes[node];
    redisReply *reply;
    bool more; /* comes in the next round */

    n->heard_ms = now_ms;
    n->asked = false;
    if (!link_fill(&n->link, &more)) {
        give_up_node(e, node);
        return;
    }
    while (link_is_open(&n->link) && (reply = link_parsed(&n->link)) != NULL) {
        struct hiredis_library *library = n->link.library;

        understand(e, reply);
        library->free_reply(reply);
    }
}

/* ---------------------------------------------------------------------- life */

void
ear_init(struct ear *e, struct cluster *cluster, const struct hash_key *key)
{
    *e = (struct ear){.cluster = cluster, .key = *key, .tried_ms = INT64_MIN};
    hashmap_init(&e->channels, cluster->config.mem);
    list_init(&e->silent);
    list_init(&e->spoken);
}

void
ear_fini(struct ear *e)
{
    struct hashnode *at = hashmap_walk(&e->channels, NULL);

    for (size_t i = 0; i < EAR_NODES; i++)
        if (link_is_open(&e->nodes[i].link))
            link_close(&e->nodes[i].link);
    while (at != NULL) {
        struct hashnode *next = hashmap_walk(&e->channels, at);

        hashmap_remove(&e->channels, at);
        mem_free(e->channels.mem, container_of(at, struct channel, node));
        at = next;
    }
    hashmap_fini(&e->channels);
}
