/*
 * The documents that subscribers receive (docs/api.md 20.2, 20.3), also from a template,
 * whose expansion is bounded. Read src/notify/compose.h next.
 */
#include "notify/compose.h"

#include "claimd/json/scan.h"
#include "support/arena_fixture.h"

ARENA_CASE("documents");

static struct store_delivery
message(const char *body, int64_t ttl_s, int64_t delay_s)
{
    return (struct store_delivery){
        .queue = {.project = BYTES_LIT("p"), .name = BYTES_LIT("q")},
        .body = bytes_str(body),
        .ttl_s = ttl_s,
        .delay_s = delay_s};
}

START_TEST(a_message_has_its_body_as_it_was_posted)
{
    struct store_delivery d = message("{\"a\" : 1.50}", 300, 0);

    document_message(&f.out, &d);
    expect_written("{\"body\":{\"a\" : 1.50},\"ttl\":300,\"queue_name\":\"q\","
                   "\"Message_Type\":\"Notification\"}");
    d = message("\"b\"", 60, 7);
    document_message(&f.out, &d);
    expect_written("{\"body\":\"b\",\"ttl\":60,\"delay\":7,\"queue_name\":\"q\","
                   "\"Message_Type\":\"Notification\"}");
}

START_TEST(a_template_has_the_body_at_each_placeholder)
{
    document_fill(&f.out, bytes_str("{\\\"text\\\": \\\"$zaqar_message$\\\"}"),
                  bytes_str("{\"body\":1}"));
    expect_written("{\"text\": {\"body\":1}}");
    document_fill(&f.out, bytes_str("\\\"$zaqar_message$\\\"\\\"$zaqar_message$\\\"."),
                  bytes_str("[]"));
    expect_written("[][].");
    document_fill(&f.out, bytes_str("$zaqar_message$ \\\"$zaqar_message$ \\u00e4"),
                  bytes_str("[]"));
    expect_written("$zaqar_message$ \"$zaqar_message$ \xc3\xa4");
    document_fill(&f.out, bytes_str(""), bytes_str("[]"));
    expect_written("");
}

/* A thousand times the document, which is as long as that. */
static bool
fill_thousandfold(size_t len)
{
    struct buf document, template;
    bool fits;

    buf_init(&document, f.mem);
    buf_init(&template, f.mem);
    for (size_t i = 0; i < len; i++)
        buf_byte(&document, '1');
    for (int i = 0; i < 1000; i++)
        buf_str(&template, "\\\"$zaqar_message$\\\"");
    buf_reset(&f.out, 0);
    fits = document_fill(&f.out, buf_view(&template), buf_view(&document));
    buf_fini(&template);
    buf_fini(&document);
    return fits;
}

START_TEST(a_template_cannot_make_it_many_times_as_long)
{
    ck_assert(fill_thousandfold(1000));
    ck_assert_uint_eq(f.out.len, 1000000);
    ck_assert(!fill_thousandfold(262144));
    ck_assert_uint_le(f.out.len, FILLED_MOST + 3 * 262144);
}

START_TEST(substituted_text_is_not_expanded_again)
{
    document_fill(&f.out, bytes_str("\\\"$zaqar_message$\\\""),
                  bytes_str("{\"body\":\"$zaqar_message$\"}"));
    expect_written("{\"body\":\"$zaqar_message$\"}");
}

static const struct invitation invited = {
    .queue = BYTES_LIT("co"),
    .project = BYTES_LIT("p\"q"),
    .path = BYTES_LIT("/v2/queues/co/subscriptions/1/confirm"),
    .expires = BYTES_LIT("2026-01-31T12:00:00"),
    .signature = BYTES_LIT("0123")};

START_TEST(an_invitation_has_what_a_subscriber_must_send)
{
    struct invitation i = invited;

    document_invitation(&f.out, &i);
    ck_assert_int_eq(json_scan_document(buf_view(&f.out)), ST_OK);
    expect_written(
        "{\"Message_Type\":\"SubscriptionConfirmation\",\"Message\":\"You are about to be"
        " subscribed to the queue: co of the project: p\\\"q. To confirm this, send"
        " SubscribeBody with PUT to URL-Paths, with the headers URL-Signature, "
        "URL-Methods,"
        " URL-Paths, URL-Expires and X-Project-ID as given "
        "here.\",\"URL-Signature\":\"0123\","
        "\"URL-Methods\":\"PUT\",\"URL-Paths\":\"/v2/queues/co/subscriptions/1/confirm\","
        "\"X-Project-ID\":\"p\\\"q\",\"URL-Expires\":\"2026-01-31T12:00:00\","
        "\"SubscribeBody\":{\"confirmed\":true},\"UnsubscribeBody\":{\"confirmed\":false}"
        ","
        "\"queue_name\":\"co\"}");
}

START_TEST(the_document_of_an_unsubscription)
{
    struct invitation i = invited;

    i.again = true;
    i.url = bytes_str("https://mq.example.org");
    document_invitation(&f.out, &i);
    ck_assert_int_eq(json_scan_document(buf_view(&f.out)), ST_OK);
    ck_assert(bytes_contain(buf_view(&f.out),
                            bytes_str("\"Message_Type\":\"UnsubscribeConfirmation\"")));
    ck_assert(bytes_contain(
        buf_view(&f.out),
        bytes_str("\"WSGISubscribeURL\":\"https://mq.example.org/v2/queues/co/")));
}

START_TEST(a_lack_of_memory_is_seen)
{
    for (uint64_t nth = 1; nth < 4; nth++) {
        struct buf out;

        buf_init(&out, f.mem);
        mem_fail_nth(f.mem, nth);
        if (nth < 3)
            document_fill(&out, bytes_str("abc"), bytes_str("[]"));
        else
            document_invitation(&out, &invited);
        mem_fail_nth(f.mem, 0);
        ck_assert(out.failed);
        buf_fini(&out);
    }
}
