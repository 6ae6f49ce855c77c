#include "engine/directory.h"
#include "claimd/base/invariant.h"
#include "claimd/ds/list.h"

/* The queues of one kind of one project. It exists while it has a queue. */
struct project {
    struct namenode node; /* in directory.projects */
    struct nameset names;
    enum store_kind kind;
    _Atomic uint64_t messages, bytes; /* of queues, without the reclaim list */
    struct bytes name;                /* points behind this structure */
    char text[];
};

/* It exists while the project has a key. */
struct key_share {
    struct namenode node; /* in directory.key_shares */
    uint64_t keys;
    char text[];
};

void
directory_init(struct directory *d, struct mem *mem, struct hash_key key)
{
    lock_init(&d->lock);
    d->mem = mem;
    d->key = key;
    memset(d->projects, 0, sizeof(d->projects));
    memset(d->queues, 0, sizeof(d->queues));
    d->key_shares = (struct nameset){.root = NULL};
    d->keys = 0;
}

void
directory_fini(struct directory *d)
{
    for (size_t kind = 0; kind < STORE_KINDS; kind++)
        ENSURE(d->projects[kind].count == 0);
    ENSURE(d->key_shares.count == 0 && d->keys == 0);
    lock_fini(&d->lock);
}

static struct project *
find_project(const struct directory *d, struct bytes name, enum store_kind kind)
{
    struct namenode *node = nameset_find(&d->projects[kind], name);

    return node == NULL ? NULL : container_of(node, struct project, node);
}

static struct project *
make_project(struct directory *d, struct bytes name, enum store_kind kind)
{
    struct project *p = mem_alloc(d->mem, sizeof(*p) + name.len);

    if (p == NULL)
        return NULL;
    p->names = (struct nameset){.root = NULL};
    atomic_init(&p->messages, 0);
    atomic_init(&p->bytes, 0);
    p->kind = kind;
    if (name.len > 0)
        memcpy(p->text, name.data, name.len);
    p->name = bytes_of(p->text, name.len);
    nameset_insert(&d->projects[kind], &p->node, p->name, hash_bytes(&d->key, p->name));
    return p;
}

enum status
directory_add(struct directory *d, const struct store_queue *where,
              struct directory_entry *entry, uint64_t most)
{
    enum status st = ST_OK;
    struct project *p;

    lock_acquire(&d->lock);
    p = find_project(d, where->project, where->kind);
    if (p == NULL)
        p = make_project(d, where->project, where->kind);
    if (p == NULL) {
        st = ST_NO_MEMORY;
    } else if (most > 0 && p->names.count >= most) {
        st = ST_PROJECT_QUEUES; /* it was not made here */
    } else {
        nameset_insert(&p->names, &entry->node, where->name,
                       hash_bytes(&d->key, where->name));
        entry->project = p;
        d->queues[p->kind]++;
    }
    lock_release(&d->lock);
    return st;
}

void
directory_remove(struct directory *d, struct directory_entry *entry)
{
    struct project *p = entry->project;

    ENSURE(p != NULL);
    lock_acquire(&d->lock);
    nameset_remove(&p->names, &entry->node);
    d->queues[p->kind]--;
    entry->project = NULL;
    if (p->names.count == 0) {
        ENSURE(atomic_load(&p->messages) == 0 && atomic_load(&p->bytes) == 0);
        nameset_remove(&d->projects[p->kind], &p->node);
        mem_free(d->mem, p);
    }
    lock_release(&d->lock);
}

enum status
directory_charge(const struct directory_entry *entry, uint64_t messages, uint64_t bytes,
                 const struct project_limits *limits)
{
    struct project *p = entry->project;
    uint64_t all = atomic_fetch_add(&p->messages, messages) + messages;
    uint64_t all_bytes = atomic_fetch_add(&p->bytes, bytes) + bytes;
    enum status st = ST_OK;
    uint64_t most;

    if (limits == NULL)
        return ST_OK;
    most = atomic_load_explicit(&limits->messages, memory_order_relaxed);
    if (most > 0 && all > most)
        st = ST_PROJECT_MESSAGES;
    most = atomic_load_explicit(&limits->bytes, memory_order_relaxed);
    if (most > 0 && all_bytes > most)
        st = ST_PROJECT_BYTES;
    if (st != ST_OK)
        directory_uncharge(entry, messages, bytes);
    return st;
}

void
directory_uncharge(const struct directory_entry *entry, uint64_t messages, uint64_t bytes)
{
    struct project *p = entry->project;
    uint64_t all = atomic_fetch_sub(&p->messages, messages);
    uint64_t all_bytes = atomic_fetch_sub(&p->bytes, bytes);

    ENSURE(all >= messages && all_bytes >= bytes);
}

/* ------------------------------------------------------------------ keys */

static struct key_share *
make_key_share(struct directory *d, struct bytes project)
{
    struct key_share *share = mem_alloc(d->mem, sizeof(*share) + project.len);

    if (share == NULL)
        return NULL;
    share->keys = 0;
    if (project.len > 0)
        memcpy(share->text, project.data, project.len);
    nameset_insert(&d->key_shares, &share->node, bytes_of(share->text, project.len),
                   hash_bytes(&d->key, project));
    return share;
}

enum status
directory_add_key(struct directory *d, struct bytes project, uint64_t most,
                  struct key_share **out)
{
    enum status st = ST_OK;
    struct key_share *share;
    struct namenode *node;

    lock_acquire(&d->lock);
    node = nameset_find(&d->key_shares, project);
    share = node == NULL ? NULL : container_of(node, struct key_share, node);
    if (d->keys >= most || (share != NULL && share->keys >= most - d->keys))
        st = ST_KEYS_FULL;
    if (st == ST_OK && share == NULL)
        share = make_key_share(d, project);
    if (st == ST_OK && share == NULL)
        st = ST_NO_MEMORY;
    if (st == ST_OK) {
        share->keys++;
        d->keys++;
        *out = share;
    }
    lock_release(&d->lock);
    return st;
}

void
directory_remove_key(struct directory *d, struct key_share *share)
{
    lock_acquire(&d->lock);
    d->keys--;
    if (--share->keys == 0) {
        nameset_remove(&d->key_shares, &share->node);
        mem_free(d->mem, share);
    }
    lock_release(&d->lock);
}

/* ------------------------------------------------------------------ pages */

/* Views of `count` names from `first` on, with copies of the texts, in one allocation.
 * NULL without memory. */
static struct store_queue_view *
copy_names(struct mem *mem, const struct namenode *first, size_t count, size_t text_bytes)
{
    struct store_queue_view *views =
        mem_calloc(mem, 1, count * sizeof(*views) + text_bytes);
    char *text;

    if (views == NULL)
        return NULL;
    text = (char *)(views + count);
    for (size_t i = 0; i < count; i++) {
        views[i].name = bytes_copy_to(&text, first->name);
        first = nameset_next(first);
    }
    return views;
}

enum status
directory_page(struct directory *d, const struct store_page *wanted, bool projects,
               struct store_queues *out)
{
    const struct nameset *set = &d->projects[wanted->kind];
    const struct namenode *first = NULL, *node;
    size_t text_bytes = 0;
    enum status st = ST_OK;

    *out = STORE_QUEUES_INIT;
    lock_acquire(&d->lock);
    if (!projects) {
        const struct project *p = find_project(d, wanted->project, wanted->kind);

        set = p == NULL ? NULL : &p->names;
    }
    if (set != NULL) {
        out->total = set->count;
        first = wanted->limit == 0 ? NULL : nameset_after(set, wanted->marker);
    }
    for (node = first; node != NULL && out->count < wanted->limit;
         node = nameset_next(node)) {
        text_bytes += node->name.len;
        out->count++;
    }
    if (out->count > 0) {
        out->queues = copy_names(d->mem, first, out->count, text_bytes);
        st = out->queues == NULL ? ST_NO_MEMORY : ST_OK;
    }
    lock_release(&d->lock);
    return st;
}

/* The first project of a survey whose queues may be behind its place; NULL: none. */
static const struct project *
survey_first_project(const struct directory *d, const struct store_survey *survey)
{
    const struct namenode *node;

    if (bytes_present(survey->project))
        return find_project(d, survey->project, STORE_QUEUE);
    node = bytes_present(survey->after_project)
               ? nameset_find(&d->projects[STORE_QUEUE], survey->after_project)
               : NULL;
    if (node == NULL)
        node = nameset_after(&d->projects[STORE_QUEUE], survey->after_project);
    return node == NULL ? NULL : container_of(node, const struct project, node);
}

static const struct project *
survey_next_project(const struct project *p, const struct store_survey *survey)
{
    const struct namenode *node =
        bytes_present(survey->project) ? NULL : nameset_next(&p->node);

    return node == NULL ? NULL : container_of(node, const struct project, node);
}

static void
survey_add_name(struct store_survey *survey, struct bytes project, struct bytes name)
{
    struct store_queue_metrics *row = &survey->rows[survey->count];

    if (project.len > STORE_METRICS_PROJECT || name.len > STORE_METRICS_NAME)
        return; /* the API makes no such names */
    row->project_len = project.len;
    row->name_len = name.len;
    if (project.len > 0)
        memcpy(row->project, project.data, project.len);
    if (name.len > 0)
        memcpy(row->name, name.data, name.len);
    row->kind = STORE_QUEUE;
    survey->count++;
}

void
directory_survey(struct directory *d, struct store_survey *survey)
{
    const struct project *p;

    survey->count = 0;
    survey->more = false;
    lock_acquire(&d->lock);
    p = survey_first_project(d, survey);
    survey->total = !bytes_present(survey->project) ? d->queues[STORE_QUEUE]
                    : p == NULL                     ? 0
                                                    : p->names.count;
    for (; p != NULL && !survey->more; p = survey_next_project(p, survey)) {
        const bool begun = bytes_present(survey->after_project) &&
                           bytes_equal(p->name, survey->after_project);
        const struct namenode *node =
            nameset_after(&p->names, begun ? survey->after_name : BYTES_NONE);

        for (; node != NULL && !survey->more; node = nameset_next(node)) {
            survey->more = survey->count == survey->limit;
            if (!survey->more)
                survey_add_name(survey, p->name, node->name);
        }
    }
    lock_release(&d->lock);
}

static bool
project_audit(const struct project *p, struct directory_sum *sum)
{
    sum->queues += p->names.count;
    sum->messages += atomic_load(&p->messages);
    sum->bytes += atomic_load(&p->bytes);
    return p->names.count > 0 && nameset_audit(&p->names);
}

bool
directory_audit(struct directory *d, const struct directory_sum *expected)
{
    struct directory_sum sum = {0};
    uint64_t queues = 0;
    bool sound = true;

    lock_acquire(&d->lock);
    for (size_t kind = 0; kind < STORE_KINDS; kind++) {
        struct namenode *node = nameset_after(&d->projects[kind], BYTES_NONE);

        queues += d->queues[kind];
        sound = sound && nameset_audit(&d->projects[kind]);
        for (; sound && node != NULL; node = nameset_next(node))
            sound = project_audit(container_of(node, struct project, node), &sum);
    }
    for (struct namenode *node = nameset_after(&d->key_shares, BYTES_NONE); node != NULL;
         node = nameset_next(node))
        sum.keys += container_of(node, struct key_share, node)->keys;
    sound = sound && nameset_audit(&d->key_shares) && d->keys == sum.keys &&
            queues == sum.queues;
    lock_release(&d->lock);
    return sound && sum.queues == expected->queues &&
           sum.messages == expected->messages && sum.bytes == expected->bytes &&
           sum.keys == expected->keys;
}
