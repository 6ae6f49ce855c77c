/*
 * An engine that is made from the log of another one is equal to the other one
 * (store/state.h): at any time, over any number of restarts, and also if the log begins
 * with a checkpoint.
 */
#include "claimd/base/hash.h"
#include "model/logbook.h"
#include "model/same.h"
#include "model/story.h"
#include "support/finishing.h"
#include "support/patient.h"

#include <inttypes.h>
#include <stdio.h>

enum { IDS = 1 << 14 };

/* All ids that were ever given to messages, hashed. */
struct ids {
    struct store_id slots[IDS];
    size_t count;
};

struct tale {
    struct story story; /* its store is the engine that lives now */
    struct logbook *log;
    struct ids ids;
    /* Largest of the messages of a queue of this address. */
    uint64_t numbers[STORY_QUEUES];
    bool checkpointing;
    uint64_t since; /* LSN of the checkpoint's begin */
    uint64_t whole; /* the log is enough if it goes to here or further */
    unsigned refuse, fail_memory;
    size_t shown; /* images of messages */
};

struct server {
    struct logbook *log;
    struct mem *mem;
    struct store *store;
};

/* The counts of a run. */
struct tally {
    uint64_t operations, replays, restarts, checkpoints, permanent_failures, backed_off,
        crashes, crashes_at_start, messages;
};

static uint64_t
below(struct tale *t, uint64_t n)
{
    return story_below(&t->story, n);
}

/* ----------------------------------------------------------------- impossible states */

/* Adds an id; false if it was there. */
static bool
add_id(struct ids *ids, const struct store_id *id)
{
    uint64_t at = 0;

    for (const char *c = id->text; *c != '\0'; c++)
        at = hash_mix(at + (unsigned char)*c);
    for (at %= IDS; ids->slots[at].text[0] != '\0'; at = (at + 1) % IDS)
        if (id_same(ids->slots[at], *id))
            return false;
    ids->slots[at] = *id;
    ck_assert_uint_lt(++ids->count, IDS);
    return true;
}

/* Numbers grow as long as there is a queue of this address, also over restarts. */
static void
watch_numbers(struct tale *t, struct store_change change, const struct store_queue *where)
{
    uint64_t *last = &t->numbers[story_index(where)];
    struct store_message_record m;

    while (change.next(&change, &m)) {
        ck_assert_uint_gt(m.number, *last);
        *last = m.number;
        ck_assert_int_eq(add_id(&t->ids, &m.id), change.kind == STORE_CHANGE_POST);
    }
}

static void
watch(struct logbook *log, const struct store_change *change)
{
    struct tale *t = log->listener;

    if (change->kind == STORE_CHANGE_QUEUE_GONE)
        t->numbers[story_index(&change->queue)] = 0;
    else if (change->kind == STORE_CHANGE_POST)
        watch_numbers(t, *change, &change->queue);
    else if (change->kind == STORE_CHANGE_MOVE)
        watch_numbers(t, *change, &change->target);
    else if (change->kind == STORE_CHANGE_STATE)
        t->shown += change->count;
}

/* ---------------------------------------------------------------------- engines */

static struct store *
durable_of(struct store *store)
{
    return patient_inside(store);
}

/* An engine with other secrets than any before, and perhaps other shards. */
static struct store *
open_engine(struct tale *t, struct mem *mem, struct logbook *log)
{
    struct engine_config config = fixture_config(mem);
    struct store *store;

    config.shards = (size_t)1 << below(t, 5);
    config.seed = random_next(&t->story.random);
    config.now_ms = t->story.f.now_ms;
    config.log = &log->observer;
    ck_assert_status(engine_open(&config, &store), ST_OK);
    return patient_open(store);
}

/* Has t go on with this engine and its log. */
static void
live_with(struct tale *t, const struct server *server)
{
    t->story.f.mem = server->mem;
    t->story.f.store = server->store;
    t->log = server->log;
    t->log->random = &t->story.random;
    t->log->refuse = t->refuse;
    t->log->watch = watch;
    t->log->listener = t;
}

static void
begin_tale(struct tale *t, uint64_t seed, unsigned refuse, unsigned fail_memory)
{
    struct server first = {.log = logbook_new(1), .mem = mem_new(0)};

    memset(t, 0, sizeof(*t));
    t->story.f.now_ms = START_MS;
    t->story.random.state = seed;
    t->story.big_body = below(t, 2) * 20000;
    t->refuse = refuse;
    t->fail_memory = fail_memory;
    t->whole = 1;
    first.store = open_engine(t, first.mem, first.log);
    live_with(t, &first);
}

static void
end_tale(struct tale *t)
{
    fixture_close(&t->story.f);
    logbook_free(t->log);
}

/* Goes on with an engine that was replayed: what it has reported is behind the old
 * log. */
static void
take_over(struct tale *t, const struct server *server)
{
    logbook_prepend(server->log, t->log);
    end_tale(t);
    live_with(t, server);
    t->checkpointing = false;
}

/*
 * An engine that knows the tale's log and the one behind it, in front of a LSN. In its
 * own log are its changes from then on.
 */
static struct server
replay_until(struct tale *t, const struct logbook *recorded, uint64_t lsn)
{
    struct server server = {.log = logbook_new(lsn), .mem = mem_new(0)};
    struct logbook *log = logbook_new(t->log->first);

    server.store = open_engine(t, server.mem, server.log);
    logbook_copy(log, t->log, lsn);
    logbook_copy(log, recorded, lsn);
    ck_assert_status(logbook_replay(log, durable_of(server.store)), ST_OK);
    ck_assert_status(store_replay_end(durable_of(server.store), t->story.f.now_ms),
                     ST_OK);
    ck_assert(store_audit(server.store));
    logbook_settle(server.log);
    logbook_free(log);
    return server;
}

static void
close_server(struct server *server)
{
    store_close(server->store);
    ck_assert_uint_eq(mem_used(server->mem), 0);
    mem_destroy(server->mem);
    logbook_free(server->log);
}

/* A crash may come behind each record, and what was written until then can be
 * replayed. */
static void
check_crash(struct tale *t, struct tally *tally)
{
    uint64_t lost = below(t, t->log->next - t->whole + 1);
    struct server server =
        replay_until(t, t->log, logbook_whole(t->log, t->log->next - lost));

    tally->crashes += lost > 0;
    story_check_keys(server.store, t->story.f.now_ms, true);
    close_server(&server);
}

/*
 * A server that was started may have crashed again, when only some of what it reported of
 * that were written: nothing is lost then.
 */
static void
check_crash_at_start(struct tale *t, const struct logbook *recorded, struct tally *tally)
{
    uint64_t lost = below(t, recorded->next - recorded->first + 1);
    struct server server =
        replay_until(t, recorded, logbook_whole(recorded, recorded->next - lost));

    tally->crashes_at_start += lost > 0;
    (void)expect_same(t->story.f.store, server.store, t->story.f.now_ms, story_projects);
    close_server(&server);
}

/* Compares with an engine that is replayed now; goes on with that one on request. */
static void
check_replay(struct tale *t, bool restart, struct tally *tally)
{
    struct server server = replay_until(t, t->log, t->log->next);

    tally->replays++;
    tally->messages +=
        expect_same(t->story.f.store, server.store, t->story.f.now_ms, story_projects);
    check_crash_at_start(t, server.log, tally);
    check_crash(t, tally);
    if (restart) {
        take_over(t, &server);
        tally->restarts++;
    } else {
        story_check_keys(server.store, t->story.f.now_ms, true);
        close_server(&server);
    }
}

/* ---------------------------------------------------------------------- checkpoints */

static void
begin_checkpoint(struct tale *t, struct tally *tally)
{
    struct store *durable = durable_of(t->story.f.store);

    tally->permanent_failures += t->checkpointing;
    t->since = t->log->next;
    t->checkpointing = true;
    logbook_mark(t->log, durable);
    store_checkpoint_begin(durable);
}

/* A slice; what is in front of a checkpoint that has shown all is not needed any more. */
static void
checkpoint(struct tale *t, struct tally *tally)
{
    struct store *durable = durable_of(t->story.f.store);
    bool done = false;
    enum status st = store_checkpoint(durable, &done);

    if (st != ST_OK) {
        ck_assert_status(st, ST_UNAVAILABLE);
        ck_assert(t->log->refused && !done);
        tally->backed_off++;
    }
    logbook_settle(t->log);
    if (!done)
        return;
    logbook_cut(t->log, t->since);
    t->whole = t->log->next;
    t->checkpointing = false;
    tally->checkpoints++;
    check_replay(t, false, tally);
}

static void
perhaps_checkpoint(struct tale *t, struct tally *tally)
{
    if (below(t, t->checkpointing ? 200 : 60) == 0)
        begin_checkpoint(t, tally);
    if (t->checkpointing && below(t, 3) == 0)
        checkpoint(t, tally);
}

/* ---------------------------------------------------------------------- histories */

/* Dead letters of claims that have expired move, and nothing hinders them: those that
 * cannot move do so in an engine that is replayed. */
static void
settle(struct tale *t)
{
    int64_t next_ms;

    t->log->refuse = 0;
    do
        store_housekeep(t->story.f.store, t->story.f.now_ms, &next_ms);
    while (next_ms <= t->story.f.now_ms);
    t->log->refuse = t->refuse;
    logbook_settle(t->log);
}

static void
step(struct tale *t)
{
    struct store_op op;
    enum status st;

    t->log->refuse = 0;
    story_move_time(&t->story);
    settle(t);
    op = (struct store_op){.now_ms = t->story.f.now_ms};
    if (random_chance(&t->story.random, t->fail_memory))
        mem_fail_nth(t->story.f.mem, 1 + below(t, 12));
    st = story_operate(&t->story, &op, below(t, STORY_QUEUES));
    mem_fail_nth(t->story.f.mem, 0);
    ck_assert(store_audit(t->story.f.store));
    if (below(t, 8) == 0)
        story_check_keys(t->story.f.store, t->story.f.now_ms, false);
    if (st == ST_UNAVAILABLE)
        ck_assert(t->log->refused);
    ck_assert_uint_lt(op.lsn, t->log->next);
    logbook_settle(t->log);
}

/* The server is down for a while, perhaps until all that it had is over. */
static void
restart(struct tale *t, struct tally *tally)
{
    static const uint64_t most_ms[] = {1, 20000, 300000, UINT64_C(366) * 86400 * 1000};

    t->story.f.now_ms += (int64_t)below(t, most_ms[below(t, 4)]);
    settle(t);
    check_replay(t, true, tally);
    if (below(t, 3) > 0)
        return;
    begin_checkpoint(t, tally);
    while (t->checkpointing)
        checkpoint(t, tally);
}

/* Tells a tale of so many operations at most. */
static void
run_story(uint64_t seed, unsigned refuse, unsigned fail_memory, uint64_t most,
          struct tally *tally)
{
    static struct tale t;

    begin_tale(&t, seed, refuse, fail_memory);
    for (uint64_t i = 0; i < 2000 && i < most; i++) {
        tally->operations++;
        step(&t);
        perhaps_checkpoint(&t, tally);
        if (below(&t, 50) == 0)
            check_replay(&t, false, tally);
        if (below(&t, 200) == 0)
            restart(&t, tally);
    }
    check_replay(&t, false, tally);
    end_tale(&t);
}

static bool
has_seen_all(const struct tally *tally)
{
    return tally->messages > 0 && tally->restarts > 0 && tally->crashes > 0 &&
           tally->crashes_at_start > 0 && tally->checkpoints > 0;
}

/* Rare cases may need a few tales more than were requested. */
static void
run(const char *test, unsigned refuse, unsigned fail_memory)
{
    struct random seeds = {random_seed(test)};
    const uint64_t wanted = random_operations(10000);
    struct tally tally = {0};

    while (tally.operations < wanted)
        run_story(random_next(&seeds), refuse, fail_memory, wanted - tally.operations,
                  &tally);
    for (int more = 0; more < 10 && !has_seen_all(&tally); more++)
        run_story(random_next(&seeds), refuse, fail_memory, 2000, &tally);
    printf("%s: %" PRIu64 " operations, %" PRIu64 " replays of %" PRIu64
           " messages, %" PRIu64 " restarts, %" PRIu64 " crashes, %" PRIu64
           " checkpoints (%" PRIu64 " failed, %" PRIu64 " slices backed off)\n",
           test, tally.operations, tally.replays, tally.messages, tally.restarts,
           tally.crashes + tally.crashes_at_start, tally.checkpoints,
           tally.permanent_failures, tally.backed_off);
    ck_assert(has_seen_all(&tally));
}

START_TEST(an_engine_that_is_replayed_is_the_same)
{
    run("replay", 0, 0);
}

START_TEST(refused_operations_are_not_replayed)
{
    run("replay of what was not refused", 20, 0);
}

START_TEST(operations_refused_for_memory_are_not_replayed)
{
    run("replay of what had memory", 5, 20);
}

START_TEST(records_that_the_log_refuses_are_not_applied)
{
    const struct store_record records[] = {
        {.kind = STORE_RECORD_QUEUE, .metadata.settings = STORE_SETTINGS_INIT},
        {.kind = STORE_RECORD_MESSAGE,
         .message = {.body = BYTES_LIT("1"),
                     .posted_ms = START_MS,
                     .expires_ms = START_MS + 1000}}};
    static struct tale t;
    struct fixture *f = &t.story.f;

    begin_tale(&t, 1, 0, 0);
    f->queue = story_queue(0);
    for (int messages = 0; messages < 2; messages++) { /* the queue, then the message */
        t.log->refuse = 100;
        ck_assert_status(
            store_apply(f->store, STORE_AT(START_MS), &f->queue, &records[messages], 1),
            ST_UNAVAILABLE);
        t.log->refuse = 0;
        logbook_settle(t.log);
        ck_assert(store_audit(f->store));
        ck_assert_status(
            store_apply(f->store, STORE_AT(START_MS), &f->queue, &records[messages], 1),
            ST_OK);
        logbook_settle(t.log);
    }
    ck_assert_uint_eq(stats(f).total, 1);
    end_tale(&t);
}

/* ---------------------------------------------------------------------- groups */

TEST_CASE("groups");

/* A log that is cut within [first, next) ends in front of the operation, or behind it. */
static void
expect_one_group(const struct tale *t, uint64_t first)
{
    ck_assert_uint_gt(t->log->next, first + 1);
    for (uint64_t lsn = first; lsn < t->log->next; lsn++)
        ck_assert_uint_eq(logbook_whole(t->log, lsn), first);
}

/* Both engines that a crash may leave show what there was before, and afterwards. */
static void
check_cut(struct tale *t, uint64_t first, struct store *before)
{
    struct server server = replay_until(t, t->log, first);

    (void)expect_same(before, server.store, t->story.f.now_ms, story_projects);
    close_server(&server);
    server = replay_until(t, t->log, t->log->next);
    (void)expect_same(t->story.f.store, server.store, t->story.f.now_ms, story_projects);
    close_server(&server);
}

LOOP_TEST(finish_and_redrive_are_in_the_log_as_a_whole_or_not_at_all, 16)
{
    struct store_redrive back = {.limit = 60, .to = BYTES_LIT("d")};
    struct store_redriven moved;
    struct server before;
    struct finishing g;
    static struct tale t;
    struct fixture *f = &t.story.f;
    uint64_t first;

    begin_tale(&t, (uint64_t)_i + 1, 0, 0);
    t.log->watch = NULL;
    f->queue = story_queue(0);
    make_dead_lettering(f, "a", 3, "b", STORE_UNSET);
    post(f, 5);
    g = finishing_of(f, take(f, 5));
    then_delete(&g, 1);
    then_release(&g, 2, 10, "busy");
    then_dead_letter(&g, 3, "bad");
    then_dead_letter(&g, 4, NULL);
    then_post(&g, "c", 2);
    if (_i % 2 == 0)
        then_post(&g, "b", 2);
    then_renew(&g, 500, 60);
    logbook_settle(t.log);
    first = t.log->next;
    before = replay_until(&t, t.log, first);
    ck_assert_status(finish(f, &g), ST_OK);
    logbook_settle(t.log);
    expect_one_group(&t, first);
    check_cut(&t, first, before.store);
    close_server(&before);
    use(f, "b");
    first = t.log->next;
    before = replay_until(&t, t.log, first);
    ck_assert_status(
        store_redrive(f->store, STORE_AT(f->now_ms), &f->queue, &back, &moved), ST_OK);
    ck_assert_uint_eq(moved.moved, 2);
    logbook_settle(t.log);
    expect_one_group(&t, first);
    check_cut(&t, first, before.store);
    close_server(&before);
    store_batch_release(&f->seen);
    end_tale(&t);
}

/* ---------------------------------------------------------------------- no memory */

/* The status of a replay of the tale's log whose nth allocation fails. */
static enum status
replay_without_memory(struct tale *t, uint64_t nth)
{
    struct logbook *log = logbook_new(t->log->next);
    struct mem *mem = mem_new(0);
    struct store *store = open_engine(t, mem, log);
    enum status st;

    mem_fail_nth(mem, nth);
    st = logbook_replay(t->log, durable_of(store));
    if (st == ST_OK)
        st = store_replay_end(durable_of(store), t->story.f.now_ms);
    mem_fail_nth(mem, 0);
    if (st == ST_OK)
        (void)expect_same(t->story.f.store, store, t->story.f.now_ms, story_projects);
    store_close(store);
    ck_assert_uint_eq(mem_used(mem), 0);
    mem_destroy(mem);
    logbook_free(log);
    return st;
}

/* How many allocations a replay of the tale's log tries. */
static uint64_t
allocations(struct tale *t)
{
    struct logbook *log = logbook_new(t->log->next);
    struct mem *mem = mem_new(0);
    struct store *store = open_engine(t, mem, log);
    uint64_t before = mem_attempts(mem);

    ck_assert_status(logbook_replay(t->log, durable_of(store)), ST_OK);
    ck_assert_status(store_replay_end(durable_of(store), t->story.f.now_ms), ST_OK);
    before = mem_attempts(mem) - before;
    store_close(store);
    mem_destroy(mem);
    logbook_free(log);
    return before;
}

START_TEST(a_replay_without_memory_says_so_and_leaves_nothing)
{
    struct tally tally = {.operations = 0};
    uint64_t tries, failed = 0;
    static struct tale t;

    begin_tale(&t, random_seed("replay without memory"), 0, 0);
    for (int i = 0; i < 300; i++) {
        step(&t);
        perhaps_checkpoint(&t, &tally);
    }
    tries = allocations(&t);
    for (uint64_t nth = 1; nth <= tries; nth++) {
        enum status st = replay_without_memory(&t, nth);

        ck_assert(st == ST_OK || st == ST_NO_MEMORY);
        failed += st == ST_NO_MEMORY;
    }
    ck_assert_uint_gt(failed, tries / 2); /* the others could be done without */
    ck_assert_status(replay_without_memory(&t, 0), ST_OK);
    end_tale(&t);
}

/* -------------------------------------------------------------------- contradictions */

/* No messages. */
static bool
next_none(struct store_change *change, struct store_message_record *out)
{
    (void)change, (void)out;
    return false;
}

/* One, in `from`. */
static bool
next_one(struct store_change *change, struct store_message_record *out)
{
    if (change->count == 0)
        return false;
    change->count--;
    *out = *(const struct store_message_record *)change->from[0];
    return true;
}

static enum status
replay_queue(struct store *store, uint32_t tag, size_t queue)
{
    const struct store_metadata none = {.settings = STORE_SETTINGS_INIT};
    struct store_change change = {.kind = STORE_CHANGE_QUEUE,
                                  .tag = tag,
                                  .queue = story_queue(queue),
                                  .metadata = &none,
                                  .next = next_none};

    return store_replay(durable_of(store), &change);
}

static enum status
replay_post(struct store *store, uint32_t tag, uint64_t number)
{
    const struct store_message_record m = {.number = number,
                                           .old_number = number,
                                           .body = bytes_str("1"),
                                           .posted_ms = START_MS,
                                           .expires_ms = START_MS + 1000};
    struct store_change change = {.kind = STORE_CHANGE_POST,
                                  .tag = tag,
                                  .count = 1,
                                  .from = {&m, NULL},
                                  .next = next_one};

    return store_replay(durable_of(store), &change);
}

static enum status
replay_end(struct store *store)
{
    return store_replay_end(durable_of(store), START_MS);
}

TEST_CASE("contradictions");

START_TEST(a_queue_that_was_never_named_is_refused)
{
    static struct tale t;

    begin_tale(&t, 1, 0, 0);
    ck_assert_status(replay_queue(t.story.f.store, 1, 0), ST_OK);
    ck_assert_status(replay_post(t.story.f.store, 2, 1), ST_OK);
    ck_assert_status(replay_end(t.story.f.store), ST_BAD_VALUE);
    end_tale(&t);
}

START_TEST(a_queue_may_be_named_behind_its_messages)
{
    static struct tale t;

    begin_tale(&t, 1, 0, 0);
    ck_assert_status(replay_post(t.story.f.store, 2, 7), ST_OK);
    ck_assert_status(replay_queue(t.story.f.store, 2, 0), ST_OK);
    ck_assert_status(replay_end(t.story.f.store), ST_OK);
    t.story.f.queue = story_queue(0);
    ck_assert_uint_eq(stats(&t.story.f).total, 1);
    end_tale(&t);
}

START_TEST(two_queues_of_one_name_are_refused)
{
    static struct tale t;

    begin_tale(&t, 1, 0, 0);
    ck_assert_status(replay_queue(t.story.f.store, 1, 0), ST_OK);
    ck_assert_status(replay_queue(t.story.f.store, 2, 0), ST_OK);
    ck_assert_status(replay_end(t.story.f.store), ST_BAD_VALUE);
    end_tale(&t);
}

START_TEST(two_names_of_one_queue_are_refused)
{
    static struct tale t;

    begin_tale(&t, 1, 0, 0);
    ck_assert_status(replay_queue(t.story.f.store, 1, 0), ST_OK);
    ck_assert_status(replay_queue(t.story.f.store, 1, 0), ST_OK);
    ck_assert_status(replay_queue(t.story.f.store, 1, 1), ST_BAD_VALUE);
    end_tale(&t);
}

START_TEST(a_message_without_a_number_is_refused)
{
    static struct tale t;

    begin_tale(&t, 1, 0, 0);
    ck_assert_status(replay_post(t.story.f.store, 1, 0), ST_BAD_VALUE);
    end_tale(&t);
}

START_TEST(a_subscription_that_makes_no_sense_is_refused)
{
    static const struct store_subscription_record good = {
        .id = {"abcdefabcdef000000000007"},
        .number = 7,
        .subscriber = BYTES_LIT("http://a"),
        .options = BYTES_LIT("{}"),
        .ttl_s = 60};
    struct store_subscription_record rows[] = {good, good, good, good, good, good};
    static struct tale t;

    rows[1].number = 0;
    rows[2].number = 8; /* not that of the id */
    rows[3].ttl_s = 0;
    rows[4].ttl_s = INT64_MAX / 2000;
    rows[5].pending = STORE_PENDING_UNSUBSCRIBED + 1;
    begin_tale(&t, 1, 0, 0);
    ck_assert_status(replay_queue(t.story.f.store, 1, 0), ST_OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct store_change change = {.kind = STORE_CHANGE_SUBSCRIPTION,
                                      .tag = 1,
                                      .now_ms = START_MS,
                                      .subscription = &rows[i],
                                      .next = next_none};

        ck_assert_msg(store_replay(durable_of(t.story.f.store), &change) ==
                          (i == 0 ? ST_OK : ST_BAD_VALUE),
                      "%zu", i);
    }
    end_tale(&t);
}

START_TEST(a_transient_queue_that_gets_no_numbers_does_not_begin_anew)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct server server = {.mem = mem_new(0)};
    static struct tale t;

    begin_tale(&t, 1, 0, 0);
    settings.transient = true;
    t.story.f.queue = story_queue(0);
    make_queue(&t.story.f, &settings);
    logbook_settle(t.log);
    server.log = logbook_new(t.log->next);
    server.log->random = &t.story.random;
    server.log->refuse = 100;
    server.store = open_engine(&t, server.mem, server.log);
    ck_assert_status(logbook_replay(t.log, durable_of(server.store)), ST_OK);
    ck_assert_status(replay_end(server.store), ST_UNAVAILABLE);
    ck_assert_uint_eq(server.log->next, t.log->next);
    close_server(&server);
    end_tale(&t);
}

/* ---------------------------------------------------------------------- claim numbers */

TEST_CASE("claim numbers");

/* Claims a message that is posted for it; returns the claim's number. */
static uint64_t
claim_one(struct tale *t)
{
    uint64_t number;

    post(&t->story.f, 1);
    (void)take(&t->story.f, 1);
    ck_assert_uint_eq(t->story.f.seen.count, 1);
    number = t->story.f.seen.claim_number;
    store_batch_release(&t->story.f.seen); /* before its store is closed */
    logbook_settle(t->log);
    return number;
}

/* Deletes the queue, and goes on with what is replayed; perhaps only with what is in a
 * checkpoint. */
static void
delete_and_restart(struct tale *t, bool checkpointed)
{
    struct tally tally = {.operations = 0};

    delete_queue(&t->story.f);
    logbook_settle(t->log);
    if (checkpointed)
        begin_checkpoint(t, &tally);
    while (t->checkpointing)
        checkpoint(t, &tally);
    check_replay(t, true, &tally);
}

/* In no time, so that they do not begin behind a later birth. */
LOOP_TEST(claim_numbers_grow_though_their_queue_goes_before_a_restart, 4)
{
    static struct tale t;
    uint64_t number = 0;

    begin_tale(&t, 1, 0, 0);
    t.story.f.queue = story_queue(0);
    if (_i >= 2) {
        struct store_settings settings = STORE_SETTINGS_INIT;

        settings.transient = true;
        make_queue(&t.story.f, &settings);
    }
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 5; k++) {
            uint64_t next = claim_one(&t);

            ck_assert_uint_gt(next, number);
            number = next;
        }
        delete_and_restart(&t, _i % 2 == 1);
        t.story.f.posted = 0;
    }
    end_tale(&t);
}

/* ---------------------------------------------------------------------- large queues */

TEST_CASE("large queues");

/* Posts in large pieces, since each needs one call of the log. */
static void
post_small(struct tale *t, size_t count)
{
    static struct store_draft drafts[4096];
    static struct store_id ids[4096];

    while (count > 0) {
        struct store_post post = {.drafts = drafts, .count = count < 4096 ? count : 4096};

        for (size_t i = 0; i < post.count; i++)
            drafts[i] = (struct store_draft){bytes_str("1"), 1000, 0};
        ck_assert_status(store_message_post(t->story.f.store, STORE_AT(t->story.f.now_ms),
                                            &t->story.f.queue, &post, ids),
                         ST_OK);
        logbook_settle(t->log);
        count -= post.count;
    }
}

static enum status
post_one(struct tale *t)
{
    const struct store_draft draft = {bytes_str("1"), 1000, 0};
    const struct store_post post = {.drafts = &draft, .count = 1};
    struct store_id id;
    enum status st = store_message_post(t->story.f.store, STORE_AT(t->story.f.now_ms),
                                        &t->story.f.queue, &post, &id);

    logbook_settle(t->log);
    return st;
}

/* With one queue. */
static void
begin_large(struct tale *t, bool transient)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    begin_tale(t, 1, 0, 0);
    settings.transient = transient;
    t->story.f.queue = story_queue(0);
    make_queue(&t->story.f, &settings);
    logbook_settle(t->log);
}

START_TEST(a_slice_shows_256_messages_at_most)
{
    struct tally tally = {.operations = 0};
    static struct tale t;
    size_t slices = 0;

    begin_large(&t, false);
    post_small(&t, 1000);
    begin_checkpoint(&t, &tally);
    for (; t.checkpointing; slices++) {
        t.shown = 0;
        checkpoint(&t, &tally);
        ck_assert_uint_le(t.shown, 256);
        post_small(&t, 300); /* which the checkpoint does not run after */
        check_replay(&t, false, &tally);
    }
    ck_assert_uint_ge(slices, 4);
    ck_assert_uint_le(slices, 24);
    end_tale(&t);
}

/* The numbers that the log leases to a transient queue are used up, and it leases
 * more. */
START_TEST(a_transient_queue_begins_anew_behind_its_reserved_numbers)
{
    enum { LOAN = 1 << 20 };
    struct tally tally = {.operations = 0};
    static struct tale t;
    uint64_t queues;

    begin_large(&t, true);
    t.log->watch = NULL; /* too many ids */
    queues = t.log->recorded[STORE_CHANGE_QUEUE];
    t.log->refuse = 100; /* it does not call the log */
    post_small(&t, LOAN);
    ck_assert_uint_eq(t.log->recorded[STORE_CHANGE_QUEUE], queues);
    ck_assert_status(post_one(&t), ST_UNAVAILABLE);
    ck_assert_uint_eq(stats(&t.story.f).total, LOAN);
    t.log->refuse = 0;
    post_small(&t, 1);
    ck_assert_uint_eq(t.log->recorded[STORE_CHANGE_QUEUE], queues + 1);
    t.numbers[0] = LOAN + 1;
    check_replay(&t, true, &tally);
    post_small(&t, 1); /* its number is larger than those before: watch_numbers() */
    ck_assert_uint_gt(t.numbers[0], LOAN + 1);
    end_tale(&t);
}
