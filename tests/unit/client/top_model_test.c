/*
 * The model of `claimd top`: the selection and the history stay with their queue while
 * the order of the rows changes. Read src/client/top_model.h next.
 */
#include "client/top_model.h"

#include "support/check_main.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * A page with these queues, which have as many ready messages as their names have
 * letters. Owned.
 */
static json_t *
page(const char *names)
{
    json_t *queues = json_array();

    for (struct bytes rest = bytes_str(names); rest.len > 0;) {
        const struct bytes name = bytes_cut(&rest, ' ');

        json_array_append_new(queues, json_pack("{s:s, s:s%, s:i, s:i}", "project", "p",
                                                "name", name.data, name.len, "ready",
                                                (int)name.len, "oldest_ready_age", 7));
    }
    return json_pack("{s:o, s:i}", "queues", queues, "total", 99);
}

static void
update(struct top_model *m, const char *names, int64_t now_s)
{
    json_t *p = page(names);

    ck_assert(top_model_update(m, p, now_s));
    json_decref(p);
}

static const char *
selected(const struct top_model *m)
{
    return top_row_text(top_model_selected(m), "name");
}

START_TEST(the_selection_stays_with_its_queue)
{
    struct mem *mem = mem_new(0);
    struct top_model m;

    top_model_init(&m, mem);
    ck_assert_ptr_null(top_model_selected(&m));
    update(&m, "a b c", 0);
    ck_assert_str_eq(selected(&m), "a");
    top_model_move(&m, 2);
    ck_assert_str_eq(selected(&m), "c");
    update(&m, "c a b", 1);
    ck_assert_str_eq(selected(&m), "c");
    top_model_move(&m, 99);
    ck_assert_str_eq(selected(&m), "b");
    update(&m, "a", 2);
    ck_assert_str_eq(selected(&m), "a");
    top_model_move(&m, -99);
    ck_assert_str_eq(selected(&m), "a");
    update(&m, "", 3);
    ck_assert_ptr_null(top_model_selected(&m));
    top_model_move(&m, 1);
    ck_assert_int_eq(m.total, 99);
    top_model_fini(&m);
    mem_destroy(mem);
}

START_TEST(samples_stay_with_their_queue_and_have_an_interval)
{
    struct mem *mem = mem_new(0);
    struct top_model m;

    top_model_init(&m, mem);
    for (int64_t s = 0; s < 3 * TOP_SAMPLE_S; s++)
        update(&m, s % 2 == 0 ? "one two" : "two one", s);
    ck_assert_uint_eq(m.rows[0].samples, 3);
    for (int64_t s = 0; s < 100 * TOP_SAMPLE_S; s++)
        update(&m, "one", s + 1000);
    ck_assert_uint_eq(m.rows[0].samples, TOP_SAMPLES);
    top_model_fini(&m);
    mem_destroy(mem);
}

START_TEST(history_comes_before_the_samples)
{
    json_t *samples = json_array(), *history;
    struct mem *mem = mem_new(0);
    struct top_model m;

    for (int i = 0; i < 100; i++)
        json_array_append_new(samples, json_pack("{s:i}", "ready", i));
    history = json_pack("{s:o}", "samples", samples);
    top_model_init(&m, mem);
    update(&m, "four", 0);
    top_row_add_history(&m.rows[0], history);
    ck_assert_uint_eq(m.rows[0].samples, TOP_SAMPLES);
    ck_assert_int_eq(m.rows[0].ready[0], 100 - (TOP_SAMPLES - 1));
    ck_assert_int_eq(m.rows[0].ready[TOP_SAMPLES - 2], 99);
    ck_assert_int_eq(m.rows[0].ready[TOP_SAMPLES - 1], 4);
    top_row_add_history(&m.rows[0], history); /* there is no space */
    ck_assert_int_eq(m.rows[0].ready[0], 100 - (TOP_SAMPLES - 1));
    json_decref(history);
    top_model_fini(&m);
    mem_destroy(mem);
}

START_TEST(messages_on_the_disk_have_a_column_if_there_are_some)
{
    struct mem *mem = mem_new(0);
    json_t *p = page("a b");
    struct top_model m;
    struct buf out;

    top_model_init(&m, mem);
    buf_init(&out, mem);
    for (int i = 0; i < 2; i++) {
        buf_reset(&out, SIZE_MAX);
        ck_assert(top_model_update(&m, p, i));
        ck_assert(top_model_write(&m, true, 200, &out));
        ck_assert_int_eq(bytes_contain(buf_view(&out), bytes_str("on disk")), i == 1);
        json_object_set_new(json_array_get(json_object_get(p, "queues"), 1), "unloaded",
                            json_integer(4711));
    }
    ck_assert(bytes_contain(buf_view(&out), bytes_str("4711")));
    json_decref(p);
    buf_fini(&out);
    top_model_fini(&m);
    mem_destroy(mem);
}

static size_t
lines(struct bytes text)
{
    size_t count = 0;

    while (text.len > 0) {
        (void)bytes_cut(&text, '\n');
        count++;
    }
    return count;
}

START_TEST(the_table_has_a_line_for_each_row_in_each_width)
{
    struct mem *mem = mem_new(0);
    struct top_model m;
    struct buf out;

    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
    top_model_init(&m, mem);
    update(&m, "a-queue-with-a-rather-long-name-of-sixty-four-characters-as-allowed b c",
           0);
    buf_init(&out, mem);
    for (size_t width = 0; width < 250; width++) {
        buf_reset(&out, SIZE_MAX);
        if (width < 16)
            ck_assert(!top_model_write(&m, true, width, &out));
        else {
            ck_assert(top_model_write(&m, width % 2 == 0, width, &out));
            ck_assert_uint_eq(lines(buf_view(&out)), 4);
        }
    }
    buf_fini(&out);
    top_model_fini(&m);
    mem_destroy(mem);
}

START_TEST(pages_of_another_form_are_empty)
{
    static const char *const pages[] = {"{}", "[]", "{\"queues\": 1}",
                                        "{\"queues\": [1, null, []]}"};
    struct mem *mem = mem_new(0);
    struct top_model m;

    top_model_init(&m, mem);
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        json_t *p = json_loads(pages[i], 0, NULL);

        ck_assert_ptr_nonnull(p);
        ck_assert(top_model_update(&m, p, 0));
        ck_assert_uint_eq(m.count, 0);
        json_decref(p);
    }
    mem_fail_nth(mem, 1);
    ck_assert(!top_model_update(&m, NULL, 0));
    top_model_fini(&m);
    mem_destroy(mem);
}
