/* The Idempotency-Key of posts, claims and pops, of any store (claimd/store/key.h). */
#include "support/finishing.h"

#include <stdio.h>

static struct store_key
key_of(uint64_t name, uint64_t body)
{
    return (struct store_key){.hash = {name, ~name}, .digest = {body, 7}};
}

/* Posts `count` messages with a key, and remembers their ids if the store has made
 * them. */
static enum status
post_keyed(struct fixture *f, uint64_t name, uint64_t body, int count,
           struct store_id *ids)
{
    const struct store_key key = key_of(name, body);
    struct store_op op = {.now_ms = f->now_ms, .key = &key};
    char texts[8][16];
    struct store_draft drafts[8];
    const struct store_post request = {
        .drafts = drafts, .count = (size_t)count, .create_queue = true};
    enum status st;

    for (int i = 0; i < count; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%d", f->posted + i + 1);
        drafts[i] = (struct store_draft){bytes_str(texts[i]), 3600, 0};
    }
    st = store_message_post(f->store, &op, &f->queue, &request, ids);
    for (int i = 0; st == ST_OK && !op.repeated && i < count; i++)
        f->ids[++f->posted] = ids[i];
    fixture_audit(f);
    return st;
}

static enum status
claim_keyed(struct fixture *f, uint64_t name, size_t limit, bool *repeated)
{
    const struct store_key key = key_of(name, 0);
    const struct store_terms terms = {300, 60};
    struct store_op op = {.now_ms = f->now_ms, .key = &key};
    enum status st;

    store_batch_release(&f->seen);
    f->seen = STORE_BATCH_INIT;
    st = store_claim_create(f->store, &op, &f->queue, &terms, limit, &f->seen);
    *repeated = op.repeated;
    fixture_audit(f);
    return st;
}

static enum status
pop_keyed(struct fixture *f, uint64_t name, size_t limit, bool *repeated)
{
    const struct store_key key = key_of(name, 0);
    struct store_op op = {.now_ms = f->now_ms, .key = &key};
    enum status st;

    store_batch_release(&f->seen);
    f->seen = STORE_BATCH_INIT;
    st = store_message_pop(f->store, &op, &f->queue, limit, &f->seen);
    *repeated = op.repeated;
    fixture_audit(f);
    return st;
}

STORE_CASE("key");

STORE_TEST(a_post_with_a_key_is_posted_once)
{
    struct store_id first[2], again[2];

    post(f, 1);
    ck_assert_status(post_keyed(f, 1, 0, 2, first), ST_OK);
    post(f, 1);
    ck_assert_status(post_keyed(f, 1, 0, 2, again), ST_OK);
    ck_assert(id_same(first[0], again[0]) && id_same(first[1], again[1]));
    list_all(f);
    expect(f, 1, 2, 3, 4);
    fixture_restart(f);
    ck_assert_status(post_keyed(f, 1, 0, 2, again), ST_OK);
    ck_assert(id_same(first[0], again[0]) && id_same(first[1], again[1]));
    list_all(f);
    expect(f, 1, 2, 3, 4);
}

STORE_TEST(a_key_is_of_one_request)
{
    struct store_id ids[2];
    bool repeated;

    ck_assert_status(post_keyed(f, 1, 5, 1, ids), ST_OK);
    ck_assert_status(post_keyed(f, 1, 6, 1, ids), ST_KEY_REUSED);
    ck_assert_status(claim_keyed(f, 1, 1, &repeated), ST_KEY_REUSED);
    ck_assert_status(pop_keyed(f, 1, 1, &repeated), ST_KEY_REUSED);
    ck_assert_status(post_keyed(f, 2, 5, 1, ids), ST_OK);
    ck_assert_status(post_keyed(f, 3, 0, 1, ids), ST_OK);
    ck_assert_status(claim_keyed(f, 3, 1, &repeated), ST_KEY_REUSED); /* of a post */
    ck_assert_status(pop_keyed(f, 3, 1, &repeated), ST_KEY_REUSED);
    list_all(f);
    expect(f, 1, 2, 3);
}

STORE_TEST(a_key_is_of_one_queue)
{
    struct store_id ids[2], other[2];

    ck_assert_status(post_keyed(f, 1, 0, 1, ids), ST_OK);
    use(f, "other");
    ck_assert_status(post_keyed(f, 1, 0, 1, other), ST_OK);
    ck_assert(!id_same(ids[0], other[0]));
    list_all(f);
    expect(f, 2);
}

STORE_TEST(a_claim_with_a_key_is_the_same_claim)
{
    struct store_id claim;
    uint64_t number;
    bool repeated;

    post(f, 3);
    ck_assert_status(claim_keyed(f, 1, 2, &repeated), ST_OK);
    ck_assert(!repeated);
    expect(f, 1, 2);
    claim = f->seen.claim_id;
    number = f->seen.claim_number;
    ck_assert_status(delete_claimed(f, 1, claim), ST_OK);
    wait_s(f, 200);
    ck_assert_status(claim_keyed(f, 1, 2, &repeated), ST_OK);
    ck_assert(repeated && id_same(f->seen.claim_id, claim));
    ck_assert_uint_eq(f->seen.claim_number, number);
    ck_assert(id_same(f->seen.messages[0].claim_id, claim));
    expect(f, 2);
    fixture_restart(f);
    ck_assert_status(claim_keyed(f, 1, 2, &repeated), ST_OK);
    ck_assert(repeated && id_same(f->seen.claim_id, claim));
    expect(f, 2);
    expect_stats(f, 1, 1);
    wait_s(f, 99);
    ck_assert_status(claim_keyed(f, 1, 2, &repeated), ST_OK);
    wait_s(f, 1); /* the repetitions did not renew it */
    ck_assert_status(claim_keyed(f, 1, 2, &repeated), ST_KEY_ENDED);
    expect_stats(f, 0, 2);
}

STORE_TEST(a_claim_with_a_key_does_not_show_what_another_claim_has_got)
{
    struct finishing g;
    bool repeated;

    post(f, 2);
    ck_assert_status(claim_keyed(f, 1, 2, &repeated), ST_OK);
    g = finishing_of(f, f->seen.claim_id);
    then_release(&g, 1, 0, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    (void)take(f, 1);
    expect(f, 1);
    ck_assert_status(claim_keyed(f, 1, 2, &repeated), ST_OK);
    ck_assert(repeated);
    expect(f, 2);
}

STORE_TEST(a_released_claim_has_ended_for_its_key)
{
    struct store_id claim;
    bool repeated;

    post(f, 1);
    ck_assert_status(claim_keyed(f, 1, 2, &repeated), ST_OK);
    claim = f->seen.claim_id;
    release(f, claim);
    ck_assert_status(claim_keyed(f, 1, 2, &repeated), ST_KEY_ENDED);
    ck_assert_status(claim_keyed(f, 2, 2, &repeated), ST_OK);
    expect(f, 1);
}

STORE_TEST(a_claim_of_nothing_keeps_no_key)
{
    bool repeated;

    ck_assert_status(claim_keyed(f, 1, 2, &repeated), ST_OK);
    expect_nothing(f);
    ck_assert_status(pop_keyed(f, 2, 2, &repeated), ST_OK);
    expect_nothing(f);
    post(f, 2);
    ck_assert_status(claim_keyed(f, 1, 1, &repeated), ST_OK);
    ck_assert(!repeated);
    expect(f, 1);
    ck_assert_status(pop_keyed(f, 2, 1, &repeated), ST_OK);
    ck_assert(!repeated);
    expect(f, 2);
}

STORE_TEST(a_pop_with_a_key_returns_the_same_messages)
{
    bool repeated;

    post(f, 3);
    ck_assert_status(pop_keyed(f, 1, 2, &repeated), ST_OK);
    ck_assert(!repeated);
    expect(f, 1, 2);
    wait_s(f, 7);
    ck_assert_status(pop_keyed(f, 1, 2, &repeated), ST_OK);
    ck_assert(repeated);
    expect(f, 1, 2);
    ck_assert_int_eq(f->seen.messages[0].age_s, 7);
    expect_stats(f, 0, 1);
    fixture_restart(f);
    ck_assert_status(pop_keyed(f, 1, 2, &repeated), ST_OK);
    ck_assert(repeated);
    expect(f, 1, 2);
    ck_assert_uint_eq(f->seen.messages[1].body.len, 1);
    ck_assert_int_eq(f->seen.messages[1].body.data[0], '2');
    expect_stats(f, 0, 1);
}

STORE_TEST(a_key_ends_with_its_window)
{
    struct store_id first[2], again[2];
    bool repeated;

    post(f, 2);
    ck_assert_status(post_keyed(f, 1, 0, 1, first), ST_OK);
    ck_assert_status(pop_keyed(f, 2, 1, &repeated), ST_OK);
    wait_ms(f, FIXTURE_KEY_S * 1000 - 1);
    fixture_restart(f);
    ck_assert_status(post_keyed(f, 1, 0, 1, again), ST_OK);
    ck_assert(id_same(first[0], again[0]));
    ck_assert_status(pop_keyed(f, 2, 1, &repeated), ST_OK);
    ck_assert(repeated);
    wait_ms(f, 1);
    ck_assert_status(post_keyed(f, 1, 1, 1, again), ST_OK);
    ck_assert(!id_same(first[0], again[0]));
    ck_assert_status(pop_keyed(f, 2, 1, &repeated), ST_OK);
    ck_assert(!repeated);
    expect(f, 2);
}

STORE_TEST(a_purge_keeps_the_keys)
{
    struct store_id first[2], again[2];
    bool repeated;

    post(f, 1);
    ck_assert_status(post_keyed(f, 1, 0, 1, first), ST_OK);
    ck_assert_status(pop_keyed(f, 2, 1, &repeated), ST_OK);
    ck_assert_status(claim_keyed(f, 3, 1, &repeated), ST_OK);
    expect(f, 2);
    purge(f);
    ck_assert_status(post_keyed(f, 1, 0, 1, again), ST_OK);
    ck_assert(id_same(first[0], again[0]));
    ck_assert_status(pop_keyed(f, 2, 1, &repeated), ST_OK);
    expect(f, 1);
    ck_assert_status(claim_keyed(f, 3, 1, &repeated), ST_KEY_ENDED);
    expect_stats(f, 0, 0);
}

STORE_TEST(the_keys_of_a_deleted_queue_are_gone)
{
    struct store_id first[2], again[2];
    bool repeated;

    post(f, 1);
    ck_assert_status(post_keyed(f, 1, 0, 1, first), ST_OK);
    ck_assert_status(pop_keyed(f, 2, 1, &repeated), ST_OK);
    delete_queue(f);
    ck_assert_status(pop_keyed(f, 2, 1, &repeated), ST_OK);
    expect_nothing(f);
    ck_assert_status(post_keyed(f, 1, 0, 1, again), ST_OK);
    ck_assert(!id_same(first[0], again[0]));
    fixture_restart(f);
    ck_assert_status(pop_keyed(f, 2, 1, &repeated), ST_OK);
    ck_assert(!repeated);
    expect(f, 3);
}

STORE_TEST(an_operation_that_fails_keeps_no_key)
{
    const struct store_key key = key_of(1, 0);
    struct store_op op = {.now_ms = f->now_ms, .key = &key};
    const struct store_draft draft = {bytes_str("1"), 3600, 0};
    const struct store_post request = {.drafts = &draft, .count = 1};
    struct store_id ids[2];

    ck_assert_status(store_message_post(f->store, &op, &f->queue, &request, ids),
                     ST_NOT_FOUND);
    ck_assert_status(post_keyed(f, 1, 3, 2, ids), ST_OK);
    list_all(f);
    expect(f, 1, 2);
}

STORE_TEST(a_repeated_claim_needs_neither_space_nor_decryption)
{
    const struct store_key key = key_of(1, 0);
    const struct store_terms terms = {300, 60};
    struct store_op op = {.now_ms = f->now_ms, .key = &key};
    struct store_batch none = STORE_BATCH_INIT;
    bool repeated;

    post(f, 2);
    ck_assert_status(claim_keyed(f, 1, 2, &repeated), ST_OK);
    store_batch_release(&f->seen);
    f->seen = STORE_BATCH_INIT;
    f->seen.capacity = 1;
    f->seen.opened = &none;
    ck_assert_status(store_claim_create(f->store, &op, &f->queue, &terms, 1, &f->seen),
                     ST_OK);
    ck_assert(op.repeated);
    expect(f, 1, 2);
}

ENGINE_CASE("keys of an engine");

STORE_TEST_WITH(keys_have_a_limit, fixture_open(f, FIXTURE_ENGINE + _i))
{
    enum { HALF = FIXTURE_KEYS / 2 }; /* one project gets half of all */

    struct store_id ids[2], last[2];
    bool repeated;

    for (uint64_t i = 0; i < HALF; i++)
        ck_assert_status(post_keyed(f, i, 0, 1, i == 0 ? ids : last), ST_OK);
    ck_assert_status(post_keyed(f, 1000, 0, 1, last), ST_KEYS_FULL);
    ck_assert_status(claim_keyed(f, 1001, 1, &repeated), ST_KEYS_FULL);
    ck_assert_status(pop_keyed(f, 1002, 1, &repeated), ST_KEYS_FULL);
    expect_stats(f, 0, HALF);
    ck_assert_status(post_keyed(f, 0, 0, 1, last), ST_OK); /* it is kept */
    ck_assert(id_same(ids[0], last[0]));
    wait_s(f, FIXTURE_KEY_S + 1);
    ck_assert_status(post_keyed(f, 1000, 0, 1, last), ST_OK);
}

/* Posts with new keys in a project until its share is full. Returns the number of its
 * keys. */
static int
fill_share(struct fixture *f, const char *project, uint64_t name)
{
    struct store_id ids[2];
    int count = 0;

    use_project(f, project);
    while (post_keyed(f, name + (uint64_t)count, 0, 1, ids) == ST_OK)
        count++;
    return count;
}

STORE_TEST_WITH(a_project_gets_as_many_keys_as_it_leaves_free,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    ck_assert_int_eq(fill_share(f, "first", 1000), 32);
    ck_assert_int_eq(fill_share(f, "second", 2000), 16);
    ck_assert_int_eq(fill_share(f, "third", 3000), 8);
    ck_assert_int_eq(fill_share(f, "first", 1500), 0);
    wait_s(f, FIXTURE_KEY_S); /* all end */
    ck_assert_int_eq(fill_share(f, "second", 2500), 32);
}

STORE_TEST_WITH(keys_count_for_their_project_after_a_restart,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    ck_assert_int_eq(fill_share(f, "p", 1000), FIXTURE_KEYS / 2);
    fixture_restart(f);
    ck_assert_int_eq(fill_share(f, "p", 2000), 0);
    ck_assert_int_eq(fill_share(f, "other", 3000), FIXTURE_KEYS / 4);
}

STORE_TEST_WITH(keys_of_a_deleted_queue_count_until_they_end,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    enum { OTHERS = 64 }; /* so that each shard has a queue */

    char name[24];

    for (int i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof(name), "other%d", i);
        use(f, name);
        post(f, 1);
    }
    use(f, "q");
    ck_assert_int_eq(fill_share(f, "p", 1000), FIXTURE_KEYS / 2);
    delete_queue(f);
    ck_assert_int_eq(fill_share(f, "p", 2000), 0);
    wait_s(f, FIXTURE_KEY_S);
    ck_assert_int_eq(fill_share(f, "p", 3000), FIXTURE_KEYS / 2);
}

STORE_TEST_WITH(a_refused_key_says_when_the_oldest_key_ends,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    const struct store_key key = key_of(9999, 0);
    struct store_op op = {.key = &key};
    struct store_draft draft = {bytes_str("1"), 3600, 0};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .create_queue = true};
    const int64_t first_ms = f->now_ms;
    struct store_id ids[2];

    use_project(f, "first");
    ck_assert_status(post_keyed(f, 1, 0, 1, ids), ST_OK);
    wait_s(f, 5);
    (void)fill_share(f, "first", 1000);
    op.now_ms = f->now_ms;
    ck_assert_status(store_message_post(f->store, &op, &f->queue, &request, ids),
                     ST_KEYS_FULL);
    ck_assert_int_eq(op.key_end_ms, first_ms + FIXTURE_KEY_S * 1000);
    wait_s(f,
           FIXTURE_KEY_S - 5); /* the oldest one ends, and the next one is the oldest */
    ck_assert_status(post_keyed(f, 2, 0, 1, ids), ST_OK);
    ck_assert_status(post_keyed(f, 3, 0, 1, ids), ST_KEYS_FULL);
    op.now_ms = f->now_ms;
    ck_assert_status(store_message_post(f->store, &op, &f->queue, &request, ids),
                     ST_KEYS_FULL);
    ck_assert_int_eq(op.key_end_ms, first_ms + FIXTURE_KEY_S * 1000 + 5000);
}

STORE_TEST_WITH(a_transient_queue_has_keys_until_a_restart,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct store_id first[2], again[2];

    settings.transient = true;
    make_queue(f, &settings);
    ck_assert_status(post_keyed(f, 1, 0, 1, first), ST_OK);
    ck_assert_status(post_keyed(f, 1, 0, 1, again), ST_OK);
    ck_assert(id_same(first[0], again[0]));
    fixture_restart(f);
    if (f->restarts == NULL)
        return;
    ck_assert_status(post_keyed(f, 1, 0, 1, again), ST_OK);
    ck_assert(!id_same(first[0], again[0]));
}

/* The twin has no keys of a finish. */
TEST_CASE("keys of a finish", .times = FIXTURE_KINDS - FIXTURE_ENGINE);

/* The same request each time: one message is deleted and one released, of three. */
static enum status
finish_keyed(struct fixture *f, struct store_id claim, bool *repeated)
{
    const struct store_key key = key_of(9, 0);
    struct store_op op = {.now_ms = f->now_ms, .key = &key};
    struct store_terms terms = {100, 60};
    struct store_draft drafts[2] = {{bytes_str("x"), 3600, 0}, {bytes_str("y"), 3600, 0}};
    struct store_id ids[2];
    struct store_finish_item items[2] = {
        {.action = STORE_FINISH_DELETE, .id = id_of(f, 1)},
        {.action = STORE_FINISH_RELEASE, .id = id_of(f, 2), .delay_s = 10}};
    struct store_finish_post next = {
        .queue = bytes_str("next"),
        .post = {.drafts = drafts, .count = 2, .request_bytes = 20, .create_queue = true},
        .ids = ids};
    struct store_finish request = {.claim_id = store_id_bytes(&claim),
                                   .items = items,
                                   .count = 2,
                                   .posts = &next,
                                   .post_count = 1,
                                   .renew = &terms,
                                   .atomic = true};
    static struct store_id first[2];
    static uint64_t number;
    enum status st = store_claim_finish(f->store, &op, &f->queue, &request);

    fixture_audit(f);
    *repeated = op.repeated;
    if (st != ST_OK)
        return st;
    ck_assert(items[0].held && items[1].held);
    if (op.repeated) {
        ck_assert_uint_eq(request.number, number);
        ck_assert(next.pending == (f->redis != NULL));
        for (int i = 0; i < 2 && !next.pending; i++)
            ck_assert(id_same(ids[i], first[i]));
    }
    number = request.number;
    memcpy(first, ids, sizeof(first));
    return ST_OK;
}

STORE_TEST_WITH(a_finish_with_a_key_happens_once, fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct store_id claim;
    bool repeated;

    post(f, 4);
    claim = take(f, 3);
    ck_assert_status(finish_keyed(f, claim, &repeated), ST_OK);
    ck_assert(!repeated);
    expect_stats(f, 1, 2);
    ck_assert_status(finish_keyed(f, claim, &repeated), ST_OK);
    ck_assert(repeated);
    expect_stats(f, 1, 2);
    fixture_restart(f);
    release(f, claim); /* which is over now */
    ck_assert_status(finish_keyed(f, claim, &repeated), ST_OK);
    ck_assert(repeated);
    expect_stats(f, 0, 3);
    use(f, "next");
    expect_stats(f, 0, 2);
    use(f, "q");
    wait_s(f, FIXTURE_KEY_S + 1);
    ck_assert_status(finish_keyed(f, claim, &repeated), ST_NOT_CLAIMED);
}

STORE_TEST_WITH(a_finish_that_changes_nothing_keeps_no_key,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct store_id claim;
    bool repeated;

    post(f, 4);
    ck_assert_status(finish_keyed(f, text_id("d6656d5d0000000000000001"), &repeated),
                     ST_NOT_CLAIMED);
    claim = take(f, 3);
    settings.max_post_bytes = 10;
    use(f, "next");
    make_queue(f, &settings);
    use(f, "q");
    for (int i = 0; i < 2; i++) {
        ck_assert_status(finish_keyed(f, claim, &repeated), ST_TOO_LARGE);
        ck_assert(!repeated);
    }
    use(f, "next");
    delete_queue(f);
    use(f, "q");
    ck_assert_status(finish_keyed(f, claim, &repeated), ST_OK);
    ck_assert(!repeated);
}
