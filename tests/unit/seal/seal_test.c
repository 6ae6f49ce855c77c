/*
 * An encrypted body opens only with its key and in its project, any changed bit is found,
 * and no nonce is used twice (docs/adr/0012-encryption.md). Read claimd/seal/seal.h next.
 */
#include "claimd/seal/seal.h"
#include "support/arena_fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The bytes 0, 1, 2... 31; the same as base64; and another one. */
#define KEY        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define KEY_BASE64 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define KEY_ID     "d0ad2db0fe5b40ca"
#define OTHER      "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

enum { CAPACITY = 512 };

static const struct seal_scope demo = {.project = BYTES_LIT("demo"), .kind = 0};
static const struct bytes body = BYTES_LIT("{\"pin\": \"4711\"}");

static struct {
    enum status st[8];
    char id[SEAL_KEY_ID_DIGITS + 1];
    size_t count;
} reported;

static void
note_trouble(void *arg, enum status st, const char *id, struct bytes project)
{
    (void)arg;
    ck_assert_uint_lt(reported.count, sizeof(reported.st) / sizeof(reported.st[0]));
    ck_assert(bytes_present(project));
    reported.st[reported.count++] = st;
    memcpy(reported.id, id, sizeof(reported.id));
}

static struct seal *
make(const char *list, uint64_t bodies_per_salt)
{
    const struct seal_config config = {
        .mem = f.mem, .bodies_per_salt = bodies_per_salt, .trouble = note_trouble};
    struct seal *s = NULL;
    struct reason why;
    size_t line;

    reported.count = 0;
    ck_assert_int_eq(seal_new(&config, &s), ST_OK);
    if (list != NULL)
        ck_assert_int_eq(seal_replace(s, bytes_str(list), &line, &why), ST_OK);
    return s;
}

static struct bytes
close_body(struct seal *s, char to[CAPACITY])
{
    ck_assert_int_eq(seal_close(s, &demo, body, to), ST_OK);
    return bytes_of(to, body.len + SEAL_OVERHEAD);
}

static void
expect_open(struct seal *s, struct bytes sealed)
{
    char open[CAPACITY];

    ck_assert_uint_eq(seal_open_len(sealed), body.len);
    ck_assert_int_eq(seal_open(s, &demo, sealed, open), ST_OK);
    ck_assert_mem_eq(open, body.data, body.len);
}

/* Fails so, and leaves nothing of the text. */
static void
expect_shut(struct seal *s, const struct seal_scope *scope, struct bytes sealed,
            enum status st)
{
    static const char nothing[CAPACITY];
    char open[CAPACITY] = {0};

    ck_assert_int_eq(seal_open(s, scope, sealed, open), st);
    ck_assert_mem_eq(open, nothing, CAPACITY);
}

TEST_CASE("seal", .setup = arena_fixture_open, .teardown = arena_fixture_close);

#define SEAL_TEST_WITH(id, make) MADE_TEST(id, struct seal, s, make, seal_free(s))
#define SEAL_TEST(id)            SEAL_TEST_WITH(id, make(KEY, 0))

SEAL_TEST(a_sealed_body_opens_and_hides_its_text)
{
    char first[CAPACITY], second[CAPACITY];
    struct bytes a = close_body(s, first), b = close_body(s, second);
    struct seal_metrics done;

    ck_assert(seal_ready(s) && seal_is_sealed(a) && !seal_is_sealed(body));
    ck_assert(!bytes_contain(a, bytes_str("4711")));
    ck_assert(!bytes_equal(a, b));
    expect_open(s, a);
    expect_open(s, b);
    seal_measure(s, &done);
    ck_assert_uint_eq(done.sealed, 2);
    ck_assert_uint_eq(done.opened, 2);
    ck_assert_uint_eq(done.no_key + done.damaged, 0);
    ck_assert_uint_eq(done.keys, 1);
}

/* Made by another program: Python's hmac, and the AESGCM of its package cryptography. */
SEAL_TEST(a_body_that_was_sealed_elsewhere_opens)
{
    static const uint8_t sealed[] = {
        0x01, 0xd0, 0xad, 0x2d, 0xb0, 0xfe, 0x5b, 0x40, 0xca, 0xa0, 0xa1, 0xa2,
        0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae,
        0xaf, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xcf, 0xf1, 0x04,
        0xfc, 0x07, 0x6c, 0x13, 0x83, 0xba, 0x37, 0xc6, 0xc6, 0x27, 0x04, 0xb7,
        0x61, 0x62, 0xa4, 0x74, 0x93, 0x8d, 0x7d, 0xe3, 0x69};
    char ids[SEAL_KEYS_MAX][SEAL_KEY_ID_DIGITS + 1], open[CAPACITY];

    ck_assert_int_eq(
        seal_open(s, &demo, bytes_of((const char *)sealed, sizeof(sealed)), open), ST_OK);
    ck_assert_mem_eq(open, "\"secret\"", 8);
    ck_assert_uint_eq(seal_key_ids(s, ids), 1);
    ck_assert_str_eq(ids[0], KEY_ID);
}

SEAL_TEST(it_opens_in_its_project_and_kind_only)
{
    struct seal_scope wrong[] = {demo, demo, demo, demo};
    char buffer[CAPACITY];
    struct bytes sealed = close_body(s, buffer);

    wrong[0].project = bytes_str("demo2");
    wrong[1].project = bytes_str("");
    wrong[2].project = bytes_str("Demo");
    wrong[3].kind = 1;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        expect_shut(s, &wrong[i], sealed, ST_DAMAGED);
    expect_open(s, sealed);
}

SEAL_TEST(a_bit_that_is_changed_anywhere_is_found)
{
    char buffer[CAPACITY], shut[CAPACITY] = {0};
    struct bytes sealed = close_body(s, buffer);

    for (size_t bit = 0; bit < sealed.len * 8; bit++) {
        bool of_id = bit / 8 >= 1 && bit / 8 < 9;

        reported.count = 0;
        buffer[bit / 8] = (char)(buffer[bit / 8] ^ (1 << bit % 8));
        ck_assert_int_eq(seal_open(s, &demo, sealed, shut),
                         of_id ? ST_NO_KEY : ST_DAMAGED);
        buffer[bit / 8] = (char)(buffer[bit / 8] ^ (1 << bit % 8));
    }
    expect_open(s, sealed);
}

SEAL_TEST(a_sealed_body_of_another_length_is_refused)
{
    char buffer[CAPACITY];
    struct bytes sealed = close_body(s, buffer);

    for (size_t len = 0; len < sealed.len; len++) {
        reported.count = 0;
        expect_shut(s, &demo, bytes_of(buffer, len), ST_DAMAGED);
    }
    buffer[sealed.len] = 0;
    expect_shut(s, &demo, bytes_of(buffer, sealed.len + 1), ST_DAMAGED);
}

SEAL_TEST_WITH(an_empty_body_is_sealed_too, make(KEY_BASE64, 0))
{
    char buffer[CAPACITY], open[1] = {'x'};

    ck_assert_int_eq(seal_close(s, &demo, bytes_str(""), buffer), ST_OK);
    ck_assert_int_eq(seal_open(s, &demo, bytes_of(buffer, SEAL_OVERHEAD), open), ST_OK);
    ck_assert_int_eq(open[0], 'x');
    buffer[SEAL_OVERHEAD - 1] ^= 1;
    ck_assert_int_eq(seal_open(s, &demo, bytes_of(buffer, SEAL_OVERHEAD), open),
                     ST_DAMAGED);
}

SEAL_TEST(a_project_that_is_too_long_is_refused)
{
    static char name[SEAL_PROJECT_MAX + 1];
    struct seal_scope scope = {.project = bytes_of(name, SEAL_PROJECT_MAX)};
    char buffer[CAPACITY], open[CAPACITY];
    struct bytes sealed = bytes_of(buffer, body.len + SEAL_OVERHEAD);

    ck_assert_int_eq(seal_close(s, &scope, body, buffer), ST_OK);
    ck_assert_int_eq(seal_open(s, &scope, sealed, open), ST_OK);
    scope.project.len++;
    ck_assert_int_eq(seal_close(s, &scope, body, buffer), ST_BAD_VALUE);
    ck_assert_int_eq(seal_open(s, &scope, sealed, open), ST_DAMAGED);
}

TEST_CASE("keys", .setup = arena_fixture_open, .teardown = arena_fixture_close);

START_TEST(of_several_keys_the_first_seals_and_each_opens)
{
    struct seal *old = make(KEY, 0), *both = make("# new\n" OTHER "\r\n\n " KEY " \n", 0);
    char buffer[CAPACITY], new_buffer[CAPACITY];
    struct bytes sealed = close_body(old, buffer), newer = close_body(both, new_buffer);

    expect_open(both, sealed);
    expect_open(both, newer);
    expect_shut(old, &demo, newer, ST_NO_KEY);
    seal_free(old);
    seal_free(both);
}

START_TEST(a_key_that_is_taken_out_opens_nothing_any_more)
{
    struct seal *s = make(KEY, 0), *next = make(OTHER, 0);
    char buffer[CAPACITY], next_buffer[CAPACITY];
    struct bytes sealed = close_body(s, buffer);

    expect_open(s, sealed);
    seal_swap(s, next);
    expect_shut(s, &demo, sealed, ST_NO_KEY);
    expect_open(next, sealed);
    expect_open(s, close_body(s, next_buffer));
    seal_free(s);
    seal_free(next);
}

START_TEST(a_missing_key_is_reported_once)
{
    struct seal *s = make(KEY, 0), *other = make(OTHER, 0);
    struct seal_metrics done;
    char buffer[CAPACITY];
    struct bytes sealed = close_body(s, buffer);

    for (int i = 0; i < 3; i++)
        expect_shut(other, &demo, sealed, ST_NO_KEY);
    ck_assert_uint_eq(reported.count, 1);
    ck_assert_int_eq(reported.st[0], ST_NO_KEY);
    ck_assert_str_eq(reported.id, KEY_ID);
    seal_measure(other, &done);
    ck_assert_uint_eq(done.no_key, 3);
    seal_free(s);
    seal_free(other);
}

SEAL_TEST(damage_is_reported_ever_more_seldom)
{
    struct seal_metrics done;
    char buffer[CAPACITY];
    struct bytes sealed = close_body(s, buffer);

    buffer[sealed.len - 1] ^= 1;
    for (int i = 0; i < 100; i++)
        expect_shut(s, &demo, sealed, ST_DAMAGED);
    ck_assert_uint_eq(reported.count, 7); /* 1 2 4 8 16 32 64 */
    seal_measure(s, &done);
    ck_assert_uint_eq(done.damaged, 100);
}

SEAL_TEST_WITH(without_a_key_nothing_is_sealed, make(NULL, 0))
{
    char buffer[CAPACITY];

    ck_assert(!seal_ready(s));
    ck_assert_int_eq(seal_close(s, &demo, body, buffer), ST_NO_KEY);
}

SEAL_TEST(keys_that_cannot_be_taken_change_nothing)
{
    static const struct {
        const char *list;
        size_t line;
        const char *why;
    } rows[] = {
        {"", 0, "the file has no key"},
        {"# nothing\n\n", 0, "the file has no key"},
        {OTHER "\nshort", 2, "a key must be 32 bytes"},
        {OTHER "0", 1, "a key must be 32 bytes"},
        {"g" KEY, 1, "a key must be 32 bytes"},
        {"zz0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", 1,
         "a key must be 32 bytes"},
        {"*AECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", 1, "a key must be 32 bytes"},
        {"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8h", 1, "a key must be 32 bytes"},
        {KEY "\n" KEY_BASE64, 2, "the file has this key twice"},
    };
    char buffer[CAPACITY];
    struct bytes sealed = close_body(s, buffer);
    struct reason why;
    size_t line;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        reason_init(&why);
        ck_assert_int_eq(seal_replace(s, bytes_str(rows[i].list), &line, &why),
                         ST_BAD_VALUE);
        ck_assert_uint_eq(line, rows[i].line);
        ck_assert_msg(strstr(why.text, rows[i].why) != NULL, "%s", why.text);
    }
    expect_open(s, sealed);
}

SEAL_TEST(there_are_so_many_keys_at_most)
{
    struct reason why;
    size_t line;

    for (unsigned i = 0; i < SEAL_KEYS_MAX + 1; i++) {
        buf_str(&f.out, i == 0 ? "" : "\n");
        buf_str(&f.out, (const char[]){(char)('a' + i % 6), (char)('0' + i), '\0'});
        buf_str(&f.out, &KEY[2]);
    }
    ck_assert_int_eq(seal_replace(s, buf_view(&f.out), &line, &why), ST_BAD_VALUE);
    ck_assert_uint_eq(line, SEAL_KEYS_MAX + 1);
    ck_assert_ptr_nonnull(strstr(why.text, "the file has more than 8 keys"));
}

TEST_CASE("nonces", .setup = arena_fixture_open, .teardown = arena_fixture_close);

enum { SALT_AT = 9, NUMBER_AT = 25, HEAD = 33 };

SEAL_TEST_WITH(a_salt_is_used_up_and_another_one_is_drawn, make(KEY, 3))
{
    char buffer[7][CAPACITY];

    for (size_t i = 0; i < 7; i++)
        expect_open(s, close_body(s, buffer[i]));
    for (size_t i = 0; i < 7; i++) {
        ck_assert_int_eq(buffer[i][NUMBER_AT], (char)(i % 3 + 1));
        ck_assert_mem_eq(buffer[i] + SALT_AT, buffer[i / 3 * 3] + SALT_AT, 16);
    }
    ck_assert_mem_ne(buffer[0] + SALT_AT, buffer[3] + SALT_AT, 16);
    ck_assert_mem_ne(buffer[3] + SALT_AT, buffer[6] + SALT_AT, 16);
}

START_TEST(each_start_and_each_change_of_keys_draws_a_salt)
{
    struct seal *a = make(KEY, 0), *b = make(KEY, 0);
    char buffer[3][CAPACITY];
    struct reason why;
    size_t line;

    (void)close_body(a, buffer[0]);
    (void)close_body(b, buffer[1]);
    ck_assert_int_eq(seal_replace(a, bytes_str(KEY), &line, &why), ST_OK);
    (void)close_body(a, buffer[2]);
    ck_assert_mem_ne(buffer[0] + SALT_AT, buffer[1] + SALT_AT, 16);
    ck_assert_mem_ne(buffer[0] + SALT_AT, buffer[2] + SALT_AT, 16);
    expect_open(a, bytes_of(buffer[1], body.len + SEAL_OVERHEAD));
    seal_free(a);
    seal_free(b);
}

enum { THREADS = 4, EACH = 2000 };

struct writer {
    struct seal *seal;
    char (*heads)[HEAD];
};

static void *
write_many(void *arg)
{
    const struct writer *w = arg;
    char buffer[CAPACITY];

    for (size_t i = 0; i < EACH; i++) {
        if (seal_close(w->seal, &demo, body, buffer) != ST_OK)
            return NULL;
        memcpy(w->heads[i], buffer, HEAD);
    }
    return arg;
}

static int
compare_heads(const void *a, const void *b)
{
    return memcmp(a, b, HEAD);
}

SEAL_TEST_WITH(no_two_bodies_of_many_threads_have_the_same_nonce, make(KEY, 1000))
{
    char(*heads)[HEAD] = mem_alloc(f.mem, (size_t)THREADS * EACH * HEAD);
    struct writer writers[THREADS];
    pthread_t threads[THREADS];

    ck_assert_ptr_nonnull(heads);
    for (size_t i = 0; i < THREADS; i++) {
        writers[i] = (struct writer){s, heads + i * EACH};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_many, &writers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *good;

        ck_assert_int_eq(pthread_join(threads[i], &good), 0);
        ck_assert_ptr_nonnull(good);
    }
    qsort(heads, THREADS * EACH, HEAD, compare_heads);
    for (size_t i = 1; i < THREADS * EACH; i++)
        ck_assert_int_ne(memcmp(heads[i - 1], heads[i], HEAD), 0);
    mem_free(f.mem, heads);
}

/* More salts than are remembered: those that are forgotten are derived again. */
SEAL_TEST_WITH(bodies_of_many_salts_open, make(KEY, 1))
{
    enum { SALTS = 300 };
    char(*buffer)[CAPACITY] = mem_alloc(f.mem, (size_t)SALTS * CAPACITY);

    ck_assert_ptr_nonnull(buffer);
    for (size_t i = 0; i < SALTS; i++)
        (void)close_body(s, buffer[i]);
    for (size_t round = 0; round < 2; round++)
        for (size_t i = 0; i < SALTS; i++)
            expect_open(s, bytes_of(buffer[i], body.len + SEAL_OVERHEAD));
    mem_free(f.mem, buffer);
}
