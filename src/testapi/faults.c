#include "claimd/testapi/faults.h"

#include "claimd/base/lock.h"

#include <stdatomic.h>
#include <string.h>

struct faults {
    struct lock lock;
    struct mem *mem;
    _Atomic size_t count;     /* written under the lock */
    struct fault_rule *rules; /* owned; their texts stand behind them. NULL: none */
};

enum status
faults_new(struct mem *mem, struct faults **out)
{
    struct faults *f = mem_calloc(mem, 1, sizeof(*f));

    if (f == NULL)
        return ST_NO_MEMORY;
    f->mem = mem;
    lock_init(&f->lock);
    *out = f;
    return ST_OK;
}

void
faults_free(struct faults *f)
{
    if (f == NULL)
        return;
    mem_free(f->mem, f->rules);
    lock_fini(&f->lock);
    mem_free(f->mem, f);
}

/* ------------------------------------------------------------------ the list */

enum { TEXTS = 5 };

static void
texts_of(struct fault_match *m, struct bytes *out[TEXTS])
{
    struct bytes *const all[TEXTS] = {&m->action, &m->method, &m->queue, &m->project,
                                      &m->client};

    memcpy(out, all, sizeof(all));
}

static size_t
length_of_texts(const struct fault_match *m)
{
    return m->action.len + m->method.len + m->queue.len + m->project.len + m->client.len;
}

static char *
move_texts(struct fault_match *m, char *at)
{
    struct bytes *texts[TEXTS];

    texts_of(m, texts);
    for (size_t i = 0; i < TEXTS; i++) {
        if (!bytes_present(*texts[i]))
            continue;
        memcpy(at, texts[i]->data, texts[i]->len);
        texts[i]->data = at;
        at += texts[i]->len;
    }
    return at;
}

static struct fault_rule *
copy_rules(struct mem *mem, const struct fault_rule *rules, size_t count)
{
    size_t size = count * sizeof(*rules);
    struct fault_rule *copy;
    char *at;

    for (size_t i = 0; i < count; i++)
        size += length_of_texts(&rules[i].match);
    copy = mem_alloc(mem, size);
    if (copy == NULL)
        return NULL;
    at = (char *)(copy + count);
    for (size_t i = 0; i < count; i++) {
        copy[i] = rules[i];
        copy[i].matched = copy[i].struck = 0;
        at = move_texts(&copy[i].match, at);
    }
    return copy;
}

enum status
faults_replace(struct faults *f, const struct fault_rule *rules, size_t count)
{
    struct fault_rule *copy = NULL, *old;

    if (count > 0) {
        copy = copy_rules(f->mem, rules, count);
        if (copy == NULL)
            return ST_NO_MEMORY;
    }
    lock_acquire(&f->lock);
    old = f->rules;
    f->rules = copy;
    atomic_store(&f->count, count);
    lock_release(&f->lock);
    mem_free(f->mem, old);
    return ST_OK;
}

void
faults_read(struct faults *f, fault_show_fn *show, void *ctx)
{
    lock_acquire(&f->lock);
    for (size_t i = 0; i < f->count; i++)
        show(ctx, &f->rules[i]);
    lock_release(&f->lock);
}

/* ------------------------------------------------------------------ striking */

static bool
is_any_or(struct bytes wanted, struct bytes text)
{
    return !bytes_present(wanted) || bytes_equal(wanted, text);
}

static bool
matches(const struct fault_rule *rule, const struct fault_match *request)
{
    const struct fault_match *m = &rule->match;

    return (rule->times == 0 || rule->struck < rule->times) &&
           is_any_or(m->action, request->action) &&
           is_any_or(m->method, request->method) && is_any_or(m->queue, request->queue) &&
           is_any_or(m->project, request->project) &&
           (!bytes_present(m->client) || bytes_equal_nocase(m->client, request->client));
}

/* Counts a request that matches. */
static bool
strikes(struct fault_rule *rule)
{
    rule->matched++;
    if (rule->matched <= rule->skip || (rule->matched - rule->skip) % rule->every != 0)
        return false;
    rule->struck++;
    return true;
}

bool
faults_strike(struct faults *f, const struct fault_match *request, struct fault *out)
{
    bool struck = false;

    if (atomic_load_explicit(&f->count, memory_order_relaxed) == 0)
        return false;
    lock_acquire(&f->lock);
    for (size_t i = 0; i < f->count; i++) {
        if (!matches(&f->rules[i], request))
            continue;
        struck = strikes(&f->rules[i]);
        if (struck)
            *out = f->rules[i].fault;
        break;
    }
    lock_release(&f->lock);
    return struck;
}
