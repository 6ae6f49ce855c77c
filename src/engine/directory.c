#include "engine/directory.h"
#include "claimd/ds/list.h"

#include <assert.h>

/* The queues of one project; it exists while it has any. */
struct project {
    struct hashnode node;
    struct nameset names;
    struct bytes name; /* points behind this structure */
    char text[];
};

void
directory_init(struct directory *d, struct mem *mem, struct hash_key key)
{
    lock_init(&d->lock);
    d->mem = mem;
    d->key = key;
    hashmap_init(&d->projects, mem);
}

void
directory_fini(struct directory *d)
{
    assert(d->projects.count == 0);
    hashmap_fini(&d->projects);
    lock_fini(&d->lock);
}

static bool
project_equal(const struct hashnode *node, const void *key)
{
    return bytes_equal(container_of(node, const struct project, node)->name,
                       *(const struct bytes *)key);
}

static struct project *
find_project(const struct directory *d, struct bytes name)
{
    struct hashnode *node =
        hashmap_find(&d->projects, hash_bytes(&d->key, name), project_equal, &name);

    return node == NULL ? NULL : container_of(node, struct project, node);
}

static struct project *
make_project(struct directory *d, struct bytes name)
{
    struct project *p;

    if (hashmap_reserve(&d->projects, 1) != ST_OK)
        return NULL;
    p = mem_alloc(d->mem, sizeof(*p) + name.len);
    if (p == NULL)
        return NULL;
    nameset_init(&p->names);
    if (name.len > 0)
        memcpy(p->text, name.data, name.len);
    p->name = bytes_of(p->text, name.len);
    hashmap_insert(&d->projects, &p->node, hash_bytes(&d->key, name));
    return p;
}

enum status
directory_add(struct directory *d, struct bytes project, struct bytes name,
              struct listing *listing)
{
    enum status st = ST_OK;
    struct project *p;

    lock_acquire(&d->lock);
    p = find_project(d, project);
    if (p == NULL)
        p = make_project(d, project);
    if (p == NULL) {
        st = ST_NO_MEMORY;
    } else {
        nameset_insert(&p->names, &listing->node, name, hash_bytes(&d->key, name));
        listing->project = p;
    }
    lock_release(&d->lock);
    return st;
}

void
directory_remove(struct directory *d, struct listing *listing)
{
    struct project *p = listing->project;

    lock_acquire(&d->lock);
    nameset_remove(&p->names, &listing->node);
    listing->project = NULL;
    if (p->names.count == 0) {
        hashmap_remove(&d->projects, &p->node);
        mem_free(d->mem, p);
    }
    lock_release(&d->lock);
}

/* Copies count names from first on, with their texts, into one allocation. */
static struct bytes *
copy_names(struct mem *mem, const struct namenode *first, size_t count, size_t text_bytes)
{
    struct bytes *names = mem_alloc(mem, count * sizeof(*names) + text_bytes);
    char *text;

    if (names == NULL)
        return NULL;
    text = (char *)(names + count);
    for (size_t i = 0; i < count; i++) {
        memcpy(text, first->name.data, first->name.len);
        names[i] = bytes_of(text, first->name.len);
        text += first->name.len;
        first = nameset_next(first);
    }
    return names;
}

enum status
directory_page(struct directory *d, struct bytes project, struct bytes marker,
               size_t limit, struct directory_page *out)
{
    struct directory_page page = {NULL, 0, 0};
    const struct namenode *first = NULL, *node;
    size_t text_bytes = 0;
    enum status st = ST_OK;
    struct project *p;

    lock_acquire(&d->lock);
    p = find_project(d, project);
    if (p != NULL) {
        page.total = p->names.count;
        first = limit == 0 ? NULL : nameset_after(&p->names, marker);
    }
    for (node = first; node != NULL && page.count < limit; node = nameset_next(node)) {
        text_bytes += node->name.len;
        page.count++;
    }
    if (page.count > 0) {
        page.names = copy_names(d->mem, first, page.count, text_bytes);
        if (page.names == NULL)
            st = ST_NO_MEMORY;
    }
    lock_release(&d->lock);
    if (st == ST_OK)
        *out = page;
    return st;
}

bool
directory_audit(struct directory *d, size_t expected)
{
    const struct hashnode *node = NULL;
    size_t total = 0;
    bool sound;

    lock_acquire(&d->lock);
    sound = hashmap_audit(&d->projects);
    while (sound && (node = hashmap_walk(&d->projects, node)) != NULL) {
        const struct project *p = container_of(node, const struct project, node);

        sound = p->names.count > 0 && nameset_audit(&p->names);
        total += p->names.count;
    }
    lock_release(&d->lock);
    return sound && total == expected;
}
