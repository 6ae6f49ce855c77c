#include "claimd/testapi/history.h"

#include "claimd/base/hash.h"
#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"
#include "claimd/ds/hashmap.h"
#include "claimd/store/waitqueue.h"

#include <string.h>

/* An entry with its texts. */
struct stored_entry {
    struct list link;
    size_t bytes;
    struct history_entry entry;
    char texts[];
};

struct history {
    struct lock lock;
    struct mem *mem;
    struct list all; /* struct stored_entry, oldest first */
    size_t count, bytes;
    uint64_t last, lost;
    uint64_t last_of[HISTORY_EVENTS];
    struct list listeners;
};

const char *const history_event_names[] = {
#define HISTORY_NAME(name, text) text,
    HISTORY_LIST(HISTORY_NAME)
#undef HISTORY_NAME
};

enum status
history_new(struct mem *mem, struct history **out)
{
    struct history *h = mem_calloc(mem, 1, sizeof(*h));

    if (h == NULL)
        return ST_NO_MEMORY;
    h->mem = mem;
    lock_init(&h->lock);
    list_init(&h->all);
    list_init(&h->listeners);
    *out = h;
    return ST_OK;
}

static void
entry_drop_oldest(struct history *h)
{
    struct stored_entry *k = container_of(list_pop(&h->all), struct stored_entry, link);

    h->count--;
    h->bytes -= k->bytes;
    h->lost++;
    mem_free(h->mem, k);
}

void
history_free(struct history *h)
{
    if (h == NULL)
        return;
    ENSURE(list_empty(&h->listeners));
    while (h->count > 0)
        entry_drop_oldest(h);
    lock_fini(&h->lock);
    mem_free(h->mem, h);
}

static struct stored_entry *
entry_store(struct history *h, const struct history_entry *entry)
{
    enum { TEXTS = 8 };
    struct history_entry copy = *entry;
    struct bytes *const texts[TEXTS] = {
        &copy.queue.project, &copy.queue.name, &copy.target.project, &copy.target.name,
        &copy.client,        &copy.claim,      &copy.text,           &copy.ids};
    struct stored_entry *k;
    size_t bytes = sizeof(*k);
    char *at;

    for (size_t i = 0; i < TEXTS; i++)
        bytes += texts[i]->len;
    k = mem_alloc(h->mem, bytes);
    if (k == NULL)
        return NULL;
    at = k->texts;
    for (size_t i = 0; i < TEXTS; i++)
        if (bytes_present(*texts[i]))
            *texts[i] = bytes_copy_to(&at, *texts[i]);
    k->bytes = bytes;
    k->entry = copy;
    return k;
}

void
history_add(struct history *h, const struct history_entry *entry)
{
    struct wakeups wakeups = {.count = 0};
    struct stored_entry *k;

    lock_acquire(&h->lock);
    k = entry_store(h, entry);
    h->last++;
    h->last_of[entry->event] = h->last;
    if (k == NULL) {
        h->lost++;
    } else {
        k->entry.number = h->last;
        list_add_before(&h->all, &k->link);
        h->count++;
        h->bytes += k->bytes;
    }
    while (h->count > HISTORY_MOST || h->bytes > HISTORY_BYTES)
        entry_drop_oldest(h);
    for (struct list *at = h->listeners.next; at != &h->listeners; at = at->next) {
        struct store_listener *w = container_of(at, struct store_listener, link);

        wakeups_defer(&wakeups, w->notify(w, STORE_READY));
    }
    lock_release(&h->lock);
    wakeups_fire(&wakeups);
}

/* Reads a counter under the lock. */
static uint64_t
counter_read_locked(struct history *h, const uint64_t *counter)
{
    uint64_t value;

    lock_acquire(&h->lock);
    value = *counter;
    lock_release(&h->lock);
    return value;
}

uint64_t
history_last(struct history *h)
{
    return counter_read_locked(h, &h->last);
}

uint64_t
history_lost(struct history *h)
{
    return counter_read_locked(h, &h->lost);
}

uint64_t
history_last_of(struct history *h, enum history_event first, enum history_event last)
{
    uint64_t found = 0;

    lock_acquire(&h->lock);
    for (size_t i = first; i <= (size_t)last; i++)
        if (found < h->last_of[i])
            found = h->last_of[i];
    lock_release(&h->lock);
    return found;
}

static struct stored_entry *
entry_of_link(struct list *link)
{
    return container_of(link, struct stored_entry, link);
}

uint64_t
history_missing(struct history *h, uint64_t since)
{
    uint64_t first;

    lock_acquire(&h->lock);
    first = list_empty(&h->all) ? h->last + 1 : entry_of_link(h->all.next)->entry.number;
    lock_release(&h->lock);
    return first > since + 1 ? first - since - 1 : 0;
}

void
history_read(struct history *h, uint64_t since, history_visit_fn *visit, void *ctx)
{
    struct list *at;

    lock_acquire(&h->lock);
    at = h->all.prev; /* from the end, because callers mostly want the latest entries */
    while (at != &h->all && entry_of_link(at)->entry.number > since)
        at = at->prev;
    for (at = at->next; at != &h->all; at = at->next)
        if (!visit(ctx, &entry_of_link(at)->entry))
            break;
    lock_release(&h->lock);
}

void
history_watch(struct history *h, struct store_listener *listener)
{
    lock_acquire(&h->lock);
    list_add_before(&h->listeners, &listener->link);
    lock_release(&h->lock);
}

void
history_unwatch(struct history *h, struct store_listener *listener)
{
    lock_acquire(&h->lock);
    list_remove(&listener->link);
    lock_release(&h->lock);
}

/* ------------------------------------------------------------------ leaks */

/* Entries that leak_look_up() reads under the lock at a time. */
enum { READ_SLICE = 256 };

struct suspect {
    struct hashnode node;
    struct leak *leak; /* borrowed */
    bool shown;        /* after it was posted or moved */
    struct bytes claimed_by;
};

struct lookup {
    struct arena *arena;
    struct hashmap suspects; /* by id */
    uint64_t last;           /* number of the last entry that was read */
    size_t left;             /* entries left in the slice */
    enum status status;
};

const char *const leak_kind_names[] = {
#define LEAK_NAME(name, text) text,
    LEAK_LIST(LEAK_NAME)
#undef LEAK_NAME
};

const char *const leak_end_names[] = {
#define LEAK_END_NAME(name, text) text,
    LEAK_END_LIST(LEAK_END_NAME)
#undef LEAK_END_NAME
};

/* The server makes the ids, so clients cannot cause collisions. */
static uint64_t
id_hash(struct bytes id)
{
    static const struct hash_key no_secret;

    return hash_bytes(&no_secret, id);
}

static bool
suspect_has_id(const struct hashnode *node, const void *key)
{
    const struct suspect *s = container_of(node, const struct suspect, node);

    return bytes_equal(store_id_bytes(&s->leak->id), *(const struct bytes *)key);
}

static struct suspect *
suspect_find(const struct lookup *l, struct bytes id)
{
    struct hashnode *node = hashmap_find(&l->suspects, id_hash(id), suspect_has_id, &id);

    return node == NULL ? NULL : container_of(node, struct suspect, node);
}

static enum status
lookup_add_suspects(struct lookup *l, struct leak *leaks, size_t count)
{
    struct suspect *all = arena_array(l->arena, count, sizeof(*all));
    enum status st = all == NULL ? ST_NO_MEMORY : hashmap_reserve(&l->suspects, count);

    for (size_t i = 0; i < count && st == ST_OK; i++) {
        struct bytes id = store_id_bytes(&leaks[i].id);

        if (suspect_find(l, id) != NULL)
            continue;
        all[i] = (struct suspect){.leak = &leaks[i]};
        hashmap_insert(&l->suspects, &all[i].node, id_hash(id));
    }
    return st;
}

static void
lookup_keep_text(struct lookup *l, struct bytes text, struct bytes *out)
{
    if (!bytes_present(text) || (bytes_present(*out) && bytes_equal(*out, text)))
        return;
    *out = arena_copy(l->arena, text);
    if (!bytes_present(*out))
        l->status = ST_NO_MEMORY;
}

static void
message_apply_entry(struct lookup *l, struct suspect *s, const struct history_entry *e)
{
    struct leak *leak = s->leak;

    if (e->event == HISTORY_SHOWN)
        s->shown = true;
    else if (e->event == HISTORY_CLAIMED)
        lookup_keep_text(l, e->client, &s->claimed_by);
    else
        leak->at_ms = e->at_ms;
    if (e->event == HISTORY_POSTED)
        lookup_keep_text(l, e->client, &leak->client);
    if (e->event != HISTORY_DEAD_LETTER)
        return;
    leak->kind = LEAK_DEAD_LETTER;
    s->shown = false;
    lookup_keep_text(l, e->queue.name, &leak->from);
}

static void
lookup_apply_entry(struct lookup *l, const struct history_entry *e)
{
    struct suspect *s = e->event == HISTORY_CLAIMED ? suspect_find(l, e->claim) : NULL;
    struct bytes ids = e->ids;

    if (s != NULL && s->leak->kind == LEAK_CLAIM) {
        s->leak->at_ms = e->at_ms;
        lookup_keep_text(l, e->client, &s->leak->client);
    }
    while (ids.len > 0) {
        s = suspect_find(l, bytes_cut(&ids, ' '));
        if (s != NULL && s->leak->kind != LEAK_CLAIM)
            message_apply_entry(l, s, e);
    }
}

static bool
lookup_read_entry(void *ctx, const struct history_entry *e)
{
    struct lookup *l = ctx;

    l->last = e->number;
    if (e->event == HISTORY_POSTED || e->event == HISTORY_SHOWN ||
        e->event == HISTORY_CLAIMED || e->event == HISTORY_DEAD_LETTER)
        lookup_apply_entry(l, e);
    return --l->left > 0 && l->status == ST_OK;
}

enum status
leak_look_up(struct history *h, struct arena *arena, struct leak *suspects, size_t count)
{
    struct lookup l = {.arena = arena};
    struct hashnode *node = NULL;

    if (count == 0)
        return ST_OK;
    hashmap_init(&l.suspects, arena->mem);
    l.status = lookup_add_suspects(&l, suspects, count);
    while (l.status == ST_OK && l.left == 0) {
        l.left = READ_SLICE;
        history_read(h, l.last, lookup_read_entry, &l);
    }
    while (l.status == ST_OK && (node = hashmap_walk(&l.suspects, node)) != NULL) {
        struct suspect *s = container_of(node, struct suspect, node);

        if (s->shown)
            s->leak->kind = LEAK_NONE;
        else if (s->leak->kind == LEAK_DEAD_LETTER)
            s->leak->client = s->claimed_by;
    }
    hashmap_fini(&l.suspects);
    return l.status;
}
