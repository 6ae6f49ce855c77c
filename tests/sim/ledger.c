#include "sim/ledger.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------------- names */

const char *
place_project(int place)
{
    static const char *const projects[PROJECTS] = {"red", "blue"};

    return projects[place / NAMES];
}

const char *
place_name(int place)
{
    static const char *const names[NAMES] = {"jobs", "mail", "dead", "deader"};

    return names[place % NAMES];
}

const char *
ending_text(enum ending ending)
{
    static const char *const texts[] = {"never was there",
                                        "was deleted",
                                        "was popped",
                                        "was purged",
                                        "expired",
                                        "was moved",
                                        "was released",
                                        "held nothing any more",
                                        "went with its queue"};

    return texts[ending];
}

const char *
setting_member(enum setting s)
{
    static const char *const members[SETTING_COUNT] = {
        "_max_messages_post_size",         "_default_message_ttl",
        "_default_message_delay",          "_max_claim_count",
        "_dead_letter_queue_messages_ttl", "_dead_letter_queue"};

    return members[s];
}

/* ---------------------------------------------------------------------- arrays */

static void *
must(void *block)
{
    if (block == NULL)
        abort(); /* a test without memory has nothing to say */
    return block;
}

/* Makes space for one more item. */
static void *
grow(void *items, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return items;
    *cap = *cap == 0 ? 16 : *cap * 2;
    return must(realloc(items, *cap * size));
}

static bool
same_id(const struct store_id *a, const char *b)
{
    return strcmp(a->text, b) == 0;
}

static void
set_id(struct store_id *to, const char *id)
{
    (void)snprintf(to->text, sizeof(to->text), "%s", id);
}

static void
note_gone(struct ledger *l, int place, const char *id, enum ending ending)
{
    struct gone *g;

    l->gone = grow(l->gone, l->gone_count, &l->gone_cap, sizeof(*l->gone));
    g = &l->gone[l->gone_count++];
    *g = (struct gone){.place = place, .ending = ending};
    set_id(&g->id, id);
}

enum ending
ledger_ending(const struct ledger *l, int place, const char *id)
{
    for (size_t i = l->gone_count; i > 0; i--)
        if (l->gone[i - 1].place == place && same_id(&l->gone[i - 1].id, id))
            return l->gone[i - 1].ending;
    return ENDING_UNKNOWN;
}

/* ---------------------------------------------------------------------- life */

static void
forget_settings(struct known_queue *q)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        q->settings[i] = STORE_UNSET;
    q->paused = 0;
}

void
ledger_init(struct ledger *l)
{
    *l = (struct ledger){.soonest_ms = INT64_MAX};
    for (int i = 0; i < PLACES; i++)
        forget_settings(&l->queues[i]);
}

void
ledger_fini(struct ledger *l)
{
    for (int i = 0; i < PLACES; i++) {
        for (size_t k = 0; k < l->queues[i].count; k++)
            free(l->queues[i].messages[k]);
        free(l->queues[i].messages);
        for (size_t k = 0; k < l->queues[i].subscription_count; k++)
            free(l->queues[i].subscriptions[k]);
        free(l->queues[i].posts);
    }
    for (size_t i = 0; i < l->claim_count; i++)
        free(l->claims[i]);
    free(l->claims);
    free(l->gone);
    free(l->effects);
}

static void *
duplicate(const void *items, size_t count, size_t size)
{
    void *copy = must(malloc(count * size + 1));

    if (count > 0)
        memcpy(copy, items, count * size);
    return copy;
}

/* The copy's messages are held by the copies of claims. */
static void
copy_queue(struct ledger *to, const struct ledger *from, int place)
{
    struct known_queue *q = &to->queues[place];
    const struct known_queue *was = &from->queues[place];

    q->messages = duplicate(was->messages, was->count, sizeof(*q->messages));
    q->posts = duplicate(was->posts, was->post_count, sizeof(*q->posts));
    q->cap = was->count;
    q->post_cap = was->post_count;
    for (size_t i = 0; i < q->count; i++) {
        const struct known_message *m = was->messages[i];

        q->messages[i] = duplicate(m, 1, sizeof(*m) + m->body_len);
        for (size_t k = 0; m->claim != NULL && k < from->claim_count; k++)
            if (from->claims[k] == m->claim)
                q->messages[i]->claim = to->claims[k];
    }
    for (size_t i = 0; i < q->subscription_count; i++)
        q->subscriptions[i] =
            duplicate(was->subscriptions[i], 1, sizeof(*q->subscriptions[i]));
}

void
ledger_copy(struct ledger *to, const struct ledger *from)
{
    *to = *from;
    to->claims = duplicate(from->claims, from->claim_count, sizeof(*to->claims));
    to->gone = duplicate(from->gone, from->gone_count, sizeof(*to->gone));
    to->effects = duplicate(from->effects, from->effect_count, sizeof(*to->effects));
    to->effect_cap = from->effect_count;
    to->claim_cap = from->claim_count;
    to->gone_cap = from->gone_count;
    for (size_t i = 0; i < to->claim_count; i++)
        to->claims[i] = duplicate(from->claims[i], 1, sizeof(*to->claims[i]));
    for (int place = 0; place < PLACES; place++)
        copy_queue(to, from, place);
}

/* ---------------------------------------------------------------------- keys */

const struct known_effect *
ledger_effect(const struct ledger *l, uint64_t key)
{
    for (size_t i = l->effect_count; i > 0; i--)
        if (l->effects[i - 1].key == key)
            return &l->effects[i - 1];
    return NULL;
}

bool
ledger_remembers(const struct ledger *l, const struct known_effect *effect,
                 int64_t now_ms, int64_t window_ms)
{
    const struct known_queue *q = &l->queues[effect->place];

    return q->exists && effect->incarnation == q->incarnation &&
           now_ms < effect->made_ms + window_ms;
}

void
ledger_keep_effect(struct ledger *l, const struct known_effect *effect)
{
    l->effects = grow(l->effects, l->effect_count, &l->effect_cap, sizeof(*l->effects));
    l->effects[l->effect_count++] = *effect;
}

/* ---------------------------------------------------------------------- messages */

static void
append(struct known_queue *q, struct known_message *m)
{
    q->messages = grow(q->messages, q->count, &q->cap, sizeof(struct known_message *));
    m->order = ++q->last_order;
    q->messages[q->count++] = m;
}

static void
take_out(struct known_queue *q, const struct known_message *m)
{
    size_t at = 0;

    while (q->messages[at] != m)
        at++;
    q->count--;
    memmove(&q->messages[at], &q->messages[at + 1],
            (q->count - at) * sizeof(struct known_message *));
}

static void
sooner(struct ledger *l, int64_t due_ms)
{
    if (due_ms < l->soonest_ms)
        l->soonest_ms = due_ms;
}

struct known_message *
ledger_add(struct ledger *l, int place, const char *id, struct bytes body,
           int64_t expires_ms)
{
    struct known_message *m = must(malloc(sizeof(*m) + body.len));

    *m = (struct known_message){.expires_ms = expires_ms,
                                .own_expires_ms = expires_ms,
                                .origin = NOWHERE,
                                .body_len = body.len};
    set_id(&m->id, id);
    memcpy(m->body, body.data, body.len);
    append(&l->queues[place], m);
    sooner(l, expires_ms);
    return m;
}

static bool
holds_something(const struct ledger *l, const struct known_claim *c)
{
    const struct known_queue *q = &l->queues[c->place];

    for (size_t i = 0; i < q->count; i++)
        if (q->messages[i]->claim == c)
            return true;
    return false;
}

void
ledger_remove(struct ledger *l, int place, struct known_message *m, enum ending ending)
{
    struct known_claim *c = m->claim;

    take_out(&l->queues[place], m);
    note_gone(l, place, m->id.text, ending);
    free(m);
    if (c != NULL && !holds_something(l, c))
        ledger_end_claim(l, c, ENDING_FINISHED);
}

void
ledger_move(struct ledger *l, int from, int to, struct known_message *m)
{
    take_out(&l->queues[from], m);
    note_gone(l, from, m->id.text, ENDING_MOVED);
    append(&l->queues[to], m);
    l->soonest_ms = INT64_MIN; /* it may get a shorter life there */
}

struct known_message *
ledger_message(const struct ledger *l, int place, const char *id)
{
    const struct known_queue *q = &l->queues[place];

    for (size_t i = 0; i < q->count; i++)
        if (same_id(&q->messages[i]->id, id))
            return q->messages[i];
    return NULL;
}

/* A dead letter keeps its key, and does not hold it. */
struct known_message *
ledger_key_holder(const struct ledger *l, int place, int key)
{
    const struct known_queue *q = &l->queues[place];

    for (size_t i = 0; key != 0 && i < q->count; i++)
        if (q->messages[i]->unique.number == key && !q->messages[i]->letter)
            return q->messages[i];
    return NULL;
}

void
message_lengthen(struct known_message *m, int64_t now_ms, int64_t life_s)
{
    if (m->expires_ms < now_ms + life_s * 1000)
        m->expires_ms = now_ms + life_s * 1000;
}

/* ---------------------------------------------------------------------- claims */

void
claim_begin(struct ledger *l, struct known_claim *c, int64_t now_ms, int64_t ttl_s)
{
    c->started_ms = now_ms;
    c->ttl_ms = ttl_s * 1000;
    sooner(l, claim_end_ms(c));
}

struct known_claim *
ledger_add_claim(struct ledger *l, int place, const char *id, int64_t now_ms,
                 int64_t ttl_s)
{
    struct known_claim *c = must(calloc(1, sizeof(*c)));

    l->claims =
        grow(l->claims, l->claim_count, &l->claim_cap, sizeof(struct known_claim *));
    l->claims[l->claim_count++] = c;
    c->place = place;
    set_id(&c->id, id);
    claim_begin(l, c, now_ms, ttl_s);
    return c;
}

struct known_claim *
ledger_claim(const struct ledger *l, int place, const char *id)
{
    for (size_t i = 0; i < l->claim_count; i++)
        if (l->claims[i]->place == place && same_id(&l->claims[i]->id, id))
            return l->claims[i];
    return NULL;
}

void
ledger_end_claim(struct ledger *l, struct known_claim *c, enum ending ending)
{
    struct known_queue *q = &l->queues[c->place];
    size_t at = 0;

    for (size_t i = 0; i < q->count; i++)
        if (q->messages[i]->claim == c) {
            q->messages[i]->claim = NULL;
            q->messages[i]->freed_by_time = ending == ENDING_EXPIRED;
        }
    while (l->claims[at] != c)
        at++;
    l->claim_count--;
    memmove(&l->claims[at], &l->claims[at + 1],
            (l->claim_count - at) * sizeof(struct known_claim *));
    note_gone(l, c->place, c->id.text, ending);
    free(c);
}

void
ledger_watch(struct ledger *l, const struct known_message *m)
{
    sooner(l, m->expires_ms);
    sooner(l, m->ready_ms);
}

void
ledger_release(struct ledger *l, struct known_message *m)
{
    struct known_claim *c = m->claim;

    m->claim = NULL;
    m->freed_by_time = false;
    if (!holds_something(l, c))
        ledger_end_claim(l, c, ENDING_FINISHED);
}

void
ledger_feed_moved(struct ledger *l, int place, const struct known_message *m)
{
    ledger_feed(l, place,
                &(struct known_post){.number = m->number,
                                     .len = m->drafted,
                                     .bytes = m->body_len,
                                     .expires_ms = m->expires_ms,
                                     .ttl_s = (m->expires_ms - m->posted_ms) / 1000});
}

void
ledger_dead_letter(struct ledger *l, int from, int to, struct known_message *m,
                   int64_t now_ms)
{
    const int64_t life_s = l->queues[from].settings[SETTING_DEAD_LETTER_TTL];

    if (m->claim != NULL)
        ledger_release(l, m);
    if (!l->queues[to].exists)
        ledger_make_queue(l, to);
    ledger_move(l, from, to, m);
    m->claim_count = 0;
    m->letter = true;
    if (m->origin == NOWHERE)
        m->origin = from;
    if (life_s != STORE_UNSET) {
        m->posted_ms = m->ready_ms = now_ms;
        m->expires_ms = m->own_expires_ms = now_ms + life_s * 1000;
    }
    ledger_feed_moved(l, to, m);
}

bool
ledger_exhausted(const struct ledger *l, int place, const struct known_message *m)
{
    return ledger_dead_letters(l, place) != NOWHERE &&
           m->claim_count >= l->queues[place].settings[SETTING_CLAIM_COUNT];
}

bool
ledger_dies(const struct ledger *l, int place, const struct known_message *m)
{
    return m->claim != NULL && m->expires_ms > claim_end_ms(m->claim) &&
           ledger_exhausted(l, place, m);
}

int64_t
ledger_next_death(const struct ledger *l)
{
    int64_t next_ms = INT64_MAX;

    for (int place = 0; place < PLACES; place++)
        for (size_t i = 0; i < l->queues[place].count; i++) {
            const struct known_message *m = l->queues[place].messages[i];

            if (ledger_dies(l, place, m) && claim_end_ms(m->claim) < next_ms)
                next_ms = claim_end_ms(m->claim);
        }
    return next_ms;
}

void
ledger_release_unsent(struct ledger *l, struct known_claim *c, bool uncount)
{
    struct known_queue *q = &l->queues[c->place];

    for (size_t i = 0; i < q->count; i++)
        if (q->messages[i]->claim == c) {
            q->messages[i]->claim_count -= uncount;
            q->messages[i]->given_back = true;
        }
    ledger_end_claim(l, c, ENDING_RELEASED);
}

/* ---------------------------------------------------------------------- waiting */

/* Where the waiter is in the wait queue of a place; waiter_count if it is not. */
static size_t
place_in_waitqueue(const struct known_queue *q, int waiter)
{
    size_t at = 0;

    while (at < q->waiter_count && q->waiters[at] != waiter)
        at++;
    return at;
}

void
ledger_wait(struct ledger *l, int place, int waiter, size_t wants)
{
    struct known_queue *q = &l->queues[place];

    l->wants[waiter] = wants;
    if (place_in_waitqueue(q, waiter) == q->waiter_count)
        q->waiters[q->waiter_count++] = waiter;
}

void
ledger_stop_waiting(struct ledger *l, int waiter)
{
    for (int place = 0; place < PLACES; place++) {
        struct known_queue *q = &l->queues[place];
        size_t at = place_in_waitqueue(q, waiter);

        if (at == q->waiter_count)
            continue;
        q->waiter_count--;
        memmove(&q->waiters[at], &q->waiters[at + 1],
                (q->waiter_count - at) * sizeof(int));
    }
    l->dismissed[waiter] = false;
}

size_t
ledger_reserved(const struct ledger *l, int place, int waiter)
{
    const struct known_queue *q = &l->queues[place];
    size_t reserved = 0;

    for (size_t i = 0; i < place_in_waitqueue(q, waiter); i++)
        reserved += l->wants[q->waiters[i]];
    return reserved >= STORE_RESERVED ? SIZE_MAX : reserved;
}

size_t
ledger_ready(const struct ledger *l, int place, int64_t now_ms)
{
    const struct known_queue *q = &l->queues[place];
    size_t ready = 0;

    if ((q->paused & STORE_PAUSE_CLAIMS) != 0)
        return 0;
    for (size_t i = 0; i < q->count; i++)
        ready += q->messages[i]->claim == NULL && now_ms >= q->messages[i]->ready_ms;
    return ready;
}

/* ---------------------------------------------------------------------- queues */

void
ledger_make_queue(struct ledger *l, int place)
{
    struct known_queue *q = &l->queues[place];

    assert(!q->exists && q->count == 0);
    q->exists = true;
    q->transient = false;
    q->incarnation++;
    q->last_order = 0;
    forget_settings(q);
}

static void
remove_all(struct ledger *l, int place, enum ending ending)
{
    while (l->queues[place].count > 0)
        ledger_remove(l, place, l->queues[place].messages[l->queues[place].count - 1],
                      ending);
}

static void
unsubscribe_all(struct ledger *l, int place, enum ending ending)
{
    while (l->queues[place].subscription_count > 0)
        ledger_unsubscribe(l, l->queues[place].subscriptions[0], ending);
}

void
ledger_delete_queue(struct ledger *l, int place)
{
    struct known_queue *q = &l->queues[place];

    remove_all(l, place, ENDING_QUEUE_DELETED);
    if (!q->exists)
        return; /* waiters of a missing queue wait on */
    q->exists = false;
    unsubscribe_all(l, place, ENDING_QUEUE_DELETED);
    while (q->waiter_count > 0)
        l->dismissed[q->waiters[--q->waiter_count]] = true;
    forget_settings(&l->queues[place]);
}

void
ledger_purge(struct ledger *l, int place, enum store_purge what)
{
    if (what != STORE_PURGE_SUBSCRIPTIONS)
        remove_all(l, place, ENDING_PURGED);
    if (what != STORE_PURGE_MESSAGES)
        unsubscribe_all(l, place, ENDING_PURGED);
}

int
ledger_dead_letters(const struct ledger *l, int place)
{
    const int64_t *set = l->queues[place].settings;

    if (set[SETTING_CLAIM_COUNT] == STORE_UNSET ||
        set[SETTING_DEAD_LETTER] == STORE_UNSET)
        return NOWHERE;
    return place_of(place / NAMES, (int)set[SETTING_DEAD_LETTER]);
}

/* ---------------------------------------------------------------------- time */

static void
keep_soonest(void *ctx, int64_t due_ms)
{
    sooner(ctx, due_ms);
}

void
ledger_advance(struct ledger *l, int64_t now_ms)
{
    if (now_ms < l->soonest_ms)
        return;
    for (size_t i = l->claim_count; i > 0; i--)
        if (now_ms >= claim_end_ms(l->claims[i - 1]))
            ledger_end_claim(l, l->claims[i - 1], ENDING_EXPIRED);
    for (int place = 0; place < PLACES; place++) {
        struct known_queue *q = &l->queues[place];

        for (size_t i = q->count; i > 0; i--)
            if (now_ms >= q->messages[i - 1]->expires_ms)
                ledger_remove(l, place, q->messages[i - 1], ENDING_EXPIRED);
        for (size_t i = q->subscription_count; i > 0; i--)
            if (now_ms >= subscription_end_ms(q->subscriptions[i - 1]))
                ledger_unsubscribe(l, q->subscriptions[i - 1], ENDING_EXPIRED);
    }
    l->soonest_ms = INT64_MAX;
    ledger_deadlines(l, keep_soonest, l);
}

static void
subscription_deadlines(const struct known_queue *q,
                       void (*each)(void *ctx, int64_t due_ms), void *ctx)
{
    for (size_t i = 0; i < q->subscription_count; i++) {
        const struct known_subscription *s = q->subscriptions[i];

        each(ctx, subscription_end_ms(s));
        if (s->again_ms > 0)
            each(ctx, s->again_ms);
        if (s->listens && s->at < q->post_count)
            each(ctx, q->posts[s->at].expires_ms);
    }
}

void
ledger_deadlines(const struct ledger *l, void (*each)(void *ctx, int64_t due_ms),
                 void *ctx)
{
    for (size_t i = 0; i < l->claim_count; i++)
        each(ctx, claim_end_ms(l->claims[i]));
    for (int place = 0; place < PLACES; place++) {
        const struct known_queue *q = &l->queues[place];

        for (size_t i = 0; i < q->count; i++) {
            each(ctx, q->messages[i]->expires_ms);
            if (q->messages[i]->ready_ms > q->messages[i]->posted_ms)
                each(ctx, q->messages[i]->ready_ms);
        }
        subscription_deadlines(q, each, ctx);
    }
}

/* ---------------------------------------------------------------------- subscriptions */

void
ledger_feed(struct ledger *l, int place, const struct known_post *post)
{
    struct known_queue *q = &l->queues[place];

    q->posts = grow(q->posts, q->post_count, &q->post_cap, sizeof(*q->posts));
    q->posts[q->post_count++] = *post;
}

void
ledger_hurry(struct ledger *l)
{
    l->soonest_ms = INT64_MIN;
}

struct known_subscription *
ledger_subscribe(struct ledger *l, int place, const char *id)
{
    struct known_subscription *s = must(calloc(1, sizeof(*s)));
    struct known_queue *q = &l->queues[place];

    assert(q->subscription_count < SUBSCRIBERS);
    q->subscriptions[q->subscription_count++] = s;
    s->place = place;
    s->exact = s->adds_up = true;
    set_id(&s->id, id);
    ledger_hurry(l);
    return s;
}

void
ledger_unsubscribe(struct ledger *l, struct known_subscription *s, enum ending ending)
{
    struct known_queue *q = &l->queues[s->place];
    size_t at = 0;

    while (q->subscriptions[at] != s)
        at++;
    for (q->subscription_count--; at < q->subscription_count; at++)
        q->subscriptions[at] = q->subscriptions[at + 1];
    note_gone(l, s->place, s->id.text, ending);
    free(s);
}

struct known_subscription *
ledger_subscription(const struct ledger *l, int place, const char *id)
{
    const struct known_queue *q = &l->queues[place];

    for (size_t i = 0; i < q->subscription_count; i++)
        if (same_id(&q->subscriptions[i]->id, id))
            return q->subscriptions[i];
    return NULL;
}

struct known_subscription *
ledger_subscriber(const struct ledger *l, int place, int subscriber)
{
    const struct known_queue *q = &l->queues[place];

    for (size_t i = 0; i < q->subscription_count; i++)
        if (q->subscriptions[i]->subscriber == subscriber)
            return q->subscriptions[i];
    return NULL;
}

size_t
ledger_bytes(const struct ledger *l)
{
    size_t total = 0;

    for (int place = 0; place < PLACES; place++)
        for (size_t i = 0; i < l->queues[place].count; i++)
            total += l->queues[place].messages[i]->body_len + 128;
    return total;
}
