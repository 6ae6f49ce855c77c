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
line_enter(struct line *line, struct store_waiter *w)
{
    w->called = false;
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

/* How many stand in front of w, at most STORE_CALLED. */
static size_t
in_front(const struct line *line, const struct store_waiter *w)
{
    const struct list *at = line->waiters.next;
    size_t n = 0;

    if (w->line != line)
        return line->count < STORE_CALLED ? line->count : STORE_CALLED;
    for (; n < STORE_CALLED && at != &w->link; at = at->next)
        n++;
    return n;
}

size_t
line_share(const struct line *line, const struct store_waiter *w, size_t ready)
{
    size_t n = in_front(line, w);

    return n == STORE_CALLED || ready <= n ? 0 : ready - n;
}

void
line_call(struct line *line, size_t ready, struct bells *bells)
{
    size_t n = ready < STORE_CALLED ? ready : STORE_CALLED;
    struct list *at = line->waiters.next;

    for (; n > 0 && at != &line->waiters; n--, at = at->next) {
        struct store_waiter *w = waiter_of(at);

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
    size_t must = ready < STORE_CALLED ? ready : STORE_CALLED, n = 0;

    for (const struct list *at = line->waiters.next; at != &line->waiters;
         at = at->next) {
        const struct store_waiter *w = waiter_of(at);

        if (w->line != line || (n < must && !w->called))
            return false;
        n++;
    }
    return n == line->count && n > 0;
}
