/* The whole state of a project as a document (docs/api.md 23.4). */
#include "claimd/json/string.h"
#include "support/asking.h"

#include <jansson.h>
#include <string.h>
#include <time.h>

#define CLAIMS "/v2/queues/q/claims"
#define STATE  "/claimd/state"

static struct api_fixture f;

static void
open_testapi(void)
{
    api_fixture_open_testapi(&f, &api_limits_default);
}

static void
close_testapi(void)
{
    api_fixture_close(&f);
}

/* A text that is kept, with ' for ". */
static const char *
json(const char *text)
{
    char *copy = strdup(text);
    const char *kept;

    for (char *at = copy; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    kept = api_text(&f, "%s", copy);
    free(copy);
    return kept;
}

static const char *
state(void)
{
    ck_api(&f, "GET", STATE, NULL, 200, NULL);
    return api_text(&f, "%s", api_answer(&f.c));
}

static void
set(const char *document)
{
    ck_api(&f, "PUT", STATE, json(document), 204, NULL);
}

/* It is refused for this reason, and all is as it was. */
static void
refuse(const char *document, const char *why)
{
    const char *before = state(), *body = json(document);

    ck_api(&f, "PUT", STATE, body, 400, NULL);
    ck_assert_msg(strstr(api_answer(&f.c), why) != NULL, "%s instead of %s",
                  api_answer(&f.c), why);
    ck_assert_str_eq(state(), before);
}

static void
post(const char *queue, const char *messages)
{
    ck_api(&f, "POST", api_text(&f, "/v2/queues/%s/messages", queue), json(messages), 201,
           NULL);
}

/* ---------------------------------------------------------------------- round */

TEST_CASE("round", .setup = open_testapi, .teardown = close_testapi);

START_TEST(nothing_is_an_empty_document)
{
    ck_api(&f, "GET", STATE, NULL, 200, NULL);
    ck_api_body(&f, "{'version':1,'now_ms':1769860800000,'queues':[],'topics':[]}");
}
END_TEST

START_TEST(what_is_shown_can_be_put_back_and_is_the_same)
{
    const char *before, *claim;

    ck_api(&f, "PUT", "/v2/queues/q",
           json("{'_max_claim_count':3,'_dead_letter_queue':'dead','x':[1,2]}"), 201,
           NULL);
    post("q", "{'messages':[{'body':{'a': 1.0},'ttl':300},{'body':'two','ttl':100,"
              "'delay':20}]}");
    ck_api(&f, "POST", CLAIMS, json("{'ttl':60,'grace':60}"), 201, NULL);
    claim = api_pick_id(&f, "messages.0.href");
    ck_assert_ptr_nonnull(claim);
    ck_api(&f, "POST", "/v2/queues/q/subscriptions",
           json("{'subscriber':'http://example.org/','ttl':3600}"), 201, NULL);
    ck_api(&f, "POST", "/v2/topics/t/subscriptions",
           json("{'subscriber':'mailto:me@example.org'}"), 201, NULL);
    before = state();
    set("{'version':1}");
    ck_assert_ptr_null(strstr(state(), "example.org"));
    ck_api(&f, "PUT", STATE, before, 204, NULL);
    ck_assert_str_eq(state(), before);
    ck_api(&f, "PUT", STATE, before, 204, NULL);
    ck_assert_str_eq(state(), before);
}
END_TEST

START_TEST(how_often_a_message_was_claimed_is_kept_whoever_holds_it)
{
    const char *before;

    set("{'version':1,'queues':[{'name':'q','claims':[{'id':'c'}],'messages':["
        "{'body':1,'claim':'c','claim_count':0},{'body':2,'claim':'c'},"
        "{'body':3,'claim_count':1},{'body':4}]}]}");
    before = state();
    ck_assert_ptr_nonnull(strstr(before, "\"claim_count\":0,\"body\":1}"));
    ck_assert_ptr_nonnull(strstr(before, "\"claim_count\":1,\"body\":3}"));
    ck_assert_ptr_null(strstr(before, "\"claim_count\":1,\"body\":2}"));
    ck_api(&f, "PUT", STATE, before, 204, NULL);
    ck_assert_str_eq(state(), before);
}
END_TEST

START_TEST(a_document_that_is_loaded_later_goes_on_where_it_was)
{
    const char *before;

    post("q", "{'messages':[{'body':1,'ttl':300},{'body':2,'ttl':300,'delay':20}]}");
    ck_api(&f, "POST", "/claimd/clock/advance", json("{'seconds':7}"), 200, NULL);
    before = state();
    ck_api(&f, "POST", "/claimd/clock/advance", json("{'seconds':1000}"), 200, NULL);
    ck_api(&f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_assert_ptr_null(strstr(api_answer(&f.c), "body"));
    ck_api(&f, "PUT", STATE, before, 204, NULL);
    ck_api(&f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_answer(&f.c), "\"age\":7"));
    ck_api(&f, "POST", "/claimd/clock/advance", json("{'to':'next'}"), 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_answer(&f.c), "delay_ended"));
    ck_assert_int_eq(clock_now_ms(testapi_clock(f.testapi)),
                     API_FIXTURE_START_MS + 1020000);
}
END_TEST

START_TEST(a_claim_finishes_its_messages_after_it_was_put_back)
{
    const char *before, *href;

    api_post_letters(&f, "q", "abc");
    ck_api(&f, "POST", CLAIMS, json("{'ttl':60,'grace':60}"), 201, NULL);
    href = api_text(&f, "%s", api_pick(&f, "messages.1.href"));
    before = state();
    ck_api(&f, "PUT", STATE, before, 204, NULL);
    ck_api(&f, "DELETE", href, NULL, 204, NULL);
}
END_TEST

START_TEST(all_projects_are_a_document_too)
{
    const char *all;

    post("q", "{'messages':[{'body':1,'ttl':300}]}");
    f.c.headers[API_HEADER_PROJECT_ID] = "other";
    post("r", "{'messages':[{'body':2,'ttl':300}]}");
    f.c.headers[API_HEADER_PROJECT_ID] = NULL;
    all = state();
    ck_assert_ptr_nonnull(strstr(all, "\"projects\":{\"480924\":{\"queues\":[{"));
    ck_api(&f, "POST", "/claimd/reset", NULL, 204, NULL);
    ck_api(&f, "PUT", STATE, all, 204, NULL);
    ck_assert_str_eq(state(), all);
    f.c.headers[API_HEADER_PROJECT_ID] = "other";
    set("{'version':1}");
    f.c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    ck_assert_ptr_nonnull(strstr(state(), "\"body\":1"));
}
END_TEST

/* ---------------------------------------------------------------------- by hand */

TEST_CASE("hand", .setup = open_testapi, .teardown = close_testapi);

START_TEST(a_written_document_needs_little_and_comes_in_any_order)
{
    set("{'queues':[{'messages':[{'body':{'n':1}},{'claim':'mine','body':2,'age':3.5,"
        "'ttl':120},{'body':3,'delay':2}],'claims':[{'ttl':90,'age':30,'id':'mine'}],"
        "'metadata':{'_dead_letter_queue':'late','_max_claim_count':2},'name':'q'},"
        "{'name':'late'}],'version':1}");
    ck_api(&f, "GET", "/v2/queues/q/stats", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_answer(&f.c), "\"claimed\":1,\"free\":2"));
    ck_api(&f, "POST", "/claimd/clock/advance", json("{'to':'next'}"), 200, NULL);
    ck_api(&f, "POST", "/claimd/clock/advance", json("{'to':'next'}"), 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_answer(&f.c), "claim_ended"));
    ck_assert_int_eq(clock_now_ms(testapi_clock(f.testapi)),
                     API_FIXTURE_START_MS + 60000);
}
END_TEST

START_TEST(what_is_wrong_is_told_with_its_place_and_changes_nothing)
{
    static const char *const rows[][2] = {
        {"", "a body is required"},
        {"[]", "must be an object"},
        {"{'queues':[]}", "version: it is missing. It must be 1"},
        {"{'version':2}", "version: it is 2, but this server reads only version 1"},
        {"{'version':1,'queues':[{'name':'q'}", ""},
        {"{'version':1,'queues':{}}", "queues: it must be an array"},
        {"{'version':1,'queuess':[]}", "the unknown member \\\"queuess\\\""},
        {"{'version':1,'projects':{}}",
         "projects: it is not allowed in a request for one project"},
        {"{'version':1,'queues':[{'name':'q'},{'name':'q'}]}",
         "queues[1].name: another one has the same name"},
        {"{'version':1,'queues':[{'name':'q','name':'r'}]}",
         "the member \\\"name\\\" twice"},
        {"{'version':1,'topics':[{'name':'a b'}]}",
         "topics[0].name: it is \\\"a b\\\". It must be 1 to 64"},
        {"{'version':1,'queues':[{'name':'q','metadata':{'_max_claim_count':'x'}}]}",
         "queues[0].metadata: "},
        {"{'version':1,'queues':[{'name':'r'},{'name':'q','messages':[{'body':1},"
         "{'body':1,'claim':'c'}]}]}",
         "queues[1].messages[1].claim: the queue does not have the claim \\\"c\\\""},
        {"{'version':1,'queues':[{'name':'q','claims':[{'id':'c'}]}]}",
         "queues[0].claims[0].id: the claim holds no message"},
        {"{'version':1,'queues':[{'name':'q','claims':[{'id':'c'},{'id':'c'}]}]}",
         "queues[0].claims[1].id: another claim has the same id"},
        {"{'version':1,'queues':[{'name':'q','messages':[{'id':'abcdefab0000000000000001'"
         ","
         "'body':1},{'id':'abcdefab0000000000000001','body':2}]}]}",
         "queues[0].messages[1].id: another message has the same id"},
        {"{'version':1,'queues':[{'name':'q','messages':[{'id':'abcdefab0000000000000001'"
         ","
         "'body':1}]},{'name':'r','messages':[{'id':'abcdefab0000000000000001',"
         "'body':2}]}]}",
         "queues[1].messages[0].id: a message of another queue has the same id"},
        {"{'version':1,'queues':[{'name':'q','messages':[{'id':'x','body':1}]}]}",
         "queues[0].messages[0].id: it is \\\"x\\\". An id is 24"},
        {"{'version':1,'queues':[{'name':'q','messages':[{'body':1,'ttl':1209601}]}]}",
         "queues[0].messages[0].ttl: ttl minus age exceeds max_message_ttl"},
        {"{'version':1,'queues':[{'name':'q','messages':[{'body':1,'ttl':0}]}]}",
         "queues[0].messages[0].ttl: it is 0. It must be between 0.001 and 10000000000 "
         "seconds"},
        {"{'version':1,'queues':[{'name':'q','messages':[{'body':1,'age':1e300}]}]}",
         "queues[0].messages[0].age: it is 1e300. It must be between 0 and"},
        {"{'version':1,'queues':[{'name':'q','messages':[{'body':1,'delay':-1}]}]}",
         "queues[0].messages[0].delay: it is -1. It must be between 0 and"},
        {"{'version':1,'queues':[{'name':'q','messages':[{'ttl':60}]}]}",
         "queues[0].messages[0].body: exactly one of body and sealed"},
        {"{'version':1,'queues':[{'name':'q','messages':[{'sealed':'zz'}]}]}",
         "queues[0].messages[0].sealed: it must consist of hexadecimal"},
        {"{'version':1,'queues':[{'name':'q','messages':[{'sealed':'7b7d'}]}]}",
         "queues[0].messages[0].sealed: it is not an encrypted body"},
        {"{'version':1,'queues':[{'name':'q','subscriptions':[{'subscriber':'x'}]}]}",
         "queues[0].subscriptions[0]: the scheme of subscriber must be"},
        {"{'version':1,'queues':[{'name':'q','subscriptions':[{'subscriber':"
         "'http://a'},{'subscriber':'http://a'}]}]}",
         "queues[0].subscriptions[1].subscriber: it has two subscriptions"},
        {"{'version':1,'queues':[{'name':'a','metadata':{'_dead_letter_queue':'b',"
         "'_max_claim_count':1}},{'name':'b','metadata':{'_dead_letter_queue':'a',"
         "'_max_claim_count':1}}]}",
         "queues[0].metadata._dead_letter_queue: the dead-letter queues form a cycle"},
    };

    post("q", "{'messages':[{'body':1,'ttl':300}]}");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        refuse(rows[i][0], rows[i][1]);
}
END_TEST

START_TEST(without_a_project_the_document_must_name_them)
{
    f.c.headers[API_HEADER_PROJECT_ID] = NULL;
    refuse("{'version':1}", "must have the member projects");
    refuse("{'version':1,'projects':{'p':{'queues':[{'name':'q','messages':[{}]}]}}}",
           "projects[\\\"p\\\"].queues[0].messages[0].body");
    refuse("{'version':1,'projects':{'p':{},'q':{},'\\u0070':{}}}",
           "projects[\\\"p\\\"]: it appears twice");
    set("{'version':1,'projects':{'p':{'queues':[{'name':'q'}]}}}");
}
END_TEST

/* Puts a document, which takes some tenths of a second; a quadratic check takes minutes. */
static void
put_large(const struct buf *document, int code)
{
    const clock_t began = clock();

    ck_assert(!document->failed);
    ck_api(&f, "PUT", STATE, document->data, code, NULL);
    ck_assert_int_lt((clock() - began) / CLOCKS_PER_SEC, 20);
}

START_TEST(a_document_is_checked_in_linear_time)
{
    enum { PROJECTS = 200000, QUEUES = 30000 };
    struct buf document;

    f.c.headers[API_HEADER_PROJECT_ID] = NULL;
    buf_init(&document, f.mem);
    buf_str(&document, "{\"version\":1,\"projects\":{\"p\":{}");
    for (int i = 0; i < PROJECTS; i++)
        buf_printf(&document, ",\"p%d\":{}", i);
    buf_add(&document, "}}", sizeof("}}"));
    put_large(&document, 204);
    buf_reset(&document, SIZE_MAX);
    buf_str(&document, "{\"version\":1,\"projects\":{\"p\":{\"queues\":[");
    for (int i = 0; i < QUEUES; i++)
        buf_printf(&document,
                   "{\"name\":\"q%d\",\"metadata\":{\"_dead_letter_queue\":\"q%d\","
                   "\"_max_claim_count\":1}},",
                   i, i < QUEUES - 1 ? i + 1 : i - 1);
    document.len--;
    buf_add(&document, "]}}}", sizeof("]}}}"));
    put_large(&document, 400);
    ck_assert_ptr_nonnull(
        strstr(api_answer(&f.c), "the dead-letter queues form a cycle"));
    buf_fini(&document);
}
END_TEST

START_TEST(a_body_that_is_too_long_is_said_to_be)
{
    char *body = malloc((64 << 20) + 2);

    memset(body, ' ', (64 << 20) + 1);
    body[(64 << 20) + 1] = '\0';
    ck_api(&f, "PUT", STATE, body, 413, NULL);
    free(body);
    f.c.body_too_large = true;
    ck_api(&f, "PUT", STATE, "{}", 413, NULL);
}
END_TEST

START_TEST(a_message_that_is_larger_than_a_post_may_be_is_refused)
{
    struct api_limits small = api_limits_default;
    struct api_fixture other;

    small.max_messages_post_size = 8;
    api_fixture_open_testapi(&other, &small);
    ck_api(&other, "PUT", STATE,
           "{\"version\":1,\"queues\":[{\"name\":\"q\",\"messages\":[{\"body\":"
           "\"1234567\"}]}]}",
           400, NULL);
    api_fixture_close(&other);
}
END_TEST

START_TEST(when_memory_runs_out_the_old_state_is_there)
{
    const char *before, *document;
    uint64_t nth = 1, refused = 0, attempts;
    int code;

    post("q", "{'messages':[{'body':1,'ttl':300},{'body':2,'ttl':300}]}");
    ck_api(&f, "POST", CLAIMS, json("{'ttl':60,'grace':60}"), 201, NULL);
    before = state();
    document = json("{'version':1,'queues':[{'name':'a','messages':[{'body':1}]},"
                    "{'name':'q','messages':[{'body':7,'claim':'c'}],"
                    "'claims':[{'id':'c'}]}]}");
    for (;; nth++) {
        attempts = mem_attempts(f.mem);
        mem_fail_nth(f.mem, nth);
        code = api_call(&f.c, "PUT", STATE, document);
        mem_fail_nth(f.mem, 0);
        if (mem_attempts(f.mem) - attempts < nth)
            break;
        if (code == 204) { /* the history has done without */
            ck_assert_ptr_nonnull(strstr(state(), "\"body\":7"));
            ck_api(&f, "PUT", STATE, before, 204, NULL);
            continue;
        }
        refused++;
        ck_assert_int_eq(code, 503);
        ck_assert_str_eq(state(), before);
    }
    ck_assert_uint_gt(refused, 20);
    ck_assert_int_eq(code, 204);
    ck_assert_ptr_nonnull(strstr(state(), "\"body\":7"));
}
END_TEST

/* ---------------------------------------------------------------------- others meanwhile */

TEST_CASE("others", .setup = open_testapi, .teardown = close_testapi);

START_TEST(one_state_is_put_after_the_other)
{
    const char *document = json("{'version':1,'queues':[{'name':'q'}]}");
    struct asking put;

    ck_assert(testapi_begin_exchange(f.testapi));
    asking_prepare(&put, &f, "PUT", STATE, NULL);
    put.req.body = bytes_str(document);
    ck_assert_int_eq(asking_ask(&put), API_AGAIN);
    ck_assert_int_eq(asking_ask(&put), API_AGAIN);
    testapi_end_exchange(f.testapi);
    ck_assert_int_ne(asking_ask(&put), API_AGAIN);
    ck_assert_int_eq(put.res.code, 204);
    asking_forget(&put);
    ck_assert(testapi_begin_exchange(f.testapi)); /* nobody is at it */
    testapi_end_exchange(f.testapi);
}
END_TEST

/* A store where others make queues again when they are deleted, so often. */
static const struct store_ops *real;
static struct store_ops busy;
static int made;

static enum status
delete_and_make(struct store *s, struct store_visit *visit,
                const struct store_queue *queue)
{
    const struct store_metadata plain = {{NULL, 0}, STORE_SETTINGS_INIT};
    enum status st = real->queue_delete(s, visit, queue);
    bool created;

    if (st == ST_OK && made > 0) {
        made--;
        st = real->queue_create(s, visit, queue, &plain, &created);
    }
    return st;
}

static void
be_busy(int times)
{
    real = f.store->ops;
    busy = *real;
    busy.queue_delete = delete_and_make;
    f.store->ops = &busy;
    made = times;
}

START_TEST(a_queue_that_others_make_again_is_replaced_all_the_same)
{
    set("{'version':1,'queues':[{'name':'a','messages':[{'body':1}]},"
        "{'name':'b','messages':[{'body':2}]}]}");
    be_busy(3);
    set("{'version':1,'queues':[{'name':'a','messages':[{'body':3}]},{'name':'c'}]}");
    f.store->ops = real;
    ck_assert_int_eq(made, 0);
    ck_api(&f, "GET", "/v2/queues/a/messages?echo=true", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_answer(&f.c), "\"body\":3"));
    ck_assert_ptr_null(strstr(api_answer(&f.c), "\"body\":1"));
}
END_TEST
