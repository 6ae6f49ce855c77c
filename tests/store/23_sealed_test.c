/* Sealed (encrypted) message bodies, in every store (docs/adr/0012-encryption.md). */
#include "support/dead_letters.h"

/* A body that the store takes for an encrypted one, because it begins with
 * STORE_SEALED_MARK. */
#define SEALED(text) "\x01" text

STORE_CASE("sealed");

/* Makes a queue that encrypts its messages, and selects it. */
static void
make_encrypting(struct fixture *f, const char *name)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.encrypt = true;
    use(f, name);
    make_queue(f, &settings);
}

static enum status
try_post(struct fixture *f, const char *const *bodies, size_t count)
{
    struct store_draft drafts[8];
    struct store_id ids[8];
    struct store_post post = {.drafts = drafts, .count = count, .create_queue = true};
    enum status st;

    for (size_t i = 0; i < count; i++)
        drafts[i] = (struct store_draft){bytes_str(bodies[i]), 3600, STORE_UNSET};
    st = store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &post, ids);
    ck_assert(store_audit(f->store));
    return st;
}

static void
post_bodies(struct fixture *f, const char *const *bodies, size_t count)
{
    ck_assert_status(try_post(f, bodies, count), ST_OK);
}

#define POST(f, ...)                                                                     \
    post_bodies((f), (const char *const[]){__VA_ARGS__},                                 \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Checks the bodies that the last operation returned. */
static void
expect_bodies(const struct fixture *f, const char *const *bodies, size_t count)
{
    ck_assert_uint_eq(f->seen.count, count);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(bytes_equal_str(f->seen.messages[i].body, bodies[i]), "%.*s",
                      (int)f->seen.messages[i].body.len, f->seen.messages[i].body.data);
}

#define EXPECT(f, ...)                                                                   \
    expect_bodies((f), (const char *const[]){__VA_ARGS__},                               \
                  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Pops. The store returns ST_SEALED if it would deliver a sealed body that is not in
 * `opened`, the batch of bodies that the caller has decrypted. */
static enum status
try_pop(struct fixture *f, size_t limit, const struct store_batch *opened)
{
    store_batch_release(&f->seen);
    f->seen.opened = opened;
    return store_message_pop(f->store, STORE_AT(f->now_ms), &f->queue, limit, &f->seen);
}

static enum status
try_claim(struct fixture *f, size_t limit)
{
    const struct store_terms terms = {300, 60};

    store_batch_release(&f->seen);
    return store_claim_create(f->store, STORE_AT(f->now_ms), &f->queue, &terms, limit,
                              &f->seen);
}

static const struct store_batch nothing = {.store = NULL};

STORE_TEST(encrypting_queue_refuses_unsealed_bodies)
{
    static const char *const mixed[] = {SEALED("a"), "2"};

    make_encrypting(f, "vault"); /* the fixture itself posts to q */
    ck_assert_status(try_post(f, mixed, 2), ST_NOT_SEALED);
    expect_stats(f, 0, 0);
    POST(f, SEALED("a"), SEALED("b"));
    list_all(f);
    EXPECT(f, SEALED("a"), SEALED("b"));
}

STORE_TEST(plain_queue_accepts_sealed_and_unsealed_bodies)
{
    POST(f, SEALED("a"), "2");
    list_all(f);
    EXPECT(f, SEALED("a"), "2");
}

STORE_TEST(pop_returns_sealed_bodies_before_it_deletes_them)
{
    struct store_batch opened;

    POST(f, "1", SEALED("b"), "3");
    ck_assert_status(try_pop(f, 2, &nothing), ST_SEALED);
    EXPECT(f, "1", SEALED("b"));
    opened = f->seen;
    f->seen = nothing;
    expect_stats(f, 0, 3);
    ck_assert_status(try_pop(f, 3, &opened), ST_OK);
    EXPECT(f, "1", SEALED("b"), "3");
    expect_stats(f, 0, 0);
    store_batch_release(&opened);
}

STORE_TEST(claim_returns_sealed_bodies_before_it_claims_them)
{
    const struct store_terms terms = {300, 60};
    struct store_batch opened;

    POST(f, SEALED("a"), SEALED("b"));
    store_batch_release(&f->seen);
    f->seen.opened = &nothing;
    ck_assert_status(
        store_claim_create(f->store, STORE_AT(f->now_ms), &f->queue, &terms, 2, &f->seen),
        ST_SEALED);
    EXPECT(f, SEALED("a"), SEALED("b"));
    ck_assert(id_empty(f->seen.claim_id));
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 0);
    opened = f->seen;
    f->seen = nothing;
    expect_stats(f, 0, 2);
    f->seen.opened = &opened;
    ck_assert_status(
        store_claim_create(f->store, STORE_AT(f->now_ms), &f->queue, &terms, 2, &f->seen),
        ST_OK);
    EXPECT(f, SEALED("a"), SEALED("b"));
    ck_assert(!id_empty(f->seen.claim_id));
    expect_stats(f, 2, 0);
    store_batch_release(&opened);
}

STORE_TEST(unsealed_bodies_are_popped_and_all_bodies_claimed_at_once)
{
    POST(f, "1", "2", SEALED("c"));
    ck_assert_status(try_pop(f, 1, &nothing), ST_OK);
    EXPECT(f, "1");
    take(f, 2);
    EXPECT(f, "2", SEALED("c"));
    expect_stats(f, 2, 0);
}

STORE_TEST(a_pop_that_decrypted_other_messages_gets_the_remaining_ones)
{
    struct store_batch opened;

    POST(f, SEALED("a"), SEALED("b"), SEALED("c"));
    ck_assert_status(try_pop(f, 2, &nothing), ST_SEALED);
    opened = f->seen;
    f->seen = nothing;
    pop(f, 1); /* another client, which accepts sealed bodies */
    ck_assert_status(try_pop(f, 2, &opened), ST_SEALED);
    EXPECT(f, SEALED("b"), SEALED("c"));
    ck_assert_status(try_pop(f, 1, &opened), ST_OK);
    EXPECT(f, SEALED("b"));
    expect_stats(f, 0, 1);
    store_batch_release(&opened);
}

STORE_CASE("sealed dead letters");

/* The sealer of the fixture inverts the bits of a body (support/store_fixture.c). */
STORE_TEST(encrypting_dead_letter_queue_seals_bodies)
{
    make_encrypting(f, "dead");
    make_dead_lettering(f, "q", 1, "dead", 600);
    POST(f, "1", "22");
    wear_out(f, 2, 1);
    ck_assert(id_empty(take(f, 2)));
    use(f, "dead");
    list_all(f);
    EXPECT(f, SEALED("\xce"), SEALED("\xcd\xcd"));
    ck_assert_int_eq(f->seen.messages[1].ttl_s, 600);
}

STORE_TEST(sealed_dead_letter_keeps_its_original_id)
{
    struct store_id claim;
    struct bytes id;

    make_encrypting(f, "deeper");
    make_dead_lettering(f, "dead", 1, "deeper", STORE_UNSET);
    make_dead_lettering(f, "q", 1, "dead", STORE_UNSET);
    post(f, 1);
    wear_out(f, 1, 1);
    ck_assert(id_empty(take(f, 1)));
    use(f, "dead"); /* the id is already from another queue */
    claim = take(f, 1);
    release(f, claim);
    ck_assert(id_empty(take(f, 1)));
    use(f, "deeper");
    id = id_of(f, 1);
    store_batch_release(&f->seen);
    ck_assert_status(
        store_message_get(f->store, STORE_AT(f->now_ms), &f->queue, &id, 1, &f->seen),
        ST_OK);
    EXPECT(f, SEALED("\xce"));
    ck_assert_status(delete_unclaimed(f, 1), ST_OK);
    expect_stats(f, 0, 0);
}

STORE_TEST(sealed_bodies_are_not_sealed_again)
{
    make_encrypting(f, "dead");
    make_dead_lettering(f, "q", 1, "dead", STORE_UNSET);
    POST(f, SEALED("a"), "1");
    wear_out(f, 2, 1);
    ck_assert(id_empty(take(f, 2)));
    use(f, "dead");
    list_all(f);
    EXPECT(f, SEALED("a"), SEALED("\xce"));
}

STORE_TEST(listed_body_does_not_change_when_dead_lettering_seals_it)
{
    struct store_batch before;

    make_encrypting(f, "dead");
    make_dead_lettering(f, "q", 1, "dead", STORE_UNSET);
    POST(f, "1");
    wear_out(f, 1, 1);
    list_all(f);
    before = f->seen;
    f->seen = nothing;
    ck_assert(id_empty(take(f, 1)));
    ck_assert(bytes_equal_str(before.messages[0].body, "1"));
    store_batch_release(&before);
}

ENGINE_CASE("dead letters that cannot be sealed");

STORE_TEST_WITH(messages_that_cannot_be_sealed_stay_in_their_queue,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    make_encrypting(f, "dead");
    make_dead_lettering(f, "q", 1, "dead", STORE_UNSET);
    POST(f, "1", "-2", "3");
    wear_out(f, 3, 1);
    ck_assert_status(try_claim(f, 3), ST_NO_KEY);
    expect_stats(f, 0, 3);
    use(f, "dead");
    expect_stats(f, 0, 0);
}

START_TEST(many_large_dead_letters_move_in_slices_of_bytes)
{
    enum { BODY_BYTES = 40000, LARGE_MESSAGES = 5 };
    static char body[BODY_BYTES + 1];
    struct fixture f;

    memset(body, '7', BODY_BYTES);
    fixture_open(&f, FIXTURE_ENGINE + _i);
    make_encrypting(&f, "dead");
    make_dead_lettering(&f, "q", 1, "dead", STORE_UNSET);
    for (int i = 0; i < LARGE_MESSAGES; i++)
        POST(&f, body);
    POST(&f, "-");
    wear_out(&f, LARGE_MESSAGES + 1, 1);
    /* A slice is two messages. The last slice has the message that cannot be sealed, and
     * stays. */
    ck_assert_status(try_claim(&f, LARGE_MESSAGES + 1), ST_OK);
    ck_assert_uint_eq(f.seen.count, 0);
    ck_assert_status(try_claim(&f, LARGE_MESSAGES + 1), ST_NO_KEY);
    use(&f, "dead");
    expect_stats(&f, 0, 4);
    use(&f, "q");
    expect_stats(&f, 0, 2);
    fixture_close(&f);
}

/* A sealer that deletes the message before it seals the body. It deadlocks if the store
 * calls it with a lock held. */
static enum status
delete_and_seal(void *arg, const struct store_queue *queue, struct bytes body, char *to)
{
    struct fixture *f = arg;

    (void)queue;
    ck_assert_status(delete_unclaimed(f, 1), ST_OK);
    *to++ = STORE_SEALED_MARK;
    memcpy(to, body.data, body.len);
    return ST_OK;
}

START_TEST(dead_letter_may_be_deleted_while_it_is_sealed)
{
    struct fixture f = {.now_ms = START_MS,
                        .queue = {BYTES_LIT("p"), BYTES_LIT("q"), STORE_QUEUE}};
    const struct store_sealer sealer = {1, &f, delete_and_seal};
    struct engine_config config;

    f.mem = mem_new(0);
    ck_assert_ptr_nonnull(f.mem);
    config = fixture_config(f.mem);
    config.sealer = &sealer;
    ck_assert_status(engine_open(&config, &f.store), ST_OK);
    make_encrypting(&f, "dead");
    make_dead_lettering(&f, "q", 1, "dead", STORE_UNSET);
    post(&f, 2);
    wear_out(&f, 1, 1);
    ck_assert(!id_empty(take(&f, 1))); /* the second message */
    use(&f, "q");
    expect_stats(&f, 1, 0);
    use(&f, "dead");
    expect_stats(&f, 0, 0);
    store_batch_release(&f.seen);
    store_close(f.store);
    mem_destroy(f.mem);
}
