#include "notify/hosts.h"
#include "claimd/base/sometimes.h"

#include <string.h>

/* Limits of the time for which a delivery is put off. */
enum { BACK_OFF_LEAST_MS = 50, BACK_OFF_MOST_MS = 10000 };

static bool
host_has_origin(const struct hashnode *node, const void *key)
{
    return strcmp(container_of(node, const struct host, node)->origin, key) == 0;
}

void
hosts_init(struct hosts *h, struct mem *mem, struct hash_key key, size_t workers,
           int64_t slow_ms)
{
    *h = (struct hosts){.mem = mem, .key = key, .workers = workers, .slow_ms = slow_ms};
    hashmap_init(&h->map, mem);
    list_init(&h->queued);
    list_init(&h->idle);
}

static void
set_pace(struct hosts *h, struct host *host, enum pace pace)
{
    h->by_pace[host->pace] -= host->running;
    h->by_pace[pace] += host->running;
    if (host->pace == HOST_SLOW)
        counter_subtract(&h->slow, 1);
    if (pace == HOST_SLOW)
        counter_add(&h->slow, 1);
    host->pace = pace;
}

static void
host_remove(struct hosts *h, struct host *host)
{
    list_remove(&host->link);
    h->idle_count--;
    set_pace(h, host, HOST_NEW);
    hashmap_remove(&h->map, &host->node);
    mem_free(h->mem, host);
}

void
hosts_fini(struct hosts *h)
{
    while (!list_empty(&h->idle))
        host_remove(h, container_of(h->idle.next, struct host, link));
    ENSURE(h->map.count == 0);
    hashmap_fini(&h->map);
}

static struct host *
host_add(struct hosts *h, const char *origin, uint64_t hash)
{
    size_t size = strlen(origin) + 1;
    struct host *host;

    if (hashmap_reserve(&h->map, 1) != ST_OK)
        return NULL;
    host = mem_calloc(h->mem, 1, sizeof(*host) + size);
    if (host == NULL)
        return NULL;
    memcpy(host->origin, origin, size);
    list_init(&host->queue);
    hashmap_insert(&h->map, &host->node, hash);
    return host;
}

struct host *
hosts_find(struct hosts *h, const char *origin)
{
    uint64_t hash = hash_bytes(&h->key, bytes_str(origin));
    struct hashnode *node = hashmap_find(&h->map, hash, host_has_origin, origin);
    struct host *host;

    if (node == NULL)
        return host_add(h, origin, hash);
    host = container_of(node, struct host, node);
    if (host->waiting == 0 && host->running == 0) {
        list_remove(&host->link);
        h->idle_count--;
    }
    if (host->backed_off > 0)
        host->backed_off--; /* this delivery is probably one of them */
    return host;
}

void
host_release(struct hosts *h, struct host *host)
{
    if (host->waiting > 0 || host->running > 0)
        return;
    list_add_before(&h->idle, &host->link);
    h->idle_count++;
    if (h->idle_count > HOSTS_REMEMBERED)
        host_remove(h, container_of(h->idle.next, struct host, link));
}

/* ------------------------------------------------------------------ transfers */

/* Half of the workers, at least one. */
static size_t
half_of_workers(const struct hosts *h)
{
    return (h->workers + 1) / 2;
}

static bool
host_may_send(const struct hosts *h, const struct host *host)
{
    size_t unproven = h->by_pace[HOST_SLOW] + h->by_pace[HOST_NEW];

    return h->running < h->workers && host->running < half_of_workers(h) &&
           (host->pace == HOST_QUICK || unproven < h->workers - h->workers / 4) &&
           (host->pace != HOST_SLOW || h->by_pace[HOST_SLOW] < half_of_workers(h));
}

bool
host_has_capacity(const struct hosts *h, const struct host *host)
{
    return host->waiting == 0 && host_may_send(h, host);
}

void
host_begin(struct hosts *h, struct host *host)
{
    host->running++;
    h->running++;
    h->by_pace[host->pace]++;
}

void
host_end(struct hosts *h, struct host *host, int64_t duration_ms, bool responded)
{
    ENSURE(host->running > 0 && h->running > 0);
    host->running--;
    h->running--;
    h->by_pace[host->pace]--;
    host->typical_ms = (3 * host->typical_ms + duration_ms) / 4;
    set_pace(h, host, responded && duration_ms < h->slow_ms ? HOST_QUICK : HOST_SLOW);
    host_release(h, host);
}

/* ------------------------------------------------------------------ queues */

bool
host_enqueue(struct hosts *h, struct host *host, struct list *link, int64_t *wait_ms)
{
    /* Until the deliveries before this one have been sent, if they take the typical
     * time. */
    const int64_t rounds =
        (int64_t)((host->waiting + host->backed_off) / half_of_workers(h)) + 1;

    if (host->waiting == HOST_QUEUE_MOST || h->waiting == QUEUED_MOST) {
        *wait_ms = host->typical_ms < BACK_OFF_MOST_MS / rounds
                       ? host->typical_ms * rounds
                       : BACK_OFF_MOST_MS;
        if (*wait_ms < BACK_OFF_LEAST_MS)
            *wait_ms = BACK_OFF_LEAST_MS;
        SOMETIMES(NOTIFY_HOST_FULL);
        host->backed_off++;
        host_release(h, host);
        return false;
    }
    SOMETIMES(NOTIFY_HOST_BUSY);
    if (host->waiting == 0)
        list_add_before(&h->queued, &host->link);
    list_add_before(&host->queue, link);
    host->waiting++;
    h->waiting++;
    return true;
}

struct list *
hosts_dequeue(struct hosts *h, bool drain, struct host **host)
{
    for (struct list *at = h->queued.next; at != &h->queued; at = at->next) {
        struct list *first;

        *host = container_of(at, struct host, link);
        if (!drain && !host_may_send(h, *host))
            continue;
        first = list_pop(&(*host)->queue);
        (*host)->waiting--;
        h->waiting--;
        list_remove(&(*host)->link);
        if ((*host)->waiting > 0) /* other hosts have their turn first */
            list_add_before(&h->queued, &(*host)->link);
        return first;
    }
    return NULL;
}
