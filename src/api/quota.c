#include "api/quota.h"
#include "claimd/base/entropy.h"
#include "claimd/base/hash.h"
#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"
#include "claimd/ds/hashmap.h"
#include "claimd/ds/list.h"

#include <stdatomic.h>

/* CHECKED_IDLE: tenants that free_idle_tenants() checks, the oldest first. */
enum { PARTS = 16, MILLI = 1000, SECOND_MS = 1000, CHECKED_IDLE = 2 };

/* A part of all tenants, by the hash of the project. */
struct part {
    struct lock lock;
    struct hashmap tenants; /* owned, by project */
    struct list by_use;     /* the same, by the time of the last request */
};

struct api_tenant {
    struct hashnode node;
    struct list use;
    struct part *part;
    int64_t level; /* of the bucket, in thousandths of a request */
    int64_t asked_ms;
    int64_t connections, waiters;
    struct bytes project; /* points behind this structure */
    char text[];
};

struct quotas {
    struct mem *mem; /* borrowed */
    struct hash_key key;
    _Atomic int64_t requests, connections, waiters; /* limits; 0: none */
    _Atomic int64_t queues, messages, bytes;        /* only to show: the store's limits */
    _Atomic uint64_t refused[QUOTA_KINDS], refused_paused;
    struct part parts[PARTS];
};

enum status
quotas_new(struct mem *mem, struct quotas **out)
{
    struct quotas *q = mem_calloc(mem, 1, sizeof(*q));
    enum status st = q == NULL ? ST_NO_MEMORY : entropy_make_key(&q->key, sizeof(q->key));

    if (st != ST_OK) {
        mem_free(mem, q);
        return st;
    }
    q->mem = mem;
    for (size_t i = 0; i < PARTS; i++) {
        lock_init(&q->parts[i].lock);
        hashmap_init(&q->parts[i].tenants, mem);
        list_init(&q->parts[i].by_use);
    }
    *out = q;
    return ST_OK;
}

static void
tenant_free(struct mem *mem, struct api_tenant *t)
{
    list_remove(&t->use);
    hashmap_remove(&t->part->tenants, &t->node);
    mem_free(mem, t);
}

static struct api_tenant *
tenant_of(struct list *use)
{
    return container_of(use, struct api_tenant, use);
}

void
quotas_free(struct quotas *q)
{
    if (q == NULL)
        return;
    for (size_t i = 0; i < PARTS; i++) {
        struct part *part = &q->parts[i];

        while (!list_empty(&part->by_use)) {
            ENSURE(tenant_of(part->by_use.next)->connections == 0);
            tenant_free(q->mem, tenant_of(part->by_use.next));
        }
        hashmap_fini(&part->tenants);
        lock_fini(&part->lock);
    }
    mem_free(q->mem, q);
}

void
quotas_set(struct quotas *q, const struct api_project_limits *limits)
{
    atomic_store(&q->requests, limits->requests_per_second);
    atomic_store(&q->connections, limits->connections);
    atomic_store(&q->waiters, limits->waiters);
    atomic_store(&q->queues, limits->queues);
    atomic_store(&q->messages, limits->messages);
    atomic_store(&q->bytes, limits->bytes);
}

void
quotas_get(const struct quotas *q, struct api_project_limits *out)
{
    *out = (struct api_project_limits){.queues = atomic_load(&q->queues),
                                       .messages = atomic_load(&q->messages),
                                       .bytes = atomic_load(&q->bytes),
                                       .requests_per_second = atomic_load(&q->requests),
                                       .connections = atomic_load(&q->connections),
                                       .waiters = atomic_load(&q->waiters)};
}

/* ------------------------------------------------------------------ tenants */

static bool
is_tenant(const struct hashnode *node, const void *key)
{
    return bytes_equal(container_of(node, const struct api_tenant, node)->project,
                       *(const struct bytes *)key);
}

/* Frees some tenants without connections and waiters whose bucket is full again. */
static void
free_idle_tenants(struct quotas *q, struct part *part, int64_t now_ms)
{
    lock_assert_held(&part->lock);
    for (int i = 0; i < CHECKED_IDLE && !list_empty(&part->by_use); i++) {
        struct api_tenant *t = tenant_of(part->by_use.next);

        if (now_ms - t->asked_ms < SECOND_MS)
            return;
        if (t->connections > 0 || t->waiters > 0) {
            list_remove(&t->use);
            list_add_before(&part->by_use, &t->use);
        } else {
            tenant_free(q->mem, t);
        }
    }
}

static struct api_tenant *
tenant_new(struct quotas *q, struct part *part, struct bytes project, uint64_t hash,
           int64_t now_ms)
{
    struct api_tenant *t;

    free_idle_tenants(q, part, now_ms);
    if (hashmap_reserve(&part->tenants, 1) != ST_OK)
        return NULL;
    t = mem_calloc(q->mem, 1, sizeof(*t) + project.len);
    if (t == NULL)
        return NULL;
    if (project.len > 0)
        memcpy(t->text, project.data, project.len);
    t->project = bytes_of(t->text, project.len);
    t->part = part;
    t->level = atomic_load(&q->requests) * MILLI;
    t->asked_ms = now_ms;
    hashmap_insert(&part->tenants, &t->node, hash);
    list_add_before(&part->by_use, &t->use);
    return t;
}

/* Locks the part of a project, and finds or makes its tenant. NULL without memory. */
static struct api_tenant *
tenant_lock(struct quotas *q, struct bytes project, int64_t now_ms, struct part **part)
{
    uint64_t hash = hash_bytes(&q->key, project);
    struct hashnode *node;

    *part = &q->parts[hash >> 60];
    lock_acquire(&(*part)->lock);
    node = hashmap_find(&(*part)->tenants, hash, is_tenant, &project);
    if (node == NULL)
        return tenant_new(q, *part, project, hash, now_ms);
    return container_of(node, struct api_tenant, node);
}

/* ------------------------------------------------------------------ requests */

/* Fills the bucket for the time since the last request, and uses a token. False without
 * one. */
static bool
use_token(struct api_tenant *t, int64_t rate, int64_t now_ms)
{
    int64_t passed_ms = now_ms - t->asked_ms;

    lock_assert_held(&t->part->lock);
    if (passed_ms > SECOND_MS)
        passed_ms = SECOND_MS; /* the bucket is full then */
    if (passed_ms > 0) {
        t->level += passed_ms * rate;
        t->asked_ms = now_ms;
    }
    if (t->level > rate * MILLI)
        t->level = rate * MILLI;
    if (t->level < MILLI)
        return false;
    t->level -= MILLI;
    return true;
}

/* Counts the connection for t, if it is not counted yet. False at the limit. */
static bool
count_connection(struct api_tenant *t, int64_t most, struct api_connection *connection)
{
    lock_assert_held(&t->part->lock);
    if (connection->tenant == t)
        return true;
    if (t->connections >= most)
        return false;
    t->connections++;
    connection->tenant = t;
    return true;
}

enum status
quotas_admit(struct quotas *q, struct bytes project, int64_t now_ms,
             struct api_connection *connection)
{
    int64_t rate = atomic_load_explicit(&q->requests, memory_order_relaxed);
    int64_t most = atomic_load_explicit(&q->connections, memory_order_relaxed);
    enum status st = ST_OK;
    struct api_tenant *t;
    struct part *part;

    if (rate == 0 && (most == 0 || connection == NULL))
        return ST_OK;
    /* A connection with requests of several projects counts for the last one. */
    if (connection != NULL && connection->tenant != NULL &&
        !bytes_equal(connection->tenant->project, project))
        quotas_disconnect(connection);
    t = tenant_lock(q, project, now_ms, &part);
    if (t == NULL)
        st = ST_NO_MEMORY;
    else if (most > 0 && connection != NULL && !count_connection(t, most, connection))
        st = ST_PROJECT_CONNECTIONS;
    else if (rate > 0 && !use_token(t, rate, now_ms))
        st = ST_PROJECT_REQUESTS;
    if (t != NULL) {
        list_remove(&t->use);
        list_add_before(&part->by_use, &t->use);
    }
    lock_release(&part->lock);
    return st;
}

void
quotas_disconnect(struct api_connection *connection)
{
    struct api_tenant *t = connection->tenant;
    struct part *part;

    if (t == NULL)
        return;
    connection->tenant = NULL;
    part = t->part; /* t may be freed when the lock is released */
    lock_acquire(&part->lock);
    ENSURE(t->connections > 0);
    t->connections--;
    lock_release(&part->lock);
}

/* ------------------------------------------------------------------ waiting */

enum status
quotas_wait_begin(struct quotas *q, struct bytes project, int64_t now_ms,
                  struct api_tenant **tenant)
{
    int64_t most = atomic_load_explicit(&q->waiters, memory_order_relaxed);
    enum status st = ST_OK;
    struct api_tenant *t;
    struct part *part;

    *tenant = NULL;
    if (most == 0)
        return ST_OK;
    t = tenant_lock(q, project, now_ms, &part);
    if (t == NULL)
        st = ST_NO_MEMORY;
    else if (t->waiters >= most)
        st = ST_PROJECT_WAITERS;
    else {
        t->waiters++;
        *tenant = t;
    }
    lock_release(&part->lock);
    return st;
}

void
quotas_wait_end(struct api_tenant *t)
{
    struct part *part;

    if (t == NULL)
        return;
    part = t->part;
    lock_acquire(&part->lock);
    ENSURE(t->waiters > 0);
    t->waiters--;
    lock_release(&part->lock);
}

/* ------------------------------------------------------------------ refusals */

void
quotas_count(struct quotas *q, enum status st)
{
    if (st >= ST_PROJECT_QUEUES && st <= ST_PROJECT_WAITERS)
        (void)atomic_fetch_add_explicit(&q->refused[st - ST_PROJECT_QUEUES], 1,
                                        memory_order_relaxed);
    if (st == ST_PAUSED)
        (void)atomic_fetch_add_explicit(&q->refused_paused, 1, memory_order_relaxed);
}

uint64_t
quotas_refused(const struct quotas *q, size_t kind)
{
    return atomic_load_explicit(&q->refused[kind], memory_order_relaxed);
}

uint64_t
quotas_refused_paused(const struct quotas *q)
{
    return atomic_load_explicit(&q->refused_paused, memory_order_relaxed);
}

size_t
quotas_tenants(struct quotas *q)
{
    size_t count = 0;

    for (size_t i = 0; i < PARTS; i++) {
        lock_acquire(&q->parts[i].lock);
        count += q->parts[i].tenants.count;
        lock_release(&q->parts[i].lock);
    }
    return count;
}
