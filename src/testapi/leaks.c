#include "claimd/testapi/leaks.h"

#include "claimd/base/lock.h"

#include <string.h>

/* A leak or a suspect, with its texts. */
struct kept_leak {
    struct list link;
    uint64_t number;
    bool settled; /* it has leaked; false: a suspect */
    struct leak leak;
    char texts[];
};

struct leaks {
    struct lock lock;
    struct mem *mem;
    struct list all; /* struct kept_leak, oldest first */
    size_t count;
    _Atomic size_t suspects;
    uint64_t last, left_out;
    bool expected; /* of `project`, or of all projects */
    bool expected_all;
    size_t project_len;
    char project[LEAKS_PROJECT_MAX];
};

enum status
leaks_new(struct mem *mem, struct leaks **out)
{
    struct leaks *l = mem_calloc(mem, 1, sizeof(*l));

    if (l == NULL)
        return ST_NO_MEMORY;
    l->mem = mem;
    lock_init(&l->lock);
    list_init(&l->all);
    *out = l;
    return ST_OK;
}

static struct kept_leak *
kept_of_link(struct list *link)
{
    return container_of(link, struct kept_leak, link);
}

static void
kept_free(struct leaks *l, struct kept_leak *k)
{
    if (!k->settled)
        l->suspects--;
    list_remove(&k->link);
    l->count--;
    mem_free(l->mem, k);
}

void
leaks_free(struct leaks *l)
{
    if (l == NULL)
        return;
    while (!list_empty(&l->all))
        kept_free(l, kept_of_link(l->all.next));
    lock_fini(&l->lock);
    mem_free(l->mem, l);
}

void
leaks_expect(struct leaks *l, struct leaks_expected expected)
{
    const struct bytes project = expected.project;

    lock_acquire(&l->lock);
    l->expected = expected.any && project.len <= sizeof(l->project);
    l->expected_all = !bytes_present(project);
    l->project_len = l->expected ? project.len : 0;
    if (l->project_len > 0)
        memcpy(l->project, project.data, l->project_len);
    lock_release(&l->lock);
}

/* ------------------------------------------------------------------ adding */

static struct kept_leak *
kept_copy(struct leaks *l, const struct leak *leak)
{
    enum { TEXTS = 4 };
    struct leak copy = *leak;
    struct bytes *const texts[TEXTS] = {&copy.queue.project, &copy.queue.name,
                                        &copy.client, &copy.from};
    struct kept_leak *k;
    size_t bytes = sizeof(*k);
    char *at;

    for (size_t i = 0; i < TEXTS; i++)
        bytes += texts[i]->len;
    k = mem_calloc(l->mem, 1, bytes);
    if (k == NULL)
        return NULL;
    at = k->texts;
    for (size_t i = 0; i < TEXTS; i++)
        if (bytes_present(*texts[i]))
            *texts[i] = bytes_copy_to(&at, *texts[i]);
    k->leak = copy;
    return k;
}

static bool
is_kept(const struct leaks *l, const struct leak *leak)
{
    for (struct list *at = l->all.next; at != &l->all; at = at->next)
        if (bytes_equal(store_id_bytes(&kept_of_link(at)->leak.id),
                        store_id_bytes(&leak->id)) &&
            bytes_equal(kept_of_link(at)->leak.queue.project, leak->queue.project))
            return true;
    return false;
}

static bool
is_full(const struct leaks *l)
{
    return l->count - l->suspects >= LEAKS_KEPT_MOST;
}

static void
leak_keep(struct leaks *l, const struct leak *leak, bool settled)
{
    const bool full = settled ? is_full(l) : l->suspects >= LEAKS_SUSPECTS_MOST;
    struct kept_leak *k = full ? NULL : kept_copy(l, leak);

    if (k == NULL) {
        l->left_out++;
        return;
    }
    k->number = ++l->last;
    k->settled = settled;
    l->suspects += !settled;
    l->count++;
    list_add_before(&l->all, &k->link);
}

void
leaks_add_expired(struct leaks *l, const struct leak *suspect)
{
    const struct bytes project = bytes_of(l->project, l->project_len);

    lock_acquire(&l->lock);
    if (!l->expected ||
        (!l->expected_all && !bytes_equal(suspect->queue.project, project)))
        leak_keep(l, suspect, false);
    lock_release(&l->lock);
}

void
leaks_add(struct leaks *l, const struct leak *leak)
{
    lock_acquire(&l->lock);
    if (!is_kept(l, leak))
        leak_keep(l, leak, true);
    lock_release(&l->lock);
}

/* ------------------------------------------------------------------ settling */

/* Copies ids, kinds and times of the suspects, which the look-up needs. */
static size_t
copy_suspects(struct leaks *l, size_t most, struct leak *out, uint64_t *numbers)
{
    size_t count = 0;

    lock_acquire(&l->lock);
    for (struct list *at = l->all.next; at != &l->all && count < most; at = at->next) {
        const struct kept_leak *k = kept_of_link(at);

        if (k->settled)
            continue;
        numbers[count] = k->number;
        out[count] = k->leak;
        out[count].queue = (struct store_queue){.kind = STORE_QUEUE};
        count++;
    }
    lock_release(&l->lock);
    return count;
}

/* Replaces a suspect by what the history says of it, or only counts it. */
static enum status
settle_one(struct leaks *l, struct kept_leak *k, const struct leak *found)
{
    struct leak leak = *found;
    struct kept_leak *settled;

    if (found->kind != LEAK_NONE && is_full(l)) {
        l->left_out++;
    } else if (found->kind != LEAK_NONE) {
        leak.queue = k->leak.queue;
        settled = kept_copy(l, &leak);
        if (settled == NULL)
            return ST_NO_MEMORY;
        settled->number = k->number;
        settled->settled = true;
        list_add_before(&k->link, &settled->link);
        l->count++;
    }
    kept_free(l, k);
    return ST_OK;
}

static enum status
settle_all(struct leaks *l, const struct leak *found, const uint64_t *numbers,
           size_t count)
{
    enum status st = ST_OK;
    struct list *at;
    size_t i = 0;

    lock_acquire(&l->lock);
    at = l->all.next;
    while (at != &l->all && i < count && st == ST_OK) {
        struct kept_leak *k = kept_of_link(at);

        at = at->next;
        while (i < count && numbers[i] < k->number) /* forgotten meanwhile */
            i++;
        if (i < count && numbers[i] == k->number && !k->settled)
            st = settle_one(l, k, &found[i]);
    }
    lock_release(&l->lock);
    return st;
}

enum status
leaks_settle(struct leaks *l, struct history *h, struct arena *arena)
{
    size_t count = l->suspects;
    struct leak *found;
    uint64_t *numbers;
    enum status st;

    if (count == 0)
        return ST_OK;
    found = arena_array(arena, count, sizeof(*found));
    numbers = arena_array(arena, count, sizeof(*numbers));
    if (found == NULL || numbers == NULL)
        return ST_NO_MEMORY;
    count = copy_suspects(l, count, found, numbers);
    st = leak_look_up(h, arena, found, count);
    return st == ST_OK ? settle_all(l, found, numbers, count) : st;
}

/* ------------------------------------------------------------------ reading */

void
leaks_read(struct leaks *l, uint64_t since, leaks_visit_fn *visit, void *ctx)
{
    lock_acquire(&l->lock);
    for (struct list *at = l->all.next; at != &l->all; at = at->next) {
        const struct kept_leak *k = kept_of_link(at);

        if (k->settled && k->number > since && !visit(ctx, k->number, &k->leak))
            break;
    }
    lock_release(&l->lock);
}

uint64_t
leaks_left_out(struct leaks *l)
{
    uint64_t count;

    lock_acquire(&l->lock);
    count = l->left_out;
    lock_release(&l->lock);
    return count;
}

void
leaks_forget(struct leaks *l, struct bytes project)
{
    struct list *at;

    lock_acquire(&l->lock);
    at = l->all.next;
    while (at != &l->all) {
        struct kept_leak *k = kept_of_link(at);

        at = at->next;
        if (!bytes_present(project) || bytes_equal(project, k->leak.queue.project))
            kept_free(l, k);
    }
    if (!bytes_present(project))
        l->left_out = 0;
    lock_release(&l->lock);
}
