#include "engine/feed.h"
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"

struct feed *
feed_new(struct mem *mem)
{
    struct feed *f = mem_calloc(mem, 1, sizeof(*f));

    if (f == NULL)
        return NULL;
    hashmap_init(&f->subscribers, mem);
    list_init(&f->idle);
    list_init(&f->due);
    return f;
}

void
feed_free(struct mem *mem, struct feed *f)
{
    struct feed_entry *entry;

    ENSURE(f->entries.live == 0 && f->subscriptions.live == 0 &&
           f->subscribers.count == 0 && !list_linked(&f->link) &&
           !list_linked(&f->stale));
    while ((entry = f->stock) != NULL) {
        f->stock = entry->next;
        mem_free(mem, entry);
    }
    hashmap_fini(&f->subscribers);
    mem_free(mem, f->dropped);
    mem_free(mem, f);
}

enum status
feed_stock(struct feed *f, struct mem *mem, size_t count)
{
    while (f->in_stock < count) {
        struct feed_entry *entry = mem_alloc(mem, sizeof(*entry));

        if (entry == NULL)
            return ST_NO_MEMORY;
        *entry = (struct feed_entry){.next = f->stock};
        f->stock = entry;
        f->in_stock++;
    }
    return ST_OK;
}

/* Bytes that an entry counts for: also those of the body, of which it may have the last
 * pin. */
static size_t
entry_cost(const struct feed_entry *entry)
{
    return sizeof(*entry) + sizeof(struct message) + entry->message->body_len;
}

static void
count_bytes(struct feed *f, uint64_t more, uint64_t less)
{
    f->bytes += more - less;
    if (f->tally != NULL)
        *f->tally += more - less;
}

void
feed_count_in(struct feed *f, uint64_t *tally)
{
    if (f->tally != NULL)
        *f->tally -= f->bytes;
    f->tally = tally;
    if (tally != NULL)
        *tally += f->bytes;
}

static void
insert_entry(struct feed *f, struct seqmap_pool *pool, struct message *m, uint64_t number,
             const struct feed_entry *as)
{
    struct feed_entry *entry = f->stock;

    ENSURE(entry != NULL && f->in_stock > 0);
    f->stock = entry->next;
    f->in_stock--;
    message_pin(m);
    *entry = *as;
    entry->message = m;
    count_bytes(f, entry_cost(entry), 0);
    seqmap_insert(&f->entries, pool, number, entry, false);
}

void
feed_append(struct feed *f, struct seqmap_pool *pool, struct message *m, int64_t ttl_s,
            int64_t delay_s)
{
    const struct feed_entry as = {.ordinal = ++f->last_ordinal,
                                  .expires_ms = m->expires_ms,
                                  .ttl_s = ttl_s,
                                  .delay_s = delay_s,
                                  .waiting = f->at_end};

    f->at_end = 0;
    insert_entry(f, pool, m, m->seq, &as);
}

void
feed_put(struct feed *f, struct seqmap_pool *pool, struct message *m, uint64_t number,
         const struct feed_entry *as)
{
    if (seqmap_find(&f->entries, number) == NULL)
        insert_entry(f, pool, m, number, as);
}

void
feed_number(struct feed *f)
{
    struct feed_entry *entry;
    uint64_t number = 0;

    for (; (entry = seqmap_next_live(&f->entries, &number)) != NULL; number++)
        entry->ordinal = ++f->last_ordinal;
}

static void
remove_entry(struct feed *f, struct mem *mem, struct seqmap_pool *pool, uint64_t number,
             struct feed_entry *entry)
{
    (void)seqmap_remove(&f->entries, pool, number);
    count_bytes(f, 0, entry_cost(entry));
    message_unpin(mem, entry->message);
    mem_free(mem, entry);
}

bool
feed_trim(struct feed *f, struct mem *mem, struct seqmap_pool *pool, size_t *budget)
{
    struct feed_entry *first;
    uint64_t number = 0;

    while ((first = seqmap_next_live(&f->entries, &number)) != NULL &&
           first->waiting == 0) {
        if (*budget == 0)
            return false;
        --*budget;
        remove_entry(f, mem, pool, number, first);
    }
    seqmap_pool_trim(pool);
    return true;
}

size_t
feed_drop(struct feed *f, struct mem *mem, struct seqmap_pool *pool)
{
    uint64_t number = 0, second_number;
    struct feed_entry *first = seqmap_next_live(&f->entries, &number), *second;
    size_t missing;

    ENSURE(first != NULL);
    missing = first->waiting;
    second_number = number + 1;
    second = seqmap_next_live(&f->entries, &second_number);
    ENSURE(second != NULL);
    SOMETIMES(FEED_DROPS);
    second->waiting += missing;
    remove_entry(f, mem, pool, number, first);
    return missing;
}

/* Number of entries in the ranges up to and including the i-th. */
static uint64_t
dropped_until(const struct feed *f, size_t i)
{
    const struct feed_range *span = &f->dropped[i];

    return span->before + (span->last - span->first + 1);
}

/* Adds a number, larger than all before, to the ranges of dropped entries. */
static enum status
record_dropped(struct feed *f, struct mem *mem, uint64_t number)
{
    size_t capacity = f->dropped_capacity == 0 ? 8 : 2 * f->dropped_capacity,
           count = f->dropped_count;
    struct feed_range *ranges;

    if (count > 0 && f->dropped[count - 1].last + 1 == number) {
        f->dropped[count - 1].last = number;
        return ST_OK;
    }
    if (count == f->dropped_capacity) {
        ranges = mem_realloc(mem, f->dropped, capacity * sizeof(*ranges));
        if (ranges == NULL)
            return ST_NO_MEMORY;
        f->dropped = ranges;
        f->dropped_capacity = capacity;
    }
    f->dropped[count] =
        (struct feed_range){number, number, count == 0 ? 0 : dropped_until(f, count - 1)};
    f->dropped_count++;
    return ST_OK;
}

enum status
feed_keep_newest(struct feed *f, struct seqmap_pool *pool, uint64_t bytes)
{
    while (bytes != 0 && f->bytes > bytes && f->entries.live > 1) {
        uint64_t number = 0;
        enum status st;

        (void)seqmap_next_live(&f->entries, &number);
        st = record_dropped(f, pool->mem, number);
        if (st != ST_OK)
            return st;
        (void)feed_drop(f, pool->mem, pool);
    }
    return ST_OK;
}

uint64_t
feed_dropped_behind(const struct feed *f, uint64_t number)
{
    size_t low = 0, high = f->dropped_count;
    const struct feed_range *span;

    while (low < high) { /* the first range that ends behind `number` */
        size_t middle = low + (high - low) / 2;

        if (f->dropped[middle].last > number)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == f->dropped_count)
        return 0;
    span = &f->dropped[low];
    return dropped_until(f, f->dropped_count - 1) - span->before -
           (span->first > number ? 0 : number - span->first + 1);
}

/* The counter of the cursors behind this number: that of the next entry, or of the
 * end. */
static size_t *
waiting_counter(struct feed *f, uint64_t after)
{
    uint64_t number = after + 1;
    struct feed_entry *entry = seqmap_next_live(&f->entries, &number);

    return entry == NULL ? &f->at_end : &entry->waiting;
}

void
feed_attach(struct feed *f, struct cursor *c, uint64_t after)
{
    uint64_t number = after + 1;
    const struct feed_entry *entry = seqmap_next_live(&f->entries, &number);

    ENSURE(!c->attached);
    if (entry == NULL)
        *c = (struct cursor){after, f->last_ordinal, true};
    else /* entries in between were dropped */
        *c = (struct cursor){number - 1, entry->ordinal - 1, true};
    ++*waiting_counter(f, c->after);
}

void
feed_detach(struct feed *f, struct cursor *c)
{
    size_t *counter;

    if (!c->attached)
        return;
    counter = waiting_counter(f, c->after);
    ENSURE(*counter > 0);
    --*counter;
    c->attached = false;
}

struct feed_entry *
feed_next(const struct feed *f, const struct cursor *c, uint64_t *number)
{
    *number = c->after + 1;
    return c->attached ? seqmap_next_live(&f->entries, number) : NULL;
}

uint64_t
feed_advance(struct feed *f, struct cursor *c, uint64_t number, uint64_t ordinal)
{
    uint64_t missed = ordinal - c->ordinal - 1;

    ENSURE(c->attached && number > c->after && ordinal > c->ordinal);
    --*waiting_counter(f, c->after);
    *c = (struct cursor){number, ordinal, true};
    ++*waiting_counter(f, number);
    return missed;
}

uint64_t
feed_missed(const struct feed *f, const struct cursor *c, uint64_t *after)
{
    uint64_t number;
    const struct feed_entry *next = feed_next(f, c, &number);
    uint64_t missed = next == NULL ? 0 : next->ordinal - 1 - c->ordinal;

    *after = missed == 0 ? c->after : number - 1;
    return missed;
}
