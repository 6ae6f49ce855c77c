/* Images of queues, and loading them into any store (store/image.h). */
#include "support/dead_letters.h"
#include "support/subscriptions.h"

STORE_CASE("image");

enum { PIECES = 16 };

/* All pieces of a queue. */
struct album {
    struct store_image pieces[PIECES];
    size_t count;
};

static void
photograph(struct fixture *f, struct album *album)
{
    struct store_image image = STORE_IMAGE_INIT;

    album->count = 0;
    do {
        ck_assert_uint_lt(album->count, PIECES);
        ck_assert_status(
            store_queue_image(f->store, STORE_AT(f->now_ms), &f->queue, &image), ST_OK);
        album->pieces[album->count++] = image;
        image.store = NULL; /* the album's */
        store_image_release(&image);
    } while (album->pieces[album->count - 1].more);
}

static void
throw_away(struct album *album)
{
    while (album->count > 0)
        store_image_release(&album->pieces[--album->count]);
}

static enum status
load(struct fixture *f, const struct store_image *image)
{
    enum status st = store_queue_load(f->store, STORE_AT(f->now_ms), &f->queue, image);

    fixture_audit(f);
    return st;
}

/* Deletes the queue for good: restarts are tried only where no work is left. */
static void
delete_wholly(struct fixture *f)
{
    int64_t next_ms;

    delete_queue(f);
    do
        store_housekeep(f->store, f->now_ms, &next_ms);
    while (next_ms <= f->now_ms);
}

/* Deletes the queue, and loads what the album shows. */
static void
put_back(struct fixture *f, const struct album *album)
{
    delete_wholly(f);
    for (size_t i = 0; i < album->count; i++)
        ck_assert_status(load(f, &album->pieces[i]), ST_OK);
}

static void
expect_same_id(const struct store_id *a, const struct store_id *b)
{
    ck_assert_str_eq(a->text, b->text);
}

static void
expect_same_message(const struct store_image *a, const struct store_image_message *m,
                    const struct store_image *b, const struct store_image_message *n)
{
    expect_same_id(&m->id, &n->id);
    ck_assert(bytes_equal(m->body, n->body));
    ck_assert_uint_eq(m->client, n->client);
    ck_assert_int_eq(m->posted_ms, n->posted_ms);
    ck_assert_int_eq(m->expires_ms, n->expires_ms);
    ck_assert_int_eq(m->delayed_until_ms, n->delayed_until_ms);
    ck_assert_uint_eq(m->claim_count, n->claim_count);
    ck_assert_int_eq(m->checksum == NULL, n->checksum == NULL);
    ck_assert_int_eq(m->claim == 0, n->claim == 0);
    if (m->claim > 0) {
        const struct store_image_claim *c = &a->claims[m->claim - 1];
        const struct store_image_claim *d = &b->claims[n->claim - 1];

        expect_same_id(&c->id, &d->id);
        ck_assert_int_eq(c->started_ms, d->started_ms);
        ck_assert_int_eq(c->ends_ms, d->ends_ms);
    }
}

static void
expect_same_subscription(const struct store_image_subscription *s,
                         const struct store_image_subscription *t)
{
    expect_same_id(&s->id, &t->id);
    ck_assert(bytes_equal(s->subscriber, t->subscriber));
    ck_assert(bytes_equal(s->options, t->options));
    ck_assert_int_eq(s->started_ms, t->started_ms);
    ck_assert_int_eq(s->ttl_s, t->ttl_s);
    ck_assert_int_eq(s->confirmed, t->confirmed);
    ck_assert_int_eq(s->asked, t->asked);
    ck_assert_uint_eq(s->delivered, t->delivered);
}

/* The queue shows what the album does. */
static void
expect_album(struct fixture *f, const struct album *a)
{
    struct album b;

    photograph(f, &b);
    ck_assert_uint_eq(a->count, b.count);
    for (size_t i = 0; i < a->count; i++) {
        const struct store_image *x = &a->pieces[i], *y = &b.pieces[i];

        ck_assert_int_eq(x->first, y->first);
        ck_assert(bytes_equal(x->metadata.json, y->metadata.json));
        ck_assert_uint_eq(x->message_count, y->message_count);
        ck_assert_uint_eq(x->claim_count, y->claim_count);
        ck_assert_uint_eq(x->subscription_count, y->subscription_count);
        for (size_t k = 0; k < x->message_count; k++)
            expect_same_message(x, &x->messages[k], y, &y->messages[k]);
        for (size_t k = 0; k < x->subscription_count; k++)
            expect_same_subscription(&x->subscriptions[k], &y->subscriptions[k]);
    }
    throw_away(&b);
}

/* A message that somebody wrote. */
static struct store_image_message
written(const struct fixture *f, const char *body)
{
    return (struct store_image_message){.body = bytes_str(body),
                                        .posted_ms = f->now_ms - 5000,
                                        .expires_ms = f->now_ms + 60000};
}

#define SETTINGS_ONLY                                                                    \
    {                                                                                    \
        .settings = STORE_SETTINGS_INIT                                                  \
    }

/* ---------------------------------------------------------------------- round */

START_TEST(what_is_shown_can_be_loaded_and_is_the_same_then)
{
    struct store_id first, second;
    struct fixture f;
    struct album album;

    fixture_open(&f, _i);
    post(&f, 6);
    post_with(&f, 600, 60); /* 7 */
    first = take_for(&f, 2, 120, 60);
    wait_s(&f, 7);
    second = take_for(&f, 1, 200, 60);
    ck_assert(!id_empty(first) && !id_empty(second));
    photograph(&f, &album);
    put_back(&f, &album);
    expect_album(&f, &album);
    throw_away(&album);
    fixture_close(&f);
}
END_TEST

START_TEST(a_claim_that_was_loaded_finishes_renews_and_releases_with_its_id)
{
    struct store_id a, b, c;
    struct fixture f;
    struct album album;

    fixture_open(&f, _i);
    post(&f, 6);
    a = take_for(&f, 2, 120, 60); /* 1 2 */
    b = take_for(&f, 2, 120, 60); /* 3 4 */
    photograph(&f, &album);
    put_back(&f, &album);
    throw_away(&album);
    ck_assert_status(delete_claimed(&f, 1, a), ST_OK);
    ck_assert_status(delete_free(&f, 2), ST_CLAIMED);
    ck_assert_status(renew(&f, b, 300, 60), ST_OK);
    release(&f, a);
    c = take(&f, 10);
    expect(&f, 2, 5, 6); /* each at its old place */
    ck_assert(!id_same(c, a) && !id_same(c, b));
    ck_assert_status(query(&f, b), ST_OK);
    expect(&f, 3, 4);
    fixture_close(&f);
}
END_TEST

START_TEST(deadlines_that_were_loaded_come_as_before)
{
    struct fixture f;
    struct album album;

    fixture_open(&f, _i);
    post_with(&f, 100, STORE_UNSET); /* 1 */
    post_with(&f, 600, 60);          /* 2 */
    post(&f, 1);                     /* 3 */
    take_for(&f, 1, 80, 60);         /* 1: lives 140 s now */
    wait_s(&f, 10);
    photograph(&f, &album);
    put_back(&f, &album);
    throw_away(&album);
    expect_times(&f, 1, 140, 10);
    wait_s(&f, 49);
    list_free(&f);
    expect(&f, 3);
    wait_s(&f, 1);
    list_free(&f);
    expect(&f, 2, 3);
    wait_s(&f, 20);
    list_free(&f);
    expect(&f, 1, 2, 3);
    wait_s(&f, 60);
    list_all(&f);
    expect(&f, 2, 3);
    fixture_close(&f);
}
END_TEST

START_TEST(what_had_happened_before_an_image_was_loaded_has_happened)
{
    struct fixture f;
    struct album album;

    fixture_open(&f, _i);
    post_with(&f, 100, STORE_UNSET); /* 1 */
    post(&f, 1);                     /* 2 */
    wait_s(&f, 1);
    take_for(&f, 2, 60, 60);
    photograph(&f, &album);
    delete_wholly(&f);
    wait_s(&f, 300);
    for (size_t i = 0; i < album.count; i++)
        ck_assert_status(load(&f, &album.pieces[i]), ST_OK);
    throw_away(&album);
    list_free(&f);
    expect(&f, 2);
    fixture_close(&f);
}
END_TEST

START_TEST(dead_letters_go_on_counting)
{
    struct fixture f;
    struct album album;

    fixture_open(&f, _i);
    make_mortal(&f, "q", 3, "graves", STORE_UNSET);
    post(&f, 2);
    wear_out(&f, 2, 2);
    photograph(&f, &album);
    put_back(&f, &album);
    throw_away(&album);
    wear_out(&f, 2, 1);
    take(&f, 10); /* moves them */
    expect_nothing(&f);
    expect_only_in(&f, 1, "graves");
    expect_only_in(&f, 2, "graves");
    fixture_close(&f);
}
END_TEST

START_TEST(a_queue_of_many_pieces_is_whole_and_so_is_a_claim_that_spans_them)
{
    struct store_id claim;
    struct fixture f;
    struct album album;

    fixture_open(&f, _i);
    post(&f, 400);
    claim = take_for(&f, 300, 120, 60);
    photograph(&f, &album);
    put_back(&f, &album);
    expect_album(&f, &album);
    throw_away(&album);
    ck_assert_status(query(&f, claim), ST_OK);
    ck_assert_uint_eq(f.seen.count, 300);
    expect_stats(&f, 300, 100);
    release(&f, claim);
    expect_stats(&f, 0, 400);
    fixture_close(&f);
}
END_TEST

STORE_CASE("subscriptions in images");

START_TEST(subscriptions_are_shown_and_loaded_behind_all_that_is_there)
{
    struct store_delivery lent;
    struct store_id id;
    struct fixture f;
    struct album album;

    fixture_open(&f, _i);
    id = subscribe(&f, "http://a", 600);
    subscribe(&f, "http://b", 60);
    post(&f, 1);
    wait_s(&f, 60); /* b has gone */
    photograph(&f, &album);
    ck_assert_uint_eq(album.pieces[0].subscription_count +
                          (album.count > 1 ? album.pieces[1].subscription_count : 0),
                      1);
    put_back(&f, &album);
    expect_album(&f, &album);
    throw_away(&album);
    expect_nothing_due(&f);
    post(&f, 1);
    expect_next(&f, &lent, id, 2);
    delivered(&f, &lent);
    fixture_close(&f);
}
END_TEST

START_TEST(who_was_asked_and_has_not_said_is_asked_again)
{
    struct store_delivery lent;
    struct store_id id;
    struct fixture f;
    struct album album;

    fixture_open_confirming(&f, _i);
    id = subscribe(&f, "http://a", 600);
    photograph(&f, &album);
    put_back(&f, &album);
    throw_away(&album);
    expect_notice(&f, &lent, id, STORE_NOTICE_CONFIRM);
    delivered(&f, &lent);
    photograph(&f, &album);
    put_back(&f, &album);
    throw_away(&album);
    expect_nothing_due(&f);
    confirm(&f, id, true);
    fixture_close(&f);
}
END_TEST

STORE_CASE("no image");

START_TEST(a_queue_that_is_not_there_has_no_image)
{
    struct store_image image = STORE_IMAGE_INIT;
    struct fixture f;

    fixture_open(&f, _i);
    ck_assert_status(store_queue_image(f.store, STORE_AT(f.now_ms), &f.queue, &image),
                     ST_NOT_FOUND);
    fixture_close(&f);
}
END_TEST

/* ---------------------------------------------------------------------- written by hand */

STORE_CASE("loading");

START_TEST(ids_that_are_left_out_are_made)
{
    struct store_image_message messages[3];
    struct store_image_claim claims[1] = {{.id = {""}}};
    struct store_image image = {.first = true,
                                .metadata = SETTINGS_ONLY,
                                .messages = messages,
                                .message_count = 3,
                                .claims = claims,
                                .claim_count = 1};
    struct store_id held;
    struct fixture f;

    fixture_open(&f, _i);
    claims[0].started_ms = f.now_ms - 1000;
    claims[0].ends_ms = f.now_ms + 30000;
    for (int i = 0; i < 3; i++)
        messages[i] = written(&f, "{}");
    messages[1].claim = 1;
    ck_assert_status(load(&f, &image), ST_OK);
    list_all(&f);
    ck_assert_uint_eq(f.seen.count, 3);
    ck_assert_int_eq(f.seen.messages[0].age_s, 5);
    ck_assert_int_eq(f.seen.messages[0].ttl_s, 65);
    held = f.seen.messages[1].claim_id;
    ck_assert(!id_empty(held) && id_empty(f.seen.messages[0].claim_id));
    ck_assert_status(query(&f, held), ST_OK);
    ck_assert_uint_eq(f.seen.count, 1);
    fixture_close(&f);
}
END_TEST

static struct store_image_subscription
written_subscription(const struct fixture *f, const char *subscriber, const char *id)
{
    return (struct store_image_subscription){.id = text_id(id),
                                             .subscriber = bytes_str(subscriber),
                                             .options = bytes_str("{}"),
                                             .started_ms = f->now_ms,
                                             .ttl_s = 600};
}

START_TEST(ids_of_subscriptions_sort_behind_those_that_were_loaded)
{
    struct store_image_subscription subscriptions[3];
    struct store_image image = {.first = true,
                                .metadata = SETTINGS_ONLY,
                                .subscriptions = subscriptions,
                                .subscription_count = 3};
    struct store_id last = {""}, marker;
    struct fixture f;

    fixture_open(&f, _i);
    subscriptions[0] = written_subscription(&f, "http://a", "c00000000000000000000007");
    subscriptions[1] = written_subscription(&f, "http://b", "");
    subscriptions[2] = written_subscription(&f, "http://c", "");
    ck_assert_status(load(&f, &image), ST_OK);
    subscribe(&f, "http://d", 600);
    ck_assert_uint_eq(list_subscriptions(&f, "", 5, &marker), 4);
    for (size_t i = 0; i < 4; i++) {
        const struct store_id id = f.subscriptions.views[i].id;

        ck_assert_msg(strcmp(last.text, id.text) < 0, "%s, then %s", last.text, id.text);
        last = id;
    }
    fixture_close(&f);
}
END_TEST

START_TEST(numbers_of_claims_go_on_behind_the_largest_one)
{
    struct store_image_message message;
    struct store_image_claim claim = {.id = text_id("abcdefabcdef000000001000")};
    struct store_image image = {.first = true,
                                .metadata = SETTINGS_ONLY,
                                .messages = &message,
                                .message_count = 1,
                                .claims = &claim,
                                .claim_count = 1};
    struct fixture f;
    uint64_t number;

    fixture_open(&f, _i);
    claim.started_ms = f.now_ms;
    claim.ends_ms = f.now_ms + 60000;
    message = written(&f, "1");
    message.claim = 1;
    ck_assert_status(load(&f, &image), ST_OK);
    ck_assert_status(query(&f, claim.id), ST_OK);
    number = f.seen.claim_number;
    post(&f, 1);
    take(&f, 1);
    ck_assert_uint_gt(f.seen.claim_number, number);
    fixture_close(&f);
}
END_TEST

START_TEST(what_is_there_already_is_a_conflict_and_nothing_changes)
{
    struct fixture f;
    struct album album;

    fixture_open(&f, _i);
    post(&f, 2);
    take(&f, 1);
    photograph(&f, &album);
    ck_assert_status(load(&f, &album.pieces[0]), ST_CONFLICT);
    album.pieces[0].first = false;
    ck_assert_status(load(&f, &album.pieces[0]), ST_CONFLICT); /* its ids */
    expect_stats(&f, 1, 1);
    delete_queue(&f);
    ck_assert_status(load(&f, &album.pieces[0]), ST_NOT_FOUND);
    throw_away(&album);
    fixture_close(&f);
}
END_TEST

STORE_CASE("subscribed");

START_TEST(messages_do_not_come_to_who_is_subscribed)
{
    struct fixture f;
    struct album album;

    fixture_open(&f, _i);
    post(&f, 1);
    photograph(&f, &album);
    album.pieces[0].first = false;
    delete_queue(&f);
    subscribe(&f, "http://a", 600);
    ck_assert_status(load(&f, &album.pieces[0]), ST_CONFLICT);
    throw_away(&album);
    fixture_close(&f);
}
END_TEST

STORE_CASE("refusals");

START_TEST(an_encrypting_queue_takes_sealed_bodies_only)
{
    struct store_image_message message;
    struct store_image image = {.first = true,
                                .metadata = SETTINGS_ONLY,
                                .messages = &message,
                                .message_count = 1};
    struct fixture f;

    fixture_open(&f, _i);
    image.metadata.settings.encrypt = true;
    message = written(&f, "1");
    ck_assert_status(load(&f, &image), ST_NOT_SEALED);
    message.body = bytes_str("\x01"
                             "abc");
    ck_assert_status(load(&f, &image), ST_OK);
    use(&f, "other"); /* the fixture itself posts to q */
    use(&f, "q");
    delete_queue(&f);
    fixture_close(&f);
}
END_TEST

/* What can be wrong with two messages, the second of them held by a claim. */
static void
two_ids(struct store_image *image, int64_t now_ms)
{
    (void)now_ms;
    image->messages[0].id = image->messages[1].id = text_id("abcdefabcdef000000001000");
}

static void
no_id(struct store_image *image, int64_t now_ms)
{
    (void)now_ms;
    image->messages[1].id = text_id("ABCDEFABCDEF000000001000");
}

static void
no_claim(struct store_image *image, int64_t now_ms)
{
    (void)now_ms;
    image->messages[0].claim = 2;
}

static void
held_and_delayed(struct store_image *image, int64_t now_ms)
{
    image->messages[0].claim = 1;
    image->messages[0].delayed_until_ms = now_ms + 1;
}

static void
idle_claim(struct store_image *image, int64_t now_ms)
{
    (void)now_ms;
    image->messages[1].claim = 0;
}

static void
no_number(struct store_image *image, int64_t now_ms)
{
    (void)now_ms;
    image->claims[0].id = text_id("abcdefabcdef000000000000");
}

static void
backwards(struct store_image *image, int64_t now_ms)
{
    image->claims[0].ends_ms = now_ms - 1;
}

static void
endless(struct store_image *image, int64_t now_ms)
{
    (void)now_ms;
    image->messages[0].expires_ms = INT64_MAX;
}

static void
long_delay(struct store_image *image, int64_t now_ms)
{
    (void)now_ms;
    image->messages[0].delayed_until_ms = image->messages[0].expires_ms + 1;
}

static void
no_body(struct store_image *image, int64_t now_ms)
{
    (void)now_ms;
    image->messages[1].body = bytes_str("");
}

static const struct {
    void (*spoil)(struct store_image *image, int64_t now_ms);
    const char *part, *member;
    size_t index;
} flaws[] = {
    {two_ids, "messages", "id", 1},       {no_id, "messages", "id", 1},
    {no_claim, "messages", "claim", 0},   {held_and_delayed, "messages", "claim", 0},
    {idle_claim, "claims", "id", 0},      {no_number, "claims", "id", 0},
    {backwards, "claims", "ttl", 0},      {endless, "messages", "ttl", 0},
    {long_delay, "messages", "delay", 0}, {no_body, "messages", "body", 1},
};

START_TEST(a_piece_that_makes_no_sense_is_refused_and_the_flaw_is_told)
{
    struct fixture f;

    fixture_open(&f, _i);
    for (size_t i = 0; i < sizeof(flaws) / sizeof(flaws[0]); i++) {
        struct store_image_message messages[2] = {written(&f, "1"), written(&f, "2")};
        struct store_image_claim claim = {.started_ms = f.now_ms,
                                          .ends_ms = f.now_ms + 1000};
        struct store_image image = {.first = true,
                                    .metadata = SETTINGS_ONLY,
                                    .messages = messages,
                                    .message_count = 2,
                                    .claims = &claim,
                                    .claim_count = 1};
        struct store_flaw flaw;

        messages[1].claim = 1;
        flaws[i].spoil(&image, f.now_ms);
        ck_assert_status(store_image_check(f.mem, &image, &flaw), ST_BAD_VALUE);
        ck_assert_str_eq(flaw.part, flaws[i].part);
        ck_assert_str_eq(flaw.member, flaws[i].member);
        ck_assert_uint_eq(flaw.index, flaws[i].index);
        ck_assert_status(load(&f, &image), ST_BAD_VALUE);
    }
    fixture_close(&f);
}
END_TEST
