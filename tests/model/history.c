#include "model/history.h"

#include "model/pair.h"
#include "model/twin.h"
#include "support/random.h"
#include "support/tape.h"

#include <inttypes.h>
#include <stdio.h>

/* Between two looks of the engine at the writer of runs. */
enum { UNLOAD_POLL_MS = 1000 };

enum {
    MAX_QUEUES = 200,
    KNOWN_MESSAGES = 256,
    KNOWN_CLAIMS = 48,
    KNOWN_MARKERS = 16,
    KNOWN_SUBSCRIPTIONS = 24,
    MAX_BATCH = 200,
};

struct known {
    struct id_pair id;
    size_t queue;
};

struct marker {
    struct id_pair text;
    size_t queue;
    uint64_t life; /* of the queue when the marker was made */
};

struct history {
    const struct shape *shape;
    struct pair pair;
    struct random random;
    struct tape *tape; /* where choices come from; NULL: from random */
    struct known messages[KNOWN_MESSAGES];             /* the newest ones, a ring */
    struct known claims[KNOWN_CLAIMS];                 /* likewise */
    struct marker markers[KNOWN_MARKERS];              /* likewise */
    struct known subscriptions[KNOWN_SUBSCRIPTIONS];   /* likewise */
    uint64_t message_count, claim_count, marker_count; /* ever known */
    uint64_t subscription_count;
    uint64_t lives[MAX_QUEUES];               /* times a queue was deleted */
    struct version_pair versions[MAX_QUEUES]; /* seen last */
    char names[MAX_QUEUES][24];
    uint64_t bodies; /* made so far */
};

static uint64_t
below(struct history *h, uint64_t n)
{
    return h->tape != NULL ? tape_below(h->tape, n) : random_below(&h->random, n);
}

static int64_t
between(struct history *h, int64_t low, int64_t high)
{
    return low + (int64_t)below(h, (uint64_t)(high - low) + 1);
}

static bool
chance(struct history *h, unsigned percent)
{
    return below(h, 100) < percent;
}

/* Each name is in both projects: an even one in the first, the next in the second. */
static struct store_queue
queue_at(const struct history *h, size_t i)
{
    return (struct store_queue){.project = bytes_str(i % 2 == 0 ? "p1" : "p2"),
                                .name = bytes_str(h->names[i])};
}

static void
history_open(struct history *h, const struct shape *shape, uint64_t seed)
{
    memset(h, 0, sizeof(*h));
    h->shape = shape;
    h->random.state = seed;
    pair_open(&h->pair, shape->shards, random_next(&h->random), shape->confirming);
    for (size_t i = 0; i < shape->queues; i++)
        snprintf(h->names[i], sizeof(h->names[i]), "q%zu", i / 2);
}

/* ---------------------------------------------------------------------- choices */

/* One of the known, mostly of this queue. Now and then one of another, or nonsense. */
static struct id_pair
some_known(struct history *h, const struct known *ring, size_t cap, uint64_t ever,
           size_t queue)
{
    uint64_t known = ever < cap ? ever : cap;
    struct id_pair nonsense = {{"nonsense"}, {"nonsense"}};
    size_t i = 0;

    if (known == 0 || chance(h, 3))
        return nonsense;
    for (int tries = 0; tries < 8; tries++) {
        i = below(h, known);
        if (ring[i].queue == queue || chance(h, 4))
            break;
    }
    return ring[i].id;
}

static struct id_pair
some_message(struct history *h, size_t queue)
{
    return some_known(h, h->messages, KNOWN_MESSAGES, h->message_count, queue);
}

static struct id_pair
some_claim(struct history *h, size_t queue)
{
    return some_known(h, h->claims, KNOWN_CLAIMS, h->claim_count, queue);
}

static struct id_pair
some_subscription(struct history *h, size_t queue)
{
    return some_known(h, h->subscriptions, KNOWN_SUBSCRIPTIONS, h->subscription_count,
                      queue);
}

/* Where a listing goes on: the head, a marker, a message. */
static struct id_pair
some_marker(struct history *h, size_t queue)
{
    struct id_pair head = {{""}, {""}};
    uint64_t known = h->marker_count < KNOWN_MARKERS ? h->marker_count : KNOWN_MARKERS;
    uint64_t choice = below(h, 10);

    if (choice < 4)
        return head;
    if (choice < 6)
        return some_message(h, queue);
    for (uint64_t i = 0; i < known; i++) {
        const struct marker *m = &h->markers[below(h, known)];

        /* A marker means something only to the queue that gave it, while it lives. */
        if (m->queue == queue && m->life == h->lives[queue])
            return m->text;
    }
    return head;
}

/* 1 to max, often small. */
static int64_t
some_seconds(struct history *h, int64_t max)
{
    if (max > 10 && chance(h, 30))
        max /= 10;
    return between(h, 1, max);
}

static int64_t
sometimes_unset(struct history *h, unsigned percent, int64_t value)
{
    return chance(h, percent) ? value : STORE_UNSET;
}

static struct store_metadata
some_metadata(struct history *h)
{
    static const char *const documents[] = {"", "{}", "{\"a\":1}",
                                            "{\"color\":\"red\",\"_x\":[1,2,3]}"};
    struct store_metadata md = {bytes_str(documents[below(h, 4)]), STORE_SETTINGS_INIT};
    struct store_settings *set = &md.settings;

    set->max_post_bytes = sometimes_unset(h, 20, (int64_t)below(h, 400));
    set->message_ttl_s = sometimes_unset(h, 30, some_seconds(h, h->shape->ttl_s));
    set->message_delay_s = sometimes_unset(h, 10, between(h, 0, h->shape->delay_s));
    set->claim_ttl_s = sometimes_unset(h, 50, some_seconds(h, h->shape->claim_s));
    set->claim_grace_s = sometimes_unset(h, 50, some_seconds(h, h->shape->claim_s));
    if (!chance(h, 90))
        set->paused = (unsigned)between(h, STORE_PAUSE_CLAIMS,
                                        STORE_PAUSE_CLAIMS | STORE_PAUSE_POSTS);
    if (set->paused == STORE_PAUSE_CLAIMS)
        set->paused_by = bytes_str("7\nweb3");
    if (!chance(h, h->shape->dead))
        return md;
    set->max_claim_count = sometimes_unset(h, 90, between(h, 1, 3));
    set->dead_letter_ttl_s = sometimes_unset(h, 50, some_seconds(h, h->shape->ttl_s));
    if (chance(h, 90))
        set->dead_letter = bytes_str(h->names[below(h, h->shape->queues)]);
    return md;
}

static struct store_terms
some_terms(struct history *h)
{
    return (struct store_terms){
        sometimes_unset(h, 80, some_seconds(h, h->shape->claim_s)),
        sometimes_unset(h, 80, some_seconds(h, h->shape->claim_s))};
}

/* ---------------------------------------------------------------------- operations */

/*
 * The next operation sometimes has one of few keys. The digest identifies the request.
 * The draws of a tape that has ended are 0, and then no operation has a key: a waiter
 * that is refused for its key would be sent again without end.
 */
static void
some_key(struct history *h, uint64_t what)
{
    h->pair.keyed = !chance(h, 85);
    if (h->pair.keyed)
        h->pair.key = (struct store_key){.hash = {below(h, 8), 1}, .digest = {what, 2}};
}

/* One of few keys, in *text. */
static struct store_unique
some_unique(struct history *h, char text[8])
{
    snprintf(text, 8, "k%d", (int)below(h, 6));
    return (struct store_unique){.key = bytes_str(text), .until_claimed = chance(h, 40)};
}

static void
do_post(struct history *h, size_t queue)
{
    struct store_queue where = queue_at(h, queue);
    struct store_draft drafts[MAX_BATCH];
    struct id_pair ids[MAX_BATCH];
    char bodies[MAX_BATCH][48];
    struct store_checksum checksums[MAX_BATCH];
    struct store_post post = {.drafts = drafts};
    struct store_unique unique;
    char key[8];
    bool posted;

    post.count = 1 + below(h, h->shape->batch);
    post.client = below(h, 3);
    post.request_bytes = below(h, 500);
    post.create_queue = chance(h, 90);
    for (size_t i = 0; i < post.count; i++) {
        snprintf(bodies[i], sizeof(bodies[i]), "%" PRIu64 "%*s", h->bodies++,
                 (int)below(h, 20), "");
        drafts[i].body = bytes_str(bodies[i]);
        drafts[i].ttl_s = sometimes_unset(h, 90, some_seconds(h, h->shape->ttl_s));
        drafts[i].delay_s = 0;
        if (chance(h, 25))
            drafts[i].delay_s = sometimes_unset(h, 80, between(h, 0, h->shape->delay_s));
    }
    if (chance(h, 20)) {
        memset(checksums, (int)below(h, 256), sizeof(checksums));
        post.checksums = checksums;
    }
    if (post.count == 1 && chance(h, 40)) {
        unique = some_unique(h, key);
        post.unique = &unique;
    } else {
        some_key(h, post.count);
    }
    posted = pair_post(&h->pair, &where, &post, ids);
    h->pair.keyed = false;
    if (!posted)
        return;
    for (size_t i = 0; i < post.count; i++)
        h->messages[h->message_count++ % KNOWN_MESSAGES] = (struct known){ids[i], queue};
}

static struct store_filter
some_filter(struct history *h)
{
    return (struct store_filter){.limit = 1 + below(h, h->shape->batch),
                                 .include_claimed = chance(h, 50),
                                 .include_delayed = chance(h, 50),
                                 .hide_client = chance(h, 30),
                                 .client = below(h, 3)};
}

static void
do_list(struct history *h, size_t queue)
{
    struct store_queue where = queue_at(h, queue);
    struct store_filter filter = some_filter(h);
    struct id_pair marker = some_marker(h, queue);
    struct id_pair next;

    if (pair_list(&h->pair, &where, &filter, &marker, &next) > 0)
        h->markers[h->marker_count++ % KNOWN_MARKERS] =
            (struct marker){next, queue, h->lives[queue]};
}

/* Fills ids with 1 to max messages; returns how many. */
static size_t
some_messages(struct history *h, size_t queue, struct id_pair *ids, size_t max)
{
    size_t count = 1 + below(h, max);

    for (size_t i = 0; i < count; i++)
        ids[i] = some_message(h, queue);
    return count;
}

static void
do_get(struct history *h, size_t queue)
{
    struct store_queue where = queue_at(h, queue);
    struct id_pair ids[MAX_BATCH];
    size_t count = some_messages(h, queue, ids, h->shape->batch);

    pair_get(&h->pair, &where, ids, count);
}

static void
do_delete(struct history *h, size_t queue)
{
    struct store_queue where = queue_at(h, queue);
    struct id_pair id = some_message(h, queue);
    struct id_pair claim = some_claim(h, queue);

    pair_delete(&h->pair, &where, &id, chance(h, 50) ? &claim : NULL);
}

static void
do_delete_many(struct history *h, size_t queue)
{
    struct store_queue where = queue_at(h, queue);
    struct id_pair ids[MAX_BATCH], claims[4];
    size_t count = some_messages(h, queue, ids, h->shape->batch);
    size_t claim_count = below(h, 5);
    bool strict = chance(h, 50);

    if (strict && count > 2)
        count = 1 + count % 2; /* else it is refused nearly always */
    for (size_t i = 0; i < claim_count; i++)
        claims[i] = some_claim(h, queue);
    pair_delete_many(&h->pair, &where, ids, count, strict ? claims : NULL,
                     strict ? claim_count : 0);
}

/* How many bytes the caller has space for: mostly any number. */
static size_t
some_capacity(struct history *h)
{
    return chance(h, 80) ? 0 : 1 + below(h, 20 * h->shape->batch);
}

static void
do_claim(struct history *h, size_t queue, struct pair_waiter *w)
{
    struct store_queue where = queue_at(h, queue);
    struct store_terms terms = some_terms(h);
    const size_t limit = 1 + below(h, h->shape->batch);
    struct id_pair claim;
    bool claimed;

    some_key(h, 1000 + limit);
    claimed = pair_claim(&h->pair, &where, &terms, limit, some_capacity(h), w, &claim);
    h->pair.keyed = false;
    if (claimed)
        h->claims[h->claim_count++ % KNOWN_CLAIMS] = (struct known){claim, queue};
}

static struct pair_waiter *
some_waiter(struct history *h)
{
    return &h->pair.waiters[below(h, PAIR_WAITERS)];
}

/* Which of the queues it is. */
static size_t
index_of(const struct history *h, const struct store_queue *where)
{
    size_t i = 0;

    while (!bytes_equal(queue_at(h, i).project, where->project) ||
           !bytes_equal(queue_at(h, i).name, where->name))
        i++;
    return i;
}

static void
do_pop(struct history *h, const struct store_queue *where, struct pair_waiter *w)
{
    const size_t limit = 1 + below(h, h->shape->batch);

    some_key(h, 2000 + limit);
    pair_pop(&h->pair, where, limit, some_capacity(h), w);
    h->pair.keyed = false;
}

/* A claim, or a pop, that waits; one that waits already tries again. */
static void
claim_waiting(struct history *h, size_t queue, struct pair_waiter *w)
{
    struct store_queue where = queue_at(h, queue);

    if (w->waits)
        where = queue_at(h, queue = index_of(h, &w->queue));
    if (chance(h, 70))
        do_claim(h, queue, w);
    else
        do_pop(h, &where, w);
}

/* Notified waiters try again, from anywhere in the wait queue on, until none is
 * notified. */
static void
serve(struct history *h)
{
    size_t first = below(h, PAIR_WAITERS), quiet = 0;

    pair_expect_notified(&h->pair);
    for (size_t i = first; quiet < PAIR_WAITERS; i++) {
        struct pair_waiter *w = &h->pair.waiters[i % PAIR_WAITERS];

        quiet++;
        if (!w->waits || !w->notified)
            continue;
        claim_waiting(h, 0, w);
        quiet = 0;
    }
    pair_expect_notified(&h->pair);
}

static void
do_renew(struct history *h, size_t queue)
{
    struct store_queue where = queue_at(h, queue);
    struct store_terms terms = some_terms(h);
    struct id_pair claim = some_claim(h, queue);

    pair_renew(&h->pair, &where, &claim, &terms);
}

static void
do_update(struct history *h, size_t queue)
{
    struct store_queue where = queue_at(h, queue);
    struct store_metadata metadata = some_metadata(h);

    if (chance(h, 70)) /* else with a version that may be old */
        pair_show(&h->pair, &where, &h->versions[queue]);
    pair_update(&h->pair, &where, h->versions[queue], &metadata);
}

static void
do_list_queues(struct history *h)
{
    struct bytes project = bytes_str(chance(h, 30) ? "p2" : "p1");
    struct bytes marker = BYTES_NONE;

    if (chance(h, 60))
        marker = bytes_str(h->names[below(h, h->shape->queues)]);
    pair_list_queues(&h->pair, project, marker, below(h, 20), chance(h, 50));
}

/* One of few, so that they meet. */
static struct store_subscription_draft
some_draft(struct history *h)
{
    static const char *const subscribers[] = {"a", "http://b/c?d", "e", "ff", "ggg"};
    static const char *const options[] = {"{}", "{\"x\":1}", "{\"y\":[2,3]}"};

    return (struct store_subscription_draft){bytes_str(subscribers[below(h, 5)]),
                                             bytes_str(options[below(h, 3)]),
                                             some_seconds(h, 4 * h->shape->ttl_s)};
}

static void
do_change(struct history *h, size_t queue, const struct id_pair *id)
{
    struct store_queue where = queue_at(h, queue);
    struct store_subscription_draft draft = some_draft(h);

    if (chance(h, 40))
        draft.subscriber = BYTES_NONE;
    if (chance(h, 40))
        draft.options = BYTES_NONE;
    if (chance(h, 40))
        draft.ttl_s = STORE_UNSET;
    pair_change_subscription(&h->pair, &where, id, &draft);
}

static void
do_subscription(struct history *h, size_t queue)
{
    struct store_queue where = queue_at(h, queue);
    struct id_pair id = some_subscription(h, queue);
    struct store_subscription_draft draft;
    uint64_t choice = below(h, 100);

    if (choice < 40) {
        draft = some_draft(h);
        if (pair_subscribe(&h->pair, &where, &draft, &id))
            h->subscriptions[h->subscription_count++ % KNOWN_SUBSCRIPTIONS] =
                (struct known){id, queue};
    } else if (choice < 55) {
        do_change(h, queue, &id);
    } else if (choice < 75) {
        pair_confirm(&h->pair, &where, &id, chance(h, 70));
    } else if (choice < 80) {
        pair_unsubscribe(&h->pair, &where, &id);
    } else if (choice < 90) {
        pair_see_subscription(&h->pair, &where, &id);
    } else {
        pair_list_subscriptions(&h->pair, &where, 1 + below(h, 4));
    }
}

/* Something is leased, or something that was is given back, however it went. */
static void
deliver(struct history *h)
{
    static const enum store_outcome outcomes[] = {
        STORE_OUTCOME_DELIVERED,  STORE_OUTCOME_DELIVERED,
        STORE_OUTCOME_DELIVERED,  STORE_OUTCOME_FAILED,
        STORE_OUTCOME_BACKED_OFF, STORE_OUTCOME_PERMANENT_FAILURE,
        STORE_OUTCOME_GONE};
    enum store_outcome outcome = outcomes[below(h, chance(h, 20) ? 7 : 6)];
    int64_t again_ms = h->pair.now_ms + between(h, -1, 20000);

    if (chance(h, 60) && pair_lease_next(&h->pair))
        return;
    if (h->pair.leased_count > 0)
        pair_give(&h->pair, below(h, h->pair.leased_count), outcome, again_ms);
}

/* ---------------------------------------------------------------------- failing jobs */

static void
add_item(struct history *h, struct pair_finish *f, const struct id_pair *id)
{
    static const char *const reasons[] = {NULL, "", "refused",
                                          "the disk of the worker is full"};
    struct pair_item *item = &f->items[f->count];

    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->items[i].id.left.text, id->left.text) == 0)
            return;
    if (f->count == PAIR_ITEMS)
        return;
    f->count++;
    *item = (struct pair_item){.id = *id,
                               .action = (enum store_finish_action)below(h, 3),
                               .uncounted = chance(h, 20)};
    if (item->action != STORE_FINISH_DELETE)
        item->reason = reasons[below(h, 4)];
    if (item->action == STORE_FINISH_RELEASE && chance(h, 60))
        item->delay_s = between(h, 0, 2 * h->shape->delay_s + 10);
}

/* A release is one if it was the last attempt. */
static bool
may_have_dead_letter(const struct pair_finish *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].action == STORE_FINISH_DEAD_LETTER ||
            (f->items[i].action == STORE_FINISH_RELEASE && !f->items[i].uncounted))
            return true;
    return false;
}

/* A post of a finish. */
struct choice {
    struct store_draft draft;
    struct store_unique unique;
    char body[24], key[8];
};

/* To queues of the project, no two to one. */
static void
choose_posts(struct history *h, size_t queue, struct pair_finish *f,
             struct choice *chosen, size_t *to)
{
    size_t count = chance(h, 50) ? below(h, PAIR_POSTS + 1) : 0;

    while (f->post_count < count) {
        size_t at = f->post_count;
        bool known = false;

        to[at] = below(h, h->shape->queues) / 2 * 2 + queue % 2;
        for (size_t i = 0; i < at; i++)
            known = known || to[i] == to[at];
        /* Redis appends posts to the queue of the claim behind dead letters of the same
         * queue. */
        if (known ||
            (h->pair.redis != NULL && to[at] == queue && may_have_dead_letter(f))) {
            count--;
            continue;
        }
        snprintf(chosen[at].body, sizeof(chosen[at].body), "%" PRIu64, h->bodies++);
        chosen[at].draft = (struct store_draft){
            bytes_str(chosen[at].body), some_seconds(h, h->shape->ttl_s), STORE_UNSET};
        f->posts[f->post_count] =
            (struct store_finish_post){.queue = queue_at(h, to[at]).name,
                                       .post = {.drafts = &chosen[at].draft,
                                                .count = 1,
                                                .client = below(h, 3),
                                                .request_bytes = below(h, 300),
                                                .create_queue = chance(h, 90)}};
        if (chance(h, 40)) {
            chosen[at].unique = some_unique(h, chosen[at].key);
            f->posts[f->post_count].post.unique = &chosen[at].unique;
        }
        f->post_count++;
    }
}

static void
do_finish(struct history *h, size_t queue)
{
    struct store_queue where = queue_at(h, queue);
    struct store_terms terms = some_terms(h);
    struct pair_finish f = {.claim = some_claim(h, queue),
                            .renew = chance(h, 30) ? &terms : NULL,
                            .atomic = chance(h, 60)};
    struct choice chosen[PAIR_POSTS];
    struct id_pair held[PAIR_ITEMS];
    size_t to[PAIR_POSTS], count;

    count = pair_held(&h->pair, &where, &f.claim, held, PAIR_ITEMS);
    for (size_t i = 0; i < count; i++)
        if (chance(h, 75))
            add_item(h, &f, &held[i]);
    if (chance(h, 10)) {
        struct id_pair other = some_message(h, queue);

        add_item(h, &f, &other);
    }
    choose_posts(h, queue, &f, chosen, to);
    if (!pair_finish(&h->pair, &where, &f))
        return;
    for (size_t i = 0; i < f.post_count; i++)
        h->messages[h->message_count++ % KNOWN_MESSAGES] =
            (struct known){f.posted[i], to[i]};
}

static void
do_redrive(struct history *h, size_t queue)
{
    struct store_queue where = queue_at(h, queue);
    struct store_redrive which = {.limit = 1 + below(h, chance(h, 50) ? 4 : 200),
                                  .dry_run = chance(h, 20),
                                  .keeps_count = chance(h, 30)};
    struct id_pair ids[4];

    if (chance(h, 30))
        which.to = queue_at(h, below(h, h->shape->queues)).name;
    for (size_t i = 0; i < 4; i++)
        ids[i] = some_message(h, queue);
    pair_redrive(&h->pair, &where, &which, chance(h, 25) ? ids : NULL, 4);
}

static void
do_operation(struct history *h, enum operation op, size_t queue)
{
    struct store_queue where = queue_at(h, queue);
    struct id_pair claim = some_claim(h, queue);
    struct store_metadata metadata;

    switch (op) {
    case OP_POST:
        do_post(h, queue);
        break;
    case OP_LIST:
        do_list(h, queue);
        break;
    case OP_GET:
        do_get(h, queue);
        break;
    case OP_DELETE:
        do_delete(h, queue);
        break;
    case OP_DELETE_MANY:
        do_delete_many(h, queue);
        break;
    case OP_POP:
        pair_pop(&h->pair, &where, 1 + below(h, h->shape->batch), some_capacity(h), NULL);
        break;
    case OP_CLAIM:
        do_claim(h, queue, NULL);
        break;
    case OP_QUERY:
        pair_query(&h->pair, &where, &claim);
        break;
    case OP_RENEW:
        do_renew(h, queue);
        break;
    case OP_RELEASE:
        pair_release(&h->pair, &where, &claim);
        break;
    case OP_CREATE:
        metadata = some_metadata(h);
        pair_create(&h->pair, &where, &metadata);
        break;
    case OP_SHOW:
        pair_show(&h->pair, &where, &h->versions[queue]);
        break;
    case OP_UPDATE:
        do_update(h, queue);
        break;
    case OP_DELETE_QUEUE:
        pair_delete_queue(&h->pair, &where);
        h->lives[queue]++;
        break;
    case OP_LIST_QUEUES:
        do_list_queues(h);
        break;
    case OP_STATS:
        pair_stats(&h->pair, &where);
        break;
    case OP_PURGE:
        pair_purge(&h->pair, &where, 1 + (enum store_purge)below(h, 3));
        break;
    case OP_WAIT:
        claim_waiting(h, queue, some_waiter(h));
        break;
    case OP_SERVE:
        serve(h);
        break;
    case OP_LEAVE:
        pair_leave(&h->pair, some_waiter(h));
        break;
    case OP_GIVE_BACK:
        pair_release_unsent(&h->pair, &where, &claim, chance(h, 50));
        break;
    case OP_SUBSCRIBE:
        do_subscription(h, queue);
        break;
    case OP_DELIVER:
        deliver(h);
        break;
    case OP_FINISH:
        do_finish(h, queue);
        break;
    case OP_REDRIVE:
        do_redrive(h, queue);
        break;
    default:
        pair_housekeep(&h->pair);
        break;
    }
}

/* ---------------------------------------------------------------------- running */

/* Exactly at, just before or just after the next deadline. */
static void
move_to_deadline(struct history *h)
{
    int64_t due_ms = twin_next_deadline(h->pair.twin, h->pair.now_ms);

    if (due_ms == INT64_MAX)
        return;
    due_ms += between(h, -1, 1);
    if (due_ms > h->pair.now_ms)
        pair_pass(&h->pair, due_ms);
}

static void
move_time(struct history *h)
{
    uint64_t choice = below(h, 100);

    if (chance(h, h->shape->still))
        return;
    if (choice < 25)
        pair_pass(&h->pair, h->pair.now_ms + 1);
    else if (choice < 45)
        pair_pass(&h->pair, h->pair.now_ms + between(h, 1, 1000));
    else if (choice < 60)
        pair_pass(&h->pair, h->pair.now_ms + between(h, 1, h->shape->claim_s * 1000));
    else if (choice < 98 || !h->shape->days)
        move_to_deadline(h);
    else
        pair_pass(&h->pair, h->pair.now_ms + between(h, 1, 15 * INT64_C(86400000)));
}

/* Mostly one of the first queues, so that histories meet. */
static size_t
some_queue(struct history *h)
{
    size_t queues = h->shape->queues;

    return below(h, chance(h, 40) ? (queues + 3) / 4 : queues);
}

static enum operation
some_operation(struct history *h)
{
    unsigned total = 0;
    uint64_t pick;

    for (int op = 0; op < OP_COUNT; op++)
        total += h->shape->weights[op];
    pick = below(h, total);
    for (int op = 0; op < OP_COUNT; op++) {
        if (pick < h->shape->weights[op])
            return (enum operation)op;
        pick -= h->shape->weights[op];
    }
    return OP_STATS; /* not reached */
}

/* Compares all there is to see, page by page from the engine's own markers. */
static void
compare_everything(struct history *h)
{
    for (size_t i = 0; i < h->shape->queues; i++) {
        struct store_queue where = queue_at(h, i);
        struct store_filter filter = {.include_claimed = true, .include_delayed = true};
        struct id_pair marker = {{""}, {""}};

        filter.limit = 1 + below(h, 2 * h->shape->batch);
        while (pair_list(&h->pair, &where, &filter, &marker, &marker) > 0 &&
               marker.right.text[0] != '\0')
            ;
        pair_stats(&h->pair, &where);
        pair_list_subscriptions(&h->pair, &where, 1 + below(h, 3));
    }
    pair_list_queues(&h->pair, bytes_str("p1"), BYTES_NONE, 1000, true);
    pair_list_queues(&h->pair, bytes_str("p2"), BYTES_NONE, 1000, true);
}

/* Keeps the twin quick: empties a queue when there is too much. */
static void
limit_backlog(struct history *h)
{
    size_t queue;
    struct store_queue where;

    if (twin_total(h->pair.twin, h->pair.now_ms) <= h->shape->backlog)
        return;
    queue = below(h, h->shape->queues);
    where = queue_at(h, queue);
    if (chance(h, 50))
        pair_pop(&h->pair, &where, h->shape->backlog, 0, NULL);
    else
        pair_purge(&h->pair, &where, STORE_PURGE_MESSAGES);
}

/* Deletes every queue: the engine must have nothing left to wait for. */
static void
expect_idle_when_empty(struct history *h)
{
    int64_t next_ms;

    for (size_t i = 0; i < h->shape->queues; i++) {
        struct store_queue where = queue_at(h, i);

        pair_delete_queue(&h->pair, &where);
    }
    do {
        next_ms = pair_housekeep(&h->pair);
        pair_audit(&h->pair);
        if (next_ms <= h->pair.now_ms + UNLOAD_POLL_MS) /* runs are still written */
            h->pair.now_ms = next_ms;
    } while (next_ms <= h->pair.now_ms);
    /* On Redis, claimd looks from time to time what another process has left. */
    if (h->pair.redis == NULL &&
        (next_ms != INT64_MAX || store_next_ms(h->pair.engine) != INT64_MAX))
        pair_fail(&h->pair, "an empty engine would wake up");
}

/* The i-th operation, and what is checked behind it. */
static void
step(struct history *h, uint64_t i)
{
    move_time(h);
    do_operation(h, some_operation(h), some_queue(h));
    if (i % h->shape->audit_every == 0)
        pair_audit(&h->pair);
    if (i % 8 == 0)
        limit_backlog(h);
    if (i % 500 == 0)
        compare_everything(h);
}

static void
finish(struct history *h)
{
    compare_everything(h);
    if (chance(h, 50))
        expect_idle_when_empty(h);
    pair_close(&h->pair);
}

void
history_run(const struct shape *shape, uint64_t seed, uint64_t length)
{
    struct history h;

    history_open(&h, shape, seed);
    for (uint64_t i = 1; i <= length; i++)
        step(&h, i);
    finish(&h);
}

void
history_play(const struct shape *shape, struct tape *tape)
{
    struct history h;

    history_open(&h, shape, 1);
    h.tape = tape;
    for (uint64_t i = 1; tape->left > 0; i++)
        step(&h, i);
    finish(&h);
}
