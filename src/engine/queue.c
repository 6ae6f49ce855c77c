#include "engine/queue.h"
#include "claimd/base/invariant.h"

struct metadata *
metadata_new(struct mem *mem, const struct store_metadata *document)
{
    static const struct store_metadata none = {.settings = STORE_SETTINGS_INIT};
    struct bytes json, dead, paused_by;
    struct metadata *md;
    char *to;

    if (document == NULL)
        document = &none;
    json = document->json;
    dead = document->settings.dead_letter;
    paused_by = document->settings.paused_by;
    md = mem_alloc(mem, sizeof(*md) + json.len + dead.len + paused_by.len);
    if (md == NULL)
        return NULL;
    atomic_init(&md->pins, 1);
    md->document = *document;
    to = md->text;
    md->document.json = bytes_copy_to(&to, json);
    if (bytes_present(dead))
        md->document.settings.dead_letter = bytes_copy_to(&to, dead);
    if (bytes_present(paused_by))
        md->document.settings.paused_by = bytes_copy_to(&to, paused_by);
    return md;
}

struct metadata *
metadata_pin(struct metadata *md)
{
    atomic_fetch_add_explicit(&md->pins, 1, memory_order_relaxed);
    return md;
}

void
metadata_unpin(struct mem *mem, struct metadata *md)
{
    uint32_t pins = atomic_fetch_sub_explicit(&md->pins, 1, memory_order_acq_rel);

    ENSURE(pins > 0);
    if (pins == 1)
        mem_free(mem, md);
}

struct queue *
queue_new(struct core *core, struct tally *tally, const struct store_queue *where,
          const struct store_metadata *metadata)
{
    struct queue *q;
    char *to;

    q = mem_alloc(core->mem, sizeof(*q) + where->project.len + where->name.len);
    if (q == NULL)
        return NULL;
    *q = (struct queue){.where = *where};
    to = q->text;
    q->where.project = bytes_copy_to(&to, where->project);
    q->where.name = bytes_copy_to(&to, where->name);
    q->metadata = metadata_new(core->mem, metadata);
    q->backlog = backlog_new(core->mem, tally);
    if (q->metadata == NULL || q->backlog == NULL) {
        queue_free(core->mem, q);
        return NULL;
    }
    q->backlog->queue = q;
    return q;
}

void
queue_free(struct mem *mem, struct queue *q)
{
    if (q->metadata != NULL)
        metadata_unpin(mem, q->metadata);
    if (q->backlog != NULL)
        backlog_free(mem, q->backlog);
    mem_free(mem, q);
}
