/*
 * Requests on schedules (docs/api.md 31). The fixture has no scheduler, so the schedules
 * are kept and never run. tests/e2e/schedules_test.py runs them.
 */
#include "claimd/schedule/definition.h"
#include "support/api_fixture.h"

#include <string.h>

#define BAD    "Invalid API request"
#define FORM   "Invalid request body"
#define LIST   "/claimd/queues/q/schedules"
#define ITEM   LIST "/n"
#define TOKEN  API_HEADER_AUTH_TOKEN
#define HOURLY "{\"cron\":\"@hourly\",\"message\":{\"body\":1}}"
#define KEY    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define OTHER  "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/* The members that say what has happened, of a schedule that has never run. */
#define UNUSED                                                                           \
    "'last':null,'posted':0,'missed_count':0,'skipped_count':0,'refused_count':0,"       \
    "'error':null"

/* The queue of schedules of the fixture's project. */
static const struct store_queue hidden = {.project = BYTES_LIT(API_CALL_PROJECT),
                                          .name = BYTES_LIT(SCHEDULES_NAME),
                                          .kind = STORE_SCHEDULES};

/* The message of the schedule n of queue q. Release it. */
static struct store_batch
find_message(const struct api_fixture *f)
{
    struct store_batch batch = STORE_BATCH_INIT;

    ck_assert_int_eq(store_message_find(f->store, STORE_AT(f->c.now_ms), &hidden,
                                        bytes_str("q/n"), &batch),
                     ST_OK);
    ck_assert_uint_eq(batch.count, 1);
    return batch;
}

/* Does what the scheduler does at a due time: it keeps this progress. */
static void
keep_progress(struct api_fixture *f, const char *progress)
{
    static const struct store_terms terms = {60, 0};
    struct store_batch due = STORE_BATCH_INIT;
    struct store_finish_item item = {.action = STORE_FINISH_RELEASE,
                                     .ready_ms = f->c.now_ms + 3600000,
                                     .uncounted = true,
                                     .reason = bytes_str(progress)};
    struct store_finish request = {.items = &item, .count = 1, .atomic = true};

    ck_assert_int_eq(
        store_claim_create(f->store, STORE_AT(f->c.now_ms), &hidden, &terms, 10, &due),
        ST_OK);
    ck_assert_uint_eq(due.count, 1);
    item.id = store_id_bytes(&due.messages[0].id);
    request.claim_id = store_id_bytes(&due.claim_id);
    ck_assert_int_eq(
        store_claim_finish(f->store, STORE_AT(f->c.now_ms), &hidden, &request), ST_OK);
    store_batch_release(&due);
}

/* The description of a refused PUT with this body. */
static const char *
refusal(struct api_fixture *f, const char *body)
{
    ck_assert_msg(api_call(&f->c, "PUT", ITEM, body) == 400, "%s: %d %s", body,
                  f->c.res.code, api_body(&f->c));
    return api_pick(f, "description");
}

/* A body with this recurrence. */
#define EACH(recurrence) "{" recurrence ",\"message\":{\"body\":1}}"
/* One with more members. */
#define MORE(members) "{\"every\":60,\"message\":{\"body\":1}," members "}"
/* One with this message. */
#define OF(message) "{\"every\":60,\"message\":" message "}"

/* ------------------------------------------------------------------ PUT */

TEST_CASE("set");

API_TEST(a_new_schedule_shows_its_defaults_and_makes_its_queue)
{
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    ck_api_body(f, "{'name':'n','queue':'q','cron':'@hourly','timezone':'UTC',"
                   "'message':{'body':1},'missed':'last','overlap':'post',"
                   "'paused':false,'next':['2026-01-31T13:00:00Z']," UNUSED "}");
    ck_api(f, "GET", "/v2/queues/q", NULL, 200, NULL);
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    ck_assert_ptr_null(strstr(api_body(&f->c), SCHEDULES_NAME));
}

API_TEST(a_schedule_shows_all_that_it_was_given)
{
    ck_api(
        f, "PUT", ITEM,
        "{\"cron\":\"30  2 * * MON-fri\",\"timezone\":\"Europe/Berlin\","
        "\"message\":{\"body\":{ \"a\": [1.50, \"\\u00e4\"] },\"ttl\":600,\"delay\":5},"
        "\"missed\":\"all\",\"overlap\":\"skip\",\"paused\":true}",
        201, NULL);
    ck_api(f, "GET", ITEM, NULL, 200, NULL);
    ck_api_body(f, "{'name':'n','queue':'q','cron':'30  2 * * MON-fri',"
                   "'timezone':'Europe/Berlin',"
                   "'message':{'body':{'a':[1.50,'\\u00e4']},'ttl':600,'delay':5},"
                   "'missed':'all','overlap':'skip','paused':true,'next':[]," UNUSED "}");
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "{ \"a\": [1.50, \"\\u00e4\"] }"));
    ck_api(f, "PUT", ITEM, MORE("\"missed\":\"none\""), 200, NULL);
    ck_api_body(f, "{'name':'n','queue':'q','every':60,'message':{'body':1},"
                   "'missed':'none','overlap':'post','paused':false,"
                   "'next':['2026-01-31T12:01:00Z']," UNUSED "}");
}

API_TEST(null_members_are_left_out)
{
    ck_api(f, "PUT", ITEM,
           "{\"cron\":\"@daily\",\"every\":null,\"timezone\":null,\"missed\":null,"
           "\"overlap\":null,\"paused\":null,"
           "\"message\":{\"body\":null,\"ttl\":null,\"delay\":null}}",
           201, NULL);
    ck_api_body(f, "{'name':'n','queue':'q','cron':'@daily','timezone':'UTC',"
                   "'message':{'body':null},'missed':'last','overlap':'post',"
                   "'paused':false,'next':['2026-02-01T00:00:00Z']," UNUSED "}");
}

API_TEST(a_recurrence_is_either_cron_or_every)
{
    static const char one_of[] = "the body must have one of the members cron and every";

    ck_assert_str_eq(refusal(f, EACH ("\"cron\":\"@daily\",\"every\":60")), one_of);
    ck_assert_str_eq(refusal(f, "{\"message\":{\"body\":1}}"), one_of);
    ck_assert_str_eq(refusal(f, EACH ("\"every\":60,\"timezone\":\"UTC\"")),
                     "timezone has no meaning with every. An interval is the same in all "
                     "time zones");
    ck_assert_str_eq(refusal(f, EACH ("\"every\":0")),
                     "every is 0. It must be an integer between 1 and 31622400");
    ck_assert_str_eq(refusal(f, EACH ("\"every\":31622401")),
                     "every is 31622401. It must be an integer between 1 and 31622400");
    ck_assert_str_eq(refusal(f, EACH ("\"every\":\"60\"")),
                     "every is a string. It must be an integer between 1 and 31622400");
    ck_assert_str_eq(refusal(f, EACH ("\"cron\":7")), "cron is 7. It must be a string");
    ck_assert_str_eq(refusal(f, EACH ("\"cron\":\"0 4 * *\"")),
                     "cron expression \"0 4 * *\" has 4 fields. It needs five: minute, "
                     "hour, day of month, month and weekday");
    ck_api(f, "GET", ITEM, NULL, 404, NULL);
}

API_TEST(an_unknown_time_zone_is_refused_with_a_near_one)
{
    ck_assert_str_eq(
        refusal(f, EACH ("\"cron\":\"@daily\",\"timezone\":\"Europe/Berlim\"")),
        "time zone is Europe/Berlim, which does not exist. Did you mean Europe/Berlin?");
    ck_assert_str_eq(refusal(f, EACH ("\"cron\":\"@daily\",\"timezone\":\"../passwd\"")),
                     "time zone is \"../passwd\". A name of tzdata is needed, such as "
                     "Europe/Berlin or UTC");
    ck_assert_str_eq(refusal(f, EACH ("\"cron\":\"@daily\",\"timezone\":1")),
                     "timezone is 1. It must be a string");
}

API_TEST(the_message_is_checked_as_in_a_post)
{
    ck_assert_str_eq(refusal(f, "{\"every\":60}"),
                     "message is missing. It must be an object with the member body");
    ck_assert_str_eq(refusal(f, OF("7")),
                     "message is 7. It must be an object with the member body");
    ck_assert_str_eq(refusal(f, OF("{}")), "message.body is missing");
    ck_assert_str_eq(refusal(f, OF("{\"body\":1,\"ttl\":59}")),
                     "message.ttl is 59. It must be an integer between 60 and 1209600 "
                     "(min_message_ttl, max_message_ttl)");
    ck_assert_str_eq(refusal(f, OF("{\"body\":1,\"delay\":\"1\"}")),
                     "message.delay is a string. It must be an integer between 0 and "
                     "43200 (max_message_delay)");
    ck_assert_str_eq(refusal(f, OF("{\"body\":1,\"ttl\":60,\"delay\":60}")),
                     "message would expire before a worker can claim it. Its delay of 60 "
                     "seconds is not shorter than its TTL of 60 seconds");
    ck_api(f, "PUT", ITEM, OF("{\"body\":1,\"dely\":5}"), 201, NULL);
    ck_assert_ptr_nonnull(api_response_header(&f->c, "Claimd-Warning"));
}

API_TEST(other_members_are_checked)
{
    ck_assert_str_eq(refusal(f, MORE("\"missed\":\"some\"")),
                     "missed is \"some\". It must be \"last\", \"all\" or \"none\"");
    ck_assert_str_eq(refusal(f, MORE("\"overlap\":\"wait\"")),
                     "overlap is \"wait\". It must be \"post\" or \"skip\"");
    ck_assert_str_eq(refusal(f, MORE("\"overlap\":true")),
                     "overlap is true. It must be a string");
    ck_assert_str_eq(refusal(f, MORE("\"paused\":1")), "paused must be true or false");
    ck_assert_str_eq(
        refusal(f, MORE("\"tz\":\"UTC\"")),
        "the body has the unknown member \"tz\". Allowed are cron, timezone, every, "
        "message, missed, overlap and paused");
    ck_api(f, "PUT", ITEM, "[]", 400, FORM);
    ck_api(f, "PUT", ITEM, "{", 400, FORM);
    ck_api(f, "PUT", ITEM, "", 400, FORM);
}

API_TEST(names_are_as_those_of_queues_and_have_40_characters)
{
    static const struct api_row rows[] = {
        {"PUT", LIST "/a.b_C-9", HOURLY, 201, NULL},
        {"PUT", LIST "/1234567890123456789012345678901234567890", HOURLY, 201, NULL},
        {"PUT", LIST "/12345678901234567890123456789012345678901", HOURLY, 400, BAD},
        {"PUT", LIST "/a%20b", HOURLY, 400, BAD},
        {"GET", LIST "/a%20b", NULL, 400, BAD},
        {"PATCH", LIST "/a%20b", "{\"paused\":true}", 400, BAD},
        {"DELETE", LIST "/a%20b", NULL, 400, BAD},
        {"PUT", "/claimd/queues/a%20b/schedules/n", HOURLY, 400, NULL},
    };

    ck_api_rows(f, rows);
    ck_api(f, "PUT", LIST "/a%20b", HOURLY, 400, BAD);
    ck_assert_str_eq(api_pick(f, "description"),
                     "the name of the schedule is \"a b\". It must be 1 to 40 characters "
                     "from A-Z a-z 0-9 _ - .");
}

LIMITED_TEST(a_project_has_a_maximum_of_schedules, limits.max_schedules = 2)
{
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    ck_api(f, "PUT", "/claimd/queues/r/schedules/n", HOURLY, 201, NULL);
    ck_api(f, "PUT", LIST "/third", HOURLY, 409, NULL);
    ck_assert_str_eq(api_pick(f, "description"),
                     "the project has reached its maximum number of schedules "
                     "(max_schedules). Try again when some are deleted");
    ck_api(f, "PUT", ITEM, HOURLY, 200, NULL); /* there is one of this name */
    ck_api(f, "DELETE", ITEM, NULL, 204, NULL);
    ck_api(f, "PUT", LIST "/third", HOURLY, 201, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = "another";
    ck_api(f, "PUT", LIST "/third", HOURLY, 201, NULL);
}

API_TEST(a_body_that_is_too_large_is_refused)
{
    f->c.body_too_large = true;
    ck_api(f, "PUT", ITEM, HOURLY, 400, NULL);
    ck_assert_ptr_nonnull(strstr(api_pick(f, "description"), "max_messages_post_size"));
}

/* ------------------------------------------------------------------ replacing */

TEST_CASE("replace");

#define PROGRESS                                                                         \
    "{\"last\":1769864400000,\"posted_at\":1769864400500,\"message\":1769864400000,"     \
    "\"posted\":4,\"missed\":5,\"skipped\":6,\"refused\":7,\"failing\":1769864400000,"   \
    "\"tries\":1,\"error\":\"it was full\"}"

/* The members that say so. */
#define USED                                                                             \
    "'last':{'due':'2026-01-31T13:00:00Z','posted_at':'2026-01-31T13:00:00Z'},"          \
    "'posted':4,'missed_count':5,'skipped_count':6,'refused_count':7,"

API_TEST(a_changed_schedule_keeps_its_progress)
{
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    f->c.now_ms += 3600500;
    keep_progress(f, PROGRESS);
    ck_api(f, "GET", ITEM, NULL, 200, NULL);
    ck_api_body(f, "{'name':'n','queue':'q','cron':'@hourly','timezone':'UTC',"
                   "'message':{'body':1},'missed':'last','overlap':'post',"
                   "'paused':false,'next':['2026-01-31T14:00:00Z']," USED
                   "'error':'it was full'}");
    ck_api(f, "PUT", ITEM, "{\"every\":900,\"message\":{\"body\":2}}", 200, NULL);
    ck_api_body(f, "{'name':'n','queue':'q','every':900,'message':{'body':2},"
                   "'missed':'last','overlap':'post','paused':false,"
                   "'next':['2026-01-31T13:15:00Z']," USED "'error':null}");
}

/* A due time that has passed and was not posted yet. */
API_TEST(the_same_definition_leaves_a_due_time_as_it_is)
{
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    f->c.now_ms += 3600500;
    ck_api(f, "PUT", ITEM, HOURLY, 200, NULL);
    ck_assert_str_eq(api_pick(f, "next.0"), "2026-01-31T13:00:00Z");
    /* Other words for the same times, and another message. */
    ck_api(f, "PUT", ITEM, "{\"cron\":\"0 * * * *\",\"message\":{\"body\":2}}", 200,
           NULL);
    ck_assert_str_eq(api_pick(f, "next.0"), "2026-01-31T13:00:00Z");
    keep_progress(f, PROGRESS); /* it is due */
}

API_TEST(another_recurrence_begins_now)
{
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    f->c.now_ms += 3600500;
    ck_api(f, "PUT", ITEM, "{\"cron\":\"0,30 * * * *\",\"message\":{\"body\":1}}", 200,
           NULL);
    ck_assert_str_eq(api_pick(f, "next.0"), "2026-01-31T13:30:00Z");
}

/* ------------------------------------------------------------------ PATCH, DELETE */

TEST_CASE("change");

API_TEST(a_paused_schedule_has_no_next_time_and_resumes_from_now)
{
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    ck_api(f, "PATCH", ITEM, "{\"paused\":true}", 200, NULL);
    ck_api_body(f, "{'name':'n','queue':'q','cron':'@hourly','timezone':'UTC',"
                   "'message':{'body':1},'missed':'last','overlap':'post',"
                   "'paused':true,'next':[]," UNUSED "}");
    f->c.now_ms += INT64_C(5) * 3600500;
    ck_api(f, "PATCH", ITEM, "{\"paused\":true}", 200, NULL);
    ck_api(f, "PATCH", ITEM, "{\"paused\":false}", 200, NULL);
    ck_assert_str_eq(api_pick(f, "next.0"), "2026-01-31T18:00:00Z");
    ck_api(f, "GET", ITEM "?next=2", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "next.1"), "2026-01-31T19:00:00Z");
}

API_TEST(a_pause_of_what_is_resumed_changes_nothing)
{
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    f->c.now_ms += 3600500;
    ck_api(f, "PATCH", ITEM, "{\"paused\":false}", 200, NULL);
    ck_assert_str_eq(api_pick(f, "next.0"), "2026-01-31T13:00:00Z");
}

API_TEST(a_pause_is_checked)
{
    static const struct api_row rows[] = {
        {"PATCH", ITEM, "{\"paused\":true}", 404, "Not found"},
        {"PUT", ITEM, HOURLY, 201, NULL},
        {"PATCH", ITEM, "{}", 400, FORM},
        {"PATCH", ITEM, "{\"paused\":null}", 400, FORM},
        {"PATCH", ITEM, "{\"paused\":\"true\"}", 400, FORM},
        {"PATCH", ITEM, "{\"paused\":true,\"every\":5}", 400, FORM},
        {"PATCH", ITEM, "[]", 400, FORM},
        {"PATCH", ITEM, "", 400, FORM},
    };

    ck_api_rows(f, rows);
    ck_api(f, "GET", ITEM, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"paused\":false"));
}

API_TEST(a_deletion_may_be_repeated)
{
    ck_api(f, "DELETE", ITEM, NULL, 204, NULL);
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    ck_api(f, "DELETE", ITEM, NULL, 204, NULL);
    ck_api(f, "DELETE", ITEM, NULL, 204, NULL);
    ck_api(f, "GET", ITEM, NULL, 404, "Not found");
    ck_assert_str_eq(api_pick(f, "description"), "queue q has no schedule \"n\"");
    ck_api(f, "GET", "/v2/queues/q", NULL, 200, NULL);
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL); /* a new one */
}

API_TEST(a_schedule_stays_when_its_queue_is_deleted)
{
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    ck_api(f, "DELETE", "/v2/queues/q", NULL, 204, NULL);
    ck_api(f, "GET", ITEM, NULL, 200, NULL);
    ck_api(f, "PATCH", ITEM, "{\"paused\":true}", 200, NULL);
    ck_api(f, "GET", "/v2/queues/q/stats", NULL, 200, NULL); /* as any unknown queue */
    ck_api(f, "PUT", ITEM, HOURLY, 200, NULL);
    ck_api(f, "GET", "/v2/queues", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "queues.0.name"), "q");
}

/* ------------------------------------------------------------------ reading */

TEST_CASE("read");

API_TEST(next_shows_up_to_a_hundred_due_times)
{
    ck_api(f, "PUT", ITEM,
           "{\"cron\":\"30 2 * * *\",\"timezone\":\"Europe/Berlin\","
           "\"message\":{\"body\":1}}",
           201, NULL);
    f->c.now_ms = INT64_C(1806105600000); /* 2027-03-27 */
    ck_api(f, "PUT", ITEM,
           "{\"cron\":\"31 2 * * *\",\"timezone\":\"Europe/Berlin\","
           "\"message\":{\"body\":1}}",
           200, NULL);
    ck_api(f, "GET", ITEM "?next=100", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "next.0"), "2027-03-27T01:31:00Z");
    ck_assert_str_eq(api_pick(f, "next.1"), "2027-03-28T01:00:00Z");
    ck_assert_str_eq(api_pick(f, "next.2"), "2027-03-29T00:31:00Z");
    ck_assert_ptr_nonnull(api_pick(f, "next.99"));
    ck_api(f, "GET", ITEM "?next=101", NULL, 400, BAD);
    ck_assert_str_eq(
        api_pick(f, "description"),
        "the parameter next is \"101\". It must be an integer between 1 and 100");
    ck_api(f, "GET", ITEM "?next=0", NULL, 400, BAD);
    ck_api(f, "GET", ITEM "?next=x", NULL, 400, "Invalid parameter");
}

/* The last response lists so many schedules; the first and the last one are these. */
static void
ck_listed(struct api_fixture *f, size_t count, const char *first, const char *last)
{
    size_t found = 0;

    for (const char *at = api_body(&f->c); (at = strstr(at, "\"name\":")) != NULL; at++)
        found++;
    ck_assert_uint_eq(found, count);
    ck_assert_str_eq(api_text(f, "%s/%s", api_pick(f, "schedules.0.queue"),
                              api_pick(f, "schedules.0.name")),
                     first);
    ck_assert_str_eq(api_text(f, "%s/%s",
                              api_pick(f, api_text(f, "schedules.%zu.queue", count - 1)),
                              api_pick(f, api_text(f, "schedules.%zu.name", count - 1))),
                     last);
}

API_TEST(lists_have_pages)
{
    static const char *const names[] = {"q/schedules/a", "r/schedules/a", "q/schedules/b",
                                        "r/schedules/b", "q/schedules/c"};

    ck_api(f, "GET", "/claimd/schedules", NULL, 200, NULL);
    ck_api_body(f, "{'schedules':[],'links':[]}");
    ck_api(f, "GET", LIST, NULL, 200, NULL);
    ck_api_body(f, "{'schedules':[],'links':[]}");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ck_api(f, "PUT", api_text(f, "/claimd/queues/%s", names[i]), HOURLY, 201, NULL);
    ck_api(f, "GET", "/claimd/schedules?limit=3", NULL, 200, NULL);
    ck_listed(f, 3, "q/a", "q/b");
    ck_api(f, "GET", api_pick(f, "links.0.href"), NULL, 200, NULL);
    ck_listed(f, 2, "r/b", "q/c");
    ck_api(f, "GET", "/claimd/schedules?limit=0", NULL, 400, BAD);
    ck_api(f, "GET", "/claimd/schedules?limit=x", NULL, 400, "Invalid parameter");
}

/* A page may have fewer than its limit, and the next one goes on. */
API_TEST(lists_may_be_of_one_queue)
{
    ck_api(f, "PUT", "/claimd/queues/q/schedules/a", HOURLY, 201, NULL);
    ck_api(f, "PUT", "/claimd/queues/r/schedules/a", HOURLY, 201, NULL);
    ck_api(f, "PUT", "/claimd/queues/q/schedules/b", HOURLY, 201, NULL);
    ck_api(f, "PUT", "/claimd/queues/r/schedules/b", HOURLY, 201, NULL);
    ck_api(f, "GET", "/claimd/queues/r/schedules", NULL, 200, NULL);
    ck_listed(f, 2, "r/a", "r/b");
    ck_api(f, "GET", "/claimd/queues/r/schedules?limit=1", NULL, 200, NULL);
    ck_listed(f, 1, "r/a", "r/a");
    ck_api(f, "GET", api_pick(f, "links.0.href"), NULL, 200, NULL);
    ck_listed(f, 1, "r/b", "r/b");
}

API_TEST(a_schedule_belongs_to_its_project)
{
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    f->c.headers[API_HEADER_PROJECT_ID] = "another";
    ck_api(f, "GET", ITEM, NULL, 404, NULL);
    ck_api(f, "PATCH", ITEM, "{\"paused\":true}", 404, NULL);
    ck_api(f, "DELETE", ITEM, NULL, 204, NULL);
    ck_api(f, "GET", "/claimd/schedules", NULL, 200, NULL);
    ck_api_body(f, "{'schedules':[],'links':[]}");
    f->c.headers[API_HEADER_PROJECT_ID] = API_CALL_PROJECT;
    ck_api(f, "GET", ITEM, NULL, 200, NULL);
}

/* The hidden queue has this name, too. */
API_TEST(a_queue_named_schedules_is_another_queue)
{
    ck_api(f, "PUT", "/claimd/queues/schedules/schedules/n", HOURLY, 201, NULL);
    ck_api(f, "GET", "/v2/queues/schedules/stats", NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"total\":0"));
    ck_api(f, "DELETE", "/v2/queues/schedules", NULL, 204, NULL);
    ck_api(f, "GET", "/claimd/queues/schedules/schedules/n", NULL, 200, NULL);
}

API_TEST(a_damaged_schedule_is_an_error_of_the_server)
{
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    f->c.now_ms += 3600500;
    keep_progress(f, "{\"last\":-1}");
    ck_api(f, "GET", ITEM, NULL, 500, NULL);
}

/* ------------------------------------------------------------------ encryption */

TEST_CASE("encryption");

#define ENCRYPT "{\"_enable_encrypt_messages\":true}"
#define SECRET  "{\"cron\":\"@hourly\",\"message\":{\"body\":\"secret\"}}"

static void
open_encrypting(struct api_fixture *f)
{
    api_fixture_open_sealing(f, &api_limits_default, KEY);
    ck_api(f, "PUT", "/v2/queues/q", ENCRYPT, 201, NULL);
}

static void
ck_sealed(const struct api_fixture *f, bool sealed)
{
    struct store_batch batch = find_message(f);

    ck_assert_int_eq(store_is_sealed(batch.messages[0].body), sealed);
    ck_assert_int_eq(bytes_contain(batch.messages[0].body, bytes_str("secret")), !sealed);
    store_batch_release(&batch);
}

API_TEST_WITH(a_definition_for_an_encrypted_queue_is_encrypted, open_encrypting(f))
{
    ck_api(f, "PUT", ITEM, SECRET, 201, NULL);
    ck_sealed(f, true);
    ck_api(f, "GET", ITEM, NULL, 200, NULL);
    ck_assert_ptr_nonnull(strstr(api_body(&f->c), "\"body\":\"secret\""));
    ck_api(f, "PATCH", ITEM, "{\"paused\":true}", 200, NULL);
    ck_sealed(f, true);
    ck_api(f, "GET", "/claimd/schedules", NULL, 200, NULL);
    ck_assert_str_eq(api_pick(f, "schedules.0.message.body"), "secret");
    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    ck_api(f, "PATCH", "/v2/queues/q",
           "[{\"op\":\"replace\",\"path\":\"/metadata/_enable_encrypt_messages\","
           "\"value\":false}]",
           200, NULL);
    f->c.headers[API_HEADER_CONTENT_TYPE] = NULL;
    ck_api(f, "PUT", ITEM, SECRET, 200, NULL);
    ck_sealed(f, false);
}

API_TEST_WITH(without_its_key_a_schedule_cannot_be_shown, open_encrypting(f))
{
    struct reason why;
    size_t line;

    ck_api(f, "PUT", ITEM, SECRET, 201, NULL);
    ck_assert_int_eq(seal_replace(f->seal, bytes_str(OTHER), &line, &why), ST_OK);
    ck_api(f, "GET", ITEM, NULL, 503, NULL);
    ck_api(f, "PUT", ITEM, SECRET, 200, NULL); /* replaced, without its progress */
    ck_api(f, "GET", ITEM, NULL, 200, NULL);
    ck_api(f, "DELETE", ITEM, NULL, 204, NULL);
}

/* ------------------------------------------------------------------ permissions */

TEST_CASE("permissions");

static void
open_with_tokens(struct api_fixture *f)
{
    static const char *const tokens[] = {"worker worker " API_CALL_PROJECT " never",
                                         "operator operator " API_CALL_PROJECT " never"};

    api_fixture_open_access(f);
    api_allow(f, tokens, 2);
}

API_TEST_WITH(operators_set_schedules_and_others_read_them, open_with_tokens(f))
{
    static const struct api_row worker[] = {
        {"PUT", ITEM, HOURLY, 403, NULL},
        {"PATCH", ITEM, "{\"paused\":true}", 403, NULL},
        {"DELETE", ITEM, NULL, 403, NULL},
        {"GET", ITEM, NULL, 200, NULL},
        {"GET", LIST, NULL, 200, NULL},
        {"GET", "/claimd/schedules", NULL, 200, NULL},
    };

    ck_api(f, "GET", ITEM, NULL, 401, NULL);
    f->c.headers[TOKEN] = "operator";
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    f->c.headers[TOKEN] = "worker";
    ck_api_rows(f, worker);
}

API_TEST_WITH(a_policy_may_say_otherwise, open_with_tokens(f))
{
    static const char *const tokens[] = {"worker worker " API_CALL_PROJECT " never"};
    struct policy policy = policy_default;
    struct reason why;

    ck_assert_int_eq(
        policy_read(
            &policy,
            bytes_str("{\"schedules:set\":\"role:worker\",\"schedules:get\":\"!\"}"),
            &why),
        ST_OK);
    api_allow_by(f, tokens, 1, &policy);
    f->c.headers[TOKEN] = "worker";
    ck_api(f, "PUT", ITEM, HOURLY, 201, NULL);
    ck_api(f, "GET", ITEM, NULL, 403, NULL);
}
