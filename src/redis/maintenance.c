/*
 * maintenance: a thread of a store on Redis for work that no request does. It wakes
 * waiters (waiting.h), listens for changes by other processes, renews the leases of
 * deliveries (subscription_ops.h) and refreshes the map of the slots.
 *
 * Each queue has a channel in the slot of its keys (sharded pub/sub of Redis 7). Scripts
 * publish to it when messages become ready while a process listens, and when the queue is
 * deleted (lib/queue.lua). The thread has a connection to each node whose channels it
 * needs. If the connection breaks or the slot moves, the thread subscribes again.
 * Notifications in between are lost, so claimd also wakes waiters from time to time.
 *
 *     channel:   unsubscribed --SSUBSCRIBE confirmed--> subscribed
 *                     ^                                   |    |
 *                     +---- node dropped, slot moved -----+    +--no waiter for KEPT_MS
 *                                                              --> removed
 *
 * With a test clock there is no such thread, and housekeeping wakes the waiters.
 *
 *   Threads  maintenance_start() and maintenance_end(): the one that opens the store. The
 *            rest: this thread
 *   Blocking opening a connection, and the scripts of delivery_leases_renew(). Reading
 *   never blocks
 *   Memory   a channel for each queue with waiters, until half a minute after the last
 *            one
 */
#include "claimd/base/invariant.h"
#include "claimd/base/thread.h"
#include "claimd/ds/hashmap.h"
#include "redis/call.h"
#include "redis/delivery_ops.h"
#include "redis/waiting.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    NODES = 256, /* maximum number of nodes that a process listens to */
    SLEEP_MOST_MS = 10000,
    MAP_MS = 30000,    /* maximum age of the map */
    RETRY_MS = 1000,   /* time between two attempts to subscribe */
    KEPT_MS = 30000,   /* time from the last waiter to the removal of a channel */
    SILENCE_MS = 10000 /* silence of a node until a PING, and until it is dropped */
};

/* A connection that only listens. */
struct pubsub_node {
    struct link link;
    int64_t received_ms; /* the last message, or the time of the PING */
    bool ping_sent;
    int64_t failed_ms; /* the last failure to connect */
};

struct channel {
    struct hashnode node; /* by the name */
    struct list link;
    struct store_queue where;
    int64_t wanted_ms; /* the last waiter */
    uint16_t slot;
    bool subscribed; /* the node has confirmed it */
    struct bytes name;
    char text[]; /* of the name and the queue */
};

struct maintenance {
    struct redis_store *store; /* borrowed */
    int64_t mapped_ms;         /* when the map was refreshed */
    _Atomic bool closing;
    int event_fd;
    pthread_t thread;
    struct hashmap channels;
    struct list unsubscribed, subscribed; /* channels, least recently wanted first */
    unsigned generation;                  /* of the indexes of nodes */
    int64_t tried_ms; /* the last attempt to subscribe; INT64_MIN: try now */
    struct pubsub_node nodes[NODES]; /* by index in the map */
};

static int64_t
now_ms(void)
{
    return clock_stopwatch_ns() / 1000000;
}

static int64_t
sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void
refresh_map(struct cluster *cluster)
{
    struct cluster_client *client = cluster_client_take(cluster);
    struct reason unused;

    if (client == NULL)
        return;
    (void)cluster_refresh(client, &unused);
    cluster_client_return(client);
}

/* ---------------------------------------------------------------------- channels */

static bool
channel_has_name(const struct hashnode *node, const void *key)
{
    return bytes_equal(container_of(node, struct channel, node)->name,
                       *(const struct bytes *)key);
}

static uint64_t
channel_hash(const struct maintenance *m, struct bytes name)
{
    return hash_mix(hash_bytes(&m->store->hash_key, name));
}

static struct channel *
channel_find(const struct maintenance *m, struct bytes name)
{
    struct hashnode *node =
        hashmap_find(&m->channels, channel_hash(m, name), channel_has_name, &name);

    return node == NULL ? NULL : container_of(node, struct channel, node);
}

/* NULL: no memory. */
static struct channel *
channel_add(struct maintenance *m, struct bytes name, const struct store_queue *where)
{
    struct channel *c;
    char *to;

    if (hashmap_reserve(&m->channels, 1) != ST_OK)
        return NULL;
    c = mem_calloc(m->channels.mem, 1,
                   sizeof(*c) + name.len + where->project.len + where->name.len);
    if (c == NULL)
        return NULL;
    to = c->text;
    c->name = bytes_copy_to(&to, name);
    c->where = *where;
    c->where.project = bytes_copy_to(&to, where->project);
    c->where.name = bytes_copy_to(&to, where->name);
    c->slot = slot_of(name);
    hashmap_insert(&m->channels, &c->node, channel_hash(m, c->name));
    m->tried_ms = INT64_MIN;
    return c;
}

static void
channel_move(struct maintenance *m, struct channel *c, bool subscribed)
{
    c->subscribed = subscribed;
    if (list_linked(&c->link))
        list_remove(&c->link);
    list_add_before(subscribed ? &m->subscribed : &m->unsubscribed, &c->link);
}

/* Adds channels for queues with new waiters. Without memory, the timer of the wait queue
 * wakes the waiters. */
static void
add_new_channels(struct maintenance *m, int64_t now)
{
    struct store_queue where;
    struct buf text, name;

    buf_init(&text, m->channels.mem);
    buf_init(&name, m->channels.mem);
    while (waiting_take_new(m->store, &text, &where)) {
        struct channel *c;

        buf_reset(&name, SIZE_MAX);
        key_of_queue(&name, &where);
        buf_str(&name, KEY_CHANNEL);
        if (name.failed)
            continue;
        c = channel_find(m, buf_view(&name));
        if (c == NULL)
            c = channel_add(m, buf_view(&name), &where);
        if (c == NULL)
            continue;
        c->wanted_ms = now;
        channel_move(m, c, c->subscribed);
    }
    buf_fini(&name);
    buf_fini(&text);
}

/* ---------------------------------------------------------------------- nodes */

/* Closes the connection to a node. Its channels become unsubscribed. */
static void
drop_node(struct maintenance *m, uint16_t node)
{
    struct hashnode *at = NULL;

    ENSURE(node < NODES);
    link_close(&m->nodes[node].link);
    while ((at = hashmap_walk(&m->channels, at)) != NULL) {
        struct channel *c = container_of(at, struct channel, node);

        if (c->subscribed && map_find(&m->store->cluster.map, c->slot) == node)
            channel_move(m, c, false);
    }
}

/* Returns the connection to a node, and opens it if necessary. NULL: it cannot be
 * opened. */
static struct pubsub_node *
connect_node(struct maintenance *m, uint16_t node, int64_t now)
{
    struct cluster *cluster = &m->store->cluster;
    struct pubsub_node *n;
    struct link_address address;
    struct reason unused;

    if (node >= NODES)
        return NULL;
    n = &m->nodes[node];
    if (link_is_open(&n->link))
        return n;
    if (n->failed_ms == now)
        return NULL; /* one attempt in each round */
    address = map_address(&cluster->map, node);
    if (link_open(&n->link, &cluster->config.link, &address, &unused) != ST_OK) {
        n->failed_ms = now;
        return NULL;
    }
    n->received_ms = now;
    n->ping_sent = false;
    return n;
}

static bool
node_send(struct maintenance *m, uint16_t node, int64_t now, const char *word,
          struct bytes name)
{
    const struct bytes words[] = {bytes_str(word), name};
    struct pubsub_node *n = connect_node(m, node, now);

    if (n == NULL)
        return false;
    if (link_append(&n->link, words, bytes_present(name) ? 2 : 1, NULL, BYTES_NONE) ==
            ST_OK &&
        link_flush(&n->link))
        return true;
    drop_node(m, node);
    return false;
}

/* Removes the channels of a list that no waiter has wanted for KEPT_MS. */
static void
remove_old_channels(struct maintenance *m, struct list *list, int64_t now)
{
    while (!list_empty(list)) {
        struct channel *c = container_of(list->next, struct channel, link);
        const uint16_t node = map_find(&m->store->cluster.map, c->slot);

        if (c->wanted_ms + KEPT_MS > now)
            return;
        if (c->subscribed && node < NODES && link_is_open(&m->nodes[node].link))
            (void)node_send(m, node, now, "SUNSUBSCRIBE", c->name);
        list_remove(&c->link);
        hashmap_remove(&m->channels, &c->node);
        mem_free(m->channels.mem, c);
    }
}

static void
subscribe_all(struct maintenance *m, int64_t now)
{
    struct list tried, *link;

    list_init(&tried);
    m->tried_ms = now;
    while ((link = list_pop(&m->unsubscribed)) != NULL) {
        struct channel *c = container_of(link, struct channel, link);
        const uint16_t node = map_find(&m->store->cluster.map, c->slot);

        list_add_before(&tried, &c->link);
        if (node != MAP_NOWHERE)
            (void)node_send(m, node, now, "SSUBSCRIBE", c->name);
    }
    list_move(&m->unsubscribed, &tried); /* until the nodes confirm */
}

static void
ping_silent_nodes(struct maintenance *m, int64_t now)
{
    for (uint16_t i = 0; i < NODES; i++) {
        struct pubsub_node *n = &m->nodes[i];

        if (!link_is_open(&n->link) || n->received_ms + SILENCE_MS > now)
            continue;
        if (n->ping_sent) {
            drop_node(m, i);
            continue;
        }
        n->ping_sent = node_send(m, i, now, "PING", BYTES_NONE);
        n->received_ms = now; /* the node has SILENCE_MS to respond */
    }
}

/* Subscribes to unsubscribed channels, removes old ones and pings silent nodes. Returns
 * when to do so again. */
static int64_t
maintain_channels(struct maintenance *m, int64_t now)
{
    const unsigned generation = map_generation(&m->store->cluster.map);

    if (m->generation != generation) { /* the indexes of nodes have changed */
        for (uint16_t i = 0; i < NODES; i++)
            if (link_is_open(&m->nodes[i].link))
                drop_node(m, i);
        while (!list_empty(&m->subscribed))
            channel_move(m, container_of(m->subscribed.next, struct channel, link),
                         false);
        m->generation = generation;
    }
    remove_old_channels(m, &m->subscribed, now);
    if (list_empty(&m->unsubscribed) && list_empty(&m->subscribed))
        return INT64_MAX;
    ping_silent_nodes(m, now);
    if (!list_empty(&m->unsubscribed) &&
        (m->tried_ms == INT64_MIN || m->tried_ms + RETRY_MS <= now)) {
        remove_old_channels(m, &m->unsubscribed, now);
        subscribe_all(m, now);
    }
    return now + RETRY_MS;
}

/* ---------------------------------------------------------------------- notifications */

static void
handle_notification(struct maintenance *m, const redisReply *reply)
{
    struct bytes kind = reply_text(reply_word(reply, 0)),
                 name = reply_text(reply_word(reply, 1));
    struct channel *c = bytes_present(name) ? channel_find(m, name) : NULL;

    if (reply->type == REDIS_REPLY_ERROR) { /* usually MOVED: the map is old */
        refresh_map(&m->store->cluster);
    } else if (c == NULL) {
        return;
    } else if (bytes_equal_str(kind, "smessage")) {
        waiting_notify(m->store, &c->where,
                       bytes_equal_str(reply_text(reply_word(reply, 2)), "gone"));
    } else if (bytes_equal_str(kind, "ssubscribe") && !c->subscribed) {
        channel_move(m, c, true);
        waiting_notify(m->store, &c->where, false); /* earlier notifications were lost */
    } else if (bytes_equal_str(kind, "sunsubscribe")) {
        channel_move(m, c, false);
    }
}

static void
read_node(struct maintenance *m, uint16_t node)
{
    struct pubsub_node *n = &m->nodes[node];
    redisReply *reply;
    bool more; /* the next round reads it */

    n->received_ms = now_ms();
    n->ping_sent = false;
    if (!link_read(&n->link, &more)) {
        drop_node(m, node);
        return;
    }
    while (link_is_open(&n->link) && (reply = link_next_response(&n->link)) != NULL) {
        struct hiredis_library *library = n->link.library;

        handle_notification(m, reply);
        library->free_reply(reply);
    }
}

/* ---------------------------------------------------------------------- thread */

/* Does all work that is due. Returns when there is more. */
static int64_t
run_due(struct maintenance *m)
{
    struct cluster *cluster = &m->store->cluster;
    const int64_t now = now_ms();
    int64_t next;

    add_new_channels(m, now);
    next = sooner(waiting_wake_due(m->store, now), delivery_leases_renew(m->store));
    if (!cluster->map.single) {
        if (now - m->mapped_ms >= MAP_MS) {
            refresh_map(cluster);
            m->mapped_ms = now;
        }
        next = sooner(next, m->mapped_ms + MAP_MS);
    }
    return sooner(next, maintain_channels(m, now));
}

/* Sleeps until this time, or until a node has sent something or another thread wakes this
 * one. */
static void
sleep_until(struct maintenance *m, int64_t until)
{
    struct pollfd fds[NODES + 1] = {{.fd = m->event_fd, .events = POLLIN}};
    uint16_t nodes[NODES];
    nfds_t count = 0;
    int64_t wait_ms = SLEEP_MOST_MS;
    eventfd_t wakeups;

    for (uint16_t i = 0; i < NODES; i++)
        if (link_is_open(&m->nodes[i].link)) {
            nodes[count++] = i;
            fds[count] =
                (struct pollfd){.fd = m->nodes[i].link.context->fd, .events = POLLIN};
        }
    if (until != INT64_MAX)
        wait_ms = sooner(until - now_ms(), SLEEP_MOST_MS);
    if (poll(fds, count + 1, wait_ms < 0 ? 0 : (int)wait_ms) <= 0)
        return;
    if (fds[0].revents != 0)
        (void)eventfd_read(m->event_fd, &wakeups);
    for (nfds_t i = 0; i < count; i++)
        if (fds[i + 1].revents != 0)
            read_node(m, nodes[i]);
}

static void *
thread_main(void *arg)
{
    struct maintenance *m = arg;

    while (!atomic_load(&m->closing))
        sleep_until(m, run_due(m));
    return NULL;
}

static void
wake_thread(void *arg)
{
    (void)eventfd_write(((struct maintenance *)arg)->event_fd, 1);
}

static void
free_maintenance(struct maintenance *m)
{
    struct list *link;

    for (size_t i = 0; i < NODES; i++)
        link_close(&m->nodes[i].link);
    while ((link = list_pop(&m->subscribed)) != NULL ||
           (link = list_pop(&m->unsubscribed)) != NULL) {
        struct channel *c = container_of(link, struct channel, link);

        hashmap_remove(&m->channels, &c->node);
        mem_free(m->channels.mem, c);
    }
    ENSURE(m->channels.count == 0);
    hashmap_fini(&m->channels);
    if (m->event_fd >= 0)
        (void)close(m->event_fd);
    mem_free(m->store->config.mem, m);
}

enum status
maintenance_start(struct redis_store *s)
{
    struct maintenance *m = mem_calloc(s->config.mem, 1, sizeof(*m));
    enum status st;

    if (m == NULL)
        return ST_NO_MEMORY;
    m->store = s;
    m->mapped_ms = now_ms();
    m->tried_ms = INT64_MIN;
    hashmap_init(&m->channels, s->config.mem);
    list_init(&m->unsubscribed);
    list_init(&m->subscribed);
    m->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    waiting_set_maintenance(s, wake_thread, m);
    s->maintenance = m;
    st = m->event_fd < 0 ? ST_UNAVAILABLE : thread_start(&m->thread, thread_main, m);
    if (st != ST_OK) {
        s->maintenance = NULL;
        free_maintenance(m);
    }
    return st;
}

void
maintenance_end(struct maintenance *m)
{
    if (m == NULL)
        return;
    atomic_store(&m->closing, true);
    wake_thread(m);
    (void)pthread_join(m->thread, NULL);
    free_maintenance(m);
}
