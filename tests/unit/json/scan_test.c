/*
 * The scanner accepts exactly the texts that are JSON within the limits, which jansson
 * confirms, and never reads beyond the text. Read claimd/json/scan.h next.
 */
#include "claimd/json/scan.h"
#include "support/check_main.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * The text in a block of exactly its size, so that a sanitizer sees every byte read
 * beyond.
 */
static enum status
document_status(const char *text, size_t len)
{
    char *block = malloc(len == 0 ? 1 : len);
    enum status st;

    ck_assert_ptr_nonnull(block);
    memcpy(block, text, len);
    st = json_scan_document(bytes_of(block, len));
    free(block);
    return st;
}

static void
takes(const char *text)
{
    ck_assert_msg(document_status(text, strlen(text)) == ST_OK, "refused: %s", text);
}

static void
refuses(const char *text)
{
    ck_assert_msg(document_status(text, strlen(text)) == ST_BAD_BODY, "taken: %s", text);
}

static void
takes_item(const char *item)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "[%s]", item);
    takes(text);
}

static void
refuses_item(const char *item)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "[%s]", item);
    refuses(text);
}

/* `count` times open, then middle, then `count` times close; owned by the caller. */
static char *
nested(size_t count, const char *open, const char *middle, const char *close)
{
    size_t need = count * (strlen(open) + strlen(close)) + strlen(middle) + 1;
    char *text = calloc(1, need);
    char *at = text;

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, open);
    at = stpcpy(at, middle);
    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, close);
    return text;
}

START_TEST(a_document_is_an_object_or_an_array)
{
    takes("{}");
    takes("[]");
    takes(" \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n");
    refuses("");
    refuses("   ");
    refuses("\"text\"");
    refuses("1");
    refuses("null");
    ck_assert_int_eq(json_scan_document(BYTES_NONE), ST_BAD_BODY);
}

START_TEST(trailing_text_and_missing_pieces_are_refused)
{
    refuses("{} x");
    refuses("{}{}");
    refuses("[1,]");
    refuses("[,1]");
    refuses("[1 2]");
    refuses("[1}");
    refuses("{\"a\":1]");
    refuses("{\"a\"}");
    refuses("{\"a\":}");
    refuses("{\"a\":1,}");
    refuses("{,\"a\":1}");
    refuses("{a:1}");
    refuses("{1:1}");
    refuses("{\"a\" 1}");
    refuses("[");
    refuses("{");
    refuses("{\"a\":1");
    refuses("[1,");
    refuses("]");
    refuses("[\f1]");
}

START_TEST(no_prefix_of_a_document_is_a_document)
{
    static const char whole[] =
        "{\"messages\":[{\"body\":{\"a\":[1,-2.5e+3,true,false,null,\"\\u00e9\xc3\xa9"
        "\\ud83d\\ude00\"]},\"ttl\":300}]}";

    takes(whole);
    for (size_t len = 0; len + 1 < sizeof(whole); len++)
        ck_assert_int_eq(document_status(whole, len), ST_BAD_BODY);
}

START_TEST(words_are_exact)
{
    takes_item("true,false,null");
    refuses_item("True");
    refuses_item("truex");
    refuses_item("tru");
    refuses_item("nul");
    refuses_item("nulll");
    refuses_item("undefined");
    refuses_item("NaN");
    refuses_item("Infinity");
    refuses_item("-Infinity");
}

START_TEST(integers_fit_64_bits)
{
    takes_item("0,-0,7,-7,9223372036854775807,-9223372036854775808");
    refuses_item("9223372036854775808");
    refuses_item("-9223372036854775809");
    refuses_item("99999999999999999999");
    refuses_item("00");
    refuses_item("01");
    refuses_item("-01");
    refuses_item("+1");
    refuses_item("-");
    refuses_item("0x10");
    refuses_item("1_000");
}

START_TEST(other_numbers_fit_a_double)
{
    takes_item("0.5,-0.0,1e3,1E+3,1e-3,2.50");
    takes_item("1.7976931348623157e308,-1.7976931348623157e+308");
    takes_item("1.7976931348623158079372897140e308");
    takes_item("1e-400,0e999999999999999999999,0.0e400");
    takes_item("0.00000000000000000001e320");
    refuses_item("1.7976931348623158079372897141e308");
    refuses_item("1e309");
    refuses_item("-1e400");
    refuses_item("1e99999999999999999999");
    refuses_item("100000e304");
    refuses_item("1.");
    refuses_item(".5");
    refuses_item("1.e5");
    refuses_item("1e");
    refuses_item("1e+");
    refuses_item("1.5.5");
}

START_TEST(long_numbers_are_read_whole)
{
    char *zeros = nested(400, "0", ".0", "");
    char *huge = nested(308, "9", ".0", "");
    char *text = malloc(1000);

    ck_assert_ptr_nonnull(text);
    (void)snprintf(text, 1000, "[1%s]", zeros); /* 1 and 400 zeros: 1e400 */
    refuses(text);
    (void)snprintf(text, 1000, "[%s]", huge);
    takes(text);
    (void)snprintf(text, 1000, "[1%s1e-390]", zeros);
    takes(text);
    free(text);
    free(huge);
    free(zeros);
}

START_TEST(strings_hold_utf8_without_control_characters)
{
    takes_item("\"\"");
    takes_item("\"plain text of more than eight bytes\"");
    takes_item(
        "\"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\"");
    takes_item("\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"");
    refuses_item("\"\x01\"");
    refuses_item("\"a tab\tinside\"");
    refuses_item("\"a line\nfeed\"");
    refuses_item("\"\x80\"");
    refuses_item("\"\xc0\x80\"");
    refuses_item("\"\xc1\xbf\"");
    refuses_item("\"\xc3\"");
    refuses_item("\"\xe0\x9f\xbf\"");
    refuses_item("\"\xed\xa0\x80\"");
    refuses_item("\"\xf0\x8f\xbf\xbf\"");
    refuses_item("\"\xf4\x90\x80\x80\"");
    refuses_item("\"\xf5\x80\x80\x80\"");
    refuses_item("\"\xe2\x82\"");
    refuses("\xef\xbb\xbf{}");
    ck_assert_int_eq(document_status("[\"\0\"]", 5), ST_BAD_BODY);
    ck_assert_int_eq(document_status("[]\0", 3), ST_BAD_BODY);
}

START_TEST(a_special_character_is_seen_at_every_place_of_a_word)
{
    static const char *const special[] = {"\"", "\\", "\x1f", "\x80", "\xff"};

    for (size_t which = 0; which < sizeof(special) / sizeof(special[0]); which++) {
        for (int before = 0; before < 20; before++) {
            char item[64];

            (void)snprintf(item, sizeof(item), "\"%.*s%s%.*s\"", before,
                           "abcdefghijklmnopqrst", special[which], 20 - before,
                           "!#$%&'()*+,-./:;<=>?");
            refuses_item(item);
        }
    }
}

START_TEST(escapes_are_those_of_json)
{
    takes_item("\"\\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0000 \\uFfFf\"");
    takes_item("\"\\ud83d\\ude00\\uDBFF\\uDFFF\"");
    refuses_item("\"\\a\"");
    refuses_item("\"\\'\"");
    refuses_item("\"\\u12\"");
    refuses_item("\"\\u12g4\"");
    refuses_item("\"\\U0041\"");
    refuses_item("\"\\\"");
    refuses_item("\"\\ud800\"");
    refuses_item("\"\\udc00\"");
    refuses_item("\"\\ud800x\"");
    refuses_item("\"\\ud800\\u0041\"");
    refuses_item("\"\\ud800\\ud800\"");
    refuses_item("\"\\ud800\\n\"");
}

START_TEST(nesting_ends_where_jansson_ends_it)
{
    static const struct {
        size_t count;
        const char *open, *middle, *close;
    } shapes[] = {{2048, "[", "", "]"},         {2049, "[", "", "]"},
                  {2047, "[", "1", "]"},        {2048, "[", "1", "]"},
                  {2047, "{\"a\":", "{}", "}"}, {2048, "{\"a\":", "{}", "}"},
                  {2048, "{\"a\":", "1", "}"},  {10000, "[", "", "]"},
                  {10000, "[", "", ""},         {5000, "{\"a\":[", "", ""}};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        char *text =
            nested(shapes[i].count, shapes[i].open, shapes[i].middle, shapes[i].close);
        json_t *tree = json_loadb(text, strlen(text), JSON_ALLOW_NUL, NULL);

        ck_assert_msg((json_scan_document(bytes_str(text)) == ST_OK) == (tree != NULL),
                      "shape %zu", i);
        json_decref(tree);
        free(text);
    }
}

START_TEST(entering_containers_counts_towards_the_depth)
{
    char *text = nested(2049, "[", "", "]");
    struct json_scan s;

    json_scan_begin(&s, bytes_str(text));
    while (json_scan_enter(&s, SCAN_ARRAY) && json_scan_item(&s))
        ;
    ck_assert(s.bad);
    ck_assert_int_eq(json_scan_end(&s), ST_BAD_BODY);
    free(text);
}

START_TEST(members_are_walked_with_their_exact_bytes)
{
    static const char text[] =
        " { \"a\" : 1.50 , \"b\\u0063\" : { \"x\" : [ ] } , \"d\":\"t\" } ";
    struct json_scan s;
    struct json_scan_name name;
    struct json_scan_value value;

    json_scan_begin(&s, bytes_str(text));
    ck_assert(!json_scan_enter(&s, SCAN_ARRAY));
    ck_assert(json_scan_enter(&s, SCAN_OBJECT));

    ck_assert(json_scan_member(&s, &name));
    ck_assert(json_scan_name_is(&name, "a"));
    ck_assert(json_scan_value(&s, &value));
    ck_assert_int_eq(value.kind, SCAN_REAL);
    ck_assert(bytes_equal_str(value.text, "1.50"));

    ck_assert(json_scan_member(&s, &name));
    ck_assert(name.escaped);
    ck_assert(json_scan_name_is(&name, "bc"));
    ck_assert(!json_scan_name_is(&name, "b"));
    ck_assert(!json_scan_name_is(&name, "bcd"));
    ck_assert(!json_scan_name_is(&name, "bd"));
    ck_assert(json_scan_value(&s, &value));
    ck_assert_int_eq(value.kind, SCAN_OBJECT);
    ck_assert(bytes_equal_str(value.text, "{ \"x\" : [ ] }"));

    ck_assert(json_scan_member(&s, &name));
    ck_assert(json_scan_value(&s, &value));
    ck_assert_int_eq(value.kind, SCAN_STRING);
    ck_assert(bytes_equal_str(value.text, "\"t\""));
    ck_assert(!json_scan_member(&s, &name));
    ck_assert_int_eq(json_scan_end(&s), ST_OK);
}

START_TEST(items_are_walked_into_and_out_of_nested_arrays)
{
    struct json_scan s;
    struct json_scan_value value;
    int64_t sum = 0;

    json_scan_begin(&s, bytes_str("[[1,2],[],[3],-4]"));
    ck_assert(json_scan_enter(&s, SCAN_ARRAY));
    while (json_scan_item(&s)) {
        if (!json_scan_enter(&s, SCAN_ARRAY)) {
            ck_assert(json_scan_value(&s, &value));
            sum += 100 * json_scan_to_i64(&value);
            continue;
        }
        while (json_scan_item(&s)) {
            ck_assert(json_scan_value(&s, &value));
            sum += json_scan_to_i64(&value);
        }
    }
    ck_assert_int_eq(json_scan_end(&s), ST_OK);
    ck_assert_int_eq(sum, -394);
}

START_TEST(a_fault_ends_every_loop_and_stays)
{
    struct json_scan s;
    struct json_scan_name name;

    json_scan_begin(&s, bytes_str("{\"a\":[1,x]}"));
    ck_assert(json_scan_enter(&s, SCAN_OBJECT));
    ck_assert(json_scan_member(&s, &name));
    ck_assert(!json_scan_value(&s, NULL));
    ck_assert(!json_scan_member(&s, &name));
    ck_assert(!json_scan_item(&s));
    ck_assert(!json_scan_value(&s, NULL));
    ck_assert_int_eq(json_scan_peek(&s), SCAN_NONE);
    ck_assert_int_eq(json_scan_end(&s), ST_BAD_BODY);
}

START_TEST(a_document_left_half_way_is_not_ok)
{
    struct json_scan s;

    json_scan_begin(&s, bytes_str("[]"));
    ck_assert(json_scan_enter(&s, SCAN_ARRAY));
    ck_assert_int_eq(json_scan_end(&s), ST_BAD_BODY);
}
