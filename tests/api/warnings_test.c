/* The header Claimd-Warning: parts of requests that have no effect (docs/api.md 4.6). */
#include "support/api_fixture.h"

#define MESSAGES "/v2/queues/q/messages"

/* All warnings of the last response, with a line each. */
static const char *
warnings(struct api_fixture *f)
{
    const char *all = "";

    for (size_t i = 0; i < f->c.res.header_count; i++)
        if (strcmp(f->c.res.headers[i].name, "Claimd-Warning") == 0)
            all = api_text(f, "%s%s\n", all, f->c.res.headers[i].value);
    return all;
}

struct warned {
    const char *method, *target, *body;
    int code;
    const char *warnings;
};

static void
ck_warned(struct api_fixture *f, const struct warned *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ck_api(f, rows[i].method, rows[i].target, rows[i].body, rows[i].code, NULL);
        ck_assert_str_eq(warnings(f), rows[i].warnings);
    }
}

#define CK_WARNED(f, rows) ck_warned(f, rows, sizeof(rows) / sizeof((rows)[0]))
#define NO_EFFECT(name)    "the member \"" name "\" has no effect here"
#define MEANT(name)        ". Did you mean \"" name "\"?\n"

API_TEST(unknown_members_of_messages_are_named_once_each)
{
    static const struct warned rows[] = {
        {"POST", MESSAGES,
         "{\"messages\":[{\"body\":{\"tll\":1},\"ttl\":60,\"delay\":1}]}", 201, ""},
        {"POST", MESSAGES,
         "{\"messages\":[{\"body\":1,\"tll\":60},{\"body\":1,\"tll\":60,\"priority\":5}]"
         "}",
         201, NO_EFFECT("tll") MEANT("ttl") NO_EFFECT("priority") "\n"},
        {"POST", MESSAGES, "{\"messages\":[{\"body\":1}],\"mesages\":[]}", 201,
         NO_EFFECT("mesages") MEANT("messages")},
        {"POST", MESSAGES,
         "{\"messages\":[{\"body\":1,\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1}]}", 201,
         NO_EFFECT("a") "\n" NO_EFFECT("b") "\n" NO_EFFECT("c") "\n"},
        {"POST", "/v1.1/queues/q/messages", "{\"messages\":[{\"body\":1,\"delay\":5}]}",
         201, NO_EFFECT("delay") "\n"},
        {"POST", "/v1/queues/q/messages", "[{\"body\":1,\"ttl\":60,\"tt\":5}]", 201,
         NO_EFFECT("tt") MEANT("ttl")},
        {"POST", MESSAGES, "{\"messages\":[{\"body\":1,\"tll\":60,\"ttl\":1}]}", 400, ""},
    };

    CK_WARNED(f, rows);
}

API_TEST(a_warning_cannot_end_a_line_of_the_head)
{
    static const struct warned rows[] = {
        {"POST", MESSAGES, "{\"messages\":[{\"body\":1,\"a\\r\\n\\\"b\":1}]}", 201,
         NO_EFFECT("a\\r\\n\\\"b") "\n"},
        {"POST", MESSAGES, "{\"messages\":[{\"body\":1,\"\xc3\xb6\":1}]}", 201,
         NO_EFFECT("\\xc3\\xb6") "\n"},
        {"GET", MESSAGES "?a%0d%0ab=1", NULL, 200,
         "the parameter \"a??b\" has no effect here\n"},
    };
    char name[2000];

    CK_WARNED(f, rows);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ck_api(f, "POST", MESSAGES,
           api_text(f, "{\"messages\":[{\"body\":1,\"%s\":1}]}", name), 201, NULL);
    ck_assert_uint_lt(strlen(warnings(f)), 240);
}

API_TEST(many_ids_leave_space_for_the_warning)
{
    const char *more = "";

    for (int i = 0; i < 38; i++)
        more = api_text(f, "%s,{\"body\":1}", more);
    ck_api(f, "POST", MESSAGES, api_text(f, "{\"messages\":[{\"body\":1}%s]}", more), 201,
           NULL);
    ck_assert_ptr_nonnull(strstr(api_response_header(&f->c, "Location"), "?ids="));
    ck_api(f, "POST", MESSAGES,
           api_text(f, "{\"messages\":[{\"body\":1,\"tll\":1}%s]}", more), 201, NULL);
    ck_assert_str_eq(warnings(f), NO_EFFECT("tll") MEANT("ttl"));
    ck_api_header(f, "Location", MESSAGES);
}

API_TEST(unknown_members_of_claims_and_parameters_are_named)
{
    static const struct warned rows[] = {
        {"POST", "/v2/queues/q/claims?limit=1", "{\"ttl\":60,\"grace\":60}", 204, ""},
        {"POST", "/v2/queues/q/claims?limt=1", "{\"tttl\":60}", 204,
         NO_EFFECT("tttl")
             MEANT("ttl") "the parameter \"limt\" has no effect here" MEANT("limit")},
        {"GET", "/v2/queues?color=red&limit=2", NULL, 200, ""}, /* a filter */
        {"DELETE", "/v1/queues/q/messages?ids=a&claim_ids=b", NULL, 204,
         "the parameter \"claim_ids\" has no effect here\n"},
        {"DELETE", "/v2/queues/q/messages/a?claim=b", NULL, 204,
         "the parameter \"claim\" has no effect here\n"},
    };

    CK_WARNED(f, rows);
}

API_TEST(only_parameters_of_the_operation_are_suggested)
{
    static const struct warned rows[] = {
        {"GET", MESSAGES "?include_claimd=true&ehco=true", NULL, 200,
         "the parameter \"include_claimd\" has no effect here" MEANT(
             "include_claimed") "the parameter \"ehco\" has no effect here" MEANT("ech"
                                                                                  "o")},
        {"POST", "/v2/queues/q/claims?include_claimd=true&ehco=true", NULL, 204,
         "the parameter \"include_claimd\" has no effect here\n"
         "the parameter \"ehco\" has no effect here\n"},
        {"POST", MESSAGES "?limt=1", "{\"messages\":[{\"body\":1}]}", 201,
         "the parameter \"limt\" has no effect here\n"},
        {"DELETE", MESSAGES "?ids=a&limt=1", NULL, 204,
         "the parameter \"limt\" has no effect here\n"},
    };

    CK_WARNED(f, rows);
}

API_TEST(reserved_names_that_are_unknown_and_settings_without_effect_are_named)
{
    static const struct warned rows[] = {
        {"PUT", "/v2/queues/a",
         "{\"color\":1,\"_max_claims\":3,\"_dead_leter_queue\":\"d\"}", 201,
         NO_EFFECT("_max_claims") MEANT("_max_claim_count") NO_EFFECT("_dead_leter_queue")
             MEANT("_dead_letter_queue")},
        {"PUT", "/v2/queues/b", "{\"_max_claim_count\":3}", 201,
         "_max_claim_count has no effect without _dead_letter_queue\n"},
        {"PUT", "/v2/queues/c", "{\"_dead_letter_queue\":\"d\"}", 201,
         "without _max_claim_count, a message moves to _dead_letter_queue only if a "
         "worker "
         "asks for it\n"},
        {"PUT", "/v2/queues/d", "{\"_max_claim_count\":3,\"_dead_letter_queue\":\"d\"}",
         201,
         "_dead_letter_queue is the queue itself. A failing message returns to its end, "
         "and "
         "never stays\n"},
        {"PUT", "/v2/queues/e", "{\"_max_claim_count\":3,\"_dead_letter_queue\":\"d\"}",
         201, ""},
    };

    CK_WARNED(f, rows);
    f->c.headers[API_HEADER_CONTENT_TYPE] =
        "application/openstack-messaging-v2.0-json-patch";
    ck_api(f, "PATCH", "/v2/queues/e",
           "[{\"op\":\"remove\",\"path\":\"/metadata/_dead_letter_queue\"}]", 200, NULL);
    ck_assert_str_eq(warnings(f),
                     "_max_claim_count has no effect without _dead_letter_queue\n");
}

#define KEPT(names)                                                                      \
    "the queue exists, and PUT does not change it. It keeps its own " names              \
    ". PATCH changes them\n"

API_TEST(a_put_of_a_queue_with_other_settings_names_them)
{
    static const struct warned rows[] = {
        {"PUT", "/v2/queues/q", "{\"_default_message_ttl\":60,\"color\":1}", 201, ""},
        {"PUT", "/v2/queues/q", "{\"_default_message_ttl\":60,\"color\":1}", 204, ""},
        {"PUT", "/v2/queues/q", "{\"color\":1}", 204, ""},
        {"PUT", "/v2/queues/q", NULL, 204, ""},
        {"PUT", "/v2/queues/q", "{\"_default_message_delay\":0,\"color\":2}", 204,
         KEPT("color")},
        {"PUT", "/v2/queues/q",
         "{\"_default_message_ttl\":3600,\"a\":[1],\"_default_message_delay\":null}", 204,
         KEPT("_default_message_ttl, a")},
        {"PUT", "/v2/queues/q", "{\"say \\\"hi\\\"\":1,\"\\u0063olor\":3}", 204,
         KEPT("say \\\"hi\\\", color")},
        {"PUT", "/v1/queues/q", "{\"color\":2}", 204, ""}, /* a body is ignored there */
        {"GET", "/v1.1/queues/q", NULL, 200, ""},
    };

    CK_WARNED(f, rows);
    ck_api_body(f, "{'_default_message_ttl': 60, 'color': 1}");
}
