/* Bodies that are sealed, in any store (docs/adr/0012-encryption.md). */
#include "support/dead_letters.h"

#define SEALED(text) "\x01" text

STORE_CASE("sealed");

/* Makes a queue that keeps its messages encrypted, and goes on with it. */
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

/* The messages shown last have these bodies. */
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

/* Says to be shown what is sealed before it is taken, but for what is in `opened`. */
static enum status
try_pop(struct fixture *f, size_t limit, const struct store_batch *opened)
{
    store_batch_release(&f->seen);
    f->seen.opened = opened;
    return store_message_pop(f->store, STORE_AT(f->now_ms), &f->queue, limit, &f->seen);
}

static enum status
try_claim(struct fixture *f, size_t limit, const struct store_batch *opened)
{
    const struct store_terms terms = {300, 60};

    store_batch_release(&f->seen);
    f->seen.opened = opened;
    return store_claim_create(f->store, STORE_AT(f->now_ms), &f->queue, &terms, limit,
                              &f->seen);
}

static const struct store_batch nothing = {.store = NULL};

STORE_TEST(a_queue_that_encrypts_takes_sealed_bodies_only)
{
    static const char *const mixed[] = {SEALED("a"), "2"};

    make_encrypting(f, "vault"); /* the fixture itself posts to q */
    ck_assert_status(try_post(f, mixed, 2), ST_NOT_SEALED);
    expect_stats(f, 0, 0);
    POST(f, SEALED("a"), SEALED("b"));
    list_all(f);
    EXPECT(f, SEALED("a"), SEALED("b"));
}

STORE_TEST(another_queue_takes_both)
{
    POST(f, SEALED("a"), "2");
    list_all(f);
    EXPECT(f, SEALED("a"), "2");
}

STORE_TEST(a_pop_shows_what_is_sealed_before_it_takes_it)
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

STORE_TEST(unsealed_bodies_are_delivered_at_once)
{
    POST(f, "1", "2", SEALED("c"));
    ck_assert_status(try_pop(f, 1, &nothing), ST_OK);
    EXPECT(f, "1");
    ck_assert_status(try_claim(f, 1, &nothing), ST_OK);
    EXPECT(f, "2");
    expect_stats(f, 1, 1);
}

STORE_TEST(a_claim_shows_what_is_sealed_before_it_takes_it)
{
    struct store_batch opened;

    POST(f, SEALED("a"), SEALED("b"));
    ck_assert_status(try_claim(f, 2, &nothing), ST_SEALED);
    EXPECT(f, SEALED("a"), SEALED("b"));
    ck_assert(id_empty(f->seen.claim_id));
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 0);
    opened = f->seen;
    f->seen = nothing;
    expect_stats(f, 0, 2);
    ck_assert_status(try_claim(f, 2, &opened), ST_OK);
    EXPECT(f, SEALED("a"), SEALED("b"));
    ck_assert(!id_empty(f->seen.claim_id));
    expect_stats(f, 2, 0);
    store_batch_release(&opened);
}

STORE_TEST(a_claim_that_decrypted_other_messages_gets_the_remaining_ones)
{
    struct store_batch opened;

    POST(f, SEALED("a"), SEALED("b"), SEALED("c"));
    ck_assert_status(try_pop(f, 2, &nothing), ST_SEALED);
    opened = f->seen;
    f->seen = nothing;
    pop(f, 1); /* by somebody who takes bodies as they are */
    ck_assert_status(try_pop(f, 2, &opened), ST_SEALED);
    EXPECT(f, SEALED("b"), SEALED("c"));
    ck_assert_status(try_pop(f, 1, &opened), ST_OK);
    EXPECT(f, SEALED("b"));
    expect_stats(f, 0, 1);
    store_batch_release(&opened);
}

STORE_CASE("sealed dead letters");

STORE_TEST(a_letter_does_not_lie_in_clear_in_a_queue_that_encrypts)
{
    make_encrypting(f, "graves");
    make_mortal(f, "q", 1, "graves", 600);
    POST(f, "1", "22");
    wear_out(f, 2, 1);
    ck_assert(id_empty(take(f, 2)));
    use(f, "graves");
    list_all(f);
    EXPECT(f, SEALED("\xce"), SEALED("\xcd\xcd"));
    ck_assert_int_eq(f->seen.messages[1].ttl_s, 600);
}

STORE_TEST(it_is_found_by_the_id_it_had)
{
    struct store_id claim;
    struct bytes id;

    make_encrypting(f, "deeper");
    make_mortal(f, "graves", 1, "deeper", STORE_UNSET);
    make_mortal(f, "q", 1, "graves", STORE_UNSET);
    post(f, 1);
    wear_out(f, 1, 1);
    ck_assert(id_empty(take(f, 1)));
    use(f, "graves"); /* where it has the id of another queue already */
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
    ck_assert_status(delete_free(f, 1), ST_OK);
    expect_stats(f, 0, 0);
}

STORE_TEST(sealed_bodies_stay_unchanged)
{
    make_encrypting(f, "graves");
    make_mortal(f, "q", 1, "graves", STORE_UNSET);
    POST(f, SEALED("a"), "1");
    wear_out(f, 2, 1);
    ck_assert(id_empty(take(f, 2)));
    use(f, "graves");
    list_all(f);
    EXPECT(f, SEALED("a"), SEALED("\xce"));
}

STORE_TEST(an_answer_shows_a_letter_as_it_was_when_it_was_asked_for)
{
    struct store_batch before;

    make_encrypting(f, "graves");
    make_mortal(f, "q", 1, "graves", STORE_UNSET);
    POST(f, "1");
    wear_out(f, 1, 1);
    list_all(f);
    before = f->seen;
    f->seen = nothing;
    ck_assert(id_empty(take(f, 1)));
    ck_assert(bytes_equal_str(before.messages[0].body, "1"));
    store_batch_release(&before);
}

ENGINE_CASE("letters that cannot be sealed");

STORE_TEST_WITH(they_stay_where_they_are, fixture_open(f, FIXTURE_ENGINE + _i))
{
    make_encrypting(f, "graves");
    make_mortal(f, "q", 1, "graves", STORE_UNSET);
    POST(f, "1", "-2", "3");
    wear_out(f, 3, 1);
    ck_assert_status(try_claim(f, 3, NULL), ST_NO_KEY);
    expect_stats(f, 0, 3);
    use(f, "graves");
    expect_stats(f, 0, 0);
}

START_TEST(a_long_row_moves_in_slices_of_bytes)
{
    enum { LONG = 40000, LETTERS = 5 };
    static char body[LONG + 1];
    struct fixture f;

    memset(body, '7', LONG);
    fixture_open(&f, FIXTURE_ENGINE + _i);
    make_encrypting(&f, "graves");
    make_mortal(&f, "q", 1, "graves", STORE_UNSET);
    for (int i = 0; i < LETTERS; i++)
        POST(&f, body);
    POST(&f, "-");
    wear_out(&f, LETTERS + 1, 1);
    /* Slices of two; the last one has what cannot be sealed in it, and stays. */
    ck_assert_status(try_claim(&f, LETTERS + 1, NULL), ST_OK);
    ck_assert_uint_eq(f.seen.count, 0);
    ck_assert_status(try_claim(&f, LETTERS + 1, NULL), ST_NO_KEY);
    use(&f, "graves");
    expect_stats(&f, 0, 4);
    use(&f, "q");
    expect_stats(&f, 0, 2);
    fixture_close(&f);
}
END_TEST

/* Encrypts a letter, and deletes it from its queue first: no lock of the store may be held. */
static enum status
delete_and_seal(void *arg, const struct store_queue *queue, struct bytes body, char *to)
{
    struct fixture *f = arg;

    (void)queue;
    ck_assert_status(delete_free(f, 1), ST_OK);
    *to++ = STORE_SEALED_MARK;
    memcpy(to, body.data, body.len);
    return ST_OK;
}

START_TEST(they_are_encrypted_without_a_lock_and_may_be_gone_then)
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
    make_encrypting(&f, "graves");
    make_mortal(&f, "q", 1, "graves", STORE_UNSET);
    post(&f, 2);
    wear_out(&f, 1, 1);
    ck_assert(!id_empty(take(&f, 1))); /* the message behind the letter */
    use(&f, "q");
    expect_stats(&f, 1, 0);
    use(&f, "graves");
    expect_stats(&f, 0, 0);
    store_batch_release(&f.seen);
    store_close(f.store);
    mem_destroy(f.mem);
}
END_TEST
