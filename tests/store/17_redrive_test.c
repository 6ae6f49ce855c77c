/* Redrive: dead letters go back (store/store.h). */
#include "support/finishing.h"
#include "support/patient.h"

STORE_CASE("redrive");

/* So many messages of a new queue become dead letters in "failed", which is selected
 * then. */
static void
make_dead_letters(struct fixture *f, const char *queue, int count, const char *reason)
{
    const int first = f->posted + 1;
    struct finishing g;

    make_dead_lettering(f, queue, 3, "failed", STORE_UNSET);
    post(f, count);
    g = finishing_of(f, take(f, (size_t)count));
    for (int i = 0; i < count; i++)
        then_dead_letter(&g, first + i, reason);
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "failed");
}

static enum status
try_redrive(struct fixture *f, struct store_redrive which, struct store_redriven *out)
{
    enum status st = store_redrive(f->store, STORE_AT(f->now_ms), &f->queue, &which, out);

    fixture_audit(f);
    return st;
}

static void
expect_missing(struct fixture *f, const char *name)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_queue where = f->queue;

    where.name = bytes_str(name);
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &where, &queues),
                     ST_NOT_FOUND);
}

STORE_TEST(dead_letters_go_back_to_where_they_came_from)
{
    struct redriven done;

    make_dead_letters(f, "q", 3, "bad"); /* 1 2 3 */
    use(f, "q");
    post(f, 1); /* 4 */
    use(f, "failed");
    wait_s(f, 10);
    done = redrive_all(f);
    ck_assert_uint_eq(done.moved, 3);
    ck_assert_uint_eq(done.remaining, 0);
    ck_assert_uint_eq(done.unknown_origin, 0);
    expect_stats(f, 0, 0);
    use(f, "q");
    list_ready(f);
    expect(f, 4, 1, 2, 3); /* at the end, in their order */
    expect_details(f, 1, "bad", "worker", 0, NULL, -1);
    get(f, 2);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 0);
    ck_assert_int_eq(f->seen.messages[0].posted_ms, f->now_ms);
    take(f, 9);
    expect(f, 4, 1, 2, 3);
    ck_assert_uint_eq(redrive_all(f).moved, 0);
}

STORE_TEST(nothing_goes_back_from_a_queue_without_dead_letters)
{
    struct store_redriven out;
    struct redriven done;

    ck_assert_status(try_redrive(f, (struct store_redrive){.limit = 1}, &out),
                     ST_NOT_FOUND);
    ck_assert_status(
        try_redrive(f, (struct store_redrive){.limit = 1, .to = BYTES_LIT("other")},
                    &out),
        ST_NOT_FOUND);
    post(f, 3);
    done = redrive_all(f);
    ck_assert_uint_eq(done.moved, 0);
    ck_assert_uint_eq(done.remaining, 0);
    ck_assert_uint_eq(done.unknown_origin, 0);
    done = redrive(f, (struct store_redrive){.limit = 3, .to = BYTES_LIT("other")});
    ck_assert_uint_eq(done.moved, 0);
    list_ready(f);
    expect(f, 1, 2, 3);
}

STORE_TEST(dead_letters_go_to_a_queue_that_is_made)
{
    make_dead_letters(f, "q", 2, NULL);
    ck_assert_uint_eq(
        redrive(f, (struct store_redrive){.limit = 10, .to = BYTES_LIT("fresh")}).moved,
        2);
    use(f, "fresh");
    list_ready(f);
    expect(f, 1, 2);
    expect_details(f, 1, NULL, NULL, -1, NULL, -1);
    use(f, "q");
    expect_stats(f, 0, 0);
}

STORE_TEST(an_origin_that_was_deleted_is_made_again)
{
    make_dead_letters(f, "q", 2, NULL);
    use(f, "q");
    delete_queue(f);
    use(f, "failed");
    ck_assert_uint_eq(redrive_all(f).moved, 2);
    use(f, "q");
    list_ready(f);
    expect(f, 1, 2);
}

STORE_TEST(a_queue_is_no_target_of_itself)
{
    const struct store_redrive which = {.limit = 1, .to = BYTES_LIT("failed")};
    struct store_redriven out;

    make_dead_letters(f, "q", 1, NULL);
    ck_assert_status(try_redrive(f, which, &out), ST_CONFLICT);
    expect_stats(f, 0, 1);
    ck_assert_uint_eq(redrive_all(f).moved, 1);
    ck_assert_status(try_redrive(f, which, &out), ST_CONFLICT); /* also without any */
}

STORE_TEST(a_limit_takes_the_oldest)
{
    struct redriven done;

    make_dead_letters(f, "q", 5, NULL);
    done = redrive(f, (struct store_redrive){.limit = 2});
    ck_assert_uint_eq(done.moved, 2);
    ck_assert_uint_eq(done.remaining, 3);
    list_ready(f);
    expect(f, 3, 4, 5);
    done = redrive(f, (struct store_redrive){.limit = 3});
    ck_assert_uint_eq(done.moved, 3);
    ck_assert_uint_eq(done.remaining, 0);
    use(f, "q");
    list_ready(f);
    expect(f, 1, 2, 3, 4, 5);
}

STORE_TEST(hundreds_go_back_in_slices)
{
    struct redriven done;

    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 300);
    wear_out(f, 300, 1);
    take(f, 1); /* which comes upon them */
    expect_nothing(f);
    use(f, "failed");
    expect_stats(f, 0, 300);
    done = redrive_all(f);
    ck_assert_uint_eq(done.moved, 300);
    ck_assert_uint_eq(done.remaining, 0);
    expect_stats(f, 0, 0);
    use(f, "q");
    expect_stats(f, 0, 300);
    get(f, 1, 150, 300);
    expect(f, 1, 150, 300);
    pop(f, 1);
    expect(f, 1);
}

STORE_TEST(each_goes_to_its_own_origin)
{
    struct store_redriven out;
    struct redriven done;

    make_dead_letters(f, "q", 1, NULL);     /* 1 */
    make_dead_letters(f, "other", 2, NULL); /* 2 3 */
    use(f, "q");
    post(f, 1); /* 4 */
    for (int i = 0; i < 2; i++) {
        struct finishing g = finishing_of(f, take(f, 1));

        then_dead_letter(&g, 4, NULL);
        if (i == 0)
            ck_assert_status(finish(f, &g), ST_OK);
    }
    use(f, "failed");
    ck_assert_status(
        try_redrive(f, (struct store_redrive){.limit = 9, .dry_run = true}, &out), ST_OK);
    ck_assert_uint_eq(out.moved, 1);
    ck_assert(bytes_equal_str(out.target, "q"));
    ck_assert(out.more);
    done = redrive_all(f);
    ck_assert_uint_eq(done.moved, 4);
    use(f, "q");
    list_ready(f);
    expect(f, 1, 4);
    use(f, "other");
    list_ready(f);
    expect(f, 2, 3);
}

STORE_TEST(a_dry_run_changes_nothing)
{
    struct redriven done;

    make_dead_letters(f, "q", 3, "bad");
    done = redrive(f, (struct store_redrive){.limit = 9, .dry_run = true});
    ck_assert_uint_eq(done.moved, 3);
    ck_assert_uint_eq(done.remaining, 3);
    done = redrive(
        f, (struct store_redrive){.limit = 2, .dry_run = true, .to = BYTES_LIT("fresh")});
    ck_assert_uint_eq(done.moved, 2);
    list_ready(f);
    expect(f, 1, 2, 3);
    expect_details(f, 1, "bad", "worker", 0, "q", 0);
    expect_missing(f, "fresh");
}

STORE_TEST(chosen_messages_go_back)
{
    struct bytes ids[5];
    struct redriven done;

    make_dead_letters(f, "q", 4, NULL);
    post(f, 1); /* 5: no dead letter */
    ids[0] = id_of(f, 4);
    ids[1] = bytes_str("nonsense");
    ids[2] = id_of(f, 5);
    ids[3] = id_of(f, 2);
    ids[4] = id_of(f, 4); /* once more */
    done = redrive(f, (struct store_redrive){.limit = 9, .ids = ids, .id_count = 5});
    ck_assert_uint_eq(done.moved, 2);
    ck_assert_uint_eq(done.remaining, 2);
    list_ready(f);
    expect(f, 1, 3, 5);
    use(f, "q");
    list_ready(f);
    expect(f, 4, 2); /* in the order of the list */
    use(f, "failed");
    done = redrive(f, (struct store_redrive){.limit = 9, .ids = ids, .id_count = 0});
    ck_assert_uint_eq(done.moved, 0);
}

STORE_TEST(claimed_and_delayed_dead_letters_stay)
{
    struct bytes chosen[2];
    struct store_id claim;
    struct finishing g;
    struct redriven done;

    make_dead_letters(f, "q", 3, NULL);
    claim = take(f, 2); /* 1 2 */
    g = finishing_of(f, claim);
    then_release(&g, 1, 60, "later");
    ck_assert_status(finish(f, &g), ST_OK);
    done = redrive_all(f);
    ck_assert_uint_eq(done.moved, 1); /* 3 */
    ck_assert_uint_eq(done.remaining, 2);
    for (size_t i = 0; i < 2; i++)
        chosen[i] = id_of(f, (int)i + 1);
    done = redrive(f, (struct store_redrive){.limit = 2, .ids = chosen, .id_count = 2});
    ck_assert_uint_eq(done.moved, 0);
    ck_assert_uint_eq(done.remaining, 2);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 2);
    release(f, claim);
    wait_s(f, 60);
    done = redrive_all(f);
    ck_assert_uint_eq(done.moved, 2);
    use(f, "q");
    list_ready(f);
    expect(f, 3, 1, 2);
    expect_details(f, 1, "later", "worker", 0, NULL, -1);
}

STORE_TEST(dead_letters_go_to_a_queue_that_encrypts_in_one_request)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct redriven done;

    settings.encrypt = true;
    use(f, "vault");
    make_queue(f, &settings);
    make_dead_letters(f, "q", 60, NULL);
    done = redrive(f, (struct store_redrive){.limit = 50, .to = BYTES_LIT("vault")});
    ck_assert_uint_eq(done.moved, 50);
    ck_assert_uint_eq(done.remaining, 10);
    use(f, "vault");
    expect_stats(f, 0, 50);
}

STORE_TEST(counts_are_kept_on_request)
{
    make_dead_letters(f, "q", 2, NULL);
    release(f, take(f, 2));
    release(f, take(f, 2));
    ck_assert_uint_eq(
        redrive(f, (struct store_redrive){.limit = 1, .keeps_count = true}).moved, 1);
    ck_assert_uint_eq(redrive_all(f).moved, 1);
    use(f, "q");
    get(f, 1, 2);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 2);
    ck_assert_uint_eq(f->seen.messages[1].claim_count, 0);
}

STORE_TEST(a_message_without_an_origin_stays)
{
    const struct store_record records[] = {
        {.kind = STORE_RECORD_QUEUE, .metadata.settings = STORE_SETTINGS_INIT},
        {.kind = STORE_RECORD_MESSAGE,
         .message = {.id = {"d00000010000000000000001"},
                     .body = BYTES_LIT("1"),
                     .posted_ms = START_MS,
                     .expires_ms = START_MS + 5000000}}};
    struct redriven done;

    use(f, "failed");
    ck_assert_status(store_apply(f->store, STORE_AT(f->now_ms), &f->queue, records, 2),
                     ST_OK);
    f->ids[++f->posted] = records[1].message.id;
    make_dead_letters(f, "q", 1, NULL); /* 2 */
    done = redrive_all(f);
    ck_assert_uint_eq(done.moved, 1);
    ck_assert_uint_eq(done.unknown_origin, 1);
    ck_assert_uint_eq(done.remaining, 1);
    list_ready(f);
    expect(f, 1);
    done = redrive(f, (struct store_redrive){.limit = 9, .to = BYTES_LIT("q")});
    ck_assert_uint_eq(done.moved, 1);
    use(f, "q");
    list_ready(f);
    expect(f, 2, 1);
}

STORE_TEST(a_dead_letter_of_its_own_queue_has_no_other_origin)
{
    struct bytes ids[2];
    struct redriven done;
    struct finishing g;

    make_dead_lettering(f, "q", 1, "q", STORE_UNSET);
    post(f, 1);
    g = finishing_of(f, take(f, 1));
    then_dead_letter(&g, 1, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    done = redrive_all(f);
    ck_assert_uint_eq(done.moved, 0);
    ck_assert_uint_eq(done.unknown_origin, 1);
    ck_assert_uint_eq(done.remaining, 1);
    ids[0] = ids[1] = id_of(f, 1); /* each item of the list counts */
    done = redrive(f, (struct store_redrive){.limit = 9, .ids = ids, .id_count = 2});
    ck_assert_uint_eq(done.unknown_origin, 2);
}

STORE_TEST(a_message_lives_at_least_as_long_as_a_new_one)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.message_ttl_s = 500;
    use(f, "short");
    make_queue(f, &settings);
    make_dead_letters(f, "q", 2, NULL); /* they live 3600 s */
    wait_s(f, 3000);
    ck_assert_uint_eq(
        redrive(f, (struct store_redrive){.limit = 1, .to = BYTES_LIT("short")}).moved,
        1);
    ck_assert_uint_eq(redrive_all(f).moved, 1);
    use(f, "short");
    expect_times(f, 1, 600, 0); /* the rest of its life is longer */
    use(f, "q");
    expect_times(f, 2, 3600, 0); /* the default of the server */
    wait_ms(f, 3599999);
    list_ready(f);
    expect(f, 2);
    wait_ms(f, 1);
    list_ready(f);
    expect_nothing(f);
}

STORE_TEST(the_origin_is_the_first_queue_until_the_message_goes_back)
{
    struct finishing g;

    make_dead_letters(f, "q", 1, "bad");
    use(f, "failed");
    delete_queue(f);
    make_dead_lettering(f, "failed", 9, "deeper", STORE_UNSET);
    use(f, "q");
    post(f, 1); /* 2 */
    g = finishing_of(f, take(f, 1));
    then_dead_letter(&g, 2, "bad");
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "failed");
    wait_s(f, 10);
    g = finishing_of(f, take(f, 1));
    then_dead_letter(&g, 2, "worse");
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "deeper");
    expect_details(f, 2, "worse", "worker", 10, "q", 10);
    ck_assert_uint_eq(
        redrive(f, (struct store_redrive){.limit = 1, .to = BYTES_LIT("other")}).moved,
        1);
    use(f, "other");
    expect_details(f, 2, "worse", "worker", 10, NULL, -1);
}

STORE_TEST(a_message_that_went_back_may_become_a_dead_letter_again)
{
    struct finishing g;

    make_dead_letters(f, "q", 1, "bad");
    ck_assert_uint_eq(
        redrive(f, (struct store_redrive){.limit = 1, .to = BYTES_LIT("other")}).moved,
        1);
    wait_s(f, 10);
    use(f, "other");
    delete_queue(f);
    make_dead_letters(f, "other", 1, NULL); /* 2 */
    ck_assert_uint_eq(redrive_all(f).moved, 1);
    use(f, "other");
    g = finishing_of(f, take(f, 1));
    then_dead_letter(&g, 2, NULL);
    ck_assert_status(finish(f, &g), ST_OK);
    use(f, "failed");
    expect_details(f, 2, NULL, NULL, -1, "other", 10);
    ck_assert_uint_eq(redrive_all(f).moved, 1);
}

STORE_TEST(a_message_comes_back_to_the_queue_that_gave_it_its_id)
{
    make_dead_letters(f, "q", 2, NULL);
    use(f, "q");
    post(f, 2); /* 3 4 */
    use(f, "failed");
    ck_assert_uint_eq(redrive_all(f).moved, 2);
    use(f, "q");
    get(f, 1, 2, 3, 4);
    expect(f, 1, 2, 3, 4);
    ck_assert_status(delete_unclaimed(f, 1), ST_OK);
    post(f, 1); /* 5 */
    list_ready(f);
    expect(f, 3, 4, 2, 5);
    take(f, 9);
    expect(f, 3, 4, 2, 5);
}

STORE_TEST(messages_that_go_back_are_encrypted_if_their_queue_is)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.encrypt = true;
    use(f, "secret");
    make_queue(f, &settings);
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 70); /* more than a slice */
    wear_out(f, 70, 1);
    take(f, 1);
    use(f, "failed");
    ck_assert_uint_eq(
        redrive(f, (struct store_redrive){.limit = 100, .to = BYTES_LIT("secret")}).moved,
        70);
    use(f, "secret");
    list_ready(f);
    ck_assert_uint_eq(f->seen.count, 70);
    for (int i = 0; i < 70; i++) {
        ck_assert(store_is_sealed(f->seen.messages[i].body));
        ck_assert(id_same(f->seen.messages[i].id, f->ids[i + 1]));
    }
}

STORE_TEST(transient_queues_take_part)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    for (int round = 0; round < 4; round++) {
        const int first = f->posted + 1;
        struct finishing g;

        settings = (struct store_settings)STORE_SETTINGS_INIT;
        settings.transient = round % 2 == 1;
        use(f, "failed");
        make_queue(f, &settings);
        settings.transient = round / 2 == 1;
        settings.dead_letter = bytes_str("failed");
        use(f, "q");
        make_queue(f, &settings);
        post(f, 2);
        g = finishing_of(f, take(f, 2));
        then_dead_letter(&g, first, "bad");
        then_dead_letter(&g, first + 1, "bad");
        ck_assert_status(finish(f, &g), ST_OK);
        use(f, "failed");
        ck_assert_uint_eq(redrive_all(f).moved, 2);
        expect_stats(f, 0, 0);
        delete_queue(f);
        use(f, "q");
        expect_details(f, first, "bad", "worker", 0, NULL, -1);
        expect_stats(f, 0, 2);
        delete_queue(f);
    }
}

STORE_TEST(a_redrive_survives_a_restart)
{
    make_dead_letters(f, "q", 3, "bad");
    ck_assert_uint_eq(redrive(f, (struct store_redrive){.limit = 2}).moved, 2);
    fixture_restart(f);
    list_ready(f);
    expect(f, 3);
    expect_details(f, 3, "bad", "worker", 0, "q", 0);
    ck_assert_uint_eq(redrive_all(f).moved, 1);
    fixture_restart(f);
    use(f, "q");
    list_ready(f);
    expect(f, 1, 2, 3);
    expect_details(f, 1, "bad", "worker", 0, NULL, -1);
}

/* ------------------------------------------------------------------ metrics, records */

STORE_CASE("what is seen");

static struct store_queue_metrics
metrics_of(struct fixture *f, const char *name)
{
    struct store_queue_metrics out;
    size_t at = 0;

    while (store_queue_metrics(f->store, STORE_AT(f->now_ms), &at, &out) == ST_OK)
        if (bytes_equal_str(f->queue.project, out.project) && strcmp(out.name, name) == 0)
            return out;
    ck_abort_msg("queue %s is not shown", name);
}

STORE_TEST(metrics_count_dead_letters_until_they_go_back)
{
    make_dead_letters(f, "q", 3, NULL);
    ck_assert_uint_eq(metrics_of(f, "failed").here.dead_letters, 3);
    ck_assert_uint_eq(metrics_of(f, "q").here.dead_letters, 0);
    ck_assert_uint_eq(redrive(f, (struct store_redrive){.limit = 1}).moved, 1);
    ck_assert_uint_eq(metrics_of(f, "failed").here.dead_letters, 2);
    ck_assert_uint_eq(metrics_of(f, "q").here.dead_letters, 0);
    ck_assert_uint_eq(metrics_of(f, "q").here.ready, 1);
    fixture_restart(f);
    ck_assert_uint_eq(metrics_of(f, "failed").here.dead_letters, 2);
    ck_assert_uint_eq(metrics_of(f, "q").here.dead_letters, 0);
    take(f, 1);
    ck_assert_uint_eq(metrics_of(f, "failed").here.dead_letters, 2);
    pop(f, 1);
    ck_assert_uint_eq(metrics_of(f, "failed").here.dead_letters, 1);
    wait_s(f, 4000);
    ck_assert_uint_eq(metrics_of(f, "failed").here.dead_letters, 0);
}

STORE_TEST(a_message_that_went_back_does_not_expire_as_a_dead_letter)
{
    make_dead_letters(f, "q", 2, NULL);
    ck_assert_uint_eq(redrive(f, (struct store_redrive){.limit = 1}).moved, 1);
    wait_s(f, 8000);
    ck_assert_uint_eq(metrics_of(f, "q").expired.messages, 1);
    ck_assert_uint_eq(metrics_of(f, "q").expired.dead_letters, 0);
    ck_assert_uint_eq(metrics_of(f, "failed").expired.dead_letters, 1);
}

/* Reads a queue, deletes it, and puts back what was read. */
static void
put_back(struct fixture *f)
{
    struct store_records records = STORE_RECORDS_INIT, rest;
    int64_t next_ms;

    ck_assert_status(store_read(f->store, STORE_AT(f->now_ms), &f->queue, &records),
                     ST_OK);
    rest = records;
    if (records.more) { /* the next slice is empty: there are no subscriptions */
        ck_assert_status(store_read(f->store, STORE_AT(f->now_ms), &f->queue, &rest),
                         ST_OK);
        ck_assert(!rest.more && rest.count == 0);
        store_records_release(&rest);
    }
    delete_queue(f);
    do
        store_housekeep(f->store, f->now_ms, &next_ms);
    while (next_ms <= f->now_ms);
    ck_assert_status(
        store_apply(f->store, STORE_AT(f->now_ms), &f->queue, records.all, records.count),
        ST_OK);
    store_records_release(&records);
    fixture_audit(f);
}

STORE_TEST(details_survive_reading_and_applying)
{
    struct finishing g;

    make_dead_letters(f, "q", 3, "bad");
    ck_assert_uint_eq(redrive(f, (struct store_redrive){.limit = 2}).moved, 2);
    put_back(f);
    expect_details(f, 3, "bad", "worker", 0, "q", 0);
    ck_assert_uint_eq(metrics_of(f, "failed").here.dead_letters, 1);
    use(f, "q");
    g = finishing_of(f, take(f, 1)); /* 1 */
    then_release(&g, 1, 100, "slow");
    ck_assert_status(finish(f, &g), ST_OK);
    put_back(f);
    expect_details(f, 1, "slow", "worker", 0, NULL, -1);
    expect_details(f, 2, "bad", "worker", 0, NULL, -1);
    ck_assert_uint_eq(metrics_of(f, "q").here.dead_letters, 0);
    ck_assert_uint_eq(metrics_of(f, "q").here.delayed, 1);
    fixture_restart(f);
    expect_details(f, 1, "slow", "worker", 0, NULL, -1);
    ck_assert_uint_eq(metrics_of(f, "q").here.dead_letters, 0);
    use(f, "failed");
    ck_assert_uint_eq(redrive_all(f).moved, 1);
}

STORE_TEST(a_message_that_went_back_without_details_is_no_dead_letter_when_loaded)
{
    make_dead_letters(f, "q", 1, NULL);
    ck_assert_uint_eq(redrive_all(f).moved, 1);
    use(f, "q");
    put_back(f);
    ck_assert_uint_eq(metrics_of(f, "q").here.dead_letters, 0);
    ck_assert_uint_eq(redrive_all(f).unknown_origin, 0);
}

/* ------------------------------------------------------------------ limits */

ENGINE_CASE("engines");

STORE_TEST_WITH(a_target_that_the_project_may_not_have_is_refused,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct store_redriven out;

    make_dead_letters(f, "q", 2, NULL);
    engine_limit(patient_inside(f->store), &(struct engine_limits){.queues = 2});
    ck_assert_status(
        try_redrive(f, (struct store_redrive){.limit = 9, .to = BYTES_LIT("fresh")},
                    &out),
        ST_PROJECT_QUEUES);
    expect_stats(f, 0, 2);
    use(f, "q");
    delete_queue(f);
    use(f, "failed");
    ck_assert_status(
        try_redrive(f, (struct store_redrive){.limit = 9, .to = BYTES_LIT("fresh")},
                    &out),
        ST_OK);
    ck_assert_status(try_redrive(f, (struct store_redrive){.limit = 9}, &out), ST_OK);
    expect_stats(f, 0, 0);
}

STORE_TEST_WITH(a_full_project_gets_its_dead_letters_back,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    make_dead_letters(f, "q", 2, NULL);
    engine_limit(patient_inside(f->store), &(struct engine_limits){.messages = 2});
    ck_assert_uint_eq(redrive_all(f).moved, 2);
    use(f, "q");
    expect_stats(f, 0, 2);
}

STORE_TEST_WITH(a_finish_over_the_limits_of_the_project_changes_nothing,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    struct store *engine = patient_inside(f->store);
    struct finishing g;
    struct store_id claim;

    make_dead_lettering(f, "q", 3, "failed", STORE_UNSET);
    post(f, 3);
    claim = take(f, 3);
    g = finishing_of(f, claim);
    then_delete(&g, 1);
    then_dead_letter(&g, 2, NULL);
    then_post(&g, "a", 1);
    then_post(&g, "b", 1);
    engine_limit(engine, &(struct engine_limits){.messages = 4});
    ck_assert_status(finish(f, &g), ST_PROJECT_MESSAGES);
    ck_assert_uint_eq(g.request.failed_post, 1);
    engine_limit(engine, &(struct engine_limits){.bytes = 4});
    ck_assert_status(finish(f, &g), ST_PROJECT_BYTES);
    ck_assert_uint_eq(g.request.failed_post, 1);
    engine_limit(engine, &(struct engine_limits){.queues = 2});
    ck_assert_status(finish(f, &g), ST_PROJECT_QUEUES);
    ck_assert_uint_eq(g.request.failed_post, 1);
    ck_assert_status(query(f, claim), ST_OK);
    expect(f, 1, 2, 3);
    expect_missing(f, "a");
    expect_missing(f, "failed");
    engine_limit(engine, &(struct engine_limits){.messages = 5, .bytes = 5, .queues = 4});
    ck_assert_status(finish(f, &g), ST_OK);
    engine_limit(engine, &(struct engine_limits){.messages = 4}); /* 2 to 5 are there */
    g = finishing_of(f, claim);
    then_delete(&g, 3);
    then_post(&g, "a", 1);
    ck_assert_status(finish(f, &g), ST_PROJECT_MESSAGES);
    engine_limit(engine, &(struct engine_limits){.messages = 5});
    ck_assert_status(finish(f, &g), ST_OK);
}

/* A sealer whose first call releases a claim, as another client may do meanwhile. */
struct releasing {
    struct fixture *f;
    struct store_id claim;
    bool done;
};

static enum status
seal_and_release(void *arg, const struct store_queue *where, struct bytes body, char *to)
{
    struct releasing *r = arg;

    (void)where;
    if (!r->done)
        release(r->f, r->claim);
    r->done = true;
    *to = STORE_SEALED_MARK;
    memcpy(to + 1, body.data, body.len);
    return ST_OK;
}

START_TEST(a_dead_letter_that_comes_while_others_are_encrypted_is_not_skipped)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    struct releasing releasing = {.done = false};
    const struct store_sealer sealer = {
        .overhead = 1, .seal = seal_and_release, .arg = &releasing};
    struct engine_config config;
    struct store_id first;
    struct redriven done;
    struct fixture f;

    fixture_open(&f, FIXTURE_ENGINE);
    store_close(f.store);
    config = fixture_config(f.mem);
    config.sealer = &sealer;
    ck_assert_status(engine_open(&config, &f.store), ST_OK);
    settings.encrypt = true;
    use(&f, "vault");
    make_queue(&f, &settings);
    make_dead_letters(&f, "q", 3, NULL);
    first = take(&f, 1); /* 1 */
    releasing.f = &f;
    releasing.claim = take(&f, 1); /* 2 */
    release(&f, first);
    done = redrive(&f, (struct store_redrive){.limit = 9, .to = BYTES_LIT("vault")});
    ck_assert_uint_eq(done.moved, 3);
    ck_assert_uint_eq(done.remaining, 0);
    fixture_close(&f);
}
