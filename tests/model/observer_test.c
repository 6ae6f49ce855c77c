/*
 * A store appends each change to its log once and in order (store/log.h). A change that
 * the log refuses has not happened. An operation waits for the changes that it has seen.
 *
 * The log of these tests checks each reservation and each change, and keeps the changes.
 * A second engine replays them, and must show the same as the store (model/same.h).
 */
#include "model/logbook.h"
#include "model/same.h"
#include "model/story.h"
#include "support/finishing.h"
#include "support/patient.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEYS = 256 };

/* An Idempotency-Key in the log. */
struct logged_key {
    uint32_t tag;
    struct store_key_record record;
};

/* A queue as the changes describe it. */
struct logged_queue {
    bool there, transient;
    size_t messages;
    uint64_t lsn; /* of the latest change of a queue of this address */
};

struct observer {
    struct store_log log; /* first */
    struct logbook *kept; /* owned: the changes */
    struct logged_queue queues[STORY_QUEUES];
    uint64_t lsn;                         /* of the latest change */
    struct logged_key keys[KEYS];         /* the latest ones, a ring */
    uint64_t key_count;                   /* ever logged */
    uint64_t lone_keys;                   /* without their effects in the same group */
    unsigned granted[STORE_CHANGE_KINDS]; /* reservations that the store must use */
    size_t reserved[STORE_CHANGE_KINDS];  /* messages of these */
    size_t set_aside; /* all reservations, less those that were used or returned */
    uint64_t changes; /* but for expiries */
    uint64_t recorded[STORE_CHANGE_KINDS], recorded_transient;
    uint64_t flushed; /* LSN when it was flushed last */
    struct random *random;
    unsigned refuse;  /* percent */
    bool refused;     /* in the operation under way */
    struct mem *mem;  /* of the store */
    uint64_t failing; /* the attempt of `mem` that is to fail; 0: none */
};

struct history {
    struct story story;
    struct observer o;
    unsigned fail_memory; /* percent */
};

/* ---------------------------------------------------------------------- reservations */

/* The store must return the reservations that it has not used, and may not use them
 * later. */
static void
forget_grants(struct observer *o)
{
    memset(o->granted, 0, sizeof(o->granted));
    memset(o->reserved, 0, sizeof(o->reserved));
}

/* An allocation does not notify the log when it fails. So the log asks first in each
 * call. */
static void
notice_failed_allocation(struct observer *o)
{
    if (o->failing == 0 || mem_attempts(o->mem) < o->failing)
        return;
    o->failing = 0;
    forget_grants(o);
}

/* The nth allocation of the store from now on fails; 0: none does. */
static void
fail_nth(struct observer *o, uint64_t nth)
{
    notice_failed_allocation(o);
    o->failing = nth == 0 ? 0 : mem_attempts(o->mem) + nth;
    mem_fail_nth(o->mem, nth);
}

/*
 * Ends a step. The store has used or returned each reservation. If an allocation or a
 * reservation fails, it must return those before it. It must use all others, unless it
 * refused the operation (`is_refused`).
 */
static void
end_step(struct observer *o, bool is_refused)
{
    notice_failed_allocation(o);
    ck_assert_uint_eq(o->set_aside, 0);
    for (size_t i = 0; i < STORE_CHANGE_KINDS; i++)
        ck_assert_msg(o->granted[i] == 0 || is_refused,
                      "%u changes of kind %zu were granted in vain", o->granted[i], i);
    forget_grants(o);
    o->refused = false;
}

static bool
is_expiry(enum store_change_kind kind)
{
    return kind == STORE_CHANGE_EXPIRED || kind == STORE_CHANGE_DELAY_OVER ||
           kind == STORE_CHANGE_CLAIM_OVER;
}

static enum status
reserve(struct store_log *log, enum store_change_kind kind, bool checkpoint, size_t count,
        size_t bytes, size_t *reserved)
{
    struct observer *o = (struct observer *)log;

    (void)bytes;
    ck_assert(!is_expiry(kind) && !checkpoint);
    notice_failed_allocation(o);
    if (random_chance(o->random, o->refuse)) {
        o->refused = true;
        forget_grants(o);
        return ST_UNAVAILABLE;
    }
    o->granted[kind]++;
    o->reserved[kind] += count;
    o->set_aside++;
    ++*reserved;
    return ST_OK;
}

static void
unreserve(struct store_log *log, size_t reserved)
{
    struct observer *o = (struct observer *)log;

    notice_failed_allocation(o);
    ck_assert_uint_le(reserved, o->set_aside);
    o->set_aside -= reserved;
}

static void
use_reservation(struct observer *o, const struct store_change *change, size_t *reserved)
{
    ck_assert_uint_gt(*reserved, 0);
    --*reserved;
    o->set_aside--;
    ck_assert_uint_gt(o->granted[change->kind], 0);
    o->granted[change->kind]--;
    ck_assert_uint_le(change->count, o->reserved[change->kind]);
    o->reserved[change->kind] -= change->count;
}

/* ---------------------------------------------------------------------- changes */

static struct logged_queue *
queue_of(struct observer *o, const struct store_queue *where)
{
    return &o->queues[story_index(where)];
}

/* Each change but the first is of queues that exist, and says whether they are transient.
 * A transient queue is logged again when it gets more numbers. */
static void
check_queues(struct observer *o, const struct store_change *change)
{
    struct logged_queue *q = queue_of(o, &change->queue);

    if (change->kind == STORE_CHANGE_QUEUE) {
        ck_assert(!q->there || q->transient);
        q->there = true;
        q->transient = change->metadata->settings.transient;
    }
    ck_assert(q->there);
    ck_assert_int_eq(change->transient, q->transient);
    q->there = change->kind != STORE_CHANGE_QUEUE_GONE;
    if (change->kind != STORE_CHANGE_MOVE)
        return;
    q = queue_of(o, &change->target);
    ck_assert(q->there);
    ck_assert_int_eq(change->target_transient, q->transient);
}

/* Fails without the id of the message (engine/ident.h). An original id is from another
 * queue. */
static void
check_id(const struct store_message_record *m, uint32_t tag)
{
    char id[STORE_ID_CAP];

    (void)snprintf(id, sizeof(id), "%08" PRIx32 "%016" PRIx64, tag, m->number);
    if (!m->original_id && strcmp(id, m->id.text) != 0)
        ck_abort_msg("message %" PRIu64 " has the id %s", m->number, m->id.text);
}

/* A change has as many messages as it says, with their ids. */
static void
check_messages(struct store_change change)
{
    const bool moves = change.kind == STORE_CHANGE_MOVE;
    const size_t count = change.count;
    struct store_message_record m;
    size_t shown = 0;

    for (; change.next(&change, &m); shown++)
        check_id(&m, moves ? change.target_tag : change.tag);
    if (change.kind == STORE_CHANGE_DETAILS) /* of those that have some */
        ck_assert(0 < shown && shown <= count);
    else
        ck_assert_uint_eq(shown, count);
}

/* No effect has a key that was there within the window: one key, one effect. */
static void
check_key(struct observer *o, const struct store_change *change)
{
    const struct store_key_record *record = change->key;

    for (size_t i = 0; i < KEYS && i < o->key_count; i++) {
        const struct logged_key *k = &o->keys[i];

        if (k->tag == change->tag && k->record.key.hash[0] == record->key.hash[0])
            ck_assert_int_ge(record->made_ms, k->record.made_ms + FIXTURE_KEY_S * 1000);
    }
    o->keys[o->key_count++ % KEYS] = (struct logged_key){change->tag, *record};
    ck_assert_int_eq(record->made_ms, change->now_ms);
    ck_assert_int_eq(record->kind == STORE_KEY_POP, change->count > 0);
}

/* A message leaves its queue once. */
static void
count_messages(struct observer *o, const struct store_change *change)
{
    size_t *messages = &queue_of(o, &change->queue)->messages;

    switch (change->kind) {
    case STORE_CHANGE_POST:
        *messages += change->count;
        return;
    case STORE_CHANGE_MOVE:
        queue_of(o, &change->target)->messages += change->count;
        break;
    case STORE_CHANGE_DELETE:
    case STORE_CHANGE_EXPIRED:
        break;
    case STORE_CHANGE_PURGE:
    case STORE_CHANGE_QUEUE_GONE:
        *messages = 0;
        return;
    default:
        return;
    }
    ck_assert_uint_le(change->count, *messages);
    *messages -= change->count;
}

static bool
next_none(struct store_change *change, struct store_message_record *out)
{
    (void)change, (void)out;
    return false;
}

/*
 * Keeps a change in a form in which its replay shows each error in it. Expiries become
 * changes of a client, so that nothing has to expire in the replay. A change that ends or
 * renews a claim concerns only the messages that it names.
 */
static void
keep_change(struct observer *o, struct store_change change)
{
    struct store_change end = change;

    change.transient = change.target_transient = false;
    switch (change.kind) {
    case STORE_CHANGE_KEY:
        return;
    case STORE_CHANGE_EXPIRED:
        change.kind = STORE_CHANGE_DELETE;
        break;
    case STORE_CHANGE_RELEASE:
    case STORE_CHANGE_CLAIM_OVER:
    case STORE_CHANGE_DELAY_OVER:
        change.kind = STORE_CHANGE_RETRY;
        break;
    case STORE_CHANGE_RENEW: /* it ends, and holds these */
        end.transient = false;
        end.kind = STORE_CHANGE_RELEASE;
        end.count = 0;
        end.next = next_none;
        logbook_add(o->kept, &end);
        break;
    default:
        break;
    }
    logbook_add(o->kept, &change);
}

/* Returns its LSN; 0: no response waits for it. */
static uint64_t
append_one(struct observer *o, const struct store_change *change, size_t *reserved)
{
    o->recorded[change->kind]++;
    o->recorded_transient += change->transient;
    o->changes += !is_expiry(change->kind);
    check_queues(o, change);
    check_messages(*change);
    if (change->kind == STORE_CHANGE_KEY)
        check_key(o, change);
    count_messages(o, change);
    keep_change(o, *change);
    if (record_type_of(change) == 0)
        return 0;
    use_reservation(o, change, reserved);
    queue_of(o, &change->queue)->lsn = ++o->lsn;
    if (change->kind == STORE_CHANGE_MOVE)
        queue_of(o, &change->target)->lsn = o->lsn;
    return o->lsn;
}

static uint64_t
append(struct store_log *log, struct store_change *change, size_t *reserved)
{
    struct observer *o = (struct observer *)log;
    uint64_t lsn = 0;

    notice_failed_allocation(o);
    o->lone_keys += change->kind == STORE_CHANGE_KEY;
    for (; change != NULL; change = change->then) {
        uint64_t its = append_one(o, change, reserved);

        lsn = its != 0 ? its : lsn;
    }
    return lsn;
}

static void
flush(struct store_log *log)
{
    struct observer *o = container_of(log, struct observer, log);

    o->flushed = o->lsn;
}

/* ---------------------------------------------------------------------- comparing */

/* The contents of a queue. */
struct contents {
    enum status st;
    uint64_t messages, claimed, delayed;
};

static struct contents
contents_of(struct store *store, int64_t now_ms, size_t queue)
{
    const struct store_queue where = story_queue(queue);
    struct store_batch prompt = STORE_BATCH_INIT;
    struct store_filter filter = {.include_claimed = true};
    struct store_stats stats = {0};
    struct contents c = {.st =
                             store_queue_stats(store, STORE_AT(now_ms), &where, &stats)};

    filter.limit = stats.total + 1;
    ck_assert_status(
        store_message_list(store, STORE_AT(now_ms), &where, &filter, &prompt), ST_OK);
    c.messages = stats.total;
    c.claimed = stats.claimed;
    c.delayed = stats.total - prompt.count;
    store_batch_release(&prompt);
    return c;
}

/* All that was due in the store was logged: the replay has it before its time passes. */
static void
compare_contents(const struct history *h, struct store *replayed)
{
    for (size_t i = 0; i < STORY_QUEUES; i++) {
        struct contents a = contents_of(h->story.f.store, h->story.f.now_ms, i);
        struct contents b = contents_of(replayed, START_MS, i);

        ck_assert_status(b.st, a.st);
        ck_assert_uint_eq(a.messages, h->o.queues[i].messages);
        ck_assert_uint_eq(a.messages, b.messages);
        ck_assert_uint_eq(a.claimed, b.claimed);
        ck_assert_uint_eq(a.delayed, b.delayed);
    }
}

/* Everything that is due happens, and is logged. */
static void
expire(struct history *h)
{
    const unsigned refuse = h->o.refuse;
    int64_t next_ms;

    h->o.refuse = 0;
    do
        store_housekeep(h->story.f.store, h->story.f.now_ms, &next_ms);
    while (next_ms <= h->story.f.now_ms);
    h->o.refuse = refuse;
}

static void
compare(struct history *h)
{
    struct mem *mem = mem_new(0);
    struct engine_config config = fixture_config(mem);
    struct store *store;

    expire(h);
    ck_assert_status(engine_open(&config, &store), ST_OK);
    ck_assert_status(logbook_replay(h->o.kept, store), ST_OK);
    ck_assert_status(store_replay_end(store, START_MS), ST_OK);
    store = patient_open(store);
    compare_contents(h, store);
    (void)expect_same_transient(h->story.f.store, store, h->story.f.now_ms,
                                story_projects);
    store_close(store);
    ck_assert_uint_eq(mem_used(mem), 0);
    mem_destroy(mem);
}

/* ---------------------------------------------------------------------- histories */

static void
step(struct history *h)
{
    struct store_op op;
    size_t queue = story_below(&h->story, STORY_QUEUES);
    uint64_t changes = h->o.changes, moves = h->o.recorded[STORE_CHANGE_MOVE];
    enum status st;

    story_move_time(&h->story); /* dead letters may move */
    end_step(&h->o, false);
    op = (struct store_op){.now_ms = h->story.f.now_ms};
    if (random_chance(&h->story.random, h->fail_memory))
        fail_nth(&h->o, 1 + story_below(&h->story, 12));
    st = story_operate(&h->story, &op, queue);
    fail_nth(&h->o, 0);
    ck_assert(store_audit(h->story.f.store));
    if (st == ST_UNAVAILABLE)
        ck_assert(h->o.refused);
    /* But for dead letters, which may have moved, a refusal changes nothing. */
    if (st != ST_OK && moves == h->o.recorded[STORE_CHANGE_MOVE])
        ck_assert_uint_eq(changes, h->o.changes);
    ck_assert_uint_le(op.lsn, h->o.lsn);
    if (st != ST_NO_MEMORY) /* which it may have said before it saw anything */
        ck_assert_msg(op.lsn >= h->o.queues[queue].lsn,
                      "at %" PRIu64 " it has seen %" PRIu64 ": %s", op.lsn,
                      h->o.queues[queue].lsn, status_name(st));
    end_step(&h->o, st != ST_OK);
}

static void
open_observed(struct history *h, uint64_t seed)
{
    struct engine_config config;

    memset(h, 0, sizeof(*h));
    h->story.f.now_ms = START_MS;
    h->story.f.mem = mem_new(0);
    config = fixture_config(h->story.f.mem);
    config.log = &h->o.log;
    h->story.random.state = seed;
    h->o = (struct observer){
        .log = {.reserve = reserve,
                .append = append,
                .unreserve = unreserve,
                .flush = flush},
        .kept = logbook_new(1),
        .random = &h->story.random,
        .mem = h->story.f.mem,
    };
    ck_assert_status(engine_open(&config, &h->story.f.store), ST_OK);
    h->story.f.store = patient_open(h->story.f.store);
    h->story.f.queue = story_queue(0);
}

static void
close_observed(struct history *h)
{
    fixture_close(&h->story.f);
    logbook_free(h->o.kept);
}

/*
 * The first kind of change that no history had; STORE_CHANGE_KINDS: they had all. STATE
 * and FEED are left out, because only checkpoints have them, and RUN, because these
 * stores keep all in memory.
 */
static size_t
missing_kind(const uint64_t recorded[STORE_CHANGE_KINDS])
{
    for (size_t i = STORE_CHANGE_QUEUE; i < STORE_CHANGE_KINDS; i++) {
        if (i == STORE_CHANGE_STATE)
            i = STORE_CHANGE_RETRY;
        if (i == STORE_CHANGE_RUN)
            i = STORE_CHANGE_EXPIRED;
        if (recorded[i] == 0)
            return i;
    }
    return STORE_CHANGE_KINDS;
}

/* Plays histories, and a few more if they did not have all kinds of changes by chance. */
static void
run(const char *test, unsigned refuse, unsigned fail_memory)
{
    enum { HISTORY = 2000, MORE = 20 };

    struct random seeds = {random_seed(test)};
    const uint64_t operations = random_operations(6000);
    static struct history h;
    uint64_t recorded[STORE_CHANGE_KINDS] = {0}, recorded_transient = 0;

    for (uint64_t done = 0;
         done < operations ||
         ((missing_kind(recorded) < STORE_CHANGE_KINDS || recorded_transient == 0) &&
          done < operations + MORE * HISTORY);) {
        open_observed(&h, random_next(&seeds));
        h.o.refuse = refuse;
        h.fail_memory = fail_memory;
        for (uint64_t i = 1; i <= HISTORY; i++, done++) {
            step(&h);
            if (i % 50 == 0)
                compare(&h);
        }
        compare(&h);
        for (size_t i = 0; i < STORE_CHANGE_KINDS; i++)
            recorded[i] += h.o.recorded[i];
        if (refuse == 0)
            ck_assert_uint_eq(h.o.lone_keys, 0);
        recorded_transient += h.o.recorded_transient;
        close_observed(&h);
    }
    ck_assert_msg(missing_kind(recorded) == STORE_CHANGE_KINDS,
                  "no history had a change of kind %zu", missing_kind(recorded));
    ck_assert_uint_gt(recorded_transient, 0);
}

START_TEST(a_replay_of_the_changes_shows_what_the_engine_shows)
{
    run("observer", 0, 0);
}

START_TEST(a_change_refused_by_the_observer_has_not_happened)
{
    run("observer that refuses", 20, 0);
}

START_TEST(changes_refused_for_memory_are_not_observed)
{
    run("observer without memory", 5, 20);
}

/* A finish that deletes, moves a message after its last attempt, and posts. True if its
 * nth allocation exists, and fails. */
static bool
finish_without_memory(struct history *h, uint64_t nth, struct finishing *g,
                      enum status *st)
{
    struct fixture *f = &h->story.f;
    bool failed;

    open_observed(h, 1);
    make_dead_lettering(f, "a", 1, "b", STORE_UNSET);
    post(f, 2);
    *g = finishing_of(f, take(f, 2));
    then_delete(g, 1);
    then_release(g, 2, 0, "busy");
    then_post(g, "c", 1);
    end_step(&h->o, false);
    fail_nth(&h->o, nth);
    nth += mem_attempts(f->mem);
    *st = finish(f, g);
    failed = mem_attempts(f->mem) >= nth;
    fail_nth(&h->o, 0);
    end_step(&h->o, *st != ST_OK);
    compare(h);
    close_observed(h);
    return failed;
}

START_TEST(a_finish_that_begins_again_reserves_only_what_it_changes)
{
    static struct history h;
    struct finishing g;
    size_t again = 0;
    enum status st;

    for (uint64_t nth = 1; finish_without_memory(&h, nth, &g, &st); nth++)
        again += st == ST_OK && !g.items[1].exhausted;
    ck_assert_uint_gt(again, 0);
    ck_assert_status(st, ST_OK);
    ck_assert(g.items[1].exhausted);
}

/* Posts small messages, and removes them. */
static void
use_numbers(struct fixture *f, size_t count)
{
    static struct store_draft drafts[1024];
    static struct store_id ids[1024];

    for (size_t i = 0; i < 1024; i++)
        drafts[i] = (struct store_draft){.body = bytes_str("1"), .ttl_s = 60};
    while (count > 0) {
        const struct store_post post = {.drafts = drafts,
                                        .count = count < 1024 ? count : 1024};

        ck_assert_status(
            store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &post, ids),
            ST_OK);
        ck_assert_status(store_queue_purge(f->store, STORE_AT(f->now_ms), &f->queue,
                                           STORE_PURGE_MESSAGES),
                         ST_OK);
        count -= post.count;
    }
}

/* A queue in memory gets 2^20 numbers at once. `left` of them are left when a finish
 * posts a message to it and moves one there. */
LOOP_TEST(a_finish_reserves_the_numbers_of_its_post_and_of_its_dead_letters, 2)
{
    static struct history h;
    struct fixture *f = &h.story.f;
    struct store_settings set = STORE_SETTINGS_INIT;
    const size_t left = (size_t)_i;
    struct finishing g;

    open_observed(&h, 1);
    set.transient = true;
    use(f, "c");
    make_queue(f, &set);
    use_numbers(f, (1 << 20) - left);
    make_dead_lettering(f, "a", 1, "c", STORE_UNSET);
    post(f, 1);
    g = finishing_of(f, take(f, 1));
    then_release(&g, 1, 0, "busy");
    then_post(&g, "c", 1);
    end_step(&h.o, false);
    ck_assert_status(finish(f, &g), ST_OK);
    ck_assert(g.items[0].exhausted);
    end_step(&h.o, false);
    close_observed(&h);
}

START_TEST(a_list_of_queues_waits_for_what_it_shows)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_page page = {.project = bytes_str("p"), .limit = 10};
    static struct history h;
    struct store_op op;

    open_observed(&h, 1);
    for (int i = 0; i < 4; i++) {
        h.story.f.queue = story_queue((size_t)i);
        make_queue(&h.story.f, NULL);
        op = (struct store_op){.now_ms = h.story.f.now_ms};
        ck_assert_status(store_queue_list(h.story.f.store, &op, &page, &queues), ST_OK);
        ck_assert_uint_eq(queues.count, (size_t)i + 1);
        ck_assert_uint_eq(op.lsn, h.o.lsn);
        store_queues_release(&queues);
    }
    delete_queue(&h.story.f); /* that something has gone is seen, too */
    op = (struct store_op){.now_ms = h.story.f.now_ms};
    ck_assert_status(store_queue_list(h.story.f.store, &op, &page, &queues), ST_OK);
    ck_assert_uint_eq(op.lsn, h.o.lsn);
    store_queues_release(&queues);
    post(&h.story.f, 1);
    op = (struct store_op){.now_ms = h.story.f.now_ms};
    ck_assert_status(store_totals(h.story.f.store, &op, &(struct store_totals){0}),
                     ST_OK);
    ck_assert_uint_eq(op.lsn, h.o.lsn);
    close_observed(&h);
}

START_TEST(an_operation_flushes_unless_the_caller_does_it_later)
{
    struct store_draft draft = {bytes_str("1"), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct store_op op;
    struct store_id id;
    static struct history h;

    open_observed(&h, 1);
    h.story.f.queue = story_queue(0);
    op = (struct store_op){.now_ms = h.story.f.now_ms, .flush_later = true};
    ck_assert_status(
        store_message_post(h.story.f.store, &op, &h.story.f.queue, &one, &id), ST_OK);
    ck_assert_uint_eq(op.lsn, 2);
    ck_assert_uint_eq(h.o.flushed, 0);
    store_log_flush(&h.o.log);
    ck_assert_uint_eq(h.o.flushed, 2);
    op.flush_later = false;
    ck_assert_status(
        store_message_post(h.story.f.store, &op, &h.story.f.queue, &one, &id), ST_OK);
    ck_assert_uint_eq(h.o.flushed, 3);
    close_observed(&h);
}

START_TEST(an_operation_without_changes_waits_for_no_commit)
{
    struct store_op op;
    static struct history h;

    open_observed(&h, 1);
    h.story.f.queue = story_queue(0);
    op = (struct store_op){.now_ms = h.story.f.now_ms};
    ck_assert_status(store_queue_stats(h.story.f.store, &op, &h.story.f.queue,
                                       &(struct store_stats){0}),
                     ST_NOT_FOUND);
    ck_assert_uint_eq(op.lsn, 0);
    post(&h.story.f, 1);
    h.story.f.queue = story_queue(1); /* another one */
    make_queue(&h.story.f, NULL);
    h.story.f.queue = story_queue(0);
    op = (struct store_op){.now_ms = h.story.f.now_ms};
    ck_assert_status(store_queue_stats(h.story.f.store, &op, &h.story.f.queue,
                                       &(struct store_stats){0}),
                     ST_OK);
    ck_assert_uint_eq(op.lsn, 2); /* the queue, and its message */
    close_observed(&h);
}
