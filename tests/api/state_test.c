/* The whole state of a project as lines (docs/api.md 23.4). */
#include "claimd/json/string.h"
#include "support/pending.h"
#include "support/testapi_fixture.h"

#include <jansson.h>
#include <string.h>
#include <time.h>

#define CLAIMS "/v2/queues/q/claims"
#define STATE  "/claimd/state"

/* A text that is kept, with ' for " and ; for the end of a line. */
static const char *
json(const char *text)
{
    char *copy = strdup(text);
    const char *kept;

    for (char *at = copy; *at != '\0'; at++)
        if (*at == '\'' || *at == ';')
            *at = *at == ';' ? '\n' : '"';
    kept = api_text(&f, "%s", copy);
    free(copy);
    return kept;
}

static const char *
state(void)
{
    ck_api(&f, "GET", STATE, NULL, 200, NULL);
    return api_text(&f, "%s", api_body(&f.c));
}

static void
set(const char *lines)
{
    ck_api(&f, "PUT", STATE, json(lines), 204, NULL);
}

/* It is refused for this reason, and all is as it was. */
static void
refuse(const char *lines, const char *why)
{
    const char *before = state(), *body = json(lines);

    ck_api(&f, "PUT", STATE, body, 400, NULL);
    ck_assert_msg(strstr(api_body(&f.c), why) != NULL, "%s instead of %s", api_body(&f.c),
                  why);
    ck_assert_str_eq(state(), before);
}

static void
post(const char *queue, const char *messages)
{
    ck_api(&f, "POST", api_text(&f, "/v2/queues/%s/messages", queue), json(messages), 201,
           NULL);
}

/* ---------------------------------------------------------------------- round */

TESTAPI_CASE("round");

START_TEST(nothing_is_a_head_and_an_end)
{
    ck_assert_str_eq(
        state(), json("{'claimd':'dump','version':1,'now_ms':1769860800000};{'end':1};"));
    ck_api_header(&f, "Content-Type", "application/jsonl");
}

START_TEST(a_dumped_state_can_be_loaded_and_is_equal)
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
    set("{'end':0}");
    ck_assert_ptr_null(strstr(state(), "example.org"));
    ck_api(&f, "PUT", STATE, before, 204, NULL);
    ck_assert_str_eq(state(), before);
    ck_api(&f, "PUT", STATE, before, 204, NULL);
    ck_assert_str_eq(state(), before);
}

START_TEST(the_delivery_count_is_kept_for_claimed_messages)
{
    const char *before;

    set("{'queue':'q','message':{'body':1,'claim':{'id':'c'},'claim_count':0}};"
        "{'queue':'q','message':{'body':2,'claim':{'id':'c'}}};"
        "{'queue':'q','message':{'body':3,'claim_count':1}};"
        "{'queue':'q','message':{'body':4}}");
    before = state();
    ck_assert_ptr_nonnull(strstr(before, "\"claim_count\":0,\"body\":1}"));
    ck_assert_ptr_nonnull(strstr(before, "\"claim_count\":1,\"body\":3}"));
    ck_assert_ptr_null(strstr(before, "\"claim_count\":1,\"body\":2}"));
    ck_api(&f, "PUT", STATE, before, 204, NULL);
    ck_assert_str_eq(state(), before);
}

START_TEST(a_state_that_is_loaded_later_goes_on_where_it_was)
{
    const char *before;

    post("q", "{'messages':[{'body':1,'ttl':300},{'body':2,'ttl':300,'delay':20}]}");
    ck_api(&f, "POST", "/claimd/clock/advance", json("{'seconds':7}"), 200, NULL);
    before = state();
    ck_api(&f, "POST", "/claimd/clock/advance", json("{'seconds':1000}"), 200, NULL);
    ck_api(&f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_assert_ptr_null(strstr(api_body(&f.c), "body"));
    ck_api(&f, "PUT", STATE, before, 204, NULL);
    ck_api(&f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "\"age\":7"));
    ck_api(&f, "POST", "/claimd/clock/advance", json("{'to':'next'}"), 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "delay_ended"));
    ck_assert_int_eq(clock_now_ms(testapi_clock(f.testapi)),
                     API_FIXTURE_START_MS + 1020000);
}

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

START_TEST(all_projects_are_a_state_too)
{
    const char *all;

    post("q", "{'messages':[{'body':1,'ttl':300}]}");
    f.c.headers[API_HEADER_PROJECT_ID] = "other";
    post("r", "{'messages':[{'body':2,'ttl':300}]}");
    f.c.headers[API_HEADER_PROJECT_ID] = NULL;
    all = state();
    ck_assert_ptr_nonnull(strstr(all, "{\"project\":\"480924\",\"queue\":\"q\","));
    ck_api(&f, "POST", "/claimd/reset", NULL, 204, NULL);
    ck_api(&f, "PUT", STATE, all, 204, NULL);
    ck_assert_str_eq(state(), all);
    f.c.headers[API_HEADER_PROJECT_ID] = "other";
    set("{'end':0}");
    f.c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    ck_assert_ptr_nonnull(strstr(state(), "\"body\":1"));
}

/* ---------------------------------------------------------------------- by hand */

TESTAPI_CASE("hand");

START_TEST(written_lines_need_little_and_come_in_any_order)
{
    set("{'queue':'q','message':{'body':{'n':1}}};;"
        "{'queue':'q','subscription':{'subscriber':'http://a/'}};"
        "{'queue':'q','message':{'claim':{'ttl':90,'age':30,'id':'mine'},'body':2,"
        "'age':3.5,'ttl':120}};"
        "{'queue':'late','metadata':{}};"
        "{'queue':'q','message':{'body':3,'delay':2}};"
        "{'queue':'q','message':{'claim':{'id':'mine'},'body':4}};"
        "{'metadata':{'_dead_letter_queue':'late','_max_claim_count':2},'queue':'q'}");
    ck_api(&f, "GET", "/v2/queues/q/stats", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "\"claimed\":2,\"free\":2"));
    ck_api(&f, "GET", "/v2/queues/q", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "\"late\""));
    ck_api(&f, "POST", "/claimd/clock/advance", json("{'to':'next'}"), 200, NULL);
    ck_api(&f, "POST", "/claimd/clock/advance", json("{'to':'next'}"), 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "claim_ended"));
    ck_assert_int_eq(clock_now_ms(testapi_clock(f.testapi)),
                     API_FIXTURE_START_MS + 60000);
}

START_TEST(a_name_of_a_claim_is_of_one_queue_and_the_first_line_has_its_times)
{
    const char *shown, *one, *two, *other;

    set("{'queue':'q','message':{'body':1,'claim':{'id':'c','ttl':61}}};"
        "{'queue':'r','message':{'body':2,'claim':{'id':'c','ttl':62}}};"
        "{'queue':'q','message':{'body':3,'claim':{'id':'c','ttl':63}}};"
        "{'queue':'q','message':{'body':4,'claim':{'id':'abcdefabcdef000000000007'}}}");
    shown = state();
    one = strstr(shown, "\"claim\":{\"id\":\"") + 15;
    two = strstr(one, "\"claim\":{\"id\":\"") + 15;
    other = strstr(two, "\"claim\":{\"id\":\"abcdefabcdef000000000007\"") + 15;
    ck_assert_mem_eq(one, two, 24);
    ck_assert_mem_ne(one, strstr(other, "\"claim\":{\"id\":\"") + 15, 24);
    ck_assert_ptr_nonnull(strstr(shown, "\"ttl\":61,"));
    ck_assert_ptr_nonnull(strstr(shown, "\"ttl\":62,"));
    ck_assert_ptr_null(strstr(shown, "\"ttl\":63,"));
}

#define Q       "{'queue':'q','message':"
#define S       "{'queue':'q','subscription':"
#define DEAD(x) "'metadata':{'_dead_letter_queue':'" x "','_max_claim_count':1}};"
#define ID      "'id':'abcdefab0000000000000001'"

START_TEST(an_error_names_its_place_and_changes_nothing)
{
    static const char *const rows[][2] = {
        {"", "a body is required"},
        {"[]", "line 1: it must be an object"},
        {"{'queue':'q'", "line 1: "},
        {";{'claimd':'dump'}", "line 2: version: it is missing. It must be 1"},
        {"{'claimd':'dump','version':2}",
         "line 1: version: it is 2, but this server reads only version 1"},
        {"{'claimd':'dump','version':1};{'queue':'q'}",
         "no end record. It is truncated after record 2"},
        {"{'queue':'q'};{'end':2}", "counts 2 records, but the dump has 1"},
        {"{'end':0};{'queue':'q'}", "line 2: it follows the end record"},
        {"{'queuess':'q'}", "line 1: it has the unknown member \\\"queuess\\\" (did you "
                            "mean \\\"queue\\\"?)"},
        {"{'queue':'q','queue':'r'}", "line 1: it has the member \\\"queue\\\" twice"},
        {"{'queue':'q','topic':'q'}",
         "line 1: it has more than one of queue, topic and schedules"},
        {"{'metadata':{}}", "line 1: queue: it is \\\"\\\". It must be 1 to 64"},
        {"{'queue':'q','metadata':{},'message':{'body':1}}",
         "line 1: only one of metadata, message and subscription is allowed"},
        {"{'project':'p','queue':'q'}", "line 1: project: it is \\\"p\\\". In a request "
                                        "for one project it must be that"},
        {"{'queue':'q'};{'queue':'r'};{'queue':'q'}",
         "line 3: queue: another line has the same name"},
        {"{'topic':'q'};{'topic':'q'}", "line 2: topic: another line has the same name"},
        {"{'topic':'a b'}", "line 1: topic: it is \\\"a b\\\". It must be 1 to 64"},
        {"{'queue':'q','metadata':{'_max_claim_count':'x'}}", "line 1: metadata: "},
        {Q "5}", "line 1: message: it must be an object"},
        {Q "{'body':1,'boby':2}}", "line 1: message: it has the unknown member "
                                   "\\\"boby\\\" (did you mean \\\"body\\\"?)"},
        {Q "{'body':1,'claim':'c'}}", "line 1: message.claim: it must be an object"},
        {Q "{'body':1,'claim':{}}}", "line 1: message.claim.id: it is required"},
        {Q "{'body':1,'claim':{'id':''}}}", "line 1: message.claim.id: it is required"},
        {Q "{'body':1,'claim':{'id':5}}}",
         "line 1: message.claim.id: it must be a string"},
        {Q "{'body':1,'claim':{'id':'c','ttl':0}}}",
         "line 1: message.claim.ttl: it is 0. It must be between 0.001 and"},
        {Q "{'body':1,'claim':{'id':'c','ttl':43201}}}",
         "line 1: message.claim.ttl: ttl minus age exceeds max_claim_ttl"},
        {Q "{'body':1,'claim':{'id':'abcdefabcdef000000000000'}}}",
         "line 1: message.claim.id: it is not a valid id of a claim"},
        {Q "{'body':1,'claim':{'id':'abcdefabcdef000000000001'}}};" Q
           "{'body':1,'claim':{'id':'bbcdefabcdef000000000001'}}}",
         "line 2: message.claim.id: its last 12 digits are those of another claim"},
        {Q "{'body':1,'claim':{'id':'c'},'delay':1}}",
         "line 1: message.claim: a claim cannot hold a delayed message"},
        {Q "{" ID ",'body':1}};" Q "{" ID ",'body':2}}",
         "line 2: message.id: another message has the same id"},
        {"{'queue':'r','message':{" ID ",'body':1}};{'queue':'a','metadata':{}};" Q "{" ID
         ",'body':2}}",
         "line 3: message.id: another message has the same id"},
        {Q "{'id':'x','body':1}}", "line 1: message.id: it is \\\"x\\\". An id is 24"},
        {Q "{'body':1,'ttl':1209601}}",
         "line 1: message.ttl: ttl minus age exceeds max_message_ttl"},
        {Q "{'body':1,'ttl':'60'}}",
         "line 1: message.ttl: it must be a number of seconds"},
        {Q "{'body':1,'ttl':0}}", "line 1: message.ttl: it is 0. It must be between "
                                  "0.001 and 10000000000 seconds"},
        {Q "{'body':1,'age':1e300}}",
         "line 1: message.age: it is 1e300. It must be between 0 and"},
        {Q "{'body':1,'delay':-1}}",
         "line 1: message.delay: it is -1. It must be between 0 and"},
        {"{'queue':'a','message':{'body':1}};" Q "{'body':1,'ttl':60,'delay':61}}",
         "line 2: message.delay: it is out of range, or longer than the TTL"},
        {Q "{'body':1,'claim_count':-1}}",
         "line 1: message.claim_count: it is -1. It must be between 0 and 4294967295"},
        {Q "{'body':1,'client':'x'}}",
         "line 1: message.client: it must be 16 hexadecimal digits"},
        {Q "{'body':1,'checksum':'x'}}",
         "line 1: message.checksum: it must be MD5: followed by 32"},
        {Q "{'ttl':60}}", "line 1: message.body: exactly one of body and sealed"},
        {Q "{'sealed':'zz'}}", "line 1: message.sealed: it must consist of hexadecimal"},
        {Q "{'sealed':'7b7d'}}", "line 1: message.sealed: it is not an encrypted body"},
        {S "{}}", "line 1: subscription.subscriber: it is required"},
        {S "{'subscriber':'x'}}",
         "line 1: subscription: the scheme of subscriber must be"},
        {S "{'subscriber':'http://a','options':1}}",
         "line 1: subscription.options: it must be an object"},
        {S "{'subscriber':'http://a','confirmed':1}}",
         "line 1: subscription.confirmed: it must be true or false"},
        {S "{'subscriber':'http://a','ttl':0}}",
         "line 1: subscription.ttl: it is out of range"},
        {S "{'subscriber':'http://a'}};" S "{'subscriber':'http://a'}}",
         "line 2: subscription.subscriber: it has two subscriptions"},
        {"{'queue':'b'," DEAD("c") "{'queue':'a'," DEAD("b") "{'queue':'c'," DEAD("b"),
         "line 1: metadata._dead_letter_queue: the dead-letter queues form a cycle"},
    };

    post("q", "{'messages':[{'body':1,'ttl':300}]}");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        refuse(rows[i][0], rows[i][1]);
}

START_TEST(a_line_may_name_the_project_of_the_request)
{
    set("{'project':'" API_CALL_PROJECT "','queue':'q','message':{'body':1}}");
    ck_api(&f, "GET", "/v2/queues/q/messages?echo=true", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "\"body\":1"));
}

START_TEST(a_state_of_one_project_can_be_put_into_another)
{
    const char *before;

    post("q", "{'messages':[{'body':1,'ttl':300}]}");
    before = state();
    ck_assert_ptr_null(strstr(before, "\"project\""));
    f.c.headers[API_HEADER_PROJECT_ID] = "other";
    ck_api(&f, "PUT", STATE, before, 204, NULL);
    ck_assert_str_eq(state(), before);
}

START_TEST(without_a_project_each_line_must_name_one)
{
    f.c.headers[API_HEADER_PROJECT_ID] = NULL;
    refuse("{'project':'p','queue':'q'};{'queue':'q'}",
           "line 2: project: it is required, and at most 256 bytes long");
    refuse("{'project':'p','queue':'q','message':{}}", "line 1: message.body");
    refuse("{'project':'p','queue':'q'};{'project':'\\u0070','queue':'q'}",
           "line 2: queue: another line has the same name");
    set("{'project':'p','queue':'q'};{'project':'q','queue':'q','message':{" ID
        ",'body':1}};{'project':'r','topic':'q','message':{" ID ",'body':1}}");
}

START_TEST(all_a_project_has_is_deleted_before)
{
    post("q", "{'messages':[{'body':1,'ttl':300}]}");
    ck_api(&f, "PUT", "/v2/topics/t", "{}", 201, NULL);
    set("{'queue':'r'}");
    ck_assert_ptr_null(strstr(state(), "\"queue\":\"q\""));
    ck_assert_ptr_null(strstr(state(), "\"topic\""));
    ck_assert_ptr_nonnull(strstr(state(), "\"queue\":\"r\",\"metadata\":{}}\n"));
}

/* Puts lines, which takes some tenths of a second; a quadratic check takes minutes. */
static void
put_large(const struct buf *lines, int code)
{
    const clock_t began = clock();

    ck_assert(!lines->failed);
    ck_api(&f, "PUT", STATE, lines->data, code, NULL);
    ck_assert_int_lt((clock() - began) / CLOCKS_PER_SEC, 20);
}

START_TEST(lines_are_checked_in_linear_time)
{
    enum { PROJECTS = 50000, QUEUES = 30000 };
    struct reason why;
    struct buf lines;
    clock_t began;

    f.c.headers[API_HEADER_PROJECT_ID] = NULL;
    buf_init(&lines, f.mem);
    for (int i = 0; i < PROJECTS; i++)
        buf_printf(&lines, "{\"project\":\"p%d\",\"queue\":\"q\"}\n", i);
    buf_byte(&lines, '\0');
    put_large(&lines, 204);
    began = clock();
    lines.len--;
    ck_assert_int_eq(api_seed(f.c.api, buf_view(&lines), API_FIXTURE_START_MS, &why), 0);
    ck_assert_int_lt((clock() - began) / CLOCKS_PER_SEC, 20);
    buf_reset(&lines, SIZE_MAX);
    for (int i = 0; i < QUEUES; i++)
        buf_printf(&lines,
                   "{\"project\":\"p\",\"queue\":\"q%d\",\"metadata\":{"
                   "\"_dead_letter_queue\":\"q%d\",\"_max_claim_count\":1}}\n",
                   i, i < QUEUES - 1 ? i + 1 : i - 1);
    buf_byte(&lines, '\0');
    put_large(&lines, 400);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "the dead-letter queues form a cycle"));
    buf_fini(&lines);
}

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

START_TEST(a_message_that_is_larger_than_a_post_may_be_is_refused)
{
    struct api_limits small = api_limits_default;
    struct api_fixture other;

    small.max_messages_post_size = 8;
    api_fixture_open_testapi(&other, &small);
    ck_api(&other, "PUT", STATE, "{\"queue\":\"q\",\"message\":{\"body\":\"1234567\"}}",
           400, NULL);
    api_fixture_close(&other);
}

START_TEST(when_memory_runs_out_the_old_state_is_there)
{
    const char *before, *lines;
    uint64_t nth = 1, refused = 0, attempts;
    int code;

    post("q", "{'messages':[{'body':1,'ttl':300},{'body':2,'ttl':300}]}");
    ck_api(&f, "POST", CLAIMS, json("{'ttl':60,'grace':60}"), 201, NULL);
    before = state();
    lines = json("{'queue':'a','message':{'body':1}};"
                 "{'queue':'q','message':{'body':7,'claim':{'id':'c'}}}");
    for (;; nth++) {
        attempts = mem_attempts(f.mem);
        mem_fail_nth(f.mem, nth);
        code = api_call(&f.c, "PUT", STATE, lines);
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

/* ------------------------------------------------------------------ others meanwhile */

TESTAPI_CASE("others");

START_TEST(one_state_is_put_after_the_other)
{
    const char *lines = json("{'queue':'q'}");
    struct pending put;

    ck_assert(testapi_begin_load(f.testapi));
    pending_prepare(&put, &f, "PUT", STATE, NULL);
    put.req.body = bytes_str(lines);
    ck_assert_int_eq(pending_fetch(&put), API_AGAIN);
    ck_assert_int_eq(pending_fetch(&put), API_AGAIN);
    testapi_end_load(f.testapi);
    ck_assert_int_ne(pending_fetch(&put), API_AGAIN);
    ck_assert_int_eq(put.res.code, 204);
    pending_end(&put);
    ck_assert(testapi_begin_load(f.testapi)); /* no load is under way */
    testapi_end_load(f.testapi);
}

/* A store where others make queues again when they are deleted, so often. */
static const struct store_vtable *real;
static const struct store_state_vtable *real_state;
static struct store_vtable busy;
static int made;

static enum status
delete_and_make(struct store *s, struct store_op *op, const struct store_queue *queue)
{
    const struct store_metadata plain = {{NULL, 0}, STORE_SETTINGS_INIT};
    enum status st = real->queue_delete(s, op, queue);
    bool created;

    if (st == ST_OK && made > 0) {
        made--;
        st = real->queue_create(s, op, queue, &plain, &created);
    }
    return st;
}

static void
be_busy(int times)
{
    real = f.store->vtable;
    busy = *real;
    busy.queue_delete = delete_and_make;
    f.store->vtable = &busy;
    made = times;
}

START_TEST(a_queue_that_others_make_again_is_replaced_all_the_same)
{
    set("{'queue':'a','message':{'body':1}};{'queue':'b','message':{'body':2}}");
    be_busy(3);
    set("{'queue':'a','message':{'body':3}};{'queue':'c'}");
    f.store->vtable = real;
    ck_assert_int_eq(made, 0);
    ck_api(&f, "GET", "/v2/queues/a/messages?echo=true", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "\"body\":3"));
    ck_assert_ptr_null(strstr(api_body(&f.c), "\"body\":1"));
}

/* Refuses to apply what has the body 13. */
static enum status
apply_or_refuse(struct store *s, struct store_op *op, const struct store_queue *queue,
                const struct store_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (records[i].kind == STORE_RECORD_MESSAGE &&
            bytes_equal_str(records[i].message.body, "13"))
            return ST_PROJECT_BYTES;
    return real_state->apply(s, op, queue, records, count);
}

START_TEST(a_state_that_the_store_refuses_leaves_the_old_one)
{
    struct store_state_vtable refusing = *f.store->state;
    const char *before;

    post("a", "{'messages':[{'body':1,'ttl':300},{'body':2,'ttl':300,'delay':20}]}");
    post("q", "{'messages':[{'body':1,'ttl':300},{'body':2,'ttl':300}]}");
    ck_api(&f, "POST", CLAIMS, json("{'ttl':60,'grace':60}"), 201, NULL);
    ck_api(&f, "POST", "/v2/topics/t/subscriptions",
           json("{'subscriber':'mailto:me@example.org'}"), 201, NULL);
    before = state();
    real_state = f.store->state;
    refusing.apply = apply_or_refuse;
    f.store->state = &refusing;
    ck_api(&f, "PUT", STATE,
           json("{'queue':'q','message':{'body':12}};{'queue':'b'};"
                "{'queue':'t','message':{'body':13}};{'queue':'z'}"),
           409, NULL);
    f.store->state = real_state;
    ck_assert_ptr_nonnull(strstr(api_body(&f.c), "lines 3 to 3, of queue \\\"t\\\": "));
    ck_assert_ptr_null(strstr(api_body(&f.c), "loaded"));
    ck_assert_ptr_null(strstr(api_body(&f.c), "restored"));
    ck_assert_str_eq(state(), before);
}

static enum status
apply_nothing(struct store *s, struct store_op *op, const struct store_queue *queue,
              const struct store_record *records, size_t count)
{
    (void)s, (void)op, (void)queue, (void)records, (void)count;
    return ST_PROJECT_BYTES;
}

START_TEST(a_response_says_that_the_old_state_could_not_be_restored)
{
    struct store_state_vtable refusing = *f.store->state;

    post("a", "{'messages':[{'body':1,'ttl':300}]}");
    real_state = f.store->state;
    refusing.apply = apply_nothing;
    f.store->state = &refusing;
    ck_api(&f, "PUT", STATE, json("{'queue':'b'}"), 409, NULL);
    f.store->state = real_state;
    ck_assert_ptr_nonnull(
        strstr(api_body(&f.c), ". Part of the old state was not restored"));
}
