#define STORE_FIXTURE_WITHOUT_LINES
#include "support/store_fixture.h"
#include "support/delete.h"

#include "claimd/redis/redis.h"
#include "model/twin.h"
#include "support/patient.h"
#include "support/redis_server.h"
#include "support/restarts.h"

#include <stdio.h>
#include <stdlib.h>

enum { TRIED_WORDS = 32 };

/* A sealer that inverts the bits of a body, behind the mark. It cannot seal a body that
 * begins with '-'. */
static enum status
invert_bits(void *arg, const struct store_queue *queue, struct bytes body, char *to)
{
    (void)arg, (void)queue;
    if (body.len > 0 && body.data[0] == '-')
        return ST_NO_KEY;
    *to++ = STORE_SEALED_MARK;
    for (size_t i = 0; i < body.len; i++)
        to[i] = (char)~body.data[i];
    return ST_OK;
}

static const struct store_sealer fixture_sealer = {.overhead = 1, .seal = invert_bits};

struct engine_config
fixture_config(struct mem *mem)
{
    return (struct engine_config){
        .mem = mem,
        .shards = 4,
        .now_ms = START_MS,
        .message_ttl_s = 3600,
        .message_delay_s = 0,
        .claim_ttl_s = 300,
        .claim_grace_s = 60,
        .max_message_ttl_s = 1209600,
        .dead_letter_ttl_s = FIXTURE_DEAD_LETTER_S,
        .key_window_ms = FIXTURE_KEY_S * 1000,
        .keys = FIXTURE_KEYS,
        .shown_queues = 64,
        .sealer = &fixture_sealer,
        .seeded = true,
        .seed = 42,
    };
}

/* The process that uses the disk now. */
static void
take_journalled(struct fixture *f)
{
    f->mem = restarts_process(f->restarts)->mem;
    f->store = restarts_process(f->restarts)->store;
}

static void
open_alone(struct fixture *f, int kind, bool confirming)
{
    struct engine_config config;

    f->mem = mem_new(0);
    ck_assert_ptr_nonnull(f->mem);
    config = fixture_config(f->mem);
    config.require_confirmation = confirming;
    ck_assert_status((kind == FIXTURE_TWIN ? twin_open : engine_open)(&config, &f->store),
                     ST_OK);
    f->store = patient_open(f->store);
}

enum status
fixture_redis(const struct engine_config *config, const char *url, struct store **out)
{
    const struct redis_config redis = {.mem = config->mem,
                                       .url = url,
                                       .message_ttl_s = config->message_ttl_s,
                                       .message_delay_s = config->message_delay_s,
                                       .claim_ttl_s = config->claim_ttl_s,
                                       .claim_grace_s = config->claim_grace_s,
                                       .max_message_ttl_s = config->max_message_ttl_s,
                                       .dead_letter_ttl_s = config->dead_letter_ttl_s,
                                       .key_window_ms = config->key_window_ms,
                                       .feed_bytes = config->feed_bytes,
                                       .require_confirmation =
                                           config->require_confirmation,
                                       .shown_queues = config->shown_queues,
                                       .sealer = config->sealer,
                                       .test_clock = true};
    struct reason why;
    enum status st = redis_open(&redis, out, &why);

    if (st != ST_OK)
        printf("%s\n", why.text);
    return st;
}

static void
open_redis(struct fixture *f, bool confirming)
{
    struct engine_config config;

    f->redis = calloc(1, sizeof(*f->redis));
    ck_assert_ptr_nonnull(f->redis);
    redis_server_start(f->redis);
    f->mem = mem_new(0);
    ck_assert_ptr_nonnull(f->mem);
    config = fixture_config(f->mem);
    config.require_confirmation = confirming;
    ck_assert_status(fixture_redis(&config, f->redis->url, &f->store), ST_OK);
    f->store = patient_open(f->store);
}

static void
open_fixture(struct fixture *f, int kind, bool confirming)
{
    static const char *const names[FIXTURE_KINDS] = {
        "the twin", "the engine", "the engine with a journal", "Redis"};

    test_note_subject(names[kind]);
    *f = (struct fixture){.now_ms = START_MS,
                          .client = 1,
                          .projects = {"p"},
                          .is_twin = kind == FIXTURE_TWIN};
    f->queue = (struct store_queue){.project = bytes_str("p"), .name = bytes_str("q")};
    if (kind == FIXTURE_JOURNALLED) {
        f->restarts = restarts_open(f->now_ms, confirming);
        take_journalled(f);
    } else if (kind == FIXTURE_REDIS) {
        open_redis(f, confirming);
    } else {
        open_alone(f, kind, confirming);
    }
}

void
fixture_open(struct fixture *f, int kind)
{
    open_fixture(f, kind, false);
}

void
fixture_open_confirming(struct fixture *f, int kind)
{
    open_fixture(f, kind, true);
}

/*
 * The first ones, and of a long story one of every two, four, eight ... Not where work is
 * left: each operation of a store does a slice of it, and the test may have wanted to see
 * it undone.
 */
static bool
is_tried(const struct fixture *f)
{
    return (f->words < TRIED_WORDS || (f->words & (f->words - 1)) == 0) &&
           store_next_ms(f->store) > f->now_ms;
}

void
fixture_audit(struct fixture *f)
{
    ck_assert(store_audit(f->store));
    if (f->restarts == NULL)
        return;
    f->words++;
    if (is_tried(f))
        restarts_try(f->restarts, f->now_ms, f->projects);
    else
        restarts_commit(f->restarts);
}

static void
forget_seen(struct fixture *f)
{
    store_subscriptions_release(&f->subscriptions);
    store_batch_release(&f->seen);
}

void
fixture_restart(struct fixture *f)
{
    if (f->restarts == NULL)
        return;
    forget_seen(f);
    restarts_do(f->restarts, f->now_ms, f->projects);
    take_journalled(f);
}

/* A restart forgets nothing that shows, and gives out no id a second time. */
static void
restart_at_the_end(struct fixture *f)
{
    const struct store_draft draft = {bytes_str("{}"), 3600, 0};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .create_queue = true};
    struct store_id id;
    enum status st;

    restarts_do(f->restarts, f->now_ms, f->projects);
    take_journalled(f);
    use_project(f, "p");
    use(f, "q");
    st = store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &request, &id);
    if (st == ST_PAUSED) {
        pause_queue(f, 0);
        st = store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &request, &id);
    }
    ck_assert_status(st, ST_OK);
    for (int i = 1; i <= f->posted; i++)
        ck_assert(!id_same(id, f->ids[i]));
    restarts_close(f->restarts);
}

void
fixture_close(struct fixture *f)
{
    forget_seen(f);
    fixture_audit(f);
    if (f->restarts != NULL) {
        restart_at_the_end(f);
        return;
    }
    store_close(f->store);
    ck_assert_uint_eq(mem_used(f->mem), 0);
    mem_destroy(f->mem);
    if (f->redis != NULL)
        redis_server_stop(f->redis);
    free(f->redis);
}

/* ---------------------------------------------------------------------- where, when */

void
use(struct fixture *f, const char *queue)
{
    f->queue.name = bytes_str(queue);
}

void
use_project(struct fixture *f, const char *project)
{
    size_t i = 0;

    f->queue.project = bytes_str(project);
    while (f->projects[i] != NULL && strcmp(f->projects[i], project) != 0)
        i++;
    ck_assert_uint_lt(i, FIXTURE_PROJECTS);
    f->projects[i] = project;
}

/* Dead letters of claims that expire move at that time, which the twin must learn. Other
 * stores move them at the next call. */
static void
pass(struct fixture *f, int64_t ms)
{
    const int64_t until_ms = f->now_ms + ms;
    struct store_queue queue;

    while (f->is_twin &&
           twin_next_letter(patient_inside(f->store), f->now_ms, &queue) <= until_ms) {
        f->now_ms = twin_next_letter(patient_inside(f->store), f->now_ms, &queue);
        twin_expire_letters(patient_inside(f->store), &queue, f->now_ms);
    }
    f->now_ms = until_ms;
}

void
wait_ms(struct fixture *f, int64_t ms)
{
    pass(f, ms);
}

void
wait_s(struct fixture *f, int64_t seconds)
{
    pass(f, seconds * 1000);
}

int
housekeep(struct fixture *f)
{
    int64_t next_ms;
    int slices = 0;

    do {
        store_housekeep(f->store, f->now_ms, &next_ms);
        slices++;
    } while (next_ms <= f->now_ms);
    return slices;
}

/* ---------------------------------------------------------------------- queues */

void
make_queue(struct fixture *f, const struct store_settings *settings)
{
    struct store_metadata metadata = {.settings = STORE_SETTINGS_INIT};
    bool created = false;

    if (settings != NULL)
        metadata.settings = *settings;
    ck_assert_status(
        store_queue_create(f->store, STORE_AT(f->now_ms), &f->queue, &metadata, &created),
        ST_OK);
    ck_assert(created);
    fixture_audit(f);
}

void
pause_queue(struct fixture *f, unsigned paused)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_metadata changed;

    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_OK);
    changed = queues.queues[0].metadata;
    changed.settings.paused = paused;
    changed.settings.paused_by = paused == 0 ? BYTES_NONE : bytes_str(PAUSED_BY);
    ck_assert_status(store_queue_update(f->store, STORE_AT(f->now_ms), &f->queue,
                                        queues.queues[0].version, &changed),
                     ST_OK);
    store_queues_release(&queues);
    fixture_audit(f);
}

void
delete_queue(struct fixture *f)
{
    ck_assert_status(store_queue_delete(f->store, STORE_AT(f->now_ms), &f->queue), ST_OK);
    fixture_audit(f);
}

void
purge(struct fixture *f)
{
    ck_assert_status(
        store_queue_purge(f->store, STORE_AT(f->now_ms), &f->queue, STORE_PURGE_MESSAGES),
        ST_OK);
    fixture_audit(f);
}

struct store_stats
stats(struct fixture *f)
{
    struct store_stats out = {0};

    ck_assert_status(store_queue_stats(f->store, STORE_AT(f->now_ms), &f->queue, &out),
                     ST_OK);
    return out;
}

/* ---------------------------------------------------------------------- messages */

/* Posts messages with these terms in one request. */
static void
post_many(struct fixture *f, int count, int64_t ttl_s, int64_t delay_s)
{
    struct store_draft drafts[FIXTURE_MESSAGES];
    char bodies[FIXTURE_MESSAGES][12];
    struct store_post request = {.drafts = drafts,
                                 .count = (size_t)count,
                                 .client = f->client,
                                 .create_queue = true};

    ck_assert_int_le(f->posted + count, FIXTURE_MESSAGES);
    for (int i = 0; i < count; i++) {
        snprintf(bodies[i], sizeof(bodies[i]), "%d", f->posted + 1 + i);
        drafts[i] = (struct store_draft){bytes_str(bodies[i]), ttl_s, delay_s};
    }
    ck_assert_status(store_message_post(f->store, STORE_AT(f->now_ms), &f->queue,
                                        &request, &f->ids[f->posted + 1]),
                     ST_OK);
    f->posted += count;
    fixture_audit(f);
}

void
post(struct fixture *f, int count)
{
    post_many(f, count, 3600, 0);
}

int
post_with(struct fixture *f, int64_t ttl_s, int64_t delay_s)
{
    post_many(f, 1, ttl_s, delay_s);
    return f->posted;
}

struct bytes
id_of(const struct fixture *f, int number)
{
    return store_id_bytes(&f->ids[number]);
}

void
get_numbers(struct fixture *f, const int *numbers, size_t count)
{
    struct bytes ids[FIXTURE_MESSAGES];

    for (size_t i = 0; i < count; i++)
        ids[i] = id_of(f, numbers[i]);
    forget_seen(f);
    ck_assert_status(
        store_message_get(f->store, STORE_AT(f->now_ms), &f->queue, ids, count, &f->seen),
        ST_OK);
    fixture_audit(f);
}

void
list(struct fixture *f, const struct store_filter *filter)
{
    forget_seen(f);
    ck_assert_status(
        store_message_list(f->store, STORE_AT(f->now_ms), &f->queue, filter, &f->seen),
        ST_OK);
    fixture_audit(f);
}

void
list_all(struct fixture *f)
{
    const struct store_filter filter = {
        .limit = FIXTURE_MESSAGES, .include_claimed = true, .include_delayed = true};

    list(f, &filter);
}

void
list_ready(struct fixture *f)
{
    const struct store_filter filter = {.limit = FIXTURE_MESSAGES};

    list(f, &filter);
}

void
pop(struct fixture *f, size_t limit)
{
    forget_seen(f);
    ck_assert_status(
        store_message_pop(f->store, STORE_AT(f->now_ms), &f->queue, limit, &f->seen),
        ST_OK);
    fixture_audit(f);
}

static enum status
delete_one(struct fixture *f, int number, struct bytes claim_id)
{
    enum status st = delete_message(f->store, STORE_AT(f->now_ms), &f->queue,
                                    id_of(f, number), claim_id);

    fixture_audit(f);
    return st;
}

enum status
delete_unclaimed(struct fixture *f, int number)
{
    return delete_one(f, number, BYTES_NONE);
}

enum status
delete_claimed(struct fixture *f, int number, struct store_id claim)
{
    return delete_one(f, number, store_id_bytes(&claim));
}

/* ---------------------------------------------------------------------- claims */

struct store_id
take_for(struct fixture *f, size_t limit, int64_t ttl_s, int64_t grace_s)
{
    const struct store_terms terms = {ttl_s, grace_s};

    forget_seen(f);
    ck_assert_status(store_claim_create(f->store, STORE_AT(f->now_ms), &f->queue, &terms,
                                        limit, &f->seen),
                     ST_OK);
    ck_assert_int_eq(id_empty(f->seen.claim_id), f->seen.count == 0);
    fixture_audit(f);
    return f->seen.claim_id;
}

struct store_id
take(struct fixture *f, size_t limit)
{
    return take_for(f, limit, 300, 60);
}

enum status
query(struct fixture *f, struct store_id claim)
{
    enum status st;

    forget_seen(f);
    st = store_claim_get(f->store, STORE_AT(f->now_ms), &f->queue, store_id_bytes(&claim),
                         &f->seen);
    fixture_audit(f);
    return st;
}

enum status
renew(struct fixture *f, struct store_id claim, int64_t ttl_s, int64_t grace_s)
{
    const struct store_terms terms = {ttl_s, grace_s};
    enum status st = store_claim_renew(f->store, STORE_AT(f->now_ms), &f->queue,
                                       store_id_bytes(&claim), &terms, &(uint64_t){0});

    fixture_audit(f);
    return st;
}

void
release(struct fixture *f, struct store_id claim)
{
    ck_assert_status(store_claim_release(f->store, STORE_AT(f->now_ms), &f->queue,
                                         store_id_bytes(&claim), STORE_RELEASED),
                     ST_OK);
    fixture_audit(f);
}

/* ---------------------------------------------------------------------- expectations */

/* Writes "1 2 3" for a failure to show. */
static void
write_numbers(char *out, size_t cap, const int *numbers, size_t count)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < count && len < cap; i++)
        len += (size_t)snprintf(out + len, cap - len, "%d ", numbers[i]);
}

void
expect_numbers(struct fixture *f, const int *numbers, size_t count, const char *file,
               int line)
{
    int shown[FIXTURE_MESSAGES];
    char want[512], have[512];
    bool same = count == f->seen.count;

    for (size_t i = 0; i < f->seen.count; i++) {
        int64_t number = 0;

        ck_assert(bytes_to_i64(f->seen.messages[i].body, &number));
        shown[i] = (int)number;
        ck_assert(id_same(f->seen.messages[i].id, f->ids[number]));
        same = same && shown[i] == numbers[i];
    }
    write_numbers(want, sizeof(want), numbers, count);
    write_numbers(have, sizeof(have), shown, f->seen.count);
    if (!same)
        ck_abort_msg("%s:%d: expected messages %s, was shown %s", file, line, want, have);
}

void
expect_nothing(struct fixture *f)
{
    ck_assert_uint_eq(f->seen.count, 0);
}

void
expect_times(struct fixture *f, int number, int64_t ttl_s, int64_t age_s)
{
    get(f, number);
    ck_assert_uint_eq(f->seen.count, 1);
    ck_assert_int_eq(f->seen.messages[0].ttl_s, ttl_s);
    ck_assert_int_eq(f->seen.messages[0].age_s, age_s);
}

void
expect_stats(struct fixture *f, uint64_t claimed, uint64_t free)
{
    struct store_stats now = stats(f);

    ck_assert_uint_eq(now.claimed, claimed);
    ck_assert_uint_eq(now.total - now.claimed, free);
}
