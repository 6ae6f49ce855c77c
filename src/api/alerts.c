#include "api/alerts.h"

#include "api/alert_rules.h"
#include "api/handlers/handlers.h"
#include "claimd/base/lock.h"
#include "claimd/json/string.h"

#include <inttypes.h>
#include <math.h>

/* A rule whose condition holds. Of a queue, or without names. */
struct alert_state {
    size_t rule; /* in alert_rules */
    int64_t since_ms;
    double value;
    bool of_queue, of_topic;
    size_t project_len, name_len;
    char project[STORE_METRICS_PROJECT], name[STORE_METRICS_NAME];
};

struct alert_list {
    struct alert_state *states; /* grows; owned */
    size_t count, cap;
    bool incomplete; /* there were more, or no memory */
};

struct alerts {
    struct mem *mem;
    /* Of the thread that looks: */
    struct alert_minutes minutes;
    struct store_sample samples[SAMPLER_SAMPLES];
    struct store_queue_metrics row;
    struct lock lock; /* guards what follows. alerts_look() reads it without the lock */
    struct alert_list list;
    int64_t looked_ms;
    int64_t began_ms; /* with the first look */
};

enum status
alerts_new(struct mem *mem, struct alerts **out)
{
    *out = mem_calloc(mem, 1, sizeof(**out));
    if (*out == NULL)
        return ST_NO_MEMORY;
    (*out)->mem = mem;
    lock_init(&(*out)->lock);
    return ST_OK;
}

void
alerts_free(struct alerts *a)
{
    if (a == NULL)
        return;
    mem_free(a->mem, a->list.states);
    lock_fini(&a->lock);
    mem_free(a->mem, a);
}

/* ------------------------------------------------------------------ looking */

static bool
is_same(const struct alert_state *a, const struct alert_state *b)
{
    return a->rule == b->rule && a->of_queue == b->of_queue &&
           a->of_topic == b->of_topic &&
           bytes_equal(bytes_of(a->name, a->name_len), bytes_of(b->name, b->name_len)) &&
           bytes_equal(bytes_of(a->project, a->project_len),
                       bytes_of(b->project, b->project_len));
}

/* Space for one more state. NULL: there are `most`, or no memory. */
static struct alert_state *
list_add(struct mem *mem, struct alert_list *list, size_t most)
{
    size_t cap = list->cap == 0 ? 8 : 2 * list->cap;
    struct alert_state *grown = NULL;

    if (list->count < most && list->count < list->cap)
        return &list->states[list->count++];
    if (list->count < most && mem_admits(mem, cap * sizeof(*grown)))
        grown = mem_realloc(mem, list->states, cap * sizeof(*grown));
    if (grown == NULL) {
        list->incomplete = true;
        return NULL;
    }
    list->states = grown;
    list->cap = cap;
    return &list->states[list->count++];
}

/* Adds a state to the new list. If the condition held before, it holds since then. */
static void
condition_holds(const struct alerts *a, struct alert_list *next, size_t rule,
                int64_t now_ms, double value, const struct store_queue *queue)
{
    /* Those of queues leave space for those of the server. */
    struct alert_state *s = list_add(
        a->mem, next, queue != NULL ? ALERTS_MOST : ALERTS_MOST + alert_rule_count);

    if (s == NULL)
        return;
    *s = (struct alert_state){.rule = rule, .since_ms = now_ms, .value = value};
    if (queue != NULL) {
        s->of_queue = true;
        s->of_topic = queue->kind == STORE_TOPIC;
        s->project_len = queue->project.len;
        s->name_len = queue->name.len;
        memcpy(s->project, queue->project.data, s->project_len);
        memcpy(s->name, queue->name.data, s->name_len);
    }
    for (size_t i = 0; i < a->list.count; i++)
        if (is_same(&a->list.states[i], s))
            s->since_ms = a->list.states[i].since_ms;
}

static double
age_s(bool present, int64_t age_ms)
{
    return present ? (double)age_ms / 1000 : 0;
}

/* A queue that no rule can be about. */
static bool
is_quiet(const struct store_queue_metrics *q)
{
    return q->here.ready == 0 && q->here.claims == 0 && q->expired.messages == 0 &&
           q->counts[STORE_QUEUE_DEAD_LETTERED] == 0;
}

static void
look_at_queue(struct alerts *a, const struct context *ctx, struct alert_list *next)
{
    const struct store_queue_metrics *row = &a->row;
    const struct store_queue where = store_queue_metrics_address(row);
    struct alert_queue q = {.is_topic = row->kind == STORE_TOPIC,
                            .ready = row->here.ready,
                            .dead_letters = row->here.dead_letters,
                            .claims = row->here.claims,
                            .waiters = row->waiters,
                            .ready_age_s = age_s(row->has_oldest, row->age_ms),
                            .claim_age_s =
                                age_s(row->here.claims > 0, row->claimed_age_ms),
                            .paused = (row->paused & STORE_PAUSE_CLAIMS) != 0,
                            .only_subscribers = row->subscriptions > 0 &&
                                                row->counts[STORE_QUEUE_DELIVERED] == 0};
    size_t count = 0;
    double value;

    if (is_quiet(row) ||
        sampler_read(ctx->config->sampler, &where, a->samples, &count) != ST_OK)
        return;
    alert_queue_read(&q, a->samples, count, ctx->op.now_ms);
    for (size_t i = 0; i < alert_rule_count; i++)
        if (alert_rules[i].queue != NULL && alert_rules[i].queue(&q, &value))
            condition_holds(a, next, i, ctx->op.now_ms, value, &where);
}

/* Not below 0: the queues are read after the sums. */
static void
subtract(uint64_t *rest, uint64_t part)
{
    *rest -= part < *rest ? part : *rest;
}

static void
look_at_queues(struct alerts *a, struct context *ctx, const struct store_metrics *all,
               struct alert_list *next)
{
    uint64_t ready = all->all.ready, letters = all->all.dead_letters;
    size_t at = 0;

    for (size_t i = 0; i < ctx->config->metrics->shown_queues &&
                       store_queue_metrics(ctx->store, &ctx->op, &at, &a->row) == ST_OK;
         i++) {
        subtract(&ready, a->row.here.ready);
        subtract(&letters, a->row.here.dead_letters);
        look_at_queue(a, ctx, next);
    }
    alert_minutes_add(&a->minutes, ALERT_REST_READY, (double)ready);
    alert_minutes_add(&a->minutes, ALERT_REST_WAITING, (double)ready - (double)letters);
}

static void
take_sums(struct alert_minutes *m, const struct store_metrics *all)
{
    alert_minutes_add(m, ALERT_REST_DEAD_LETTERED,
                      (double)all->rest_counts[STORE_QUEUE_DEAD_LETTERED]);
    alert_minutes_add(m, ALERT_REST_UNREAD, (double)all->rest.unread);
    alert_minutes_add(m, ALERT_REST_LETTERS_EXPIRED, (double)all->rest.dead_letters);
    alert_minutes_add(m, ALERT_BYTES, (double)all->all.bytes);
    alert_minutes_add(m, ALERT_UNLOADED_BYTES, (double)all->all.unloaded_bytes);
    alert_minutes_add(m, ALERT_MESSAGES,
                      (double)(all->all.ready + all->all.claimed + all->all.delayed));
}

void
alerts_look(struct alerts *a, struct context *ctx)
{
    const int64_t now_ms = ctx->op.now_ms;
    struct alert_list next = {.count = 0}, old;
    struct store_metrics all;
    double value;

    if (store_metrics(ctx->store, &ctx->op, &all) != ST_OK)
        return; /* Redis does not respond: the next minute may tell more */
    alert_minutes_begin(&a->minutes, now_ms);
    take_sums(&a->minutes, &all);
    metrics_collect(ctx, &all, alert_minutes_take, &a->minutes);
    look_at_queues(a, ctx, &all, &next);
    for (size_t i = 0; i < alert_rule_count; i++)
        if (alert_rules[i].server != NULL &&
            alert_rules[i].server(&alert_rules[i], &a->minutes, &value))
            condition_holds(a, &next, i, now_ms, value, NULL);
    lock_acquire(&a->lock);
    old = a->list;
    a->list = next;
    a->looked_ms = now_ms;
    if (a->minutes.count == 1)
        a->began_ms = now_ms;
    lock_release(&a->lock);
    mem_free(a->mem, old.states);
}

/* ------------------------------------------------------------------ reading */

static void
write_state(struct buf *out, const struct context *ctx, const struct alert_state *s,
            int64_t now_ms)
{
    const struct alert_rule *rule = &alert_rules[s->rule];
    const struct bytes name = bytes_of(s->name, s->name_len);
    const int64_t fires_ms = s->since_ms + (int64_t)rule->for_minutes * 60000;

    json_write_comma(out);
    buf_byte(out, '{');
    json_write_text(out, "name", bytes_str(rule->name));
    json_write_text(out, "severity", bytes_str(rule->severity));
    json_write_text(out, "state", bytes_str(now_ms >= fires_ms ? "firing" : "pending"));
    json_write_time(out, "since", context_shown_ms(ctx, s->since_ms));
    json_write_time(out, "fires_at", context_shown_ms(ctx, fires_ms));
    json_write_text_or_null(
        out, "project", s->of_queue ? bytes_of(s->project, s->project_len) : BYTES_NONE);
    json_write_text_or_null(out, "queue",
                            s->of_queue && !s->of_topic ? name : BYTES_NONE);
    json_write_text(out, "topic", s->of_topic ? name : BYTES_NONE);
    json_write_text(out, "summary", bytes_str(rule->summary));
    json_write_text(out, "action", bytes_str(rule->action));
    if (rule->unit != NULL) {
        json_write_name(out, "value");
        buf_printf(out, "%.3f", s->value);
        json_write_text(out, "unit", bytes_str(rule->unit));
    }
    buf_byte(out, '}');
}

void
alerts_write(struct alerts *a, const struct context *ctx, struct bytes project,
             bool of_server, struct buf *out)
{
    lock_acquire(&a->lock);
    if (a->looked_ms == 0) {
        json_write_raw(out, "as_of", bytes_str("null"));
        json_write_raw(out, "since", bytes_str("null"));
    } else {
        json_write_time(out, "as_of", context_shown_ms(ctx, a->looked_ms));
        json_write_time(out, "since", context_shown_ms(ctx, a->began_ms));
    }
    json_write_flag(out, "complete", !a->list.incomplete);
    json_write_name(out, "alerts");
    buf_byte(out, '[');
    for (size_t i = 0; i < a->list.count; i++) {
        const struct alert_state *s = &a->list.states[i];

        if (s->of_queue ? !bytes_present(project) ||
                              bytes_equal(project, bytes_of(s->project, s->project_len))
                        : of_server)
            write_state(out, ctx, s, a->looked_ms);
    }
    buf_byte(out, ']');
    lock_release(&a->lock);
}
