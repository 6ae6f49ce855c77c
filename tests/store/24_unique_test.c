/* Messages with a key that at most one message of the queue holds, of any store
 * (store_message_post() in claimd/store/store.h). */
#include "support/finishing.h"

#include <stdio.h>

STORE_CASE("unique");

/* A message with a key; its number is the next one if it is new. */
struct keyed {
    const char *key;
    bool until_claimed;
    int64_t ttl_s, delay_s;
};

enum { DUE_MS = 77 }; /* which stays with the key */

static struct store_unique
unique_of(const char *key, bool until_claimed)
{
    return (struct store_unique){
        .key = bytes_str(key), .until_claimed = until_claimed, .due_ms = DUE_MS};
}

/* Posts a message with a key. *number: of the message that has the key. */
static enum status
try_keyed(struct fixture *f, struct keyed what, bool *existing, int *number)
{
    const struct store_unique unique = unique_of(what.key, what.until_claimed);
    struct store_op op = {.now_ms = f->now_ms};
    char body[16];
    struct store_draft draft = {.ttl_s = what.ttl_s == 0 ? 3600 : what.ttl_s,
                                .delay_s = what.delay_s};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .create_queue = true, .unique = &unique};
    struct store_id id;
    enum status st;

    snprintf(body, sizeof(body), "%d", f->posted + 1);
    draft.body = bytes_str(body);
    st = store_message_post(f->store, &op, &f->queue, &request, &id);
    fixture_audit(f);
    *existing = st == ST_OK && op.existing;
    *number = 0;
    if (st != ST_OK)
        return st;
    if (!op.existing)
        f->ids[++f->posted] = id;
    for (int i = 1; i <= f->posted; i++)
        if (id_same(f->ids[i], id))
            *number = i;
    return ST_OK;
}

/* The number of the message that has the key after a post with it; negative if it
 * existed. */
static int
post_keyed(struct fixture *f, struct keyed what)
{
    bool existing;
    int number;

    ck_assert_status(try_keyed(f, what, &existing, &number), ST_OK);
    ck_assert_int_ne(number, 0);
    return existing ? -number : number;
}

#define KEYED(f, ...) post_keyed((f), (struct keyed){.key = __VA_ARGS__})

/* Checks the key that the details of a message show; NULL: none. */
static void
expect_key(struct fixture *f, int number, const char *key)
{
    const struct store_details *d;

    get(f, number);
    ck_assert_uint_eq(f->seen.count, 1);
    d = f->seen.messages[0].details;
    if (key == NULL) {
        ck_assert(d == NULL || (d->unique.key.len == 0 && d->unique.due_ms == 0));
        return;
    }
    ck_assert_ptr_nonnull(d);
    ck_assert_msg(bytes_equal_str(d->unique.key, key), "%.*s", (int)d->unique.key.len,
                  d->unique.key.data);
    ck_assert_int_eq(d->unique.due_ms, DUE_MS);
}

STORE_TEST(a_second_message_with_the_key_is_not_stored)
{
    ck_assert_int_eq(KEYED(f, "report"), 1);
    ck_assert_int_eq(KEYED(f, "report"), -1);
    ck_assert_int_eq(KEYED(f, "another"), 2);
    ck_assert_int_eq(KEYED(f, "report"), -1);
    list_all(f);
    expect(f, 1, 2);
    expect_key(f, 1, "report");
    expect_key(f, 2, "another");
    post(f, 1);
    expect_key(f, 3, NULL);
}

STORE_TEST(keys_of_queues_and_projects_do_not_meet)
{
    ck_assert_int_eq(KEYED(f, "k"), 1);
    use(f, "other");
    ck_assert_int_eq(KEYED(f, "k"), 2);
    use_project(f, "p2");
    ck_assert_int_eq(KEYED(f, "k"), 3);
    ck_assert_int_eq(KEYED(f, "k"), -3);
}

STORE_TEST(a_key_is_held_while_its_message_is_delayed_claimed_or_released)
{
    struct store_id claim;

    ck_assert_int_eq(KEYED(f, "k", .delay_s = 10), 1);
    ck_assert_int_eq(KEYED(f, "k"), -1);
    wait_s(f, 10);
    ck_assert_int_eq(KEYED(f, "k"), -1);
    claim = take(f, 1);
    expect(f, 1);
    ck_assert_int_eq(KEYED(f, "k"), -1);
    release(f, claim);
    ck_assert_int_eq(KEYED(f, "k"), -1);
    (void)take_for(f, 1, 60, 60);
    wait_s(f, 60); /* the claim expires */
    ck_assert_int_eq(KEYED(f, "k"), -1);
    expect_key(f, 1, "k");
}

STORE_TEST(a_deletion_frees_the_key)
{
    struct store_id claim;

    ck_assert_int_eq(KEYED(f, "k"), 1);
    ck_assert_status(delete_unclaimed(f, 1), ST_OK);
    ck_assert_int_eq(KEYED(f, "k"), 2);
    claim = take(f, 1);
    ck_assert_status(delete_claimed(f, 2, claim), ST_OK);
    ck_assert_int_eq(KEYED(f, "k"), 3);
    pop(f, 1);
    expect(f, 3);
    ck_assert_int_eq(KEYED(f, "k"), 4);
    list_all(f);
    expect(f, 4);
}

STORE_TEST(an_expiry_frees_the_key)
{
    ck_assert_int_eq(KEYED(f, "k", .ttl_s = 60), 1);
    wait_ms(f, 59999);
    ck_assert_int_eq(KEYED(f, "k"), -1);
    wait_ms(f, 1);
    ck_assert_int_eq(KEYED(f, "k"), 2);
    list_all(f);
    expect(f, 2);
    wait_s(f, 3600);
    housekeep(f);
    ck_assert_int_eq(KEYED(f, "k"), 3);
}

STORE_TEST(a_purge_and_a_deleted_queue_free_the_key)
{
    ck_assert_int_eq(KEYED(f, "k"), 1);
    purge(f);
    ck_assert_int_eq(KEYED(f, "k"), 2);
    delete_queue(f);
    ck_assert_int_eq(KEYED(f, "k"), 3);
    ck_assert_int_eq(KEYED(f, "k"), -3);
}

STORE_TEST(the_first_claim_frees_a_key_until_claimed)
{
    struct store_id claim;

    ck_assert_int_eq(KEYED(f, "k", .until_claimed = true), 1);
    ck_assert_int_eq(KEYED(f, "k", .until_claimed = true), -1);
    ck_assert_int_eq(KEYED(f, "k"), -1); /* that of the first message counts */
    claim = take(f, 1);
    expect(f, 1);
    expect_key(f, 1, NULL);
    ck_assert_int_eq(KEYED(f, "k"), 2);
    release(f, claim); /* 1 does not get the key back */
    ck_assert_int_eq(KEYED(f, "k"), -2);
    list_ready(f);
    expect(f, 1, 2);
    ck_assert_status(delete_unclaimed(f, 2), ST_OK);
    ck_assert_int_eq(KEYED(f, "k", .until_claimed = true), 3);
    pop(f, 2);
    expect(f, 1, 3);
    ck_assert_int_eq(KEYED(f, "k"), 4);
}

STORE_TEST(an_uncounted_release_does_not_give_the_key_back)
{
    struct finishing g;

    ck_assert_int_eq(KEYED(f, "k", .until_claimed = true), 1);
    g = finishing_of(f, take(f, 1));
    then_release(&g, 1, 0, NULL);
    g.items[0].uncounted = true;
    ck_assert_status(finish(f, &g), ST_OK);
    get(f, 1);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 0);
    ck_assert_int_eq(KEYED(f, "k"), 2);
}

STORE_TEST(a_reason_and_the_key_stay_together)
{
    struct finishing g;

    ck_assert_int_eq(KEYED(f, "k"), 1);
    g = finishing_of(f, take(f, 1));
    then_release(&g, 1, 30, "busy");
    ck_assert_status(finish(f, &g), ST_OK);
    expect_key(f, 1, "k");
    expect_details(f, 1, "busy", "worker", 0, NULL, -1);
    ck_assert_int_eq(KEYED(f, "k"), -1);
    wait_s(f, 30);
    ck_assert_int_eq(KEYED(f, "k"), -1);
}

STORE_TEST(a_refused_post_changes_nothing_although_the_key_exists)
{
    bool existing;
    int number;

    ck_assert_int_eq(KEYED(f, "k"), 1);
    pause_queue(f, STORE_PAUSE_POSTS);
    ck_assert_status(try_keyed(f, (struct keyed){.key = "k"}, &existing, &number),
                     ST_PAUSED);
    pause_queue(f, 0);
    ck_assert_status(try_keyed(f, (struct keyed){.key = "k", .ttl_s = 60, .delay_s = 60},
                               &existing, &number),
                     ST_NEVER_READY);
    ck_assert_int_eq(KEYED(f, "k"), -1);
}

/* ------------------------------------------------------------------ dead letters */

/* Message 1 with the key "k" becomes a dead letter of "failed". The queue "q" is
 * selected. */
static void
make_keyed_letter(struct fixture *f)
{
    struct finishing g;

    make_dead_lettering(f, "q", 3, "failed", STORE_UNSET);
    ck_assert_int_eq(KEYED(f, "k"), 1);
    g = finishing_of(f, take(f, 1));
    then_dead_letter(&g, 1, "bad");
    ck_assert_status(finish(f, &g), ST_OK);
}

STORE_TEST(a_dead_letter_keeps_its_key_and_does_not_hold_it)
{
    make_keyed_letter(f);
    use(f, "failed");
    expect_key(f, 1, "k");
    expect_details(f, 1, "bad", "worker", 0, "q", 0);
    ck_assert_int_eq(KEYED(f, "k"), 2); /* a message of its own */
    ck_assert_int_eq(KEYED(f, "k"), -2);
    use(f, "q");
    ck_assert_int_eq(KEYED(f, "k"), 3);
}

STORE_TEST(worn_out_messages_free_their_key)
{
    make_dead_lettering(f, "q", 2, "failed", STORE_UNSET);
    ck_assert_int_eq(KEYED(f, "k"), 1);
    (void)take_for(f, 1, 60, 60);
    wait_s(f, 60);
    (void)take_for(f, 1, 60, 60);
    ck_assert_int_eq(KEYED(f, "k"), -1);
    wait_s(f, 60); /* that was its last attempt */
    ck_assert_int_eq(KEYED(f, "k"), 2);
    list_all(f);
    expect(f, 2);
    use(f, "failed");
    list_all(f);
    expect(f, 1);
    expect_key(f, 1, "k");
}

STORE_TEST(a_redriven_message_holds_its_key_again)
{
    make_keyed_letter(f);
    use(f, "failed");
    ck_assert_uint_eq(redrive_all(f).moved, 1);
    use(f, "q");
    expect_key(f, 1, "k");
    ck_assert_int_eq(KEYED(f, "k"), -1);
    ck_assert_status(delete_unclaimed(f, 1), ST_OK);
    ck_assert_int_eq(KEYED(f, "k"), 2);
}

/* One call of redrive. */
static struct store_redriven
redrive_once(struct fixture *f, bool dry_run)
{
    struct store_redrive which = {.limit = 10, .dry_run = dry_run};
    struct store_redriven out;

    ck_assert_status(
        store_redrive(f->store, STORE_AT(f->now_ms), &f->queue, &which, &out), ST_OK);
    fixture_audit(f);
    return out;
}

STORE_TEST(a_dead_letter_stays_if_another_message_holds_its_key)
{
    struct store_redriven out;

    make_keyed_letter(f);
    ck_assert_int_eq(KEYED(f, "k"), 2);
    use(f, "failed");
    out = redrive_once(f, true);
    ck_assert_uint_eq(out.moved, 0);
    ck_assert_uint_eq(out.key_held, 1);
    out = redrive_once(f, false);
    ck_assert_uint_eq(out.moved, 0);
    ck_assert_uint_eq(out.key_held, 1);
    ck_assert_uint_eq(out.remaining, 1);
    list_all(f);
    expect(f, 1);
    use(f, "q");
    ck_assert_status(delete_unclaimed(f, 2), ST_OK);
    use(f, "failed");
    out = redrive_once(f, false);
    ck_assert_uint_eq(out.moved, 1);
    ck_assert_uint_eq(out.key_held, 0);
    use(f, "q");
    ck_assert_int_eq(KEYED(f, "k"), -1);
}

STORE_TEST(of_two_dead_letters_with_the_key_one_goes_back)
{
    struct store_redriven out;
    struct finishing g;

    make_keyed_letter(f);
    ck_assert_int_eq(KEYED(f, "k"), 2);
    post(f, 1);
    g = finishing_of(f, take(f, 2));
    then_dead_letter(&g, 2, NULL);
    then_dead_letter(&g, 3, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "failed");
    out = redrive_once(f, false);
    ck_assert_uint_eq(out.moved, 2);
    ck_assert_uint_eq(out.key_held, 1);
    ck_assert_uint_eq(out.remaining, 1);
    list_all(f);
    expect(f, 2);
    use(f, "q");
    list_all(f);
    expect(f, 1, 3);
    expect_key(f, 1, "k");
}

/* ------------------------------------------------------------------ finish */

/* Adds a post with a key to a finish. `unique` must live as long. */
static void
then_post_keyed(struct finishing *g, const char *queue, const struct store_unique *unique)
{
    then_post(g, queue, 1);
    g->posts[g->request.post_count - 1].post.unique = unique;
}

STORE_TEST(a_finish_posts_a_key_once)
{
    const struct store_unique unique = unique_of("k", false);
    struct finishing g;

    post(f, 2);
    g = finishing_of(f, take(f, 1));
    then_delete(&g, 1);
    then_post_keyed(&g, "next", &unique);
    ck_assert_status(finish(f, &g), ST_OK); /* 3 */
    ck_assert(!g.posts[0].existing);
    use(f, "next");
    ck_assert_int_eq(KEYED(f, "k"), -3);
    use(f, "q");
    g = finishing_of(f, take(f, 1));
    then_delete(&g, 2);
    then_post_keyed(&g, "next", &unique);
    ck_assert_status(finish(f, &g), ST_OK);
    if (!g.posts[0].pending) {
        ck_assert(g.posts[0].existing);
        ck_assert_str_eq(g.posts[0].ids[0].text, f->ids[3].text);
    }
    expect_stats(f, 0, 0);
    use(f, "next");
    expect_stats(f, 0, 1);
    expect_key(f, 3, "k");
}

STORE_TEST(a_finish_deletes_a_message_and_posts_its_key_again)
{
    const struct store_unique unique = unique_of("k", false);
    struct finishing g;

    ck_assert_int_eq(KEYED(f, "k"), 1);
    g = finishing_of(f, take(f, 1));
    then_delete(&g, 1);
    then_post_keyed(&g, "q", &unique);
    ck_assert_status(finish(f, &g), ST_OK); /* 2 */
    ck_assert(!g.posts[0].existing);
    list_all(f);
    expect(f, 2);
    expect_key(f, 2, "k");
    ck_assert_int_eq(KEYED(f, "k"), -2);
    g = finishing_of(f, take(f, 1));
    then_release(&g, 2, 0, NULL);
    then_post_keyed(&g, "q", &unique);
    ck_assert_status(finish(f, &g), ST_OK);
    expect_stats(f, 0, 1);
}

/* ------------------------------------------------------------------ records */

STORE_TEST(records_have_the_key)
{
    struct store_records records = STORE_RECORDS_INIT;
    const struct store_details *d = NULL;

    ck_assert_int_eq(KEYED(f, "k", .until_claimed = true), 1);
    ck_assert_status(store_read(f->store, STORE_AT(f->now_ms), &f->queue, &records),
                     ST_OK);
    for (size_t i = 0; i < records.count; i++)
        if (records.all[i].kind == STORE_RECORD_MESSAGE)
            d = records.all[i].message.details;
    ck_assert_ptr_nonnull(d);
    ck_assert(bytes_equal_str(d->unique.key, "k"));
    ck_assert(d->unique.until_claimed);
    ck_assert_int_eq(d->unique.due_ms, DUE_MS);
    delete_queue(f);
    housekeep(f);
    ck_assert_status(
        store_apply(f->store, STORE_AT(f->now_ms), &f->queue, records.all, records.count),
        ST_OK);
    store_records_release(&records);
    ck_assert_int_eq(KEYED(f, "k"), -1);
    expect_key(f, 1, "k");
    (void)take(f, 1);
    expect(f, 1);
    ck_assert_int_eq(KEYED(f, "k"), 2);
}

static struct store_record
record_of(const struct fixture *f, const char *body, const struct store_details *details)
{
    return (struct store_record){.kind = STORE_RECORD_MESSAGE,
                                 .message = {.body = bytes_str(body),
                                             .posted_ms = f->now_ms,
                                             .expires_ms = f->now_ms + 60000,
                                             .details = details}};
}

STORE_TEST(records_of_dead_letters_may_have_a_key_twice)
{
    const struct store_details keyed = {.unique = unique_of("k", false)};
    const struct store_details letter = {.origin = bytes_str("r"),
                                         .dead_lettered_ms = f->now_ms,
                                         .unique = unique_of("k", false)};
    struct store_record records[] = {
        {.kind = STORE_RECORD_QUEUE, .metadata.settings = STORE_SETTINGS_INIT},
        record_of(f, "1", &letter),
        record_of(f, "2", &letter),
        record_of(f, "3", &keyed)};

    use(f, "loaded");
    records[1].message.id = text_id("a00000000000000000000001");
    records[2].message.id = text_id("a00000000000000000000002");
    ck_assert_status(store_apply(f->store, STORE_AT(f->now_ms), &f->queue, records, 4),
                     ST_OK);
    records[1].message.id = text_id("a00000000000000000000003");
    ck_assert_status(
        store_apply(f->store, STORE_AT(f->now_ms), &f->queue, &records[1], 1), ST_OK);
    ck_assert_status(
        store_apply(f->store, STORE_AT(f->now_ms), &f->queue, &records[3], 1),
        ST_CONFLICT);
    expect_stats(f, 0, 4);
}
