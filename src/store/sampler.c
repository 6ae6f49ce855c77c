#include "claimd/store/sampler.h"

#include "claimd/base/hash.h"
#include "claimd/base/lock.h"
#include "claimd/base/thread.h"
#include "claimd/ds/hashmap.h"
#include "claimd/ds/list.h"

#include <pthread.h>

enum {
    BLOCK = 60, /* samples: 5 minutes */
    BLOCKS = SAMPLER_SAMPLES / BLOCK,
    MINUTE = 12, /* samples */
    UNSEEN_MOST =
        12, /* samples after which a queue that Redis does not show is forgotten */
    MINUTE_MS = 60000
};

/* A sample without its time, which all queues share. All zero: nothing happened in an
 * empty queue. */
struct history_record {
    uint16_t missing; /* 1: there is no sample */
    uint16_t paused;  /* 1: claims are */
    uint32_t ready, delayed, claimed;
    uint32_t ready_age, claim_age; /* seconds + 1; 0: none */
    uint32_t counts[STORE_QUEUE_COUNTERS];
    uint32_t expired, unread, letters_expired;
};

struct sampled_counters {
    uint64_t counts[STORE_QUEUE_COUNTERS];
    struct store_expired expired;
};

/* A queue. The sample with number n is in block n / BLOCK % BLOCKS. A block of zeros is
 * not allocated. */
struct history_series {
    struct hashnode node; /* in sampler.series */
    struct list link;     /* in sampler.all */
    uint64_t first, seen; /* numbers of the first and the last sample */
    struct history_record *blocks[BLOCKS];
    struct sampled_counters last,
        logged;               /* at the last sample; when the last line was logged */
    struct store_queue where; /* its texts are behind this structure */
    char text[];
};

struct sampler {
    struct sampler_config config;
    struct hash_key key;
    _Atomic bool ticking;
    _Atomic int64_t next_ms;
    int64_t log_ms;            /* of the ticking thread: when it logs again */
    struct store_expired rest; /* likewise: of all other queues, when it last logged */
    uint64_t rest_dead_lettered;
    struct lock lock; /* guards what follows */
    struct hashmap series;
    struct list all;
    uint64_t count; /* of samples taken */
    int64_t times[SAMPLER_SAMPLES];
    void (*minute_call)(void *arg, int64_t now_ms); /* NULL: none */
    void *minute_arg;
    int64_t minute_ms; /* when it is called again */
    pthread_cond_t stop;
    bool started, stopping;
    pthread_t thread;
};

/* ------------------------------------------------------------------ series */

static uint64_t
address_hash(const struct sampler *s, const struct store_queue *where)
{
    return hash_mix(hash_bytes(&s->key, where->project) + where->kind) ^
           hash_bytes(&s->key, where->name);
}

static bool
is_series_of(const struct hashnode *node, const void *where)
{
    return store_queue_equal(
        &container_of(node, const struct history_series, node)->where, where);
}

static struct history_series *
series_find(const struct sampler *s, const struct store_queue *where)
{
    struct hashnode *node =
        hashmap_find(&s->series, address_hash(s, where), is_series_of, where);

    lock_assert_held(&s->lock);
    return node == NULL ? NULL : container_of(node, struct history_series, node);
}

/* NULL: there are enough, or no memory. */
static struct history_series *
series_add(struct sampler *s, const struct store_queue *where)
{
    const size_t size =
        sizeof(struct history_series) + where->project.len + where->name.len;
    struct history_series *q;
    char *to;

    lock_assert_held(&s->lock);
    if (s->series.count >= s->config.queues || !mem_admits(s->config.mem, size) ||
        hashmap_reserve(&s->series, 1) != ST_OK)
        return NULL;
    q = mem_calloc(s->config.mem, 1, size);
    if (q == NULL)
        return NULL;
    to = q->text;
    q->where.kind = where->kind;
    q->where.project = bytes_copy_to(&to, where->project);
    q->where.name = bytes_copy_to(&to, where->name);
    q->first = s->count;
    list_add_before(&s->all, &q->link);
    hashmap_insert(&s->series, &q->node, address_hash(s, where));
    return q;
}

static void
series_free(struct sampler *s, struct history_series *q)
{
    hashmap_remove(&s->series, &q->node);
    list_remove(&q->link);
    for (size_t i = 0; i < BLOCKS; i++)
        mem_free(s->config.mem, q->blocks[i]);
    mem_free(s->config.mem, q);
}

static bool
all_zero(const void *data, size_t size)
{
    const unsigned char *bytes = data;

    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* Sets the sample with this number, over the one an hour before. */
static void
series_put(struct sampler *s, struct history_series *q, uint64_t number,
           const struct history_record *r)
{
    const size_t size = BLOCK * sizeof(*r);
    struct history_record **block = &q->blocks[number / BLOCK % BLOCKS];

    lock_assert_held(&s->lock);
    if (*block == NULL && all_zero(r, sizeof(*r)))
        return;
    if (*block == NULL && mem_admits(s->config.mem, size))
        *block = mem_calloc(s->config.mem, BLOCK, sizeof(*r));
    if (*block == NULL) {
        q->first = number + 1; /* without memory the history begins again */
        return;
    }
    (*block)[number % BLOCK] = *r;
    if (number % BLOCK == BLOCK - 1 && all_zero(*block, size)) {
        mem_free(s->config.mem, *block);
        *block = NULL;
    }
}

static struct history_record
series_get(const struct history_series *q, uint64_t number)
{
    const struct history_record *block = q->blocks[number / BLOCK % BLOCKS];

    return block == NULL ? (struct history_record){.missing = 0} : block[number % BLOCK];
}

/* The number of the first sample of the queue that is still kept, at most `most` back. */
static uint64_t
series_begin(const struct sampler *s, const struct history_series *q, uint64_t most)
{
    const uint64_t begin = s->count > most ? s->count - most : 0;

    return q->first > begin ? q->first : begin;
}

/* ------------------------------------------------------------------ sampling */

static uint32_t
narrow(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static uint32_t
narrow_age(bool present, int64_t age_ms)
{
    return present ? narrow((uint64_t)age_ms / 1000 + 1) : 0;
}

/* The increase of a counter. The counters of a queue that was created again begin at
 * 0. */
static uint64_t
growth(uint64_t last, uint64_t now)
{
    return now >= last ? now - last : now;
}

static void
sample_queue(struct sampler *s, const struct store_queue_metrics *m)
{
    const struct store_queue where = store_queue_metrics_address(m);
    struct history_record r = {.paused = (m->paused & STORE_PAUSE_CLAIMS) != 0,
                               .ready = narrow(m->here.ready),
                               .delayed = narrow(m->here.delayed),
                               .claimed = narrow(m->here.claimed),
                               .ready_age = narrow_age(m->has_oldest, m->age_ms),
                               .claim_age =
                                   narrow_age(m->here.claims > 0, m->claimed_age_ms)};
    struct sampled_counters now = {.expired = m->expired};
    struct history_series *q;

    memcpy(now.counts, m->counts, sizeof(now.counts));
    lock_acquire(&s->lock);
    q = series_find(s, &where);
    if (q == NULL) {
        q = series_add(s, &where);
        /* Counters in memory begin with the queue. Those in Redis may be older than this
         * process. */
        if (q != NULL && s->config.store->blocks)
            q->last = q->logged = now;
    }
    if (q != NULL) {
        for (size_t i = 0; i < STORE_QUEUE_COUNTERS; i++)
            r.counts[i] = narrow(growth(q->last.counts[i], now.counts[i]));
        r.expired = narrow(growth(q->last.expired.messages, now.expired.messages));
        r.unread = narrow(growth(q->last.expired.unread, now.expired.unread));
        r.letters_expired =
            narrow(growth(q->last.expired.dead_letters, now.expired.dead_letters));
        q->last = now;
        q->seen = s->count;
        series_put(s, q, s->count, &r);
    }
    lock_release(&s->lock);
}

/* Queues that were not seen are gone, unless Redis did not respond. */
static void
sample_end(struct sampler *s, int64_t now_ms)
{
    const uint64_t most = s->config.store->blocks ? UNSEEN_MOST : 0;
    const struct history_record missing = {.missing = 1};

    lock_acquire(&s->lock);
    for (struct list *at = s->all.next, *next; at != &s->all; at = next) {
        struct history_series *q = container_of(at, struct history_series, link);

        next = at->next;
        if (s->count - q->seen > most)
            series_free(s, q);
        else if (q->seen != s->count)
            series_put(s, q, s->count, &missing);
    }
    s->times[s->count++ % SAMPLER_SAMPLES] = now_ms;
    lock_release(&s->lock);
}

/* ------------------------------------------------------------------ the log */

static void
log_queue(struct sampler *s, struct history_series *q)
{
    const char *kind = q->where.kind == STORE_TOPIC ? "topic" : "queue";
    const struct sampled_counters *now = &q->last, *last = &q->logged;
    const uint64_t unread = growth(last->expired.unread, now->expired.unread);
    const uint64_t moved = growth(last->counts[STORE_QUEUE_DEAD_LETTERED],
                                  now->counts[STORE_QUEUE_DEAD_LETTERED]);

    if (unread > 0)
        log_event(s->config.log, LOG_WARN, "messages_expired_unread",
                  LOG_B("project", q->where.project), LOG_B(kind, q->where.name),
                  LOG_I("messages", unread),
                  LOG_I("dead_letters",
                        growth(last->expired.dead_letters, now->expired.dead_letters)));
    if (moved > 0)
        log_event(s->config.log, LOG_WARN, "messages_dead_lettered",
                  LOG_B("project", q->where.project), LOG_B(kind, q->where.name),
                  LOG_I("messages", moved));
    q->logged = q->last;
}

static void
log_rest(struct sampler *s, const struct store_metrics *m)
{
    const uint64_t moved = m->rest_counts[STORE_QUEUE_DEAD_LETTERED];

    if (m->rest.unread > s->rest.unread)
        log_event(s->config.log, LOG_WARN, "messages_expired_unread",
                  LOG_S("queues", "not shown by metrics_queues"),
                  LOG_I("messages", m->rest.unread - s->rest.unread),
                  LOG_I("dead_letters", m->rest.dead_letters - s->rest.dead_letters));
    if (moved > s->rest_dead_lettered)
        log_event(s->config.log, LOG_WARN, "messages_dead_lettered",
                  LOG_S("queues", "not shown by metrics_queues"),
                  LOG_I("messages", moved - s->rest_dead_lettered));
    s->rest = m->rest;
    s->rest_dead_lettered = moved;
}

static void
log_all(struct sampler *s, struct store_op *op)
{
    struct store_metrics all;

    if (store_metrics(s->config.store, op, &all) == ST_OK)
        log_rest(s, &all);
    lock_acquire(&s->lock);
    for (struct list *at = s->all.next; at != &s->all; at = at->next)
        log_queue(s, container_of(at, struct history_series, link));
    lock_release(&s->lock);
}

/* ------------------------------------------------------------------ ticking */

void
sampler_each_minute(struct sampler *s, void (*call)(void *arg, int64_t now_ms), void *arg)
{
    lock_acquire(&s->lock);
    s->minute_call = call;
    s->minute_arg = arg;
    lock_release(&s->lock);
}

static void
call_each_minute(struct sampler *s, int64_t now_ms)
{
    void (*call)(void *, int64_t) = NULL;
    void *arg;

    lock_acquire(&s->lock);
    if (s->minute_call != NULL &&
        (now_ms >= s->minute_ms || now_ms < s->minute_ms - 2 * MINUTE_MS)) {
        call = s->minute_call;
        /* Whole minutes, unless the clock was set. */
        s->minute_ms += MINUTE_MS;
        if (s->minute_ms <= now_ms || s->minute_ms > now_ms + MINUTE_MS)
            s->minute_ms = now_ms + MINUTE_MS;
    }
    arg = s->minute_arg;
    lock_release(&s->lock);
    if (call != NULL)
        call(arg, now_ms);
}

void
sampler_tick(struct sampler *s)
{
    struct store_op op = {.now_ms = clock_now_ms(s->config.clock)};
    const int64_t late_ms = op.now_ms - atomic_load(&s->next_ms);
    struct store_queue_metrics m;
    size_t at = 0;

    /* A clock that was set back does not stop the history. */
    if ((late_ms < 0 && late_ms > -2 * SAMPLER_INTERVAL_MS) ||
        atomic_exchange(&s->ticking, true))
        return;
    for (size_t i = 0; i < s->config.queues &&
                       store_queue_metrics(s->config.store, &op, &at, &m) == ST_OK;
         i++)
        sample_queue(s, &m);
    sample_end(s, op.now_ms);
    atomic_store(&s->next_ms,
                 op.now_ms + SAMPLER_INTERVAL_MS - late_ms % SAMPLER_INTERVAL_MS);
    if (op.now_ms >= s->log_ms) {
        log_all(s, &op);
        s->log_ms = op.now_ms + MINUTE_MS - late_ms % SAMPLER_INTERVAL_MS;
    }
    call_each_minute(s, op.now_ms);
    atomic_store(&s->ticking, false);
}

int64_t
sampler_next_ms(const struct sampler *s, int64_t until_ms)
{
    const int64_t hour_ms = (int64_t)SAMPLER_SAMPLES * SAMPLER_INTERVAL_MS;
    const int64_t next_ms = atomic_load(&s->next_ms);
    int64_t skipped;

    if (until_ms - next_ms <= hour_ms)
        return next_ms;
    skipped = (until_ms - next_ms - hour_ms) / SAMPLER_INTERVAL_MS;
    return next_ms + skipped * SAMPLER_INTERVAL_MS;
}

static void *
sampler_main(void *arg)
{
    struct sampler *s = arg;

    lock_acquire(&s->lock);
    while (!s->stopping) {
        lock_release(&s->lock);
        sampler_tick(s);
        lock_acquire(&s->lock);
        if (!s->stopping)
            (void)lock_wait_ms(&s->lock, &s->stop, SAMPLER_INTERVAL_MS);
    }
    lock_release(&s->lock);
    return NULL;
}

/* ------------------------------------------------------------------ reading */

static void
sample_fill(const struct history_record *r, int64_t at_ms, struct store_sample *out)
{
    *out = (struct store_sample){.at_ms = at_ms,
                                 .ready = r->ready,
                                 .delayed = r->delayed,
                                 .claimed = r->claimed,
                                 .oldest_ready_s = r->ready_age - 1,
                                 .oldest_claim_s = r->claim_age - 1,
                                 .expired = r->expired,
                                 .paused = r->paused != 0,
                                 .unread = r->unread,
                                 .letters_expired = r->letters_expired};
    memcpy(out->counts, r->counts, sizeof(out->counts));
}

enum status
sampler_read(struct sampler *s, const struct store_queue *where, struct store_sample *out,
             size_t *count)
{
    const struct history_series *q;

    *count = 0;
    lock_acquire(&s->lock);
    q = series_find(s, where);
    if (q != NULL)
        for (uint64_t n = series_begin(s, q, SAMPLER_SAMPLES); n < s->count; n++) {
            const struct history_record r = series_get(q, n);

            if (r.missing == 0)
                sample_fill(&r, s->times[n % SAMPLER_SAMPLES], &out[(*count)++]);
        }
    lock_release(&s->lock);
    return q != NULL ? ST_OK : ST_NOT_FOUND;
}

bool
sampler_rates(struct sampler *s, const struct store_queue *where, struct store_rates *out)
{
    const struct history_series *q;
    uint64_t begin = 0;
    int64_t span_ms = 0;

    *out = (struct store_rates){.expired = 0};
    lock_acquire(&s->lock);
    q = series_find(s, where);
    if (q != NULL && (begin = series_begin(s, q, MINUTE)) < s->count) {
        for (uint64_t n = begin; n < s->count; n++) {
            const struct history_record r = series_get(q, n);

            for (size_t i = 0; i < STORE_QUEUE_COUNTERS; i++)
                out->counts[i] += r.counts[i];
            out->expired += r.expired;
        }
        /* A sample counts from the one before. The first one counts from less than an
         * interval. */
        span_ms = s->times[(s->count - 1) % SAMPLER_SAMPLES] -
                  s->times[begin % SAMPLER_SAMPLES] + SAMPLER_INTERVAL_MS;
        if (begin > q->first)
            span_ms += s->times[begin % SAMPLER_SAMPLES] -
                       s->times[(begin - 1) % SAMPLER_SAMPLES] - SAMPLER_INTERVAL_MS;
    }
    lock_release(&s->lock);
    if (span_ms <= 0)
        return false;
    for (size_t i = 0; i < STORE_QUEUE_COUNTERS; i++)
        out->counts[i] = out->counts[i] * 1000000 / (uint64_t)span_ms;
    out->expired = out->expired * 1000000 / (uint64_t)span_ms;
    return true;
}

/* ------------------------------------------------------------------ life */

enum status
sampler_open(const struct sampler_config *config, struct sampler **out)
{
    struct sampler *s = mem_calloc(config->mem, 1, sizeof(*s));
    pthread_condattr_t attributes;

    if (s == NULL)
        return ST_NO_MEMORY;
    s->config = *config;
    s->minute_ms = clock_now_ms(config->clock);
    s->log_ms = s->minute_ms + MINUTE_MS;
    atomic_init(&s->next_ms, clock_now_ms(config->clock));
    s->key = (struct hash_key){(uint64_t)(uintptr_t)s, (uint64_t)s->log_ms};
    lock_init(&s->lock);
    hashmap_init(&s->series, config->mem);
    list_init(&s->all);
    (void)pthread_condattr_init(&attributes); /* none of these can fail on Linux */
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->stop, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    *out = s;
    return ST_OK;
}

enum status
sampler_start(struct sampler *s)
{
    const enum status st = thread_start(&s->thread, sampler_main, s);

    s->started = st == ST_OK;
    return st;
}

void
sampler_close(struct sampler *s)
{
    if (s == NULL)
        return;
    lock_acquire(&s->lock);
    s->stopping = true;
    (void)pthread_cond_signal(&s->stop);
    lock_release(&s->lock);
    if (s->started)
        (void)pthread_join(s->thread, NULL);
    while (!list_empty(&s->all))
        series_free(s, container_of(s->all.next, struct history_series, link));
    hashmap_fini(&s->series);
    (void)pthread_cond_destroy(&s->stop);
    lock_fini(&s->lock);
    mem_free(s->config.mem, s);
}
