/* What the store tells, what stands in the log, and what anybody was promised. */
#include "crash/world.h"

#include <inttypes.h>
#include <stdlib.h>

static struct world *
world_of(struct store_log *observer)
{
    return (struct world *)observer;
}

static enum status
reserve(struct store_log *observer, enum store_change_kind kind, bool checkpoint,
        size_t count, size_t bytes, size_t *room)
{
    struct store_log *inner = world_of(observer)->journal_side;

    return inner->reserve(inner, kind, checkpoint, count, bytes, room);
}

static void
keep(struct world *w, struct told *t)
{
    if (w->told.last == NULL)
        w->told.first = t;
    else
        w->told.last->next = t;
    w->told.last = t;
    if (!w->starting)
        replica_apply(&w->live, t);
}

static bool
is_kept(const struct store_change *change)
{
    return change->kind < STORE_CHANGE_EXPIRED && !change->checkpoint;
}

static uint64_t
commit(struct store_log *observer, struct store_change *change, size_t *room)
{
    struct world *w = world_of(observer);
    struct told *t = is_kept(change) ? told_copy(change) : NULL;
    enum store_change_kind kind = change->kind;
    uint64_t lsn = w->journal_side->append(w->journal_side, change, room);

    if (t == NULL)
        return lsn;
    t->lsn = lsn;
    if (lsn == 0) {
        free(t); /* of a transient queue */
        return 0;
    }
    w->lsn = lsn;
    w->kinds[kind]++;
    keep(w, t);
    return lsn;
}

static void
unreserve(struct store_log *observer, size_t room)
{
    struct store_log *inner = world_of(observer)->journal_side;

    inner->unreserve(inner, room);
}

void
world_observe(struct world *w)
{
    w->journal_side = journal_log(w->journal);
    w->observer =
        (struct store_log){.reserve = reserve, .append = commit, .unreserve = unreserve};
}

/* ---------------------------------------------------------------------- the log's order */

/* Base is told of what stands in the log up to this LSN. Returns how much that is. */
static uint64_t
advance(struct world *w, struct told_list *list, uint64_t lsn)
{
    uint64_t n = 0;

    for (; list->first != NULL && list->first->lsn <= lsn; n++) {
        struct told *t = list->first;

        replica_apply(&w->base, t);
        list->first = t->next;
        free(t);
    }
    if (list->first == NULL)
        list->last = NULL;
    return n;
}

static uint64_t
forget(struct told_list *list)
{
    uint64_t n = 0;

    for (; list->first != NULL; n++) {
        struct told *t = list->first;

        list->first = t->next;
        free(t);
    }
    list->last = NULL;
    return n;
}

void
world_begin_start(struct world *w)
{
    w->before = w->told;
    w->told = (struct told_list){NULL, NULL};
    w->starting = true;
}

void
world_start_failed(struct world *w)
{
    (void)forget(&w->told);
    w->told = w->before;
    w->before = (struct told_list){NULL, NULL};
    w->starting = false;
}

void
world_started(struct world *w, uint64_t lsn)
{
    if (lsn < w->acknowledged)
        world_fail(w, "the log ends at %" PRIu64 ", but %" PRIu64 " was acknowledged",
                   lsn, w->acknowledged);
    w->metrics->survived += advance(w, &w->before, lsn);
    w->metrics->lost += forget(&w->before);
    w->acknowledged = lsn;
    w->waiting_count = w->id_count = 0;
    w->starting = false;
    replica_copy(&w->live, &w->base);
    for (const struct told *t = w->told.first; t != NULL; t = t->next)
        replica_apply(&w->live, t);
}

void
world_tell_fini(struct world *w)
{
    (void)forget(&w->told);
    (void)forget(&w->before);
    replica_fini(&w->base);
    replica_fini(&w->live);
    free(w->waiting);
    free(w->ids);
    free(w->given.slots);
}

/* ---------------------------------------------------------------------- promises */

static void
insert(struct idset *set, uint64_t hash)
{
    size_t i = (size_t)hash & (set->room - 1);

    while (set->slots[i] != 0)
        i = (i + 1) & (set->room - 1);
    set->slots[i] = hash;
    set->count++;
}

static bool
contains(const struct idset *set, uint64_t hash)
{
    size_t i = (size_t)hash & (set->room - 1);

    if (set->room == 0)
        return false;
    while (set->slots[i] != 0 && set->slots[i] != hash)
        i = (i + 1) & (set->room - 1);
    return set->slots[i] != 0;
}

static void
add(struct idset *set, uint64_t hash)
{
    struct idset larger = {.room = set->room == 0 ? 256 : 2 * set->room};

    if (2 * (set->count + 1) > set->room) {
        larger.slots = calloc(larger.room, sizeof(larger.slots[0]));
        if (larger.slots == NULL)
            abort();
        for (size_t i = 0; i < set->room; i++)
            if (set->slots[i] != 0)
                insert(&larger, set->slots[i]);
        free(set->slots);
        *set = larger;
    }
    insert(set, hash);
}

static void *
grow(void *elements, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return elements;
    *room = 2 * *room + 64;
    elements = realloc(elements, *room * size);
    if (elements == NULL)
        abort();
    return elements;
}

void
world_promise(struct world *w, uint64_t lsn, int queue, const struct store_id *id,
              uint64_t number)
{
    uint64_t hash = told_hash(store_id_bytes(id));

    if (contains(&w->given, hash))
        world_fail(w, "the id %s was given before", id->text);
    if (number != 0 && number <= w->fences[queue])
        world_fail(w, "claim number %" PRIu64 " of %s, after %" PRIu64, number,
                   world_queue_name(queue), w->fences[queue]);
    w->ids = grow(w->ids, w->id_count, &w->id_room, sizeof(w->ids[0]));
    w->ids[w->id_count++] = (struct promise_id){lsn, hash, number, queue};
}

void
world_begin_operation(struct world *w)
{
    w->lsn = 0;
    memset(w->kinds, 0, sizeof(w->kinds));
}

void
world_judge_operation(struct world *w, enum store_change_kind kind)
{
    /* Any operation may make a queue, and move dead letters out of its way. */
    for (int i = STORE_CHANGE_META; i < STORE_CHANGE_EXPIRED; i++)
        if (i != STORE_CHANGE_MOVE && w->kinds[i] > (i == (int)kind))
            world_fail(w, "the operation has told of %u changes of the kind %d",
                       w->kinds[i], i);
}

static bool
has_changed(const struct world *w)
{
    for (int i = STORE_CHANGE_META; i < STORE_CHANGE_EXPIRED; i++)
        if (i != STORE_CHANGE_MOVE && w->kinds[i] > 0)
            return true;
    return false;
}

void
world_end_operation(struct world *w, enum status st, const struct store_op *op)
{
    w->metrics->operations++;
    w->metrics->refused += st != ST_OK;
    w->metrics->full += st == ST_FULL;
    if (st != ST_OK && has_changed(w))
        world_fail(w, "refused with %s, but it has happened", status_name(st));
    if (st != ST_OK)
        return;
    if (op->lsn < w->lsn)
        world_fail(w, "an answer waits for %" PRIu64 ", not for %" PRIu64, op->lsn,
                   w->lsn);
    w->waiting =
        grow(w->waiting, w->waiting_count, &w->waiting_room, sizeof(w->waiting[0]));
    w->waiting[w->waiting_count++] = op->lsn;
}

static void
acknowledge_ids(struct world *w)
{
    size_t left = 0;

    for (size_t i = 0; i < w->id_count; i++) {
        const struct promise_id *p = &w->ids[i];

        if (store_log_durability(w->journal_side, p->lsn) != STORE_DURABLE) {
            w->ids[left++] = *p;
            continue;
        }
        add(&w->given, p->hash);
        if (w->fences[p->queue] < p->number)
            w->fences[p->queue] = p->number;
    }
    w->id_count = left;
}

void
world_ask(struct world *w)
{
    size_t left = 0;

    for (size_t i = 0; i < w->waiting_count; i++) {
        uint64_t lsn = w->waiting[i];

        if (store_log_durability(w->journal_side, lsn) != STORE_DURABLE)
            w->waiting[left++] = lsn;
        else if (w->acknowledged < lsn)
            w->acknowledged = lsn;
    }
    w->waiting_count = left;
    acknowledge_ids(w);
    (void)advance(w, &w->told, w->acknowledged);
}
