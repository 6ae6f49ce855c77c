/* Trees of jansson, made by the scanner: what jansson's parser would have made, or no
 * memory. */
#include "claimd/json/tree.h"
#include "support/check_main.h"

#include <stdlib.h>

static const char *const documents[] = {
    "{}",
    "[]",
    " [ 1 , -0, -9223372036854775808, 9223372036854775807, 2.5, -0.0, 1e300 ] ",
    "[true,false,null,\"\",\"a\",[[],{}],{\"a\":[{\"b\":{}}]}]",
    "{\"a\":1,\"b\":2,\"a\":{\"c\":[]}}",
    "{\"\":0,\"\\u0061\":1,\"a\":2,\"\\\"\\\\\\/\\b\\f\\n\\r\\t\":3}",
    ("[\"\\u0000\",\"a\\u0000b\","
     "\"\\u017e\xc5\xbe\\u20ac\\ud83d\\ude00\xf0\x9f\x98\x80\"]"),
    "{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0}",
    "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26]",
};

enum { DOCUMENTS = sizeof(documents) / sizeof(documents[0]) };

static json_t *
parsed_by_jansson(const char *text)
{
    json_t *tree = json_loads(text, JSON_ALLOW_NUL, NULL);

    ck_assert_ptr_nonnull(tree);
    return tree;
}

/* The order of members counts, too. */
static void
ck_same(struct mem *mem, const json_t *a, const json_t *b)
{
    struct buf x, y;

    buf_init(&x, mem);
    buf_init(&y, mem);
    json_tree_write(&x, a);
    json_tree_write(&y, b);
    ck_assert(!x.failed && !y.failed);
    ck_assert(bytes_equal(buf_view(&x), buf_view(&y)));
    ck_assert(json_equal(a, b));
    buf_fini(&x);
    buf_fini(&y);
}

START_TEST(a_tree_is_what_jansson_would_make)
{
    struct mem *mem = mem_new(0);

    for (size_t i = 0; i < DOCUMENTS; i++) {
        json_t *wanted = parsed_by_jansson(documents[i]), *tree = NULL;

        ck_assert_int_eq(json_tree_read(bytes_str(documents[i]), &tree), ST_OK);
        ck_same(mem, tree, wanted);
        json_decref(wanted);
        json_decref(tree);
    }
    mem_destroy(mem);
}

START_TEST(the_deepest_document_is_read)
{
    enum { LEVELS = 2048 };
    char text[2 * LEVELS + 2];
    json_t *tree = NULL;

    memset(text, '[', sizeof(text));
    memset(text + LEVELS, ']', LEVELS);
    ck_assert_int_eq(json_tree_read(bytes_of(text, (size_t)2 * LEVELS), &tree), ST_OK);
    json_decref(tree);
    memset(text + LEVELS, '[', 1);
    memset(text + LEVELS + 1, ']', LEVELS + 1);
    ck_assert_int_eq(json_tree_read(bytes_of(text, sizeof(text)), &tree), ST_BAD_BODY);
}

START_TEST(a_document_that_is_none_and_a_nul_in_a_name_are_refused)
{
    static const char *const bad[] = {
        "", "1", "{", "[1] 2", "{\"a\\u0000b\":1}", "[{\"a\":[]},{\"\\u0000\":[1]}]"};
    json_t *tree = NULL;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_int_eq(json_tree_read(bytes_str(bad[i]), &tree), ST_BAD_BODY);
    ck_assert_ptr_null(tree);
}

/* ------------------------------------------------------------------ without memory */

static size_t fail_at, allocations, held;

static void *
allocate(size_t size)
{
    void *block = ++allocations == fail_at ? NULL : malloc(size);

    held += block != NULL;
    return block;
}

static void
release(void *block)
{
    held -= block != NULL;
    free(block);
}

START_TEST(each_failed_allocation_of_jansson_is_no_memory)
{
    struct mem *mem = mem_new(0);

    for (size_t i = 0; i < DOCUMENTS; i++) {
        json_t *wanted = parsed_by_jansson(documents[i]), *tree = NULL;
        enum status st;

        fail_at = 0;
        do {
            json_set_alloc_funcs(allocate, release);
            fail_at++;
            allocations = held = 0;
            st = json_tree_read(bytes_str(documents[i]), &tree);
            if (st == ST_OK) {
                ck_assert_uint_lt(allocations, fail_at); /* none had failed */
                ck_same(mem, tree, wanted);
                json_decref(tree);
            } else {
                ck_assert_int_eq(st, ST_NO_MEMORY);
            }
            ck_assert_uint_eq(held, 0);
            json_set_alloc_funcs(malloc, free);
        } while (st != ST_OK);
        json_decref(wanted);
    }
    mem_destroy(mem);
}
