/*
 * The rules that inject faults (claimd/testapi/faults.h): which requests a rule matches,
 * and to which of these its fault applies. Without a server.
 */
#include "claimd/testapi/faults.h"
#include "support/check_main.h"

#include <string.h>

static struct mem *mem;
static struct faults *faults;

static void
open_faults(void)
{
    mem = mem_new(0);
    ck_assert_ptr_nonnull(mem);
    ck_assert_int_eq(faults_new(mem, &faults), ST_OK);
}

static void
close_faults(void)
{
    faults_free(faults);
    mem_destroy(mem);
}

/* A request by its action, queue and client. */
static struct fault_match
request(const char *action, const char *queue, const char *client)
{
    return (struct fault_match){.action = bytes_str(action),
                                .method = bytes_str("POST"),
                                .queue = bytes_str(queue),
                                .project = bytes_str("p"),
                                .client = bytes_str(client)};
}

static bool
applies(const char *action, const char *queue, const char *client, enum fault_kind kind)
{
    const struct fault_match r = request(action, queue, client);
    struct fault fault = {.kind = FAULT_NONE};
    bool struck = faults_strike(faults, &r, &fault);

    ck_assert_int_eq(fault.kind, struck ? kind : FAULT_NONE);
    return struck;
}

/* The requests, of so many, to which the fault of the only rule applies: 1, others 0. */
static const char *
pattern(int count)
{
    static char text[64];

    for (int i = 0; i < count; i++)
        text[i] = applies("a", "q", "c", FAULT_HALF) ? '1' : '0';
    text[count] = '\0';
    return text;
}

static void
set(struct fault_rule rule)
{
    if (rule.fault.kind == FAULT_NONE)
        rule.fault.kind = FAULT_HALF;
    if (rule.every == 0)
        rule.every = 1;
    ck_assert_int_eq(faults_replace(faults, &rule, 1), ST_OK);
}

static uint64_t seen[2 * 8];
static size_t seen_count;

static void
see(void *ctx, const struct fault_rule *rule)
{
    (void)ctx;
    seen[2 * seen_count] = rule->matched;
    seen[2 * seen_count + 1] = rule->struck;
    seen_count++;
}

static void
expect_counts(size_t count, const uint64_t *counts)
{
    seen_count = 0;
    faults_read(faults, see, NULL);
    ck_assert_uint_eq(seen_count, count);
    for (size_t i = 0; i < 2 * count; i++)
        ck_assert_uint_eq(seen[i], counts[i]);
}

TEST_CASE("rules", .setup = open_faults, .teardown = close_faults);

START_TEST(without_rules_no_fault_applies)
{
    ck_assert(!applies("claims:create", "q", "c", FAULT_NONE));
    expect_counts(0, NULL);
}

START_TEST(a_rule_without_properties_matches_every_request)
{
    set((struct fault_rule){.every = 1});
    ck_assert_str_eq(pattern(5), "11111");
}

START_TEST(a_rule_matches_the_requests_that_it_names)
{
    static const struct {
        struct fault_match match;
        bool fits;
    } rows[] = {
        {{.action = BYTES_LIT("claims:create")}, true},
        {{.action = BYTES_LIT("claims:creat")}, false},
        {{.method = BYTES_LIT("POST")}, true},
        {{.method = BYTES_LIT("GET")}, false},
        {{.queue = BYTES_LIT("jobs")}, true},
        {{.queue = BYTES_LIT("Jobs")}, false},
        {{.project = BYTES_LIT("p")}, true},
        {{.project = BYTES_LIT("")}, false},
        {{.client = BYTES_LIT("abc")}, true}, /* a UUID in any case */
        {{.client = BYTES_LIT("abcd")}, false},
        {{.action = BYTES_LIT("claims:create"), .queue = BYTES_LIT("jobs")}, true},
        {{.action = BYTES_LIT("claims:create"), .queue = BYTES_LIT("other")}, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        set((struct fault_rule){.match = rows[i].match});
        ck_assert_msg(applies("claims:create", "jobs", "ABC", FAULT_HALF) == rows[i].fits,
                      "row %zu", i);
        expect_counts(1, (const uint64_t[]){rows[i].fits, rows[i].fits});
    }
}

START_TEST(a_request_without_a_property_matches_no_rule_that_names_it)
{
    set((struct fault_rule){.match.queue = BYTES_LIT("q")});
    ck_assert(!applies("queues:get_all", NULL, "c", FAULT_HALF));
    set((struct fault_rule){.match.action = BYTES_LIT("queues:get")});
    ck_assert(!applies(NULL, "q", NULL, FAULT_HALF));
}

START_TEST(skip_every_and_times_select_matches)
{
    set((struct fault_rule){.every = 3});
    ck_assert_str_eq(pattern(8), "00100100");
    set((struct fault_rule){.skip = 2});
    ck_assert_str_eq(pattern(6), "001111");
    set((struct fault_rule){.times = 2});
    ck_assert_str_eq(pattern(6), "110000");
    set((struct fault_rule){.every = 2, .skip = 3, .times = 2});
    ck_assert_str_eq(pattern(10), "0000101000");
    expect_counts(1,
                  (const uint64_t[]){7, 2}); /* a rule that is used up does not match */
}

START_TEST(only_the_first_rule_that_matches_counts_until_it_is_used_up)
{
    const struct fault_rule rules[] = {
        {.match.queue = BYTES_LIT("other"), .every = 1, .fault.kind = FAULT_SLOW},
        {.every = 2, .times = 1, .fault.kind = FAULT_HALF},
        {.every = 1, .fault.kind = FAULT_CUT_AFTER},
    };

    ck_assert_int_eq(faults_replace(faults, rules, 3), ST_OK);
    ck_assert(
        !applies("a", "q", "c", FAULT_NONE)); /* the first match of the second rule */
    ck_assert(applies("a", "q", "c", FAULT_HALF));
    ck_assert(applies("a", "q", "c", FAULT_CUT_AFTER));
    ck_assert(applies("a", "other", "c", FAULT_SLOW));
    expect_counts(3, (const uint64_t[]){1, 1, 2, 1, 1, 1});
}

START_TEST(a_new_list_counts_from_zero)
{
    set((struct fault_rule){.times = 2});
    ck_assert_str_eq(pattern(3), "110");
    set((struct fault_rule){.times = 2});
    expect_counts(1, (const uint64_t[]){0, 0});
    ck_assert_str_eq(pattern(3), "110");
    ck_assert_int_eq(faults_replace(faults, NULL, 0), ST_OK);
    ck_assert_str_eq(pattern(3), "000");
    expect_counts(0, NULL);
}

START_TEST(rules_are_copied)
{
    char name[] = "jobs";
    struct fault_rule rule = {
        .match.queue = bytes_str(name), .every = 1, .fault.kind = FAULT_HALF};

    ck_assert_int_eq(faults_replace(faults, &rule, 1), ST_OK);
    memset(name, 'x', sizeof(name) - 1);
    ck_assert(applies("a", "jobs", "c", FAULT_HALF));
}

START_TEST(without_memory_the_old_rules_stay)
{
    const struct fault_rule rule = {.every = 1, .fault.kind = FAULT_SLOW};

    set((struct fault_rule){.every = 1});
    mem_fail_nth(mem, 1);
    ck_assert_int_eq(faults_replace(faults, &rule, 1), ST_NO_MEMORY);
    mem_fail_nth(mem, 0);
    ck_assert_str_eq(pattern(2), "11"); /* the old rule: half a response */
    ck_assert_int_eq(faults_replace(faults, &rule, 1), ST_OK);
    ck_assert(applies("a", "q", "c", FAULT_SLOW));
}
