/* Dumps, page by page, and loading them (docs/api.md 24). */
#include "claimd/api/dump.h"
#include "support/pending.h"

#include <string.h>

static struct api_fixture f;

static void
open_plain(void)
{
    api_fixture_open(&f);
}

static void
close_plain(void)
{
    api_fixture_close(&f);
}

/* a and up to `most` bytes of b, however long; kept until the test ends. */
static const char *
join(const char *a, const char *b, size_t most)
{
    size_t len = strlen(a), more = strnlen(b, most);
    char *text = arena_alloc(&f.kept, len + more + 1);

    ck_assert_ptr_nonnull(text);
    memcpy(text, a, len);
    memcpy(text + len, b, more);
    text[len + more] = '\0';
    return text;
}

/* The whole dump: all pages, without what leads from one to the next. */
static const char *
dump(const char *parameters)
{
    const char *all = "", *target = api_text(&f, "/claimd/dump?%s", parameters);

    for (;;) {
        const char *page, *last, *next;

        ck_api(&f, "GET", target, NULL, 200, NULL);
        ck_api_header(&f, "Content-Type", "application/jsonl");
        page = join("", api_body(&f.c), SIZE_MAX);
        next = strstr(page, "{\"next\":\"");
        last = next != NULL ? next : strstr(page, "{\"end\":true}\n");
        ck_assert_ptr_nonnull(last);
        all = join(all, page, (size_t)(last - page));
        if (next == NULL)
            return all;
        target = api_text(&f, "/claimd/dump?%s&marker=%.*s", parameters,
                          (int)strcspn(next + 9, "\""), next + 9);
    }
}

static size_t
count(const char *text, const char *what)
{
    size_t found = 0;

    while ((text = strstr(text, what)) != NULL) {
        text += strlen(what);
        found++;
    }
    return found;
}

/* The lines with an end record. */
static const char *
complete(const char *lines)
{
    return join(lines, api_text(&f, "{\"end\":%zu}\n", count(lines, "\n")), SIZE_MAX);
}

/* A post of messages whose bodies are so long that a page has some of them only. */
static void
post_long(const char *queue, int messages)
{
    char body[8000];

    memset(body, 'x', sizeof(body) - 1);
    body[sizeof(body) - 1] = '\0';
    for (int i = 0; i < messages; i++)
        ck_api(&f, "POST", api_text(&f, "/v2/queues/%s/messages", queue),
               api_text(&f, "{\"messages\":[{\"body\":\"%s\",\"ttl\":300}]}", body), 201,
               NULL);
}

static void
load(const char *lines, int code)
{
    ck_api(&f, "POST", "/claimd/load", lines, code, NULL);
}

TEST_CASE("dump", .setup = open_plain, .teardown = close_plain);

START_TEST(an_empty_store_is_a_line)
{
    ck_assert_str_eq(dump(""),
                     "{\"claimd\":\"dump\",\"version\":1,\"now_ms\":1769860800000}\n");
}

START_TEST(all_there_is_comes_page_by_page_and_loads_again)
{
    const char *before;

    post_long("long", 60);
    api_post_letters(&f, "q", "abc");
    ck_assert_ptr_nonnull(api_take(&f, "q", 2));
    ck_api(&f, "POST", "/v2/queues/q/subscriptions",
           "{\"subscriber\":\"http://example.org/\",\"ttl\":3600}", 201, NULL);
    ck_api(&f, "PUT", "/v2/topics/t", "{\"a\":1}", 201, NULL);
    f.c.headers[API_HEADER_PROJECT_ID] = "other";
    api_post_letters(&f, "q", "z");
    before = dump("");
    ck_assert_uint_eq(count(before, "\"message\":"), 64);
    ck_assert_uint_eq(count(before, "\"subscription\":"), 1);
    ck_assert_uint_eq(count(before, "\"metadata\":"), 4);
    ck_assert_uint_eq(count(before, "\"claim\":{\"id\":"), 2);
    ck_assert_uint_eq(count(dump("project=other"), "\"message\":"), 1);
    ck_api(&f, "POST", "/claimd/load?replace=true", complete(before), 200, NULL);
    ck_api_body(&f, "{'queues':4,'messages':64,'subscriptions':1}");
    ck_assert_str_eq(dump(""), before);
    load(complete(before), 409);
    ck_assert_str_eq(dump(""), before);
}

#define ZEROS "00000000000000000000000000000000000000000000000000"

START_TEST(a_load_keeps_the_last_pause_of_a_queue)
{
    static const char line[] = "{\"project\":\"480924\",\"queue\":\"q\",%s}\n";
    static const char *const wrong[] = {
        "\"paused_by\":\"7\\nc\"",
        "\"claims_paused\":true,\"paused_by\":\"c\"",
        "\"posts_paused\":true,\"paused_by\":\"-7\\nc\"",
        "\"posts_paused\":true,\"paused_by\":\"100000000000001\\nc\"",
        "\"posts_paused\":true,\"paused_by\":\"7\"",
        "\"posts_paused\":true,\"paused_by\":\"\"",
        "\"posts_paused\":true,\"paused_by\":\"" ZEROS ZEROS ZEROS "7\\nc\"",
        "\"posts_paused\":true,\"paused_by\":\"7\\n" ZEROS ZEROS ZEROS "\"",
    };
    const char *state, *before;

    api_post_letters(&f, "q", "a");
    f.c.address = "10.0.0.7";
    f.c.headers[API_HEADER_WORKER] = "web3 4711";
    ck_api(&f, "POST", "/claimd/queues/q/pause", NULL, 200, NULL);
    state = join("", api_body(&f.c), SIZE_MAX);
    ck_assert_ptr_nonnull(strstr(state, "\"worker\":\"web3 4711\""));
    before = dump("");
    f.c.now_ms += 5000;
    ck_api(&f, "POST", "/claimd/load?replace=true", complete(before), 200, NULL);
    ck_api(&f, "GET", "/claimd/queues/q/pause", NULL, 200, NULL);
    ck_assert_str_eq(api_body(&f.c), state);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_api(&f, "POST", "/claimd/load?replace=true",
               complete(api_text(&f, line, wrong[i])), 400, NULL);
        ck_assert_ptr_nonnull(strstr(api_body(&f.c), "line 1: paused_by: it must"));
    }
    /* A dump of an older version does not say it. */
    ck_api(&f, "POST", "/claimd/load?replace=true",
           complete(api_text(&f, line, "\"claims_paused\":true")), 200, NULL);
    ck_api(&f, "GET", "/claimd/queues/q/pause", NULL, 200, NULL);
    ck_api_body(&f, "{'claims': true, 'posts': false, 'last_pause': null}");
}

START_TEST(a_queue_that_goes_between_two_pages_has_no_more_lines)
{
    const char *next;

    post_long("long", 60);
    ck_api(&f, "GET", "/claimd/dump", NULL, 200, NULL);
    next = strstr(api_body(&f.c), "{\"next\":\"");
    ck_assert_ptr_nonnull(next);
    next =
        api_text(&f, "/claimd/dump?marker=%.*s", (int)strcspn(next + 9, "\""), next + 9);
    ck_api(&f, "DELETE", "/v2/queues/long", NULL, 204, NULL);
    ck_api(&f, "GET", next, NULL, 200, NULL);
    ck_assert_uint_eq(count(api_body(&f.c), "\"message\":"), 0);
    ck_assert_uint_eq(count(api_body(&f.c), "{\"end\":"), 1);
}

#define HEAD  "{\"claimd\":\"dump\",\"version\":1}\n"
#define QUEUE "{\"project\":\"480924\",\"queue\":\"q\"}\n"

START_TEST(a_dump_without_a_right_end_record_loads_nothing)
{
    static const char *const rows[][2] = {
        {HEAD QUEUE, "no end record. It is truncated after record 2"},
        {HEAD, "no end record. It is truncated after record 1"},
        {HEAD QUEUE "{\"end\":3}", "counts 3 records, but the dump has 2"},
        {HEAD QUEUE "{\"end\":1}", "counts 1 records, but the dump has 2"},
        {QUEUE "{\"end\":2}", "counts 2 records, but the dump has 1"},
        {HEAD QUEUE "{\"end\":2}\n\n{\"end\":2}", "line 5: it follows the end record"},
        {"{\"end\":0}\n" QUEUE, "line 2: it follows the end record"},
        {"{\"next\":\"x\"}\n" QUEUE, "line 2: it follows the end record"},
        {HEAD QUEUE "{\"end\":\"2\"}", "It must be the number of records, or true"},
        {HEAD QUEUE "{\"end\":false}", "It must be the number of records, or true"},
        {HEAD QUEUE "{\"end\":-1}", "line 3: end: it is -1. It must be between 0 and"},
    };
    static const char *const good[] = {
        QUEUE,
        HEAD "\n" QUEUE "\n{\"end\":2}\n\n",
        QUEUE "{\"end\":1}",
        HEAD QUEUE "{\"end\":true}",
        HEAD QUEUE "{\"next\":\"7.61.62.0.0.0\"}",
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        load(rows[i][0], 400);
        ck_assert_msg(strstr(api_body(&f.c), rows[i][1]) != NULL, "%s instead of %s",
                      api_body(&f.c), rows[i][1]);
        ck_assert_uint_eq(count(dump(""), "\n"), 1);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ck_api(&f, "POST", "/claimd/load?replace=true", good[i], 200, NULL);
        ck_api_body(&f, "{'queues':1,'messages':0,'subscriptions':0}");
    }
}

START_TEST(a_claim_is_loaded_in_pieces_as_well)
{
    static const char claim[] =
        "\"claim\":{\"id\":\"abcdefabcdef000000000007\",\"ttl\":60}";
    const char *queue = "{\"project\":\"480924\",\"queue\":\"q\"";

    load(api_text(&f, "%s}\n%s,\"message\":{\"body\":1,%s}}\n", queue, queue, claim),
         200);
    load(api_text(&f, "\n%s,\"message\":{\"body\":2,%s}}", queue, claim), 200);
    ck_api(&f, "GET", "/v2/queues/q/claims/abcdefabcdef000000000007", NULL, 200, NULL);
    ck_assert_uint_eq(count(api_body(&f.c), "\"body\":"), 2);
    ck_api(&f, "DELETE", "/v2/queues/q/claims/abcdefabcdef000000000007", NULL, 204, NULL);
}

START_TEST(a_claim_may_have_a_name)
{
    static const char line[] = "{\"project\":\"480924\",\"queue\":\"q\",\"message\":{"
                               "\"body\":1,\"claim\":{\"id\":\"mine\"}}}\n";
    const char *first, *second;

    load(api_text(&f, "%s%s%s", "{\"project\":\"480924\",\"queue\":\"q\"}\n", line, line),
         200);
    first = strstr(dump(""), "\"claim\":{\"id\":\"") + 15;
    second = strstr(first, "\"claim\":{\"id\":\"") + 15;
    ck_assert_mem_eq(first, second, 24);
    ck_api(&f, "GET", api_text(&f, "/v2/queues/q/claims/%.24s", first), NULL, 200, NULL);
    ck_assert_uint_eq(count(api_body(&f.c), "\"body\":"), 2);
}

START_TEST(a_line_that_is_wrong_loads_nothing)
{
    static const char *const rows[][2] = {
        {"x", "line 2: "},
        {"{\"project\":\"p\"}", "line 2: queue: it is \\\"\\\". It must be 1 to 64"},
        {"{\"queue\":\"q\"}", "line 2: project: it is required, and at most 256"},
        {"{\"project\":\"p\",\"queue\":\"q\",\"topic\":\"t\"}",
         "more than one of queue, topic and schedules"},
        {"{\"claimd\":\"dump\",\"version\":7}", "line 2: version: it is 7"},
        {"{\"project\":\"p\",\"queue\":\"q\",\"message\":{}}", "line 2: message.body: "},
        {"{\"project\":\"p\",\"queue\":\"q\",\"message\":{\"body\":1,\"claim\":{}}}",
         "line 2: message.claim.id: it is required"},
        {"{\"project\":\"p\",\"queue\":\"q\"}\n{\"project\":\"p\",\"queue\":\"q\","
         "\"message\":{\"body\":1,\"ttl\":60,\"delay\":61}}",
         "line 3: message.delay: it is out of range"},
        {"{\"project\":\"p\",\"queue\":\"q\",\"metadata\":{},\"message\":{\"body\":1}}",
         "line 2: only one of metadata, message and subscription"},
        {"{\"project\":\"p\",\"queue\":\"q\",\"subscription\":{}}",
         "line 2: subscription.subscriber: it is required"},
        {"{\"project\":\"p\",\"queue\":\"q\",\"metadata\":[]}", "line 2: metadata: "},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        load(api_text(&f, "{\"project\":\"p\",\"queue\":\"r\"}\n%s\n", rows[i][0]), 400);
        ck_assert_msg(strstr(api_body(&f.c), rows[i][1]) != NULL, "%s instead of %s",
                      api_body(&f.c), rows[i][1]);
    }
    ck_assert_uint_eq(count(dump(""), "\n"), 1);
    load("{\"project\":\"p\",\"queue\":\"q\",\"message\":{\"body\":1}}", 409);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "no earlier line creates it"));
    ck_api(&f, "POST", "/claimd/load?replace=nonsense", QUEUE, 400, NULL);
    ck_assert_uint_eq(count(dump(""), "\n"), 1);
    f.c.body_too_large = true;
    load("{}", 413);
}

START_TEST(a_foreign_marker_is_refused_and_a_forged_one_is_harmless)
{
    static const char *const none[] = {"x",       "99.61.62.0.0.0", "1.6.61.0.0.0",
                                       "1.61.62", "1.61.62.0.0",    "1.61.62.0.0.0.0"};
    static const char *const doctored[] = {"7.343830393234.71.1.1.18446744073709551615",
                                           "1...9.9.9", "15.61.62.0.7.5",
                                           "7.343830393234.71.0.18446744073709551615.0"};

    api_post_letters(&f, "q", "abc");
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        ck_api(&f, "GET", api_text(&f, "/claimd/dump?marker=%s", none[i]), NULL, 400,
               NULL);
    for (size_t i = 0; i < sizeof(doctored) / sizeof(doctored[0]); i++)
        ck_api(&f, "GET", api_text(&f, "/claimd/dump?marker=%s", doctored[i]), NULL, 200,
               NULL);
}

START_TEST(when_memory_runs_out_a_piece_is_loaded_or_not)
{
    enum { MESSAGES = 40 }; /* their records take more than a block of the arena */
    const char *lines = QUEUE;
    uint64_t attempts, nth = 1;
    int code;

    if (api_fixture_on_redis())
        return; /* a piece may be loaded without memory for its response: "Outcome
                 * unknown" */
    for (int i = 0; i < MESSAGES; i++)
        lines = join(lines,
                     "{\"project\":\"480924\",\"queue\":\"q\","
                     "\"message\":{\"body\":1}}\n",
                     SIZE_MAX);
    for (;; nth++) {
        attempts = mem_attempts(f.mem);
        mem_fail_nth(f.mem, nth);
        code = api_call(&f.c, "POST", "/claimd/load", lines);
        mem_fail_nth(f.mem, 0);
        if (mem_attempts(f.mem) - attempts < nth)
            break;
        ck_assert_int_eq(code, 503);
        ck_assert_uint_eq(count(dump(""), "\n"), 1);
    }
    ck_assert_int_eq(code, 200);
    ck_assert_uint_gt(nth, 8);
    for (nth = 1;; nth++) {
        attempts = mem_attempts(f.mem);
        mem_fail_nth(f.mem, nth);
        code = api_call(&f.c, "GET", "/claimd/dump", NULL);
        mem_fail_nth(f.mem, 0);
        if (mem_attempts(f.mem) - attempts < nth)
            break;
        ck_assert_int_eq(code, 503);
    }
    ck_assert_int_eq(code, 200);
}
