/* Queues of any store: making, showing, changing, listing. */
#include "support/store_fixture.h"

#include <stdio.h>

/* Makes a queue of this name with this document. Returns whether it is new. */
static bool
create(struct fixture *f, const char *name, const char *json)
{
    struct store_metadata metadata = {bytes_str(json), STORE_SETTINGS_INIT};
    bool created = false;

    use(f, name);
    ck_assert_status(
        store_queue_create(f->store, STORE_AT(f->now_ms), &f->queue, &metadata, &created),
        ST_OK);
    ck_assert(store_audit(f->store));
    return created;
}

/* Checks the document of a queue; returns its version. */
static uint64_t
expect_json(struct fixture *f, const char *name, const char *json)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    uint64_t version;

    use(f, name);
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_OK);
    ck_assert_uint_eq(queues.count, 1);
    ck_assert(bytes_equal_str(queues.queues[0].name, name));
    ck_assert(bytes_equal_str(queues.queues[0].metadata.json, json));
    version = queues.queues[0].version;
    store_queues_release(&queues);
    ck_assert_ptr_null(queues.queues);
    return version;
}

static enum status
update(struct fixture *f, const char *name, uint64_t version, const char *json)
{
    struct store_metadata metadata = {bytes_str(json), STORE_SETTINGS_INIT};
    enum status st;

    use(f, name);
    st = store_queue_update(f->store, STORE_AT(f->now_ms), &f->queue, version, &metadata);
    ck_assert(store_audit(f->store));
    return st;
}

/* Checks a page of queue names, written with blanks between; returns the total. */
static uint64_t
expect_page(struct fixture *f, struct bytes marker, size_t limit, const char *names)
{
    struct store_queues page = STORE_QUEUES_INIT;
    char text[512] = "";
    size_t len = 0;
    uint64_t total;

    ck_assert_status(store_queue_list(f->store, STORE_AT(f->now_ms),
                                      &(struct store_page){.project = f->queue.project,
                                                           .marker = marker,
                                                           .limit = limit,
                                                           .with_metadata = false},
                                      &page),
                     ST_OK);
    for (size_t i = 0; i < page.count; i++) {
        if (i > 0)
            text[len++] = ' ';
        memcpy(text + len, page.queues[i].name.data, page.queues[i].name.len);
        len += page.queues[i].name.len;
    }
    ck_assert_str_eq(text, names);
    total = page.total;
    store_queues_release(&page);
    return total;
}

STORE_CASE("metadata");

STORE_TEST(a_queue_is_created_once_and_keeps_its_first_metadata)
{
    ck_assert(create(f, "a", "{\"color\":1}"));
    ck_assert(!create(f, "a", "{\"color\":2}"));
    expect_json(f, "a", "{\"color\":1}");
}

STORE_TEST(a_queue_may_be_created_without_metadata)
{
    ck_assert(create(f, "a", NULL));
    expect_json(f, "a", "");
}

STORE_TEST(an_unknown_queue_has_no_metadata_to_show_or_change)
{
    struct store_queues queues = STORE_QUEUES_INIT;

    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_NOT_FOUND);
    ck_assert_ptr_null(queues.store);
    ck_assert_status(update(f, "q", 1, "{}"), ST_NOT_FOUND);
    ck_assert_uint_eq(expect_page(f, BYTES_NONE, 10, ""), 0);
}

STORE_TEST(settings_come_back_as_they_were_given)
{
    struct store_settings given = {1000,
                                   61,
                                   7,
                                   3,
                                   120,
                                   90,
                                   80,
                                   bytes_str("failed"),
                                   false,
                                   true,
                                   STORE_PAUSE_POSTS,
                                   bytes_str("5\nweb3")};
    struct store_queues queues = STORE_QUEUES_INIT;
    const struct store_settings *shown;

    use(f, "vault"); /* the fixture itself posts to q, in clear */
    make_queue(f, &given);
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_OK);
    shown = &queues.queues[0].metadata.settings;
    ck_assert_int_eq(shown->max_post_bytes, 1000);
    ck_assert_int_eq(shown->message_ttl_s, 61);
    ck_assert_int_eq(shown->message_delay_s, 7);
    ck_assert_int_eq(shown->max_claim_count, 3);
    ck_assert_int_eq(shown->dead_letter_ttl_s, 120);
    ck_assert_int_eq(shown->claim_ttl_s, 90);
    ck_assert_int_eq(shown->claim_grace_s, 80);
    ck_assert(bytes_equal_str(shown->dead_letter, "failed"));
    ck_assert(shown->encrypt);
    ck_assert_uint_eq(shown->paused, STORE_PAUSE_POSTS);
    ck_assert(bytes_equal_str(shown->paused_by, "5\nweb3"));
    store_queues_release(&queues);
}

STORE_TEST(unset_settings_come_back_unset)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    const struct store_settings *shown;

    post(f, 1); /* makes the queue */
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_OK);
    shown = &queues.queues[0].metadata.settings;
    ck_assert_uint_eq(queues.queues[0].metadata.json.len, 0);
    ck_assert_int_eq(shown->max_post_bytes, STORE_UNSET);
    ck_assert_int_eq(shown->message_ttl_s, STORE_UNSET);
    ck_assert_int_eq(shown->message_delay_s, STORE_UNSET);
    ck_assert_int_eq(shown->max_claim_count, STORE_UNSET);
    ck_assert_int_eq(shown->dead_letter_ttl_s, STORE_UNSET);
    ck_assert_int_eq(shown->claim_ttl_s, STORE_UNSET);
    ck_assert_int_eq(shown->claim_grace_s, STORE_UNSET);
    ck_assert(!bytes_present(shown->dead_letter));
    ck_assert(!bytes_present(shown->paused_by));
    store_queues_release(&queues);
}

STORE_TEST(metadata_is_replaced_only_with_the_current_version)
{
    uint64_t first, second;

    create(f, "a", "{\"n\":1}");
    first = expect_json(f, "a", "{\"n\":1}");
    ck_assert_status(update(f, "a", first, "{\"n\":2}"), ST_OK);
    ck_assert_status(update(f, "a", first, "{\"n\":3}"), ST_CHANGED);
    second = expect_json(f, "a", "{\"n\":2}");
    ck_assert_uint_ne(first, second);
    ck_assert_status(update(f, "a", second, "{\"n\":4}"), ST_OK);
    expect_json(f, "a", "{\"n\":4}");
}

STORE_TEST(messages_do_not_change_the_version_of_metadata)
{
    uint64_t version;

    create(f, "a", "{\"n\":1}");
    version = expect_json(f, "a", "{\"n\":1}");
    post(f, 3);
    take(f, 1);
    pop(f, 1);
    purge(f);
    ck_assert_uint_eq(expect_json(f, "a", "{\"n\":1}"), version);
}

STORE_TEST(a_version_of_a_deleted_queue_does_not_change_its_successor)
{
    uint64_t version;

    create(f, "a", "{\"n\":1}");
    version = expect_json(f, "a", "{\"n\":1}");
    delete_queue(f);
    create(f, "a", "{\"n\":2}");
    ck_assert_status(update(f, "a", version, "{\"n\":3}"), ST_CHANGED);
    expect_json(f, "a", "{\"n\":2}");
}

STORE_TEST(shown_metadata_outlives_its_replacement_and_its_queue)
{
    struct store_queues queues = STORE_QUEUES_INIT;

    create(f, "a", "{\"n\":1}");
    ck_assert_status(store_queue_get(f->store, STORE_AT(f->now_ms), &f->queue, &queues),
                     ST_OK);
    ck_assert_status(update(f, "a", queues.queues[0].version, "{\"n\":2}"), ST_OK);
    delete_queue(f);
    ck_assert(bytes_equal_str(queues.queues[0].metadata.json, "{\"n\":1}"));
    ck_assert(bytes_equal_str(queues.queues[0].name, "a"));
    store_queues_release(&queues);
}

STORE_CASE("listing");

STORE_TEST(queues_are_listed_in_byte_order_of_their_names)
{
    static const char *const names[] = {"b", "a", "B", "a.b", "ab", "_", "10", "9"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        create(f, names[i], NULL);
    ck_assert_uint_eq(expect_page(f, BYTES_NONE, 20, "10 9 B _ a a.b ab b"), 8);
}

STORE_TEST(queue_pages_go_on_behind_a_marker_that_need_not_exist)
{
    create(f, "a", NULL);
    create(f, "c", NULL);
    create(f, "e", NULL);
    ck_assert_uint_eq(expect_page(f, BYTES_NONE, 2, "a c"), 3);
    ck_assert_uint_eq(expect_page(f, bytes_str("c"), 2, "e"), 3);
    ck_assert_uint_eq(expect_page(f, bytes_str("b"), 1, "c"), 3);
    ck_assert_uint_eq(expect_page(f, bytes_str("d"), 9, "e"), 3);
    ck_assert_uint_eq(expect_page(f, bytes_str("e"), 9, ""), 3);
    ck_assert_uint_eq(expect_page(f, bytes_str("zz"), 9, ""), 3);
    ck_assert_uint_eq(expect_page(f, bytes_str(""), 9, "a c e"), 3);
}

STORE_TEST(limit_zero_only_counts_queues)
{
    create(f, "a", NULL);
    create(f, "b", NULL);
    ck_assert_uint_eq(expect_page(f, BYTES_NONE, 0, ""), 2);
    delete_queue(f);
    ck_assert_uint_eq(expect_page(f, BYTES_NONE, 0, ""), 1);
}

STORE_TEST(projects_do_not_see_each_others_queues)
{
    create(f, "a", "{\"of\":\"p\"}");
    use_project(f, "other");
    ck_assert(create(f, "a", "{\"of\":\"other\"}"));
    create(f, "b", NULL);
    ck_assert_uint_eq(expect_page(f, BYTES_NONE, 9, "a b"), 2);
    use(f, "a");
    delete_queue(f);
    use_project(f, "p");
    ck_assert_uint_eq(expect_page(f, BYTES_NONE, 9, "a"), 1);
    expect_json(f, "a", "{\"of\":\"p\"}");
}

/* The projects that have queues, in pages of two, with blanks between. */
static void
expect_projects(struct fixture *f, const char *names)
{
    struct store_queues page = STORE_QUEUES_INIT;
    struct bytes marker = BYTES_NONE;
    char text[512] = "", last[64];
    size_t len = 0, total = 0;
    bool more;

    do {
        const struct store_page wanted = {.marker = marker, .limit = 2};

        ck_assert_status(
            store_project_list(f->store, STORE_AT(f->now_ms), &wanted, &page), ST_OK);
        for (size_t i = 0; i < page.count; i++, total++)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s",
                                    len > 0 ? " " : "", (int)page.queues[i].name.len,
                                    page.queues[i].name.data);
        if (page.count > 0) {
            struct bytes name = page.queues[page.count - 1].name;

            memcpy(last, name.data, name.len);
            marker = bytes_of(last, name.len);
        }
        more = page.more;
        ck_assert_uint_ge(page.total, total);
        store_queues_release(&page);
    } while (more);
    ck_assert_str_eq(text, names);
}

STORE_TEST(projects_are_listed_while_they_have_queues)
{
    static const char *const projects[] = {"b", "a", "c", "aa", "b"};
    static const char *const left[] = {"", "aa b c", "aa b", "b", "b"};

    expect_projects(f, "");
    for (size_t i = 0; i < 5; i++) {
        use_project(f, projects[i]);
        create(f, i == 4 ? "second" : "q", "{}");
    }
    expect_projects(f, "a aa b c");
    for (size_t i = 1; i < 5; i++) { /* one of b stays till last */
        use_project(f, projects[i]);
        use(f, i == 4 ? "second" : "q");
        delete_queue(f);
        expect_projects(f, left[i]);
    }
    use(f, "q");
    delete_queue(f);
    expect_projects(f, "");
}

STORE_TEST(project_and_name_do_not_run_into_each_other)
{
    use_project(f, "ab");
    create(f, "c", "{\"n\":1}");
    use_project(f, "a");
    ck_assert(create(f, "bc", "{\"n\":2}"));
    use_project(f, ""); /* the nameless project of API v1 */
    ck_assert(create(f, "abc", "{\"n\":3}"));
    ck_assert_uint_eq(expect_page(f, BYTES_NONE, 9, "abc"), 1);
    use_project(f, "a");
    ck_assert_uint_eq(expect_page(f, BYTES_NONE, 9, "bc"), 1);
}

STORE_TEST(a_detailed_listing_shows_metadata)
{
    struct store_queues page = STORE_QUEUES_INIT;

    create(f, "a", "{\"n\":1}");
    create(f, "b", "{\"n\":2}");
    ck_assert_status(store_queue_list(f->store, STORE_AT(f->now_ms),
                                      &(struct store_page){.project = f->queue.project,
                                                           .marker = BYTES_NONE,
                                                           .limit = 9,
                                                           .with_metadata = true},
                                      &page),
                     ST_OK);
    ck_assert_uint_eq(page.count, 2);
    ck_assert(bytes_equal_str(page.queues[0].metadata.json, "{\"n\":1}"));
    ck_assert(bytes_equal_str(page.queues[1].metadata.json, "{\"n\":2}"));
    store_queues_release(&page);
}

STORE_TEST(queues_do_not_expire)
{
    int64_t next_ms;

    create(f, "a", "{\"n\":1}");
    wait_s(f, 400 * 86400);
    store_housekeep(f->store, f->now_ms, &next_ms);
    expect_json(f, "a", "{\"n\":1}");
}

STORE_TEST(the_store_responds_to_a_ping)
{
    ck_assert_status(store_ping(f->store, STORE_AT(f->now_ms)), ST_OK);
}
