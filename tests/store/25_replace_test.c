/* Messages that take the place of others, delays until a time, queues of schedules, of
 * any store (store_message_post() in claimd/store/store.h). */
#include "support/finishing.h"

#include <stdio.h>

STORE_CASE("replace");

/* Posts a message with the key "k". replaces: the number of the message whose place it
 * takes; 0: none. */
static enum status
post_in_place(struct fixture *f, int replaces, int64_t ready_ms)
{
    const struct store_unique unique = {BYTES_LIT("k"), false, 77};
    struct store_op op = {.now_ms = f->now_ms};
    char body[16];
    struct store_draft draft = {.ttl_s = 3600};
    const struct store_post request = {.drafts = &draft,
                                       .count = 1,
                                       .create_queue = true,
                                       .unique = &unique,
                                       .replaces = replaces == 0 ? BYTES_NONE
                                                                 : id_of(f, replaces),
                                       .ready_ms = ready_ms};
    enum status st;

    snprintf(body, sizeof(body), "%d", f->posted + 1);
    draft.body = bytes_str(body);
    st = store_message_post(f->store, &op, &f->queue, &request, &f->ids[f->posted + 1]);
    f->posted += st == ST_OK && !op.existing;
    fixture_audit(f);
    return st;
}

/* Shows the message that holds the key. */
static void
find_key(struct fixture *f, const char *key)
{
    store_batch_release(&f->seen);
    ck_assert_status(store_message_find(f->store, STORE_AT(f->now_ms), &f->queue,
                                        bytes_str(key), &f->seen),
                     ST_OK);
    fixture_audit(f);
}

STORE_TEST(a_message_is_found_by_its_key)
{
    find_key(f, "k");
    expect_nothing(f);
    ck_assert_status(post_in_place(f, 0, 0), ST_OK);
    find_key(f, "k");
    expect(f, 1);
    ck_assert_int_eq(f->seen.messages[0].details->unique.due_ms, 77);
    find_key(f, "another");
    expect_nothing(f);
    (void)take(f, 1);
    find_key(f, "k");
    expect(f, 1);
    wait_s(f, 3600);
    find_key(f, "k");
    expect_nothing(f);
}

STORE_TEST(a_message_takes_the_place_of_another)
{
    struct finishing g;

    ck_assert_status(post_in_place(f, 0, 0), ST_OK);
    post(f, 1);
    g = finishing_of(f, take(f, 1));
    then_release(&g, 1, 0, "state");
    ck_assert_status(finish(f, &g), ST_OK);
    ck_assert_status(post_in_place(f, 1, 0), ST_OK); /* 3 */
    list_all(f);
    expect(f, 2, 3);
    expect_details(f, 3, "state", "worker", 0, NULL, -1);
    find_key(f, "k");
    expect(f, 3);
    ck_assert_status(post_in_place(f, 1, 0), ST_CHANGED); /* 1 has gone */
    ck_assert_status(post_in_place(f, 2, 0), ST_CHANGED); /* 2 has no key */
    list_all(f);
    expect(f, 2, 3);
    expect_stats(f, 0, 2);
}

STORE_TEST(a_claimed_message_is_replaced_and_its_claim_ends)
{
    struct store_id claim;

    ck_assert_status(post_in_place(f, 0, 0), ST_OK);
    claim = take(f, 1);
    ck_assert_status(post_in_place(f, 1, 0), ST_OK);
    ck_assert_status(query(f, claim), ST_NOT_FOUND);
    (void)take(f, 1);
    expect(f, 2);
}

STORE_TEST(a_delay_ends_at_its_time)
{
    struct finishing g;

    ck_assert_status(post_in_place(f, 0, f->now_ms + 1500), ST_OK);
    wait_ms(f, 1499);
    (void)take(f, 1);
    expect_nothing(f);
    wait_ms(f, 1);
    g = finishing_of(f, take(f, 1));
    expect(f, 1);
    then_release(&g, 1, 0, "again");
    g.items[0].ready_ms = f->now_ms + 700;
    g.items[0].uncounted = true;
    ck_assert_status(finish(f, &g), ST_OK);
    find_key(f, "k");
    ck_assert_int_eq(f->seen.messages[0].delayed_until_ms, f->now_ms + 700);
    wait_ms(f, 699);
    (void)take(f, 1);
    expect_nothing(f);
    wait_ms(f, 1);
    (void)take(f, 1);
    expect(f, 1);
}

STORE_TEST(a_queue_of_schedules_posts_to_queues)
{
    struct store_totals totals;
    struct store_metrics metrics;
    struct finishing g;

    post(f, 1);
    f->queue.kind = STORE_SCHEDULES;
    ck_assert_status(post_in_place(f, 0, 0), ST_OK); /* 2 */
    list_all(f);
    expect(f, 2);
    g = finishing_of(f, take(f, 1));
    then_release(&g, 2, 0, NULL);
    then_post(&g, "q", 1);
    g.items[0].ready_ms = f->now_ms + 5000;
    ck_assert_status(finish(f, &g), ST_OK); /* 3 */
    expect_stats(f, 0, 1);
    f->queue.kind = STORE_QUEUE;
    list_all(f);
    expect(f, 1, 3);
    while (store_totals(f->store, STORE_AT(f->now_ms), &totals) == ST_AGAIN)
        continue;
    ck_assert_uint_eq(totals.queues, 1);
    ck_assert_uint_eq(totals.messages, 2);
    ck_assert_status(store_metrics(f->store, STORE_AT(f->now_ms), &metrics), ST_OK);
    if (f->is_twin)
        return;
    ck_assert_uint_eq(metrics.counts[STORE_COUNT_POSTED], 2);
    ck_assert_uint_eq(metrics.counts[STORE_COUNT_CLAIMS], 0);
}
