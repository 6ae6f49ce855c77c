/* The limits of a project in an engine (claimd/engine/engine.h). */
#include "support/dead_letters.h"
#include "support/patient.h"

ENGINE_CASE("project limits");

static void
limit(struct fixture *f, const struct engine_limits limits)
{
    engine_limit(patient_inside(f->store), &limits);
}

/* Posts so many messages in one request. */
static enum status
try_post(struct fixture *f, size_t count)
{
    const struct store_draft draft = {BYTES_LIT("12345"), 3600, 0};
    struct store_draft drafts[16];
    struct store_id ids[16];
    const struct store_post what = {
        .drafts = drafts, .count = count, .create_queue = true};

    for (size_t i = 0; i < count; i++)
        drafts[i] = draft;
    return store_message_post(f->store, STORE_AT(f->now_ms), &f->queue, &what, ids);
}

STORE_TEST_WITH(messages_are_counted_over_all_queues_of_the_project,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    limit(f, (struct engine_limits){.messages = 5});
    ck_assert_status(try_post(f, 3), ST_OK);
    use(f, "another");
    ck_assert_status(try_post(f, 3), ST_PROJECT_MESSAGES);
    ck_assert_status(try_post(f, 2), ST_OK);
    ck_assert_status(try_post(f, 1), ST_PROJECT_MESSAGES);
    use_project(f, "neighbour");
    ck_assert_status(try_post(f, 5), ST_OK);
    use_project(f, "p");
    use(f, "q");
    pop(f, 1);
    ck_assert_status(try_post(f, 2), ST_PROJECT_MESSAGES);
    ck_assert_status(try_post(f, 1), ST_OK);
    purge(f);
    ck_assert_status(try_post(f, 3), ST_OK);
    delete_queue(f);
    ck_assert_status(try_post(f, 3), ST_OK);
}

STORE_TEST_WITH(bytes_are_those_of_bodies, fixture_open(f, FIXTURE_ENGINE + _i))
{
    limit(f, (struct engine_limits){.bytes = 12});
    ck_assert_status(try_post(f, 2), ST_OK);
    ck_assert_status(try_post(f, 1), ST_PROJECT_BYTES);
    limit(f, (struct engine_limits){.bytes = 15});
    ck_assert_status(try_post(f, 1), ST_OK);
}

STORE_TEST_WITH(expired_messages_free_quota, fixture_open(f, FIXTURE_ENGINE + _i))
{
    limit(f, (struct engine_limits){.messages = 2});
    ck_assert_status(try_post(f, 2), ST_OK);
    (void)take_for(f, 1, 60, 60);
    wait_s(f, 3600);
    list_all(f);
    ck_assert_status(try_post(f, 2), ST_OK);
}

STORE_TEST_WITH(queues_are_made_up_to_the_limit_and_those_there_are_stay,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    bool created;

    post(f, 1);
    use(f, "r");
    post(f, 1);
    limit(f, (struct engine_limits){.queues = 1});
    use(f, "s");
    ck_assert_status(try_post(f, 1), ST_PROJECT_QUEUES);
    ck_assert_status(
        store_queue_create(f->store, STORE_AT(f->now_ms), &f->queue,
                           &(struct store_metadata){BYTES_NONE, STORE_SETTINGS_INIT},
                           &created),
        ST_PROJECT_QUEUES);
    use(f, "r");
    ck_assert_status(try_post(f, 1), ST_OK);
    delete_queue(f);
    ck_assert_status(try_post(f, 1), ST_PROJECT_QUEUES);
    use_project(f, "neighbour");
    ck_assert_status(try_post(f, 1), ST_OK);
}

STORE_TEST_WITH(dead_letters_move_whatever_the_project_has,
                fixture_open(f, FIXTURE_ENGINE + _i))
{
    make_dead_lettering(f, "q", 1, "failed", STORE_UNSET);
    post(f, 3);
    limit(f, (struct engine_limits){.queues = 1, .messages = 3, .bytes = 1});
    wear_out(f, 3, 1);
    ck_assert(id_empty(take(f, 3)));
    expect_only_in(f, 1, "failed");
    ck_assert_status(try_post(f, 1), ST_PROJECT_BYTES);
    limit(f, (struct engine_limits){.messages = 4});
    ck_assert_status(try_post(f, 2), ST_PROJECT_MESSAGES); /* they count where they are */
    ck_assert_status(try_post(f, 1), ST_OK);
}

START_TEST(an_engine_has_its_limits_from_the_beginning)
{
    struct fixture f = {.mem = mem_new(0), .now_ms = START_MS};
    struct engine_config config = fixture_config(f.mem);

    config.project_limits = (struct engine_limits){.messages = 2, .bytes = 15};
    ck_assert_status(engine_open(&config, &f.store), ST_OK);
    f.queue = (struct store_queue){.project = bytes_str("p"), .name = bytes_str("q")};
    ck_assert_status(try_post(&f, 4), ST_PROJECT_BYTES);
    ck_assert_status(try_post(&f, 3), ST_PROJECT_MESSAGES);
    ck_assert_status(try_post(&f, 2), ST_OK);
    store_close(f.store);
    mem_destroy(f.mem);
}
