/*
 * A table of a command fits the width of the terminal: it cuts texts, leaves out columns,
 * or becomes a block for each row. Read src/client/table.h next.
 */
#include "client/table.h"

#include "support/check_main.h"

#include <locale.h>
#include <stdlib.h>

static const struct table_column columns[] = {
    {"queue", false, true, false, TABLE_MEMBER, NULL},
    {"ready", true, false, false, TABLE_MEMBER, NULL},
    {"body", false, true, false, TABLE_MEMBER, NULL}};

static void
fill(struct table *t, struct mem *mem)
{
    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
    table_init(t, mem, columns, 3);
    table_text(t, bytes_str("jobs"));
    table_number(t, 12);
    table_text(t, bytes_str("a rather long text"));
    table_text(t, bytes_str("a-queue-with-a-long-name"));
    table_number(t, 3);
    table_text(t, BYTES_NONE);
}

static void
check_written(size_t width, const char *expected)
{
    struct mem *mem = mem_new(0);
    struct table t;
    struct buf out;

    fill(&t, mem);
    buf_init(&out, mem);
    ck_assert(table_write(&t, width, &out));
    buf_byte(&out, '\0');
    ck_assert_str_eq(out.data, expected);
    buf_fini(&out);
    table_fini(&t);
    mem_destroy(mem);
}

START_TEST(a_table_that_fits_is_not_cut)
{
    static const char whole[] = "queue                     ready  body\n"
                                "jobs                         12  a rather long text\n"
                                "a-queue-with-a-long-name      3  -\n";

    check_written(0, whole);
    check_written(51, whole);
}

START_TEST(elastic_columns_are_cut_to_the_terminal_the_widest_first)
{
    check_written(45, "queue               ready  body\n"
                      "jobs                   12  a rather long text\n"
                      "a-queue-with-a-lo…      3  -\n");
    check_written(33, "queue         ready  body\n"
                      "jobs             12  a rather lo…\n"
                      "a-queue-wit…      3  -\n");
}

START_TEST(a_narrow_terminal_gets_a_block_for_each_row)
{
    check_written(20, "queue: jobs\n"
                      "ready: 12\n"
                      "body: a rather long…\n"
                      "\n"
                      "queue: a-queue-with…\n"
                      "ready: 3\n"
                      "body: -\n");
    check_written(1, "…\n…\n…\n\n…\n…\n…\n");
}

START_TEST(optional_columns_are_left_out_before_the_table_becomes_blocks)
{
    static const struct table_column some[] = {
        {"a", true, false, false, TABLE_MEMBER, NULL},
        {"b", true, false, true, TABLE_MEMBER, NULL},
        {"c", true, false, false, TABLE_MEMBER, NULL},
        {"d", true, false, true, TABLE_MEMBER, NULL}};
    struct mem *mem = mem_new(0);
    struct table t;
    struct buf out;

    table_init(&t, mem, some, 4);
    for (int64_t i = 0; i < 4; i++)
        table_number(&t, 1000 + i);
    buf_init(&out, mem);
    ck_assert(table_write(&t, 22, &out));
    ck_assert(table_write(&t, 21, &out));
    ck_assert(table_write(&t, 10, &out));
    ck_assert(table_write(&t, 9, &out));
    buf_byte(&out, '\0');
    ck_assert_str_eq(out.data, "   a     b     c     d\n1000  1001  1002  1003\n"
                               "   a     b     c\n1000  1001  1002\n"
                               "   a     c\n1000  1002\n"
                               "a: 1000\nb: 1001\nc: 1002\nd: 1003\n");
    buf_fini(&out);
    table_fini(&t);
    mem_destroy(mem);
}

START_TEST(an_empty_table_has_its_head)
{
    struct mem *mem = mem_new(0);
    struct table t;
    struct buf out;

    table_init(&t, mem, columns, 3);
    buf_init(&out, mem);
    ck_assert(table_write(&t, 80, &out));
    buf_byte(&out, '\0');
    ck_assert_str_eq(out.data, "queue  ready  body\n");
    buf_fini(&out);
    table_fini(&t);
    mem_destroy(mem);
}

START_TEST(a_table_without_memory_fails)
{
    for (uint64_t nth = 1;; nth++) {
        struct mem *mem = mem_new(0);
        struct table t;
        struct buf out;
        bool good;

        mem_fail_nth(mem, nth);
        fill(&t, mem);
        buf_init(&out, mem);
        good = table_write(&t, 20, &out);
        good &= !out.failed;
        buf_fini(&out);
        table_fini(&t);
        mem_destroy(mem);
        if (good) {
            ck_assert_uint_gt(nth, 3);
            return;
        }
    }
}
