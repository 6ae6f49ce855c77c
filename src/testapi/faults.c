#include "claimd/testapi/faults.h"

#include "claimd/base/lock.h"

#include <stdatomic.h>
#include <string.h>

struct faults {
    struct lock lock;
    struct mem *mem;
    _Atomic size_t count;     /* written under the lock */
    struct fault_rule *rules; /* owned, with their texts behind them; NULL: none */
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

static struct fault_rule *
rules_copy(struct mem *mem, const struct fault_rule *rules, size_t count)
{
    size_t size = count * sizeof(*rules);
    struct fault_rule *copy;
    char *at;

    for (size_t i = 0; i < count; i++) {
        const struct fault_match *m = &rules[i].match;

        size +=
            m->action.len + m->method.len + m->queue.len + m->project.len + m->client.len;
    }
    copy = mem_alloc(mem, size);
    if (copy == NULL)
        return NULL;
    at = (char *)(copy + count);
    for (size_t i = 0; i < count; i++) {
        struct fault_match *m = &copy[i].match;
        struct bytes *const texts[] = {&m->action, &m->method, &m->queue, &m->project,
                                       &m->client};

        copy[i] = rules[i];
        copy[i].matched = copy[i].struck = 0;
        for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
            if (bytes_present(*texts[k]))
                *texts[k] = bytes_copy_to(&at, *texts[k]);
    }
    return copy;
}

enum status
faults_replace(struct faults *f, const struct fault_rule *rules, size_t count)
{
    struct fault_rule *copy = NULL, *old;

    if (count > 0) {
        copy = rules_copy(f->mem, rules, count);
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
faults_read(struct faults *f, fault_visit_fn *visit, void *ctx)
{
    lock_acquire(&f->lock);
    for (size_t i = 0; i < f->count; i++)
        visit(ctx, &f->rules[i]);
    lock_release(&f->lock);
}

static bool
text_matches(struct bytes wanted, struct bytes text)
{
    return !bytes_present(wanted) || bytes_equal(wanted, text);
}

static bool
rule_matches(const struct fault_rule *rule, const struct fault_match *request)
{
    const struct fault_match *m = &rule->match;

    return (rule->times == 0 || rule->struck < rule->times) &&
           text_matches(m->action, request->action) &&
           text_matches(m->method, request->method) &&
           text_matches(m->queue, request->queue) &&
           text_matches(m->project, request->project) &&
           (!bytes_present(m->client) || bytes_equal_nocase(m->client, request->client));
}

bool
faults_strike(struct faults *f, const struct fault_match *request, struct fault *out)
{
    bool struck = false;

    if (atomic_load_explicit(&f->count, memory_order_relaxed) == 0)
        return false;
    lock_acquire(&f->lock);
    for (size_t i = 0; i < f->count; i++) {
        struct fault_rule *rule = &f->rules[i];

        if (!rule_matches(rule, request))
            continue;
        rule->matched++;
        struck =
            rule->matched > rule->skip && (rule->matched - rule->skip) % rule->every == 0;
        if (struck) {
            rule->struck++;
            *out = rule->fault;
        }
        break;
    }
    lock_release(&f->lock);
    return struck;
}
