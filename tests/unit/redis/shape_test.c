/*
 * claimd reads a reply of a script only if its shape is the expected one. hostile_test.c
 * tests the same through the store. Declared in src/redis/script.h.
 */
#include "redis/script.h"

#include "support/check_main.h"
#include "support/resp.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 64 };

/* The response that is being written. */
static redisReply words[WORDS], *elements[WORDS];
static redisReply response;

static void
begin(long long status)
{
    response =
        (redisReply){.type = REDIS_REPLY_ARRAY, .element = elements, .elements = 1};
    words[0] = (redisReply){.type = REDIS_REPLY_INTEGER, .integer = status};
    elements[0] = &words[0];
}

static void
add(redisReply word)
{
    ck_assert_uint_lt(response.elements, WORDS);
    words[response.elements] = word;
    elements[response.elements] = &words[response.elements];
    response.elements++;
}

static void
number(long long n)
{
    add((redisReply){.type = REDIS_REPLY_INTEGER, .integer = n});
}

static void
text(char *t)
{
    add((redisReply){.type = REDIS_REPLY_STRING, .str = t, .len = strlen(t)});
}

static bool
fits(const char *lead, const char *group, size_t most)
{
    const struct shape shape = {lead, group, most};

    return shape_check(&response, &shape, 2);
}

TEST_CASE("shape");

START_TEST(a_lead_has_its_words_and_no_others)
{
    begin(RESPONSE_OK);
    ck_assert(fits("", "", 0));
    ck_assert(!fits("n", "", 0));
    number(1);
    ck_assert(fits("n", "", 0));
    ck_assert(!fits("", "", 0));
    ck_assert(!fits("nn", "", 0));
    ck_assert(!fits("t", "", 0));
    text("a");
    ck_assert(fits("nt", "", 0));
    ck_assert(!fits("n", "", 0));
}

START_TEST(a_lead_may_end_where_its_shape_says_so)
{
    begin(RESPONSE_OK);
    ck_assert(fits("|n|in", "", 0));
    number(1);
    ck_assert(fits("|n|in", "", 0));
    number(2);
    ck_assert(!fits("|n|in", "", 0));
    number(3);
    ck_assert(fits("|n|in", "", 0));
}

START_TEST(a_status_that_is_not_ok_may_be_alone)
{
    begin(RESPONSE_NOT_FOUND);
    ck_assert(fits("nt", "", 0));
    number(1);
    ck_assert(!fits("nt", "", 0));
    text("a");
    ck_assert(fits("nt", "", 0));
    for (int status = -1; status <= RESPONSE_STATUSES; status += RESPONSE_STATUSES + 1) {
        begin(status);
        ck_assert(!fits("", "", 0));
    }
}

START_TEST(there_are_no_more_groups_than_requested)
{
    begin(RESPONSE_OK);
    ck_assert(fits("", "nt", SHAPE_ASKED));
    for (int i = 1; i <= 3; i++) {
        number(i);
        ck_assert(!fits("", "nt", SHAPE_ANY)); /* half a group */
        text("");
        ck_assert(fits("", "nt", SHAPE_ANY));
        ck_assert(fits("", "nt", SHAPE_ASKED) == (i <= 2));
        ck_assert(fits("", "nt", 1) == (i == 1));
    }
}

START_TEST(other_groups_stand_behind_an_empty_text)
{
    begin(RESPONSE_OK);
    for (int i = 0; i < 2; i++)
        number(1);
    ck_assert(fits("", "n|tt", SHAPE_ASKED));
    text("");
    ck_assert(fits("", "n|tt", SHAPE_ASKED));
    text("a");
    ck_assert(!fits("", "n|tt", SHAPE_ASKED));
    text("");
    ck_assert(fits("", "n|tt", SHAPE_ASKED));
    number(1);
    ck_assert(!fits("", "n|tt", SHAPE_ASKED));
}

START_TEST(numbers_are_within_what_lua_has)
{
    const long long most = 1LL << 53;

    begin(RESPONSE_OK);
    number(0);
    for (int i = -1; i <= 1; i++) {
        words[1].integer = most + i;
        ck_assert(fits("i", "", 0) == (i <= 0));
        ck_assert(fits("n", "", 0) == (i <= 0));
        words[1].integer = -most + i;
        ck_assert(fits("i", "", 0) == (i >= 0));
        ck_assert(!fits("n", "", 0));
        words[1].integer = 2 + i;
        ck_assert(fits("2", "", 0) == (i <= 0));
    }
}

START_TEST(a_number_may_be_a_text)
{
    static char *const good[] = {"0", "17", "-17"};
    static char *const bad[] = {"", " 1", "1 ", "0x1", "1e3", "1.0", "9007199254740993"};
    int64_t value = 0;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        begin(RESPONSE_OK);
        text(good[i]);
        ck_assert(fits("i", "", 0));
    }
    ck_assert(shape_integer(&words[1], &value));
    ck_assert_int_eq(value, -17);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        begin(RESPONSE_OK);
        text(bad[i]);
        ck_assert(!fits("i", "", 0));
    }
}

START_TEST(a_word_that_is_missing_is_of_no_kind)
{
    static const int types[] = {REDIS_REPLY_NIL, REDIS_REPLY_STATUS, REDIS_REPLY_ERROR,
                                REDIS_REPLY_ARRAY};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        for (const char *kinds = "in2tkhc"; *kinds != '\0'; kinds++) {
            const char kind[] = {*kinds, '\0'};

            begin(RESPONSE_OK);
            add((redisReply){.type = types[i], .str = "", .len = 0});
            ck_assert(!fits(kind, "", 0));
        }
}

START_TEST(ids_have_their_length)
{
    begin(RESPONSE_OK);
    text("a00000000000000000000001");
    ck_assert(fits("k", "", 0));
    for (size_t len = 0; len <= 32; len++) {
        char some[33] = "";

        memset(some, 'a', len);
        begin(RESPONSE_OK);
        text(some);
        ck_assert(fits("k", "", 0) == (len == 0 || len == 24));
    }
}

TEST_CASE("heads");

/* A copy in a block of its own, for AddressSanitizer. */
static char *
copy_of(const char *bytes, size_t size)
{
    char *copy = malloc(size + 1);

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    return copy;
}

/* Is what stands in a block of exactly this size a head? */
static bool
reads(const char *bytes, size_t size, struct message_head *out)
{
    char *copy = copy_of(bytes, size);
    const bool good = message_head_read(bytes_of(copy, size), out);

    free(copy);
    return good;
}

START_TEST(a_head_has_the_length_that_its_flags_say)
{
    enum { SUM = 1, ORIGINAL = 2, SUM_SIZE = 16, ID_SIZE = 24 };
    char text[RESP_HEAD_SIZE + SUM_SIZE + ID_SIZE + 1] = "";

    for (unsigned char flags = 0; flags <= (SUM | ORIGINAL); flags++) {
        const size_t whole = (size_t)RESP_HEAD_SIZE +
                             ((flags & SUM) != 0 ? SUM_SIZE : 0) +
                             ((flags & ORIGINAL) != 0 ? ID_SIZE : 0);

        resp_head(text, flags);
        for (size_t size = 0; size <= sizeof(text); size++) {
            struct message_head head = {.posted_ms = -7, .claim_count = 7};

            ck_assert(reads(text, size, &head) == (size == whole));
            ck_assert_int_eq(head.posted_ms, size == whole ? 1000 : -7);
            ck_assert_uint_eq(head.claim_count, size == whole ? 0 : 7);
            ck_assert(size == whole ||
                      (head.checksum == NULL && head.original_id.data == NULL));
        }
    }
}

START_TEST(a_time_that_is_none_is_no_head)
{
    static const double strange[] = {0.0 / 0.0, 1.0 / 0.0, -1.0 / 0.0, 1e300, -1e300};
    char text[RESP_HEAD_SIZE];

    for (size_t at = 0; at <= 16; at += 8)
        for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
            struct message_head head;

            resp_head(text, 0);
            ck_assert(reads(text, sizeof(text), &head));
            memcpy(text + at, &strange[i], sizeof(strange[i]));
            ck_assert(!reads(text, sizeof(text), &head));
        }
}

TEST_CASE("details");

/* Details with all texts, and with a key of this length. */
static size_t
write_details(char *out, size_t cap, size_t key_len)
{
    static const char key[STORE_UNIQUE_MAX] = "key";
    const struct store_details details = {.reason = bytes_str("reason"),
                                          .client = bytes_str("worker"),
                                          .released_ms = 5000,
                                          .origin = bytes_str("q"),
                                          .dead_lettered_ms = 6000,
                                          .unique = {.key = bytes_of(key, key_len),
                                                     .until_claimed = key_len > 3,
                                                     .due_ms = key_len > 4 ? 7000 : 0}};
    struct mem *mem = mem_new(0);
    struct buf text;
    size_t size;

    buf_init(&text, mem);
    message_details_write(&text, &details);
    ck_assert(!text.failed);
    size = buf_view(&text).len;
    ck_assert_uint_le(size, cap);
    memcpy(out, buf_view(&text).data, size);
    buf_fini(&text);
    mem_destroy(mem);
    return size;
}

/* Are these details, in a block of exactly this size? Their texts are gone then. */
static bool
reads_details(const char *bytes, size_t size, struct store_details *out)
{
    char *copy = copy_of(bytes, size);
    const bool good = message_details_read(bytes_of(copy, size), out);

    free(copy);
    return good;
}

START_TEST(details_are_read_as_they_were_written)
{
    static const size_t lengths[] = {0, 1, 3, 4, STORE_UNIQUE_MAX};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        char text[256];
        const size_t size = write_details(text, sizeof(text), lengths[i]);
        struct store_details d;

        ck_assert(message_details_read(bytes_of(text, size), &d));
        ck_assert(bytes_equal_str(d.reason, "reason"));
        ck_assert(bytes_equal_str(d.client, "worker"));
        ck_assert(bytes_equal_str(d.origin, "q"));
        ck_assert_int_eq(d.released_ms, 5000);
        ck_assert_int_eq(d.dead_lettered_ms, 6000);
        ck_assert_uint_eq(d.unique.key.len, lengths[i]);
        ck_assert(d.unique.until_claimed == (lengths[i] > 3));
        ck_assert_int_eq(d.unique.due_ms, lengths[i] > 4 ? 7000 : 0);
    }
}

/* An older claimd reads them. */
START_TEST(details_without_a_key_have_their_old_form)
{
    char text[256];
    const size_t size = write_details(text, sizeof(text), 0);

    ck_assert_uint_eq(size, 2 * sizeof(double) + 2 + strlen("workerqreason"));
    ck_assert_int_eq(text[16], (int)strlen("worker"));
    ck_assert_int_eq(memcmp(text + 18, "workerqreason", 13), 0);
}

START_TEST(broken_keys_are_no_details)
{
    enum { FLAGS_AT = 18 + 7, LEN_AT, KEY_LEN = 3, KEY_END = LEN_AT + 1 + KEY_LEN };
    enum { HAS_DUE = 2, UNKNOWN = 4 };
    char text[512] = "";
    const size_t size = write_details(text, sizeof(text), KEY_LEN);
    struct store_details d;

    for (size_t len = 0; len <= size; len++)
        ck_assert(reads_details(text, len, &d) == (len >= KEY_END));
    text[FLAGS_AT] = UNKNOWN;
    ck_assert(!reads_details(text, size, &d));
    text[FLAGS_AT] = HAS_DUE;
    for (size_t len = 0; len <= KEY_END + sizeof(double); len++)
        ck_assert(reads_details(text, len, &d) == (len == KEY_END + sizeof(double)));
    text[FLAGS_AT] = 0;
    for (int len = 0; len <= UINT8_MAX; len++) {
        text[LEN_AT] = (char)len;
        ck_assert(reads_details(text, sizeof(text), &d) ==
                  (len >= 1 && len <= STORE_UNIQUE_MAX));
    }
}
