#include "notify/hosts.h"

#include <string.h>

/* How long what is put off is away: the estimate is kept within. */
enum { AWAY_LEAST_MS = 50, AWAY_MOST_MS = 10000 };

static bool
has_place(const struct hashnode *node, const void *key)
{
    return strcmp(container_of(node, const struct host, node)->place, key) == 0;
}

void
hosts_init(struct hosts *h, struct mem *mem, struct hash_key key, size_t workers,
           int64_t slow_ms)
{
    *h = (struct hosts){.mem = mem, .key = key, .workers = workers, .slow_ms = slow_ms};
    hashmap_init(&h->map, mem);
    list_init(&h->lined);
    list_init(&h->idle);
}

static void
set_pace(struct hosts *h, struct host *host, enum pace pace)
{
    h->by_pace[host->pace] -= host->running;
    h->by_pace[pace] += host->running;
    if (host->pace == HOST_SLOW)
        counter_take(&h->slow, 1);
    if (pace == HOST_SLOW)
        counter_add(&h->slow, 1);
    host->pace = pace;
}

static void
forget_host(struct hosts *h, struct host *host)
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
        forget_host(h, container_of(h->idle.next, struct host, link));
    ENSURE(h->map.count == 0);
    hashmap_fini(&h->map);
}

static struct host *
add_host(struct hosts *h, const char *place, uint64_t hash)
{
    size_t room = strlen(place) + 1;
    struct host *host;

    if (hashmap_reserve(&h->map, 1) != ST_OK)
        return NULL;
    host = mem_calloc(h->mem, 1, sizeof(*host) + room);
    if (host == NULL)
        return NULL;
    memcpy(host->place, place, room);
    list_init(&host->line);
    hashmap_insert(&h->map, &host->node, hash);
    return host;
}

struct host *
hosts_find(struct hosts *h, const char *place)
{
    uint64_t hash = hash_bytes(&h->key, bytes_str(place));
    struct hashnode *node = hashmap_find(&h->map, hash, has_place, place);
    struct host *host;

    if (node == NULL)
        return add_host(h, place, hash);
    host = container_of(node, struct host, node);
    if (host->waiting == 0 && host->running == 0) {
        list_remove(&host->link);
        h->idle_count--;
    }
    if (host->away > 0)
        host->away--; /* it is likely to be one of them */
    return host;
}

void
host_leave(struct hosts *h, struct host *host)
{
    if (host->waiting > 0 || host->running > 0)
        return;
    list_add_before(&h->idle, &host->link);
    h->idle_count++;
    if (h->idle_count > HOSTS_REMEMBERED)
        forget_host(h, container_of(h->idle.next, struct host, link));
}

/* ------------------------------------------------------------------ transfers */

/* Half of them, and at least one. */
static size_t
half(const struct hosts *h)
{
    return (h->workers + 1) / 2;
}

static bool
has_slot(const struct hosts *h, const struct host *host)
{
    size_t unproven = h->by_pace[HOST_SLOW] + h->by_pace[HOST_NEW];

    return h->running < h->workers && host->running < half(h) &&
           (host->pace == HOST_QUICK || unproven < h->workers - h->workers / 4) &&
           (host->pace != HOST_SLOW || h->by_pace[HOST_SLOW] < half(h));
}

bool
host_has_room(const struct hosts *h, const struct host *host)
{
    return host->waiting == 0 && has_slot(h, host);
}

void
host_begin(struct hosts *h, struct host *host)
{
    host->running++;
    h->running++;
    h->by_pace[host->pace]++;
}

void
host_end(struct hosts *h, struct host *host, int64_t took_ms, bool heard)
{
    host->running--;
    h->running--;
    h->by_pace[host->pace]--;
    host->typical_ms = (3 * host->typical_ms + took_ms) / 4;
    set_pace(h, host, heard && took_ms < h->slow_ms ? HOST_QUICK : HOST_SLOW);
    host_leave(h, host);
}

/* ------------------------------------------------------------------ lines */

bool
host_wait(struct hosts *h, struct host *host, struct list *link, int64_t *wait_ms)
{
    /* Until those in front of it have been served, if they take as long as others did. */
    const int64_t rounds = (int64_t)((host->waiting + host->away) / half(h)) + 1;

    if (host->waiting == LINE_MOST || h->waiting == LINES_MOST) {
        *wait_ms = host->typical_ms < AWAY_MOST_MS / rounds ? host->typical_ms * rounds
                                                            : AWAY_MOST_MS;
        if (*wait_ms < AWAY_LEAST_MS)
            *wait_ms = AWAY_LEAST_MS;
        host->away++;
        host_leave(h, host);
        return false;
    }
    if (host->waiting == 0)
        list_add_before(&h->lined, &host->link);
    list_add_before(&host->line, link);
    host->waiting++;
    h->waiting++;
    return true;
}

struct list *
hosts_next(struct hosts *h, bool drain, struct host **host)
{
    for (struct list *at = h->lined.next; at != &h->lined; at = at->next) {
        struct list *first;

        *host = container_of(at, struct host, link);
        if (!drain && !has_slot(h, *host))
            continue;
        /* The host goes behind the others. */
        first = list_pop(&(*host)->line);
        (*host)->waiting--;
        h->waiting--;
        list_remove(&(*host)->link);
        if ((*host)->waiting > 0)
            list_add_before(&h->lined, &(*host)->link);
        return first;
    }
    return NULL;
}
