#include "claimd/store/line.h"
#include "claimd/base/invariant.h"

#include <string.h>

static struct store_waiter *
waiter_of(const struct list *link)
{
    return container_of(link, struct store_waiter, link);
}

void
bells_ring(struct bells *bells)
{
    for (size_t i = 0; i < bells->count; i++)
        bells->kept[i]->ring(bells->kept[i]);
    bells->count = 0;
}

/* There are hardly ever more bells than workers, and each is returned once. */
void
bells_keep(struct bells *bells, struct store_bell *bell)
{
    if (bell == NULL)
        return;
    if (bells->count < BELLS_KEPT)
        bells->kept[bells->count++] = bell;
    else
        bell->ring(bell);
}

struct line *
line_new(struct mem *mem, const struct store_queue *where, struct list *stirred)
{
    struct line *line =
        mem_alloc(mem, sizeof(*line) + where->project.len + where->name.len);
    char *name;

    if (line == NULL)
        return NULL;
    *line = (struct line){.stirred = stirred};
    list_init(&line->waiters);
    name = line->text + where->project.len;
    if (where->project.len > 0)
        memcpy(line->text, where->project.data, where->project.len);
    if (where->name.len > 0)
        memcpy(name, where->name.data, where->name.len);
    line->where = *where;
    line->where.project = bytes_of(line->text, where->project.len);
    line->where.name = bytes_of(name, where->name.len);
    return line;
}

void
line_enter(struct line *line, struct store_waiter *w, size_t wants)
{
    ENSURE(wants > 0);
    w->called = false;
    w->wants = wants;
    if (w->line == line)
        return;
    ENSURE(w->line == NULL);
    w->line = line;
    list_add_before(&line->waiters, &w->link);
    line->count++;
}

void
line_leave(struct line *line, struct store_waiter *w)
{
    ENSURE(w->line == line && line->count > 0);
    list_remove(&w->link);
    w->line = NULL;
    w->called = false;
    line->count--;
}

/* Whether the waiter behind so many reserved messages need not wait for those in front. */
static bool
may_take(size_t reserved)
{
    return reserved < STORE_RESERVED;
}

size_t
line_reserved(const struct line *line, const struct store_waiter *w)
{
    const struct list *end = w->line == line ? &w->link : &line->waiters;
    const struct list *at = line->waiters.next;
    size_t reserved = 0;

    for (; at != end && may_take(reserved); at = at->next)
        reserved += waiter_of(at)->wants;
    return may_take(reserved) ? reserved : SIZE_MAX;
}

void
line_call(struct line *line, size_t ready, struct bells *bells)
{
    struct list *at = line->waiters.next;

    for (size_t reserved = 0;
         at != &line->waiters && reserved < ready && may_take(reserved); at = at->next) {
        struct store_waiter *w = waiter_of(at);

        reserved += w->wants;
        if (w->called)
            continue;
        w->called = true;
        bells_keep(bells, w->watcher->tell(w->watcher, STORE_READY));
    }
}

void
line_dismiss(struct line *line, struct bells *bells)
{
    struct store_waiter *w = waiter_of(line->waiters.next);

    line_leave(line, w);
    bells_keep(bells, w->watcher->tell(w->watcher, STORE_GONE));
}

bool
line_audit(const struct line *line, size_t ready)
{
    size_t reserved = 0, n = 0;

    for (const struct list *at = line->waiters.next; at != &line->waiters;
         at = at->next) {
        const struct store_waiter *w = waiter_of(at);

        if (w->line != line || w->wants == 0)
            return false;
        if (reserved < ready && may_take(reserved) && !w->called)
            return false;
        reserved += w->wants;
        n++;
    }
    return n == line->count && n > 0;
}
