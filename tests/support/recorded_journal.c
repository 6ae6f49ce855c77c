#include "support/recorded_journal.h"

#include "journal/journal_private.h"

#include <stdio.h>

/* ------------------------------------------------------------------ processes */

void
recorder_start(struct recorder *r)
{
    r->process.segment_bytes = RECORDED_SEGMENT;
    journalled_start(&r->process, r->f.now_ms);
    r->f.mem = r->process.mem;
    r->f.store = r->process.store;
    r->f.now_ms = r->process.recovery.now_ms;
}

void
recorder_stop(struct recorder *r)
{
    store_batch_release(&r->f.seen);
    journalled_stop(&r->process);
}

void
recorder_commit(struct recorder *r)
{
    journalled_commit(&r->process);
}

/* ------------------------------------------------------------------ words */

static void
make_with(struct fixture *f, const char *json, struct store_settings settings)
{
    const struct store_metadata metadata = {bytes_str(json), settings};
    bool created = false;

    ck_assert_status(
        store_queue_create(f->store, STORE_AT(f->now_ms), &f->queue, &metadata, &created),
        ST_OK);
    ck_assert(created);
}

static void
change_metadata(struct fixture *f, const char *json, struct store_settings settings)
{
    const struct store_metadata metadata = {bytes_str(json), settings};
    struct store_queues found = STORE_QUEUES_INIT;
    uint64_t version;

    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &found),
                     ST_OK);
    version = found.queues[0].version;
    store_queues_release(&found);
    ck_assert_status(
        store_queue_update(f->store, STORE_AT(f->now_ms), &f->queue, version, &metadata),
        ST_OK);
}

/* Posts the next message with the checksum 1, 2 ... 16. */
static void
post_with_checksum(struct fixture *f)
{
    const struct store_checksum sum = {
        {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
    char body[12];
    struct store_draft draft = {.ttl_s = 3600, .delay_s = 0};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .client = 7, .checksums = &sum};

    (void)snprintf(body, sizeof(body), "%d", ++f->posted);
    draft.body = bytes_str(body);
    ck_assert_status(store_message_post(f->store, STORE_AT(f->now_ms), &f->queue,
                                        &request, &f->ids[f->posted]),
                     ST_OK);
}

/* Settings of a queue whose messages are dead letters after one claim. */
static struct store_settings
strict(const char *dead_letter)
{
    struct store_settings set = STORE_SETTINGS_INIT;

    set.max_claim_count = 1;
    set.dead_letter_ttl_s = 86400;
    set.dead_letter = bytes_str(dead_letter);
    return set;
}

/* The oldest message of the queue is claimed, given back, and so dead when one claims
 * again. */
static void
make_a_dead_letter(struct fixture *f)
{
    release(f, take(f, 1));
    (void)take_for(f, 2, 60, 60);
}

/* ------------------------------------------------------------------ the story */

/* "jobs": claims, renewals, deletions; 2 and 4 to 7 are left, and 2 is held. */
static struct store_id
work(struct recorder *r)
{
    struct fixture *f = &r->f;
    struct store_id held;

    use(f, "jobs");
    post(f, 5);
    (void)post_with(f, 7200, 900);
    post_with_checksum(f);
    recorder_commit(r);
    held = take_for(f, 2, 600, 60);
    ck_assert_status(delete_claimed(f, 1, held), ST_OK);
    pop(f, 1); /* 3 */
    release(f, take(f, 1));
    recorder_commit(r);
    wait_s(f, 60);
    ck_assert_status(renew(f, held, 4000, 200), ST_OK);
    return held;
}

/* Queues that are changed, emptied and deleted; others of the same name. */
static void
administrate(struct recorder *r)
{
    struct fixture *f = &r->f;
    struct store_settings set = strict("letters");

    use(f, "tuned");
    make_with(f, "{}", (struct store_settings)STORE_SETTINGS_INIT);
    set.max_post_bytes = 1000;
    set.message_ttl_s = 120;
    set.message_delay_s = 5;
    change_metadata(f, "{\"colour\": \"gr\xc3\xbcn\"}", set);
    use(f, "gone");
    post(f, 1); /* 8 */
    delete_queue(f);
    use(f, "purged");
    post(f, 2); /* 9, 10 */
    purge(f);
    post(f, 1); /* 11 */
    use(f, "strict");
    make_with(f, "", strict("letters"));
    post(f, 2);            /* 12, 13 */
    make_a_dead_letter(f); /* 12; 13 is claimed for a minute */
    recorder_commit(r);
}

static void
subscribe(struct fixture *f, const char *subscriber, struct store_subscribed *out)
{
    const struct store_subscription_draft draft = {bytes_str(subscriber), bytes_str("{}"),
                                                   86400};

    ck_assert_status(
        store_subscription_create(f->store, STORE_AT(f->now_ms), &f->queue, &draft, out),
        ST_OK);
}

static void
announce(struct fixture *f, const char *body)
{
    struct store_draft draft = {.body = bytes_str(body), .ttl_s = 3600};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .client = 7, .create_queue = true};
    struct store_id id;

    ck_assert_status(
        store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &request, &id),
        ST_OK);
}

/* "news": two subscriptions, of which one is deleted; the other got one message of
 * two. */
static void
publish(struct recorder *r)
{
    struct store_delivery delivery = {.store = NULL};
    struct fixture *f = &r->f;
    struct store_subscribed one;

    use(f, "news");
    subscribe(f, "http://a.example/", &one);
    subscribe(f, "http://b.example/", &one);
    ck_assert_status(store_subscription_delete(f->store, STORE_AT(f->now_ms), &f->queue,
                                               store_id_bytes(&one.id)),
                     ST_OK);
    announce(f, "\"a\"");
    ck_assert_status(store_delivery_next(f->store, STORE_AT(f->now_ms), &delivery),
                     ST_OK);
    store_delivery_done(f->store, STORE_AT(f->now_ms), &delivery, STORE_OUTCOME_DELIVERED,
                        f->now_ms);
    announce(f, "\"b\"");
    recorder_commit(r);
}

static void
first_process(struct recorder *r, struct recorded_results *results)
{
    struct store_settings set = strict("letters");
    struct fixture *f = &r->f;

    recorder_start(r);
    results->renewed = work(r);
    administrate(r);
    use(f, "fleeting");
    set.transient = true;
    make_with(f, "{\"_persistence\": \"memory\"}", set);
    post(f, 3); /* 14 to 16 */
    use_project(f, "other");
    use(f, "jobs");
    post(f, 1); /* 17 */
    use_project(f, "");
    post(f, 1); /* 18 */
    use_project(f, "p");
    publish(r);
    journal_checkpoint(r->process.journal);
    recorder_commit(r);
    ck_assert_status(store_queue_purge(f->store, STORE_AT(f->now_ms), &f->queue,
                                       STORE_PURGE_SUBSCRIPTIONS),
                     ST_OK);
    use(f, "jobs");
    post(f, 1); /* 19 */
    ck_assert_status(delete_unclaimed(f, 5), ST_OK);
    results->late = take_for(f, 1, 3600, 60); /* 4, for the second time */
    recorder_stop(r);
}

/* "tried": 23 is deleted, 24 is tried again later, 25 is a dead letter that goes back. */
static void
finish(struct recorder *r)
{
    struct fixture *f = &r->f;
    struct store_id claim;
    struct store_finish_item items[] = {
        {.action = STORE_FINISH_DELETE},
        {.action = STORE_FINISH_RELEASE, .reason = BYTES_LIT("busy"), .delay_s = 60},
        {.action = STORE_FINISH_DEAD_LETTER, .reason = BYTES_LIT("bad")}};
    struct store_finish request = {
        .client = BYTES_LIT("worker"), .items = items, .count = 3, .atomic = true};
    struct store_redrive back = {.limit = 10};
    struct store_redriven moved;
    struct store_settings set = strict("fallen");

    set.max_claim_count = 2;
    use(f, "tried");
    make_with(f, "", set);
    post(f, 3);
    claim = take(f, 3);
    request.claim_id = store_id_bytes(&claim);
    for (int i = 0; i < 3; i++)
        items[i].id = id_of(f, f->posted - 2 + i);
    ck_assert_status(
        store_claim_finish(f->store, STORE_AT(f->now_ms), &f->queue, &request), ST_OK);
    recorder_commit(r);
    use(f, "fallen");
    ck_assert_status(
        store_redrive(f->store, STORE_AT(f->now_ms), &f->queue, &back, &moved), ST_OK);
    ck_assert_uint_eq(moved.moved, 1);
}

/* "keyed": the retry of a post with a key has no effect. */
static void
retry(struct recorder *r)
{
    struct fixture *f = &r->f;
    const struct store_key key = {.hash = {1, 2}, .digest = {3, 4}};
    const struct store_draft draft = {.body = BYTES_LIT("26"), .ttl_s = 3600};
    const struct store_post request = {.drafts = &draft, .count = 1, .client = 7};
    struct store_op op = {.key = &key};
    struct store_id first, again;

    use(f, "keyed");
    make_with(f, "", (struct store_settings)STORE_SETTINGS_INIT);
    op.now_ms = f->now_ms;
    ck_assert_status(store_message_post(f->store, &op, &f->queue, &request, &first),
                     ST_OK);
    ck_assert_status(store_message_post(f->store, &op, &f->queue, &request, &again),
                     ST_OK);
    ck_assert_str_eq(again.text, first.text);
    f->ids[++f->posted] = first;
}

static void
second_process(struct recorder *r)
{
    struct fixture *f = &r->f;

    wait_s(f, 600);
    recorder_start(r);
    use(f, "fleeting");
    post(f, 2);            /* 20, 21 */
    make_a_dead_letter(f); /* 20, which is kept now */
    use(f, "careless");
    make_with(f, "", strict("fleeting"));
    post(f, 1); /* 22 */
    make_a_dead_letter(f);
    finish(r);
    recorder_commit(r);
    retry(r);
    recorder_commit(r);
    sim_disk_crash_losing_all(r->process.disk);
    recorder_stop(r);
}

void
recorded_journal_write(struct sim_disk *disk, struct recorded_results *results)
{
    struct recorder r = {
        .process = {.disk = disk},
        .f = {.now_ms = START_MS, .client = 7, .queue = {.project = bytes_str("p")}}};

    first_process(&r, results);
    second_process(&r);
    memcpy(results->ids, r.f.ids, sizeof(results->ids));
}

/* ------------------------------------------------------------------ unloaded messages */

/* Gives the writer of body files and the store their turns. */
static void
unload(struct recorder *r)
{
    for (int i = 0; i < 4; i++) {
        recorder_commit(r);
        journal_idle(r->process.journal);
        (void)housekeep(&r->f);
        wait_s(&r->f, 1);
    }
    recorder_commit(r);
}

/* "waiting": 1 to 101 are in a body file, and after a checkpoint nowhere else. */
static void
unloading_process(struct recorder *r)
{
    struct fixture *f = &r->f;

    recorder_start(r);
    use(f, "waiting");
    for (int i = 0; i < 10; i++) {
        post(f, 10);
        recorder_commit(r);
    }
    post(f, 1); /* the first frame of a segment that permits body files */
    unload(r);
    journal_checkpoint(r->process.journal);
    recorder_commit(r);
    recorder_stop(r);
}

/* 1 to 3 are claimed, 50 is deleted. The body file of "passing" is removed. */
static void
loading_process(struct recorder *r, struct recorded_results *results)
{
    struct fixture *f = &r->f;

    recorder_start(r);
    use(f, "waiting");
    results->late = take_for(f, 3, 3000, 60);
    ck_assert_status(delete_unclaimed(f, 50), ST_OK);
    use(f, "passing");
    post(f, 5);
    recorder_commit(r);
    post(f, 1);
    unload(r);
    purge(f);
    unload(r);
    use(f, "again");
    post(f, 10);
    unload(r);
    sim_disk_crash_losing_all(r->process.disk);
    recorder_stop(r);
}

void
recorded_journal_write_unloaded(struct sim_disk *disk, struct recorded_results *results)
{
    struct recorder r = {
        .process = {.disk = disk, .unload = true},
        .f = {.now_ms = START_MS, .client = 7, .queue = {.project = bytes_str("p")}}};

    unloading_process(&r);
    wait_s(&r.f, 60);
    loading_process(&r, results);
    memcpy(results->ids, r.f.ids, sizeof(results->ids));
}

/* ------------------------------------------------------------------ unique messages */

/* Posts the next message with a key, which no other message holds. */
static void
post_keyed(struct fixture *f, const char *key, bool until_claimed)
{
    const struct store_unique unique = {.key = bytes_str(key),
                                        .until_claimed = until_claimed};
    char body[12];
    struct store_draft draft = {.ttl_s = 3600, .delay_s = 0};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .client = 7, .unique = &unique};
    struct store_op op = {.now_ms = f->now_ms};

    (void)snprintf(body, sizeof(body), "%d", ++f->posted);
    draft.body = bytes_str(body);
    ck_assert_status(
        store_message_post(f->store, &op, &f->queue, &request, &f->ids[f->posted]),
        ST_OK);
    ck_assert(!op.existing);
}

/* 2 is claimed and frees its key, then 3 is a dead letter that goes back. */
static void
keyed_process(struct recorder *r, struct recorded_results *results)
{
    struct store_finish_item item = {.action = STORE_FINISH_DEAD_LETTER,
                                     .reason = BYTES_LIT("bad")};
    struct store_finish request = {
        .client = BYTES_LIT("worker"), .items = &item, .count = 1, .atomic = true};
    struct store_redrive back = {.limit = 10};
    struct fixture *f = &r->f;
    struct store_redriven moved;
    struct store_id claim;

    recorder_start(r);
    use(f, "unique");
    make_with(f, "", strict("letters"));
    post(f, 1);
    recorder_commit(r);
    (void)take_for(f, 1, 3600, 60);
    post_keyed(f, "until-claimed", true); /* 2 */
    results->late = take_for(f, 1, 3600, 60);
    post_keyed(f, "for-good", false); /* 3 */
    claim = take(f, 1);
    request.claim_id = store_id_bytes(&claim);
    item.id = id_of(f, 3);
    ck_assert_status(
        store_claim_finish(f->store, STORE_AT(f->now_ms), &f->queue, &request), ST_OK);
    recorder_commit(r);
    journal_checkpoint(r->process.journal);
    recorder_commit(r);
    use(f, "letters");
    ck_assert_status(
        store_redrive(f->store, STORE_AT(f->now_ms), &f->queue, &back, &moved), ST_OK);
    ck_assert_uint_eq(moved.moved, 1);
    recorder_stop(r);
}

void
recorded_journal_write_unique(struct sim_disk *disk, struct recorded_results *results)
{
    struct recorder r = {
        .process = {.disk = disk},
        .f = {.now_ms = START_MS, .client = 7, .queue = {.project = bytes_str("p")}}};

    keyed_process(&r, results);
    wait_s(&r.f, 60);
    recorder_start(&r);
    use(&r.f, "unique");
    post_keyed(&r.f, "until-claimed", true); /* 4 */
    use(&r.f, "paused");
    make_with(&r.f, "", (struct store_settings)STORE_SETTINGS_INIT);
    pause_queue(&r.f, STORE_PAUSE_POSTS);
    recorder_commit(&r);
    sim_disk_crash_losing_all(disk);
    recorder_stop(&r);
    memcpy(results->ids, r.f.ids, sizeof(results->ids));
}
