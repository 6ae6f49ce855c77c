/*
 * The scanner against jansson: whatever text one takes the other must take, with the two
 * exceptions of docs/adr/0001-own-json-scanner.md: jansson cannot keep a NUL in the name
 * of a member, and it overlooks a NUL byte behind a number or a word.
 *
 * The seed is printed; CLAIMD_TEST_SEED repeats a run, CLAIMD_TEST_OPS sets its length.
 */
#include "claimd/json/scan.h"
#include "support/check_main.h"
#include "support/random.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX 512

static const char *const corpus[] = {
    "{}",
    "[]",
    "[1,2,3]",
    "{\"messages\":[{\"body\":{\"event\":\"start\"},\"ttl\":300,\"delay\":0}]}",
    "{\"a\":\"\\u0041\\ud83d\\ude00\\n\",\"b\":[true,false,null]}",
    "[0,-0,1.5,-1.5e10,1E-3,9223372036854775807,-9223372036854775808]",
    "[1e308,1.7976931348623157e308,1e-320,0.0e999,123456789012345678]",
    "[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\",\"\x7f\",\"\xed\x9f\xbf\xee\x80\x80\"]",
    "[[[[[[[[[[{\"a\":[{\"a\":[]}]}]]]]]]]]]]",
    "  {  \"k\"  :  \"v\"  ,  \"k\"  :  [  ]  }  ",
    "{\"\":\"\",\"\\\"\":\"\\\\\",\"\\/\":\"\\b\\f\\r\\t\"}",
    "[\"\\u0000\",\"\\uDBFF\\uDFFF\",\"plain text long enough for words of eight\"]",
};

/* Pieces that make texts interesting when they land somewhere. */
static const char *const pieces[] = {
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u",
    "\\ud8",
    "\\ud83d",
    "\\ude00",
    "00",
    "-",
    ".",
    "e",
    "E+",
    "1e309",
    "e400",
    "true",
    "null",
    "NaN",
    " ",
    "\n",
    "\t",
    "\x1f",
    "\x80",
    "\xc3",
    "\xc3\xa9",
    "\xe2\x82",
    "\xed\xa0\x80",
    "\xf0\x9f\x98\x80",
    "\xf4\x90\x80\x80",
    "\xef\xbb\xbf",
    "9223372036854775808",
    "\"a\":1",
    "{\"a\":",
    "\"\\u0000\":",
};

static size_t
below(struct random *r, size_t bound)
{
    return (size_t)random_below(r, bound);
}

static const char *
random_piece(struct random *r)
{
    return pieces[below(r, sizeof(pieces) / sizeof(pieces[0]))];
}

static size_t
cut(struct random *r, char *text, size_t len)
{
    size_t from = below(r, len), count = 1 + below(r, 4);

    if (count > len - from)
        count = len - from;
    memmove(text + from, text + from + count, len - from - count);
    return len - count;
}

static size_t
insert(char *text, size_t len, size_t at, const char *piece, size_t count)
{
    if (len + count > TEXT_MAX)
        return len;
    memmove(text + at + count, text + at, len - at);
    memcpy(text + at, piece, count);
    return len + count;
}

static size_t
mutate(struct random *r, char *text, size_t len)
{
    char byte = (char)below(r, 256);
    const char *piece = random_piece(r);
    char copy[16];
    size_t count, from;

    if (len == 0)
        return insert(text, len, 0, piece, strlen(piece));
    switch (below(r, 6)) {
    case 0:
        text[below(r, len)] = byte;
        return len;
    case 1:
        text[below(r, len)] ^= (char)(1 << below(r, 8));
        return len;
    case 2:
        return cut(r, text, len);
    case 3:
        from = below(r, len);
        count = len - from < sizeof(copy) ? len - from : sizeof(copy);
        memcpy(copy, text + from, count);
        return insert(text, len, below(r, len + 1), copy, count);
    case 4:
        return below(r, len + 1);
    default:
        return insert(text, len, below(r, len + 1), piece, strlen(piece));
    }
}

static void
show(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        fprintf(stderr, text[i] >= 0x20 && text[i] < 0x7f ? "%c" : "\\x%02x",
                (unsigned char)text[i]);
    fprintf(stderr, "\n");
}

/* Neither exception applies: the scanner must say what jansson says. */
static bool
comparable(const char *text, size_t len, const json_t *tree, const json_error_t *error)
{
    if (memchr(text, '\0', len) != NULL)
        return false;
    return tree != NULL || json_error_code(error) != json_error_null_byte_in_key;
}

/* Compares the verdicts; the block is exactly as long as the text. True if both take it.
 */
static bool
agree(const char *text, size_t len)
{
    char *block = malloc(len == 0 ? 1 : len);
    json_error_t error;
    json_t *tree;
    bool taken;

    ck_assert_ptr_nonnull(block);
    memcpy(block, text, len);
    tree = json_loadb(block, len, JSON_ALLOW_NUL, &error);
    taken = json_scan_document(bytes_of(block, len)) == ST_OK;
    if (comparable(text, len, tree, &error) && taken != (tree != NULL)) {
        show(text, len);
        ck_abort_msg("the scanner %s this, jansson does not",
                     taken ? "takes" : "refuses");
    }
    if (memchr(text, '\0', len) != NULL)
        ck_assert_msg(!taken, "a NUL byte is never JSON");
    json_decref(tree);
    free(block);
    return taken;
}

START_TEST(the_corpus_is_taken_by_both)
{
    for (size_t i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++)
        ck_assert(agree(corpus[i], strlen(corpus[i])));
}

START_TEST(a_nul_byte_behind_a_number_is_refused_though_jansson_takes_it)
{
    json_t *tree = json_loadb("[1\0]", 4, JSON_ALLOW_NUL, NULL);

    ck_assert_ptr_nonnull(tree);
    json_decref(tree);
    ck_assert_int_eq(json_scan_document(bytes_of("[1\0]", 4)), ST_BAD_BODY);
    ck_assert_int_eq(json_scan_document(bytes_of("[true\0]", 7)), ST_BAD_BODY);
}

START_TEST(a_nul_in_the_name_of_a_member_is_taken_though_jansson_refuses_it)
{
    static const char text[] = "{\"a\\u0000b\":1}";
    json_error_t error;

    ck_assert_int_eq(json_scan_document(bytes_str(text)), ST_OK);
    ck_assert_ptr_null(json_loadb(text, strlen(text), JSON_ALLOW_NUL, &error));
    ck_assert_int_eq(json_error_code(&error), json_error_null_byte_in_key);
}

START_TEST(every_pair_of_pieces_gets_the_same_verdict)
{
    size_t count = sizeof(pieces) / sizeof(pieces[0]);

    for (size_t a = 0; a < count; a++) {
        for (size_t b = 0; b < count; b++) {
            char text[128];

            (void)snprintf(text, sizeof(text), "[%s%s]", pieces[a], pieces[b]);
            (void)agree(text, strlen(text));
            (void)snprintf(text, sizeof(text), "[\"%s%s\"]", pieces[a], pieces[b]);
            (void)agree(text, strlen(text));
        }
    }
}

START_TEST(random_mutations_get_the_same_verdict)
{
    uint64_t rounds = random_operations(300000);
    struct random r = {random_seed("json_scan_diff")};
    uint64_t both = 0;

    for (uint64_t i = 0; i < rounds; i++) {
        const char *base = corpus[below(&r, sizeof(corpus) / sizeof(corpus[0]))];
        char text[TEXT_MAX];
        size_t len = strlen(base);

        memcpy(text, base, len);
        for (size_t changes = 1 + below(&r, 3); changes > 0; changes--)
            len = mutate(&r, text, len);
        both += agree(text, len);
    }
    /* A mutator that only makes rubbish would prove nothing. */
    ck_assert_uint_ge(both, rounds / 20);
    ck_assert_uint_le(both, rounds / 20 * 19);
}
