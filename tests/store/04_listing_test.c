/* Listing messages of any store: pages, markers, filters. */
#include "support/store_fixture.h"

/* The page of two messages behind a marker; everything is shown. */
static void
page(struct fixture *f, struct bytes marker)
{
    const struct store_filter filter = {
        .marker = marker, .limit = 2, .include_claimed = true, .include_delayed = true};

    list(f, &filter);
}

/* The marker of the last page, in a place of its own. */
static struct store_id
next_marker(const struct fixture *f)
{
    return f->seen.next;
}

STORE_CASE("pages");

STORE_TEST(pages_follow_each_other_to_the_end)
{
    struct store_id marker;

    post(f, 5);
    page(f, BYTES_NONE);
    expect(f, 1, 2);
    marker = next_marker(f);
    page(f, store_id_bytes(&marker));
    expect(f, 3, 4);
    marker = next_marker(f);
    page(f, store_id_bytes(&marker));
    expect(f, 5);
    marker = next_marker(f);
    page(f, store_id_bytes(&marker));
    expect_nothing(f);
    ck_assert(id_empty(next_marker(f)));
}

STORE_TEST(a_marker_that_is_no_id_and_no_number_is_ignored)
{
    enum { NUMBER_AT = 8 };
    static const char *const texts[] = {"0x1", "+1", " 1", "1 ", "-1", "1.0", "1e0", ""};
    struct store_id marker;

    post(f, 3);
    for (size_t i = 0; i < LENIENT_BEGINS; i++) {
        marker = lenient_id(f->ids[1], NUMBER_AT, lenient_begins[i]);
        page(f, store_id_bytes(&marker));
        expect(f, 1, 2);
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        page(f, bytes_str(texts[i]));
        expect(f, 1, 2);
    }
}

STORE_TEST(the_last_marker_finds_messages_posted_later)
{
    struct store_id marker;

    post(f, 2);
    page(f, BYTES_NONE);
    marker = next_marker(f);
    page(f, store_id_bytes(&marker));
    expect_nothing(f);
    post(f, 1);
    page(f, store_id_bytes(&marker));
    expect(f, 3);
}

STORE_TEST(a_marker_whose_message_is_gone_keeps_its_place)
{
    struct store_id marker;

    post(f, 4);
    page(f, BYTES_NONE); /* 1 2 */
    marker = next_marker(f);
    delete_unclaimed(f, 2);
    page(f, store_id_bytes(&marker));
    expect(f, 3, 4);
    delete_unclaimed(f, 1);
    page(f, store_id_bytes(&marker));
    expect(f, 3, 4);
    delete_unclaimed(f, 4); /* the end moves below the marker's neighbours */
    delete_unclaimed(f, 3);
    page(f, store_id_bytes(&marker));
    expect_nothing(f);
    post(f, 1);
    page(f, store_id_bytes(&marker));
    expect(f, 5);
}

STORE_TEST(a_marker_keeps_its_place_across_a_purge)
{
    struct store_id marker;

    post(f, 2);
    page(f, BYTES_NONE);
    marker = next_marker(f);
    purge(f);
    page(f, store_id_bytes(&marker));
    expect_nothing(f);
    post(f, 1);
    page(f, store_id_bytes(&marker));
    expect(f, 3);
}

STORE_TEST(a_marker_of_an_expired_message_keeps_its_place)
{
    struct store_id marker;

    post_with(f, 60, 0);
    post_with(f, 60, 0);
    post_with(f, 600, 0);
    page(f, BYTES_NONE);
    expect(f, 1, 2);
    marker = next_marker(f);
    wait_s(f, 60);
    page(f, store_id_bytes(&marker));
    expect(f, 3);
}

STORE_TEST(a_marker_the_store_did_not_make_starts_at_the_head)
{
    static const char *const original[] = {
        "", "nonsense", "-1", "1 ", "0x1", "ffffffffffffffffffffffffffffffffffffffff"};

    post(f, 3);
    for (size_t i = 0; i < sizeof(original) / sizeof(original[0]); i++) {
        page(f, bytes_str(original[i]));
        expect(f, 1, 2);
    }
}

STORE_TEST(the_id_of_a_message_is_a_marker_too)
{
    post(f, 4);
    page(f, id_of(f, 1));
    expect(f, 2, 3);
    delete_unclaimed(f, 2);
    page(f, id_of(f, 2));
    expect(f, 3, 4);
    page(f, id_of(f, 4));
    expect_nothing(f);
}

STORE_TEST(the_id_of_another_queues_message_is_no_marker)
{
    post(f, 2);
    use(f, "other");
    post(f, 2);
    page(f, id_of(f, 2));
    expect(f, 3, 4);
}

STORE_TEST(an_unknown_queue_has_an_empty_page)
{
    page(f, BYTES_NONE);
    expect_nothing(f);
    ck_assert(id_empty(f->seen.next));
}

STORE_CASE("filters");

STORE_TEST(own_messages_are_hidden_on_request)
{
    struct store_filter filter = {.limit = 10, .hide_client = true, .client = 7};

    f->client = 7;
    post(f, 2);
    f->client = 8;
    post(f, 1);
    f->client = 7;
    post(f, 1);
    list(f, &filter);
    expect(f, 3);
    filter.client = 8;
    list(f, &filter);
    expect(f, 1, 2, 4);
    filter.hide_client = false;
    list(f, &filter);
    expect(f, 1, 2, 3, 4);
}

STORE_TEST(claimed_messages_are_shown_on_request)
{
    struct store_filter filter = {.limit = 10};
    struct store_id claim;

    post(f, 3);
    claim = take(f, 2);
    list(f, &filter);
    expect(f, 3);
    filter.include_claimed = true;
    list(f, &filter);
    expect(f, 1, 2, 3);
    ck_assert(id_same(f->seen.messages[0].claim_id, claim));
    ck_assert(id_same(f->seen.messages[1].claim_id, claim));
    ck_assert(id_empty(f->seen.messages[2].claim_id));
}

STORE_TEST(delayed_messages_are_shown_on_request)
{
    struct store_filter filter = {.limit = 10};

    post_with(f, 300, 0);
    post_with(f, 300, 30);
    post_with(f, 300, 0);
    list(f, &filter);
    expect(f, 1, 3);
    filter.include_delayed = true;
    list(f, &filter);
    expect(f, 1, 2, 3);
    filter.include_delayed = false;
    filter.include_claimed = true;
    list(f, &filter);
    expect(f, 1, 3);
}

STORE_TEST(filters_are_applied_before_the_page_is_cut)
{
    struct store_filter filter = {.limit = 2, .hide_client = true, .client = 1};
    struct store_id marker;

    post(f, 100); /* 1 .. 100: own */
    take(f, 20);
    f->client = 2;
    post_with(f, 300, 60); /* 101: delayed */
    post(f, 3);            /* 102 103 104 */
    list(f, &filter);
    expect(f, 102, 103);
    marker = next_marker(f);
    filter.marker = store_id_bytes(&marker);
    list(f, &filter);
    expect(f, 104);
}

STORE_TEST(a_listing_looks_behind_thousands_of_hidden_messages)
{
    struct store_filter filter = {.limit = 3, .hide_client = true, .client = 1};

    for (int i = 0; i < 5; i++) {
        f->posted = 0; /* their numbers do not matter */
        post(f, 1000);
    }
    f->client = 2;
    f->posted = 0;
    post(f, 2);
    filter.include_claimed = true;
    list(f, &filter);
    expect(f, 1, 2);
}

STORE_TEST(listing_changes_nothing)
{
    post(f, 2);
    list_all(f);
    list_all(f);
    expect(f, 1, 2);
    ck_assert_uint_eq(f->seen.messages[0].claim_count, 0);
    take(f, 2);
    expect(f, 1, 2);
}
