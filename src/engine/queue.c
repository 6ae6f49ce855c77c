#include "engine/queue.h"
#include "engine/claim.h"
#include "engine/graveyard.h"
#include "engine/shard.h"

struct metadata *
metadata_new(struct mem *mem, const struct store_metadata *document)
{
    static const struct store_metadata none = {.settings = STORE_SETTINGS_INIT};
    struct bytes json, dead;
    struct metadata *md;

    if (document == NULL)
        document = &none;
    json = document->json;
    dead = document->settings.dead_letter;
    md = mem_alloc(mem, sizeof(*md) + json.len + dead.len);
    if (md == NULL)
        return NULL;
    atomic_init(&md->pins, 1);
    md->document = *document;
    if (json.len > 0)
        memcpy(md->text, json.data, json.len);
    if (dead.len > 0)
        memcpy(md->text + json.len, dead.data, dead.len);
    md->document.json = bytes_of(md->text, json.len);
    if (bytes_present(dead))
        md->document.settings.dead_letter = bytes_of(md->text + json.len, dead.len);
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
    if (atomic_fetch_sub_explicit(&md->pins, 1, memory_order_acq_rel) == 1)
        mem_free(mem, md);
}

static struct bytes
copy_text(char *to, struct bytes text)
{
    if (text.len > 0)
        memcpy(to, text.data, text.len);
    return bytes_of(to, text.len);
}

struct queue *
queue_new(struct shard *sh, const struct store_queue *where,
          const struct store_metadata *metadata)
{
    struct mem *mem = sh->engine->mem;
    struct queue *q;

    q = mem_alloc(mem, sizeof(*q) + where->project.len + where->name.len);
    if (q == NULL)
        return NULL;
    *q = (struct queue){.shard = sh};
    q->project = copy_text(q->text, where->project);
    q->name = copy_text(q->text + where->project.len, where->name);
    q->metadata = metadata_new(mem, metadata);
    q->backlog = backlog_new(mem, &sh->alive);
    if (q->metadata == NULL || q->backlog == NULL) {
        queue_free(q);
        return NULL;
    }
    q->backlog->queue = q;
    q->version = shard_number(sh);
    q->tag = engine_next_tag(sh->engine);
    return q;
}

void
queue_free(struct queue *q)
{
    struct mem *mem = q->shard->engine->mem;

    if (q->metadata != NULL)
        metadata_unpin(mem, q->metadata);
    if (q->backlog != NULL)
        backlog_free(mem, q->backlog);
    mem_free(mem, q);
}

enum status
queue_link(struct queue *q, uint64_t hash)
{
    struct shard *sh = q->shard;
    enum status st;

    lock_assert_held(&sh->lock);
    st = hashmap_reserve(&sh->queues, 1);
    if (st != ST_OK)
        return st;
    st = directory_add(&sh->engine->directory, q->project, q->name, &q->listing);
    if (st != ST_OK)
        return st;
    hashmap_insert(&sh->queues, &q->node, hash);
    return ST_OK;
}

void
queue_bury(struct queue *q)
{
    struct shard *sh = q->shard;

    lock_assert_held(&sh->lock);
    hashmap_remove(&sh->queues, &q->node);
    directory_remove(&sh->engine->directory, &q->listing);
    graveyard_add(sh, q->backlog);
    q->backlog = NULL;
    queue_free(q);
}

enum status
queue_purge(struct queue *q)
{
    struct shard *sh = q->shard;
    struct backlog *fresh;

    lock_assert_held(&sh->lock);
    if (q->backlog->messages.live == 0)
        return ST_OK;
    fresh = backlog_new(sh->engine->mem, &sh->alive);
    if (fresh == NULL)
        return ST_NO_MEMORY;
    graveyard_add(sh, q->backlog);
    q->backlog = fresh;
    fresh->queue = q;
    return ST_OK;
}

bool
queue_audit(const struct queue *q)
{
    uint64_t newest = 0;

    if (q->backlog->queue != q || !backlog_audit(q->backlog))
        return false;
    if (seqmap_last(&q->backlog->messages, &newest) != NULL && newest > q->last_seq)
        return false;
    newest = 0;
    if (seqmap_last(&q->backlog->claims, &newest) != NULL && newest > q->last_claim)
        return false;
    return claims_audit(q->backlog);
}
