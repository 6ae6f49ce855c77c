/*
 * Several threads on one engine: whatever they do at once, every message is accounted for
 * exactly once, no two live claims ever hold the same one, and no two messages of a queue
 * hold one key. Worth most under the thread sanitizer.
 */
#include "support/delete.h"
#include "support/random.h"
#include "support/store_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    ENGINE = 1,
    THREADS = 4,
    QUEUES = 3,
    MAX_MESSAGES = 200000, /* of all threads together */
    OPERATIONS = 80000,    /* of all threads together, usually */
    CLAIMS = 8,            /* a thread holds at most */
    LIMIT = 5,
    SUBSCRIBERS = 4, /* of a queue; the last one comes and goes */
    KEYS = 3,        /* of unique messages */
};

/* The end of a message, by the number in its body. */
enum ending { UNBORN, POSTED, FINISHED };

/* State that all threads share. */
struct shared_state {
    struct store *store;
    _Atomic int64_t now_ms;
    _Atomic int posted; /* numbers given */
    _Atomic bool held[MAX_MESSAGES];
    _Atomic char ending[MAX_MESSAGES];
    _Atomic bool leased[QUEUES][SUBSCRIBERS];
    _Atomic int delivered; /* to all of them */
    _Atomic int existing;  /* posts that found their key held */
    _Atomic int wrong;     /* broken promises, counted */
    uint64_t operations;
};

/* A claim and the messages it holds. */
struct holding {
    struct store_id claim;
    size_t queue, count;
    int numbers[LIMIT];
    struct store_id ids[LIMIT];
};

struct worker {
    struct shared_state *shared;
    struct random random;
    struct holding holdings[CLAIMS];
    size_t holding_count;
    pthread_t thread;
};

static struct store_queue
queue_at(size_t i)
{
    static const char *const names[QUEUES] = {"a", "b", "failed"};

    return (struct store_queue){.project = bytes_str("p"), .name = bytes_str(names[i])};
}

static void
expect_true(struct worker *w, bool right)
{
    if (!right)
        atomic_fetch_add(&w->shared->wrong, 1);
}

/* The number in a body; counted as wrong if it is none of ours. */
static int
number_of(struct worker *w, struct bytes body)
{
    int64_t number = 0;
    bool ours = bytes_to_i64(body, &number) && number >= 0 && number < MAX_MESSAGES;

    expect_true(w, ours);
    return ours ? (int)number : 0;
}

/* A message has left the store: for the first time. */
static void
finish_message(struct worker *w, int number)
{
    expect_true(w, atomic_exchange(&w->shared->ending[number], FINISHED) == POSTED);
}

static void
do_post(struct worker *w, size_t queue)
{
    struct store_queue where = queue_at(queue);
    struct store_draft drafts[LIMIT];
    struct store_id ids[LIMIT];
    char bodies[LIMIT][16];
    struct store_post post = {.drafts = drafts, .create_queue = true};
    int first;

    post.count = 1 + random_below(&w->random, LIMIT);
    first = atomic_fetch_add(&w->shared->posted, (int)post.count);
    if (first + (int)post.count > MAX_MESSAGES)
        return;
    for (size_t i = 0; i < post.count; i++) {
        int number = first + (int)i;

        atomic_store(&w->shared->ending[number], POSTED);
        snprintf(bodies[i], sizeof(bodies[i]), "%d", number);
        drafts[i] = (struct store_draft){bytes_str(bodies[i]), 1209600,
                                         random_chance(&w->random, 20)};
    }
    expect_true(w, store_message_post(w->shared->store, STORE_AT(w->shared->now_ms),
                                      &where, &post, ids) == ST_OK);
}

/* The next number for a message of this thread, with its body; -1: there is none left. */
static int
next_number(struct worker *w, char *body, size_t cap)
{
    int number = atomic_fetch_add(&w->shared->posted, 1);

    if (number >= MAX_MESSAGES)
        return -1;
    snprintf(body, cap, "%d", number);
    return number;
}

static struct store_unique
unique_of(size_t key, bool until_claimed)
{
    static const char *const keys[KEYS] = {"x", "y", "z"};

    return (struct store_unique){.key = bytes_str(keys[key]),
                                 .until_claimed = until_claimed};
}

/* Posts a message with a key, which is not stored if another one holds it. */
static void
do_post_unique(struct worker *w, size_t queue)
{
    const struct store_unique unique =
        unique_of(random_below(&w->random, KEYS), random_chance(&w->random, 50));
    struct store_queue where = queue_at(queue);
    struct store_op op = {.now_ms = w->shared->now_ms};
    struct store_draft draft = {.ttl_s = 1209600};
    const struct store_post post = {
        .drafts = &draft, .count = 1, .create_queue = true, .unique = &unique};
    struct store_id id;
    char body[16];
    int number = next_number(w, body, sizeof(body));

    if (number < 0)
        return;
    draft.body = bytes_str(body);
    atomic_store(&w->shared->ending[number], POSTED); /* another thread may be quick */
    expect_true(w,
                store_message_post(w->shared->store, &op, &where, &post, &id) == ST_OK);
    if (!op.existing)
        return;
    atomic_fetch_add(&w->shared->existing, 1);
    expect_true(w, atomic_exchange(&w->shared->ending[number], UNBORN) == POSTED);
}

/* At most one of these messages of a queue holds each key. */
static void
expect_unique(struct worker *w, const struct store_batch *batch)
{
    for (size_t key = 0; key < KEYS; key++) {
        const struct store_unique unique = unique_of(key, false);
        size_t holders = 0;

        for (size_t i = 0; i < batch->count; i++) {
            const struct store_details *d = batch->messages[i].details;

            holders +=
                d != NULL && store_holds_key(d) && bytes_equal(d->unique.key, unique.key);
        }
        expect_true(w, holders <= 1);
    }
}

/* Claims for a time that does not end before the test does: holders release them. */
static void
do_claim(struct worker *w, size_t queue)
{
    const struct store_terms terms = {43200, 43200};
    struct store_queue where = queue_at(queue);
    struct store_batch batch = STORE_BATCH_INIT;
    struct holding *h = &w->holdings[w->holding_count];

    if (w->holding_count == CLAIMS)
        return;
    expect_true(w, store_claim_create(w->shared->store, STORE_AT(w->shared->now_ms),
                                      &where, &terms, 1 + random_below(&w->random, LIMIT),
                                      &batch) == ST_OK);
    *h = (struct holding){.claim = batch.claim_id, .queue = queue, .count = batch.count};
    for (size_t i = 0; i < batch.count; i++) {
        h->numbers[i] = number_of(w, batch.messages[i].body);
        h->ids[i] = batch.messages[i].id;
        expect_true(w, !atomic_exchange(&w->shared->held[h->numbers[i]], true));
        expect_true(w, atomic_load(&w->shared->ending[h->numbers[i]]) == POSTED);
    }
    if (batch.count > 0)
        w->holding_count++;
    store_batch_release(&batch);
}

/* Removes a claim from this thread's list. From now on another thread may claim its
 * messages. */
static struct holding
release_claim(struct worker *w)
{
    size_t i = random_below(&w->random, w->holding_count);
    struct holding h = w->holdings[i];

    w->holdings[i] = w->holdings[--w->holding_count];
    for (size_t k = 0; k < h.count; k++)
        atomic_store(&w->shared->held[h.numbers[k]], false);
    return h;
}

static void
do_release(struct worker *w)
{
    struct holding h;
    struct store_queue where;

    if (w->holding_count == 0)
        return;
    h = release_claim(w); /* before the store does: another thread may be quick */
    where = queue_at(h.queue);
    expect_true(w,
                store_claim_release(w->shared->store, STORE_AT(w->shared->now_ms), &where,
                                    store_id_bytes(&h.claim), STORE_RELEASED) == ST_OK);
}

/* Deletes what a claim holds, one by one or in bulk, and releases it. */
static void
do_finish(struct worker *w)
{
    struct shared_state *shared = w->shared;
    struct bytes ids[LIMIT], claim;
    struct store_queue where;
    struct holding h;

    if (w->holding_count == 0)
        return;
    h = w->holdings[w->holding_count - 1];
    where = queue_at(h.queue);
    claim = store_id_bytes(&h.claim);
    for (size_t i = 0; i < h.count; i++) {
        ids[i] = store_id_bytes(&h.ids[i]);
        finish_message(w, h.numbers[i]);
    }
    if (random_chance(&w->random, 50)) {
        expect_true(w, delete_messages(shared->store, STORE_AT(shared->now_ms), &where,
                                       ids, h.count, &claim, 1) == ST_OK);
    } else {
        for (size_t i = 0; i < h.count; i++)
            expect_true(w, delete_message(shared->store, STORE_AT(shared->now_ms), &where,
                                          ids[i], claim) == ST_OK);
    }
    w->holding_count--; /* the flags stay: no worker may ever hold these again */
    expect_true(w, store_claim_release(shared->store, STORE_AT(shared->now_ms), &where,
                                       claim, STORE_RELEASED) == ST_OK);
}

/* Finishes a claim in one step: deletes, releases or dead-letters its messages, and
 * posts one. */
static void
do_finish_at_once(struct worker *w)
{
    struct shared_state *shared = w->shared;
    struct store_finish_item items[LIMIT];
    struct store_draft draft;
    struct store_id id;
    char body[16];
    size_t to = random_below(&w->random, QUEUES);
    struct store_finish_post post = {
        .queue = queue_at(to).name, .post = {.drafts = &draft, .count = 1}, .ids = &id};
    struct store_finish f = {.items = items, .posts = &post, .atomic = true};
    const struct store_unique unique = unique_of(random_below(&w->random, KEYS), false);
    struct store_queue where;
    struct holding h;
    int number;

    if (w->holding_count == 0)
        return;
    h = w->holdings[--w->holding_count];
    where = queue_at(h.queue);
    f.claim_id = store_id_bytes(&h.claim);
    f.count = h.count;
    for (size_t i = 0; i < h.count; i++) {
        const enum store_finish_action action =
            (enum store_finish_action)random_below(&w->random, 3);

        items[i] = (struct store_finish_item){
            .action = action,
            .id = store_id_bytes(&h.ids[i]),
            .delay_s = action == STORE_FINISH_RELEASE
                           ? (int64_t)random_below(&w->random, 2)
                           : 0};
        if (action != STORE_FINISH_DELETE && random_chance(&w->random, 50))
            items[i].reason = bytes_str("a reason");
        if (action == STORE_FINISH_DELETE)
            finish_message(w, h.numbers[i]);
        else /* another thread may be quick */
            atomic_store(&shared->held[h.numbers[i]], false);
    }
    number = random_chance(&w->random, 50) ? next_number(w, body, sizeof(body)) : -1;
    if (number >= 0) {
        atomic_store(&shared->ending[number], POSTED);
        draft = (struct store_draft){bytes_str(body), 1209600, 0};
        if (random_chance(&w->random, 50))
            post.post.unique = &unique;
        f.post_count = 1;
    }
    expect_true(w, store_claim_finish(shared->store, STORE_AT(shared->now_ms), &where,
                                      &f) == ST_OK);
    if (number < 0 || !post.existing)
        return;
    atomic_fetch_add(&shared->existing, 1);
    expect_true(w, atomic_exchange(&shared->ending[number], UNBORN) == POSTED);
}

static void
do_redrive(struct worker *w, size_t queue)
{
    struct store_redrive which = {.limit = 20,
                                  .keeps_count = random_chance(&w->random, 50)};
    struct store_queue where = queue_at(queue);
    struct store_redriven out;

    expect_true(w, store_redrive(w->shared->store, STORE_AT(w->shared->now_ms), &where,
                                 &which, &out) == ST_OK);
}

static void
do_pop(struct worker *w, size_t queue)
{
    struct store_queue where = queue_at(queue);
    struct store_batch batch = STORE_BATCH_INIT;

    expect_true(w, store_message_pop(w->shared->store, STORE_AT(w->shared->now_ms),
                                     &where, LIMIT, &batch) == ST_OK);
    for (size_t i = 0; i < batch.count; i++) {
        int number = number_of(w, batch.messages[i].body);

        expect_true(w, !atomic_load(&w->shared->held[number]));
        finish_message(w, number);
    }
    store_batch_release(&batch);
}

/* A live claim of this thread still has the messages that it claimed. */
static void
do_renew_and_query(struct worker *w)
{
    const struct store_terms terms = {43200, 60};
    struct store_batch batch = STORE_BATCH_INIT;
    const struct holding *h;
    struct store_queue where;

    if (w->holding_count == 0)
        return;
    h = &w->holdings[random_below(&w->random, w->holding_count)];
    where = queue_at(h->queue);
    expect_true(w, store_claim_renew(w->shared->store, STORE_AT(w->shared->now_ms),
                                     &where, store_id_bytes(&h->claim), &terms,
                                     &(uint64_t){0}) == ST_OK);
    expect_true(w, store_claim_get(w->shared->store, STORE_AT(w->shared->now_ms), &where,
                                   store_id_bytes(&h->claim), &batch) == ST_OK);
    expect_true(w, batch.count == h->count);
    for (size_t i = 0; i < batch.count; i++)
        expect_true(w, number_of(w, batch.messages[i].body) == h->numbers[i]);
    store_batch_release(&batch);
}

/* Looks at things: pages, statistics, queues; their responses change all the time. */
static void
do_look(struct worker *w, size_t queue)
{
    const struct store_filter filter = {.limit = 20, .include_claimed = true};
    struct store_queue where = queue_at(queue);
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_stats now;

    expect_true(w, store_message_list(w->shared->store, STORE_AT(w->shared->now_ms),
                                      &where, &filter, &batch) == ST_OK);
    for (size_t i = 0; i < batch.count; i++)
        (void)number_of(w, batch.messages[i].body);
    expect_unique(w, &batch);
    store_batch_release(&batch);
    expect_true(w, store_queue_stats(w->shared->store, STORE_AT(w->shared->now_ms),
                                     &where, &now) == ST_OK);
    expect_true(w, now.claimed <= now.total);
    expect_true(w, store_queue_list(w->shared->store, STORE_AT(w->shared->now_ms),
                                    &(struct store_page){.project = where.project,
                                                         .marker = BYTES_NONE,
                                                         .limit = 10,
                                                         .with_metadata = true},
                                    &queues) == ST_OK);
    expect_true(w, queues.count >= QUEUES);
    store_queues_release(&queues);
}

/* A queue of this thread's own comes and goes beside the shared ones. */
static void
do_private_queue(struct worker *w)
{
    struct store_queue where = {.project = bytes_str("p"), .name = bytes_str("z")};
    const struct store_draft draft = {bytes_str("0"), 300, 0};
    const struct store_post post = {.drafts = &draft, .count = 1, .create_queue = true};
    const struct store_terms terms = {300, 60};
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_id id;

    expect_true(w, store_message_post(w->shared->store, STORE_AT(w->shared->now_ms),
                                      &where, &post, &id) == ST_OK);
    expect_true(w, store_claim_create(w->shared->store, STORE_AT(w->shared->now_ms),
                                      &where, &terms, 1, &batch) == ST_OK);
    store_batch_release(&batch);
    if (random_chance(&w->random, 50))
        expect_true(w, store_queue_purge(w->shared->store, STORE_AT(w->shared->now_ms),
                                         &where, STORE_PURGE_MESSAGES) == ST_OK);
    else
        expect_true(w, store_queue_delete(w->shared->store, STORE_AT(w->shared->now_ms),
                                          &where) == ST_OK);
}

/* Adds a subscriber. The last one is sometimes removed again. */
static void
do_subscribe(struct worker *w, size_t queue)
{
    struct store_queue where = queue_at(queue);
    size_t subscriber_no = random_below(&w->random, SUBSCRIBERS);
    char subscriber[] = "0";
    const struct store_subscription_draft draft = {bytes_of(subscriber, 1),
                                                   bytes_str("{}"), 1209600};
    struct store_subscribed out;

    subscriber[0] = (char)('0' + subscriber_no);
    expect_true(w,
                store_subscription_create(w->shared->store, STORE_AT(w->shared->now_ms),
                                          &where, &draft, &out) == ST_OK);
    if (subscriber_no == SUBSCRIBERS - 1 && random_chance(&w->random, 50))
        expect_true(w, store_subscription_delete(w->shared->store,
                                                 STORE_AT(w->shared->now_ms), &where,
                                                 store_id_bytes(&out.id)) == ST_OK);
}

/* The flag of the subscription of a delivery. NULL: it is the last subscriber, which may
 * have been deleted and created again meanwhile, so that two deliveries are leased. */
static _Atomic bool *
leased_flag(struct worker *w, const struct store_delivery *d)
{
    size_t subscriber_no = (size_t)(d->subscriber.data[0] - '0');

    for (size_t i = 0; i < QUEUES && subscriber_no + 1 < SUBSCRIBERS; i++) {
        struct store_queue where = queue_at(i);

        if (store_queue_equal(&where, &d->queue))
            return &w->shared->leased[i][subscriber_no];
    }
    return NULL;
}

/* At most one delivery of a subscription is leased at a time, over all threads. */
static void
do_deliver(struct worker *w)
{
    struct store_delivery d;
    int64_t again_ms = w->shared->now_ms + 100;
    bool failed = random_chance(&w->random, 10);
    _Atomic bool *leased;

    if (store_delivery_next(w->shared->store, STORE_AT(w->shared->now_ms), &d) != ST_OK)
        return;
    (void)number_of(w, d.body);
    leased = leased_flag(w, &d);
    if (leased != NULL)
        expect_true(w, !atomic_exchange(leased, true));
    atomic_fetch_add(&w->shared->delivered, !failed);
    if (leased != NULL)
        atomic_store(leased,
                     false); /* before the store knows: another thread may be quick */
    store_delivery_done(w->shared->store, STORE_AT(w->shared->now_ms), &d,
                        failed ? STORE_OUTCOME_FAILED : STORE_OUTCOME_DELIVERED,
                        again_ms);
}

static void
do_operation(struct worker *w)
{
    uint64_t choice = random_below(&w->random, 100);
    size_t queue = random_below(&w->random, QUEUES);
    int64_t next_ms;

    if (choice < 20) {
        do_deliver(w);
        do_deliver(w);
    }
    if (choice == 99)
        do_subscribe(w, queue);
    if (choice >= 89 && choice < 92)
        do_redrive(w, queue);
    if (choice < 6)
        do_post_unique(w, queue);
    else if (choice < 25)
        do_post(w, queue);
    else if (choice < 50)
        do_claim(w, queue);
    else if (choice < 65)
        do_release(w);
    else if (choice < 70)
        do_finish(w);
    else if (choice < 78)
        do_finish_at_once(w);
    else if (choice < 84)
        do_pop(w, queue);
    else if (choice < 89)
        do_renew_and_query(w);
    else if (choice < 92)
        do_look(w, queue);
    else if (choice < 95)
        do_private_queue(w);
    else if (choice < 98)
        store_housekeep(w->shared->store, w->shared->now_ms, &next_ms);
    else
        atomic_fetch_add(&w->shared->now_ms, 100); /* delays end; nothing expires */
}

static void *
run_worker(void *argument)
{
    struct worker *w = argument;

    for (uint64_t i = 0; i < w->shared->operations; i++)
        do_operation(w);
    while (w->holding_count > 0)
        do_release(w);
    return NULL;
}

/* Two queues with one dead-letter queue, whose own dead letters go to the first queue. */
static void
make_queues(struct fixture *f)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.max_claim_count = 3;
    settings.dead_letter = bytes_str("failed");
    use(f, "a");
    make_queue(f, &settings);
    use(f, "b");
    make_queue(f, &settings);
    settings.dead_letter = bytes_str("a");
    use(f, "failed");
    make_queue(f, &settings);
}

/* Checks all messages of each queue. */
static void
check_keys(struct shared_state *shared, struct worker *w)
{
    const struct store_filter filter = {
        .limit = MAX_MESSAGES, .include_claimed = true, .include_delayed = true};

    for (size_t queue = 0; queue < QUEUES; queue++) {
        struct store_queue where = queue_at(queue);
        struct store_batch batch = STORE_BATCH_INIT;

        ck_assert_status(store_message_list(shared->store, STORE_AT(shared->now_ms),
                                            &where, &filter, &batch),
                         ST_OK);
        expect_unique(w, &batch);
        store_batch_release(&batch);
    }
}

/* Pops what is left: every number must turn up that has not been finished yet. */
static void
account_for_the_rest(struct shared_state *shared, struct worker *w)
{
    shared->now_ms += 10000; /* no delay is left */
    for (size_t queue = 0; queue < QUEUES; queue++) {
        struct store_queue where = queue_at(queue);
        struct store_stats now;

        do {
            do_pop(w, queue);
            ck_assert_status(
                store_queue_stats(shared->store, STORE_AT(shared->now_ms), &where, &now),
                ST_OK);
            ck_assert_uint_eq(now.claimed, 0);
        } while (now.total > 0);
    }
    for (int i = 0; i < MAX_MESSAGES; i++)
        ck_assert_int_ne(shared->ending[i], POSTED);
}

LOOP_TEST(threads_neither_lose_a_message_nor_hold_one_twice, 3)
{
    static struct shared_state shared; /* too large for the stack */
    struct worker workers[THREADS] = {{.shared = &shared}};
    struct random seeds = {random_seed("threads")};
    struct fixture f;

    fixture_open(&f, ENGINE);
    make_queues(&f);
    memset(&shared, 0, sizeof(shared));
    shared.store = f.store;
    shared.now_ms = f.now_ms;
    shared.operations = random_operations(OPERATIONS) / THREADS;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = &shared};
        workers[i].random.state = random_next(&seeds);
        ck_assert_int_eq(
            pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
    ck_assert(store_audit(f.store));
    check_keys(&shared, &workers[0]);
    account_for_the_rest(&shared, &workers[0]);
    ck_assert_int_gt(shared.existing, 0);
    ck_assert_int_eq(shared.wrong, 0);
    ck_assert_int_gt(shared.delivered, 0);
    f.now_ms = shared.now_ms;
    fixture_close(&f);
}
