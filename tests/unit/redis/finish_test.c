/* The store on Redis finishes claims and puts dead letters back exactly as the engine
 * does. */
#include "model/same.h"
#include "support/dead_letters.h"
#include "support/random.h"
#include "support/redis_server.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SIDES = 2,
    QUEUES = 5,
    MESSAGES = 2000,
    CLAIMS = 32,
    ITEMS = 12,
    POSTS = 3,
    STEPS = 700,
    CLAIM_ENDS = 1000
};

static const char *const names[QUEUES] = {"q", "failed", "circle", "short", "new"};

struct both {
    struct fixture sides[SIDES]; /* the engine, Redis */
    struct store_id ids[SIDES][MESSAGES + 1];
    struct store_id claims[SIDES][CLAIMS];
    int held[CLAIMS][ITEMS]; /* numbers of the messages that a claim was made with */
    size_t claim_queue[CLAIMS];
    int posted;
    unsigned claimed;
    int64_t now_ms;
    int64_t ends[CLAIM_ENDS]; /* of claims, when they were made or renewed */
    size_t end_count;
    struct random random;
    uint64_t finished, refused, moved; /* counts of the run */
};

static size_t
below(struct both *b, size_t n)
{
    return (size_t)random_below(&b->random, n);
}

static struct store_queue
queue_of(size_t i)
{
    return (struct store_queue){.project = bytes_str("p"), .name = bytes_str(names[i])};
}

static int
number_of(const struct store_message *m)
{
    char text[16] = "";

    ck_assert_uint_lt(m->body.len, sizeof(text));
    memcpy(text, m->body.data, m->body.len);
    return (int)strtol(text, NULL, 10);
}

/* ---------------------------------------------------------------------- time */

/* The first end of a claim behind now; INT64_MAX: there is none. */
static int64_t
next_end(const struct both *b)
{
    int64_t next_ms = INT64_MAX;

    for (size_t i = 0; i < b->end_count; i++)
        if (b->ends[i] > b->now_ms && b->ends[i] < next_ms)
            next_ms = b->ends[i];
    return next_ms;
}

/* Lets time pass. Dead letters of claims that expire move at that time, on both sides. */
static void
pass(struct both *b, int64_t ms)
{
    const int64_t until_ms = b->now_ms + ms;
    struct store_stats ignored;

    for (int64_t end_ms; (end_ms = next_end(b)) <= until_ms;) {
        b->now_ms = end_ms;
        for (size_t i = 0; i < SIDES * QUEUES; i++) {
            const struct store_queue where = queue_of(i / SIDES);

            (void)store_queue_stats(b->sides[i % SIDES].store, STORE_AT(b->now_ms),
                                    &where, &ignored);
        }
    }
    b->now_ms = until_ms;
}

/* A claim is about to be made or renewed. No two end together, because those would expire
 * in any order. */
static void
note_end(struct both *b, int64_t ttl_s)
{
    for (size_t i = 0; i < b->end_count;)
        if (b->ends[i] == b->now_ms + ttl_s * 1000) {
            pass(b, 1);
            i = 0;
        } else if (b->ends[i] < b->now_ms) {
            b->ends[i] = b->ends[--b->end_count];
        } else {
            i++;
        }
    ck_assert_uint_lt(b->end_count, CLAIM_ENDS);
    b->ends[b->end_count++] = b->now_ms + ttl_s * 1000;
}

/* ---------------------------------------------------------------------- comparing */

static void
same_messages(struct both *b, const struct store_batch *batches)
{
    ck_assert_uint_eq(batches[0].count, batches[1].count);
    for (size_t i = 0; i < batches[0].count; i++) {
        const struct store_message *x = &batches[0].messages[i],
                                   *y = &batches[1].messages[i];
        const int number = number_of(x);

        ck_assert_int_eq(number, number_of(y));
        ck_assert(id_same(x->id, b->ids[0][number]) && id_same(y->id, b->ids[1][number]));
        ck_assert_int_eq(id_empty(x->claim_id), id_empty(y->claim_id));
        ck_assert_int_eq(x->posted_ms, y->posted_ms);
        ck_assert_int_eq(x->expires_ms, y->expires_ms);
        ck_assert_int_eq(x->delayed_until_ms, y->delayed_until_ms);
        ck_assert_int_eq(x->ttl_s, y->ttl_s);
        ck_assert_uint_eq(x->claim_count, y->claim_count);
        ck_assert(details_same(x->details, y->details));
        ck_assert_int_eq(x->details == NULL, y->details == NULL);
    }
}

/* Dead letters as the metrics count them. */
static uint64_t
dead_letters(struct both *b, size_t side, struct bytes name)
{
    struct store_queue_metrics one;
    size_t at = 0;

    while (store_queue_metrics(b->sides[side].store, STORE_AT(b->now_ms), &at, &one) ==
           ST_OK)
        if (bytes_equal(bytes_of(one.name, one.name_len), name))
            return one.here.dead_letters;
    return 0;
}

static void
same_queues(struct both *b)
{
    const struct store_filter all = {
        .limit = 1000, .include_claimed = true, .include_delayed = true};

    for (size_t i = 0; i < QUEUES; i++) {
        struct store_batch batches[SIDES] = {STORE_BATCH_INIT, STORE_BATCH_INIT};
        const struct store_queue where = queue_of(i);

        for (size_t side = 0; side < SIDES; side++)
            ck_assert_status(store_message_list(b->sides[side].store, STORE_AT(b->now_ms),
                                                &where, &all, &batches[side]),
                             ST_OK);
        same_messages(b, batches);
        for (size_t side = 0; side < SIDES; side++)
            store_batch_release(&batches[side]);
        ck_assert_uint_eq(dead_letters(b, 0, where.name), dead_letters(b, 1, where.name));
    }
    for (size_t side = 0; side < SIDES; side++)
        ck_assert(store_audit(b->sides[side].store));
}

/* ---------------------------------------------------------------------- operations */

static void
do_post(struct both *b)
{
    const size_t count = 1 + below(b, 4), to = below(b, QUEUES - 1);
    struct store_draft drafts[4];
    char bodies[4][12];

    if (b->posted + 4 > MESSAGES)
        return;
    for (size_t i = 0; i < count; i++) {
        const int len =
            snprintf(bodies[i], sizeof(bodies[i]), "%d", b->posted + 1 + (int)i);

        drafts[i] = (struct store_draft){bytes_of(bodies[i], (size_t)len),
                                         (int64_t)(60 + below(b, 600)),
                                         below(b, 4) == 0 ? (int64_t)below(b, 60) : 0};
    }
    for (size_t side = 0; side < SIDES; side++) {
        const struct store_queue where = queue_of(to);
        const struct store_post post = {
            .drafts = drafts, .count = count, .client = 1, .create_queue = true};

        ck_assert_status(store_message_post(b->sides[side].store, STORE_AT(b->now_ms),
                                            &where, &post, &b->ids[side][b->posted + 1]),
                         ST_OK);
    }
    b->posted += (int)count;
}

static void
do_claim(struct both *b)
{
    const struct store_terms terms = {(int64_t)(30 + below(b, 100)), 10};
    const size_t limit = 1 + below(b, ITEMS - 1), slot = b->claimed % CLAIMS;
    struct store_batch batches[SIDES] = {STORE_BATCH_INIT, STORE_BATCH_INIT};
    const size_t from = below(b, QUEUES);
    const struct store_queue where = queue_of(from);

    note_end(b, terms.ttl_s);
    for (size_t side = 0; side < SIDES; side++) {
        ck_assert_status(store_claim_create(b->sides[side].store, STORE_AT(b->now_ms),
                                            &where, &terms, limit, &batches[side]),
                         ST_OK);
        if (batches[0].count > 0)
            b->claims[side][slot] = batches[side].claim_id;
    }
    same_messages(b, batches);
    if (batches[0].count > 0) {
        memset(b->held[slot], 0, sizeof(b->held[slot]));
        for (size_t i = 0; i < batches[0].count; i++)
            b->held[slot][i] = number_of(&batches[0].messages[i]);
        b->claim_queue[slot] = from;
        b->claimed++;
    }
    for (size_t side = 0; side < SIDES; side++)
        store_batch_release(&batches[side]);
}

static void
do_release(struct both *b)
{
    const size_t slot = below(b, CLAIMS);
    const struct store_queue where = queue_of(b->claim_queue[slot]);

    for (size_t side = 0; side < SIDES; side++)
        ck_assert_status(
            store_claim_release(b->sides[side].store, STORE_AT(b->now_ms), &where,
                                store_id_bytes(&b->claims[side][slot]), STORE_NOT_SENT),
            ST_OK);
}

static void
do_pop(struct both *b)
{
    struct store_batch batches[SIDES] = {STORE_BATCH_INIT, STORE_BATCH_INIT};
    const struct store_queue where = queue_of(below(b, QUEUES));

    for (size_t side = 0; side < SIDES; side++)
        ck_assert_status(store_message_pop(b->sides[side].store, STORE_AT(b->now_ms),
                                           &where, 2, &batches[side]),
                         ST_OK);
    same_messages(b, batches);
    for (size_t side = 0; side < SIDES; side++)
        store_batch_release(&batches[side]);
}

/* A finish, and where it stores what it says. */
struct chosen {
    struct store_finish request;
    struct store_finish_item items[ITEMS + 1];
    struct store_finish_post posts[POSTS];
    struct store_draft drafts[POSTS];
    char bodies[POSTS][12];
    struct store_terms terms;
    int numbers[ITEMS + 1];
    size_t slot;
};

static void
choose(struct both *b, struct chosen *c)
{
    static const char *const reasons[] = {"", "timeout", "no such customer"};
    const size_t to = below(b, QUEUES), posts = 1 + below(b, POSTS);

    *c =
        (struct chosen){.slot = b->claimed < 4 ? below(b, CLAIMS)
                                               : (b->claimed - 1 - below(b, 4)) % CLAIMS};
    c->request = (struct store_finish){.client = bytes_str("worker"),
                                       .items = c->items,
                                       .posts = c->posts,
                                       .atomic = below(b, 2) == 0};
    for (size_t i = 0; i < ITEMS && b->held[c->slot][i] != 0; i++) {
        struct store_finish_item *item = &c->items[c->request.count];

        if (below(b, 3) == 0)
            continue;
        *item = (struct store_finish_item){
            .action = (enum store_finish_action)below(b, below(b, 2) == 0 ? 3 : 2),
            .reason = bytes_str(reasons[below(b, 3)]),
            .delay_s = below(b, 2) == 0 ? (int64_t)below(b, 2000) : 0,
            .uncounted = below(b, 4) == 0};
        c->numbers[c->request.count++] = b->held[c->slot][i];
    }
    if (below(b, 10) == 0 && b->posted > 0 && c->request.count == 0)
        c->numbers[c->request.count++] = 1 + (int)below(b, (size_t)b->posted);
    c->terms = (struct store_terms){(int64_t)(30 + below(b, 100)), 10};
    if (below(b, 3) == 0)
        c->request.renew = &c->terms;
    /* On Redis, posts of a finish come behind dead letters that stay in their queue. */
    if (b->posted + POSTS > MESSAGES || below(b, 2) == 0 || b->claim_queue[c->slot] == 2)
        return;
    for (size_t i = 0; i < posts; i++) {
        const int len =
            snprintf(c->bodies[i], sizeof(c->bodies[i]), "%d", b->posted + 1 + (int)i);

        c->drafts[i] = (struct store_draft){bytes_of(c->bodies[i], (size_t)len), 300,
                                            below(b, 3) == 0 ? 5 : STORE_UNSET};
        c->posts[i] =
            (struct store_finish_post){.queue = bytes_str(names[(to + i) % QUEUES]),
                                       .post = {.drafts = &c->drafts[i],
                                                .count = 1,
                                                .client = 1,
                                                .request_bytes = below(b, 12),
                                                .create_queue = below(b, 3) > 0}};
        c->request.post_count++;
    }
}

static void
do_finish(struct both *b)
{
    struct chosen c;
    struct store_queue where;
    enum status st[SIDES];
    int held[ITEMS + 1]; /* 2: and dead-lettered, because it is exhausted */
    uint64_t renewed = 0;
    size_t failed = 0;

    choose(b, &c);
    if (c.request.renew != NULL)
        note_end(b, c.terms.ttl_s);
    where = queue_of(b->claim_queue[c.slot]);
    for (size_t side = 0; side < SIDES; side++) {
        struct store_finish *request = &c.request;

        request->claim_id = store_id_bytes(&b->claims[side][c.slot]);
        for (size_t i = 0; i < request->count; i++)
            c.items[i].id = store_id_bytes(&b->ids[side][c.numbers[i]]);
        for (size_t i = 0; i < request->post_count; i++) {
            c.posts[i].ids = &b->ids[side][b->posted + 1 + (int)i];
            c.posts[i].pending = true;
        }
        st[side] = store_claim_finish(b->sides[side].store, STORE_AT(b->now_ms), &where,
                                      request);
        if (st[side] == ST_OK)
            for (size_t i = 0; i < request->post_count; i++)
                ck_assert(!c.posts[i].pending);
        for (size_t i = 0; i < request->count; i++) {
            ck_assert(side == 0 || (st[0] != ST_OK && st[0] != ST_NOT_CLAIMED) ||
                      held[i] == (c.items[i].held << c.items[i].exhausted));
            held[i] = c.items[i].held << c.items[i].exhausted;
        }
        ck_assert(side == 0 || renewed == (request->number != 0));
        renewed = request->number != 0;
        if (side == 1 && request->post_count > 0 && st[0] != ST_NOT_CLAIMED &&
            st[0] != ST_NOT_FOUND)
            ck_assert_uint_eq(failed, request->failed_post);
        failed = request->failed_post;
    }
    ck_assert_status(st[1], st[0]);
    if (st[0] == ST_OK)
        b->posted += (int)c.request.post_count;
    b->finished += st[0] == ST_OK;
    b->refused += st[0] != ST_OK;
}

/* All slices of a redrive. */
static enum status
redrive_all(struct both *b, size_t side, const struct store_queue *where,
            struct store_redrive which, struct store_redriven *all, size_t *by_target)
{
    struct store_redriven out;
    enum status st;

    *all = (struct store_redriven){.moved = 0};
    do {
        st =
            store_redrive(b->sides[side].store, STORE_AT(b->now_ms), where, &which, &out);
        if (st != ST_OK)
            return st;
        all->moved += out.moved;
        all->unknown_origin += out.unknown_origin;
        all->remaining = out.remaining;
        for (size_t i = 0; i < QUEUES; i++)
            if (bytes_equal_str(out.target, names[i]))
                by_target[i] += out.moved;
        which.limit -= out.moved;
    } while (out.more && which.limit > 0);
    return ST_OK;
}

static void
do_redrive(struct both *b)
{
    const struct store_queue where = queue_of(below(b, QUEUES));
    struct store_redrive which = {.limit = 1 + below(b, 20),
                                  .dry_run = below(b, 5) == 0,
                                  .keeps_count = below(b, 3) == 0};
    int numbers[3];
    size_t by_target[SIDES][QUEUES] = {{0}};
    struct store_redriven out[SIDES];
    enum status st[SIDES];

    for (size_t i = 0; i < 3; i++)
        numbers[i] = 1 + (int)below(b, (size_t)b->posted + 1);
    if (below(b, 3) == 0)
        which.to = bytes_str(names[below(b, QUEUES)]);
    if (below(b, 3) == 0)
        which.id_count = 3;
    for (size_t side = 0; side < SIDES; side++) {
        const struct bytes ids[] = {store_id_bytes(&b->ids[side][numbers[0]]),
                                    store_id_bytes(&b->ids[side][numbers[1]]),
                                    store_id_bytes(&b->ids[side][numbers[2]])};

        which.ids = which.id_count == 0 ? NULL : ids;
        st[side] = redrive_all(b, side, &where, which, &out[side], by_target[side]);
    }
    ck_assert_status(st[1], st[0]);
    if (st[0] != ST_OK)
        return;
    ck_assert_uint_eq(out[0].moved, out[1].moved);
    ck_assert_uint_eq(out[0].unknown_origin, out[1].unknown_origin);
    ck_assert_uint_eq(out[0].remaining, out[1].remaining);
    for (size_t i = 0; i < QUEUES; i++)
        ck_assert_uint_eq(by_target[0][i], by_target[1][i]);
    b->moved += which.dry_run ? 0 : out[0].moved;
}

/* ---------------------------------------------------------------------- runs */

static void
open_both(struct both *b)
{
    static const struct {
        size_t queue;
        const char *dead_letter;
        int64_t ttl_s, post_bytes;
    } made[] = {{0, "failed", STORE_UNSET, STORE_UNSET},
                {2, "circle", STORE_UNSET, STORE_UNSET},
                {3, "failed", 90, 10}};

    memset(b, 0, sizeof(*b));
    b->random.state = random_seed("finish_test");
    b->now_ms = START_MS;
    fixture_open(&b->sides[0], FIXTURE_ENGINE);
    fixture_open(&b->sides[1], FIXTURE_REDIS);
    for (size_t side = 0; side < SIDES; side++)
        for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
            struct store_settings set = STORE_SETTINGS_INIT;

            set.max_claim_count = 3;
            set.dead_letter = bytes_str(made[i].dead_letter);
            set.dead_letter_ttl_s = made[i].ttl_s;
            set.max_post_bytes = made[i].post_bytes;
            use(&b->sides[side], names[made[i].queue]);
            make_queue(&b->sides[side], &set);
        }
}

static void
close_both(struct both *b)
{
    for (size_t side = 0; side < SIDES; side++) {
        b->sides[side].now_ms = b->now_ms;
        fixture_close(&b->sides[side]);
    }
}

FIXTURE_TEST(random_operations_have_the_same_effect_on_the_engine_and_on_redis,
             struct both, open_both(f), close_both(f))
{
    static void (*const operations[])(struct both *) = {
        do_post,   do_post,   do_claim,   do_claim,   do_claim, do_finish,
        do_finish, do_finish, do_release, do_redrive, do_pop};

    for (uint64_t i = 0; i < random_operations(STEPS); i++) {
        operations[below(f, sizeof(operations) / sizeof(operations[0]))](f);
        if (below(f, 4) == 0)
            pass(f, (int64_t)below(f, 30000));
        same_queues(f);
    }
    printf("%d messages, %u claims, %d finished, %d refused, %d put back\n", f->posted,
           f->claimed, (int)f->finished, (int)f->refused, (int)f->moved);
    ck_assert_uint_gt(f->finished, 0);
}

/* ------------------------------------------------------------------ late arrivals */

/* Ensures that scripts which change this queue fail (queue_get does not), until mend().
 * Until then it cannot be audited. */
static void
damage(struct fixture *f, const char *queue)
{
    char command[128];

    snprintf(command, sizeof(command),
             "RENAME claimd:1:{p/%s}:m claimd:1:{p/%s}:away\r\n", queue, queue);
    redis_server_say(f->redis, command, "+OK\r\n");
    snprintf(command, sizeof(command), "SET claimd:1:{p/%s}:m x\r\n", queue);
    redis_server_say(f->redis, command, "+OK\r\n");
}

static void
mend(struct fixture *f, const char *queue)
{
    char command[128];

    snprintf(command, sizeof(command),
             "RENAME claimd:1:{p/%s}:away claimd:1:{p/%s}:m\r\n", queue, queue);
    redis_server_say(f->redis, command, "+OK\r\n");
}

/* Claims a message, deletes it, and posts the next one to queue "next", which is
 * damaged. */
static void
finish_with_post(struct fixture *f, bool damaged)
{
    struct store_id claim = take(f, 1), id;
    struct store_finish_item item = {.action = STORE_FINISH_DELETE,
                                     .id = store_id_bytes(&f->seen.messages[0].id)};
    const struct store_draft draft = {bytes_str("posted"), 300, STORE_UNSET};
    struct store_finish_post to = {
        .queue = bytes_str("next"),
        .post = {.drafts = &draft, .count = 1, .create_queue = true},
        .ids = &id};
    struct store_finish finish = {.claim_id = store_id_bytes(&claim),
                                  .items = &item,
                                  .count = 1,
                                  .posts = &to,
                                  .post_count = 1,
                                  .atomic = true};

    if (damaged)
        damage(f, "next");
    ck_assert_status(
        store_claim_finish(f->store, STORE_AT(f->now_ms), &f->queue, &finish), ST_OK);
    if (damaged)
        mend(f, "next");
    ck_assert(item.held);
    ck_assert_int_eq(to.pending, damaged);
    fixture_audit(f);
}

TEST_CASE("transfers");

STORE_TEST_WITH(a_post_that_could_not_arrive_is_pending_and_comes_with_a_later_claim,
                fixture_open(f, FIXTURE_REDIS))
{
    post(f, 3);
    finish_with_post(f, false);
    finish_with_post(f, true);
    wait_ms(f, 4999);
    ck_assert(!id_empty(take(f, 1)));
    use(f, "next");
    expect_stats(f, 0, 1); /* the process that sent it may still be at it */
    use(f, "q");
    wait_ms(f, 1);
    ck_assert(id_empty(take(f, 1)));
    use(f, "next");
    expect_stats(f, 0, 2);
}

STORE_TEST_WITH(a_queue_is_deleted_when_its_posts_have_arrived,
                fixture_open(f, FIXTURE_REDIS))
{
    post(f, 2);
    finish_with_post(f, false);
    finish_with_post(f, true);
    use(f, "next");
    delete_queue(f);
    use(f, "q");
    delete_queue(f);
    use(f, "next");
    expect_stats(f, 0, 1);
}

/* Makes two dead letters 1 and 2 in "failed". */
static void
make_dead_letters(struct fixture *f)
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 2);
    wear_out(f, 2, 1);
    ck_assert(id_empty(take(f, 2)));
    use(f, "failed");
    expect_stats(f, 0, 2);
}

static struct store_redriven
redrive(struct fixture *f)
{
    struct store_redrive which = {.limit = 10};
    struct store_redriven out;

    ck_assert_status(
        store_redrive(f->store, STORE_AT(f->now_ms), &f->queue, &which, &out), ST_OK);
    fixture_audit(f);
    return out;
}

/* Puts the dead letters back to q, which is damaged. */
static void
redrive_in_vain(struct fixture *f)
{
    struct store_redrive which = {.limit = 10};
    struct store_redriven out;

    damage(f, "q");
    ck_assert_status(
        store_redrive(f->store, STORE_AT(f->now_ms), &f->queue, &which, &out),
        ST_UNCONFIRMED);
    mend(f, "q");
    expect_stats(f, 0, 0); /* they are in transfer */
    fixture_audit(f);
}

STORE_TEST_WITH(redrive_stops_at_a_target_that_is_away_and_goes_on_later,
                fixture_open(f, FIXTURE_REDIS))
{
    make_dead_letters(f);
    redrive_in_vain(f);
    wait_ms(f, 4999);
    ck_assert_uint_eq(redrive(f).moved, 0);
    use(f, "q");
    expect_stats(f, 0, 0);
    use(f, "failed");
    wait_ms(f, 1);
    ck_assert_uint_eq(redrive(f).moved, 0);
    use(f, "q");
    list_all(f);
    expect(f, 1, 2);
}

STORE_TEST_WITH(a_scan_of_the_metrics_sends_what_an_ended_process_has_left,
                fixture_open(f, FIXTURE_REDIS))
{
    struct store_metrics metrics;

    make_dead_letters(f);
    redrive_in_vain(f);
    for (int i = 0; i < 2; i++) {
        wait_ms(f, 2500);
        ck_assert_status(store_metrics(f->store, STORE_AT(f->now_ms), &metrics), ST_OK);
        use(f, "q");
        expect_stats(f, 0, i == 0 ? 0 : 2);
    }
}

/* ------------------------------------------------------------ data of older versions */

/* Claims, and finds nothing. */
static void
claim_nothing(struct fixture *f)
{
    const struct store_terms terms = {60, 60};
    struct store_batch batch = STORE_BATCH_INIT;

    ck_assert_status(
        store_claim_create(f->store, STORE_AT(f->now_ms), &f->queue, &terms, 1, &batch),
        ST_OK);
    ck_assert_uint_eq(batch.count, 0);
}

STORE_TEST_WITH(a_dead_letter_in_transfer_of_an_older_version_arrives,
                fixture_open(f, FIXTURE_REDIS))
{
    static const char *const zeros = "\\x00\\x00\\x00\\x00\\x00\\x00";
    char command[512];

    use(f, "failed");
    post(f, 1);
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 1); /* 2 */
    wear_out(f, 1, 1);
    damage(f, "failed");
    claim_nothing(f);
    mend(f, "failed");
    /* posted: 2^40, expires: 2^41, client, lengths, id, name, body */
    snprintf(command, sizeof(command),
             "HSET claimd:1:{p/q}:x %s \"%s\\x70\\x42%s\\x80\\x42"
             "clientid\\x06\\x00%sfailed2\"\r\n",
             f->ids[2].text, zeros, zeros, f->ids[2].text);
    redis_server_say(f->redis, command, ":0\r\n");
    wait_s(f, 5);
    claim_nothing(f);
    use(f, "failed");
    list_all(f);
    expect(f, 1, 2);
    ck_assert_int_eq(f->seen.messages[1].posted_ms, INT64_C(1) << 40);
    ck_assert_int_eq(f->seen.messages[1].expires_ms, INT64_C(1) << 41);
    ck_assert_ptr_null(f->seen.messages[1].details);
    ck_assert_uint_eq(redrive(f).unknown_origin, 1);
}

/* An older claimd moves messages without their details. */
STORE_TEST_WITH(details_that_an_older_version_has_left_out_are_none,
                fixture_open(f, FIXTURE_REDIS))
{
    const struct store_filter all = {.limit = 10};
    struct store_batch batch = STORE_BATCH_INIT;

    make_dead_letters(f);
    redis_server_say(f->redis, "HDEL claimd:1:{p/failed}:m e1\r\n", ":1\r\n");
    ck_assert_status(
        store_message_list(f->store, STORE_AT(f->now_ms), &f->queue, &all, &batch),
        ST_OK);
    ck_assert_uint_eq(batch.count, 2);
    ck_assert_ptr_null(batch.messages[0].details);
    ck_assert_ptr_nonnull(batch.messages[1].details);
    ck_assert(bytes_equal_str(batch.messages[1].details->origin, "q"));
    store_batch_release(&batch);
    ck_assert_status(delete_free(f, 1), ST_OK);
}
