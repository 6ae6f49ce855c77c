/* Which queues need attention, and which of them a summary names (src/api/notices.h). */
#include "api/notices.h"
#include "support/check_main.h"

#include <string.h>

#define SECONDS(n) ((int64_t)(n)*1000)

static unsigned
bits(const char *names)
{
    unsigned all = 0;

    for (unsigned n = 0; n < NOTICES; n++)
        if (strstr(names, notice_names[n]) != NULL)
            all |= 1U << n;
    return all;
}

/* Rates in thousandths of a message per second. */
struct row {
    const char *expected;
    uint64_t ready, claimed, delayed, claims, dead, waiters;
    int64_t ready_s, claim_s;
    unsigned paused;
    bool rated;
    uint64_t delivered, deleted, requeued;
};

static unsigned
notices_of(const struct row *r, uint64_t messages[NOTICES])
{
    const struct store_population here = {.ready = r->ready,
                                          .claimed = r->claimed,
                                          .delayed = r->delayed,
                                          .claims = r->claims,
                                          .dead_letters = r->dead};
    const struct store_rates rates = {.counts = {[STORE_QUEUE_DELIVERED] = r->delivered,
                                                 [STORE_QUEUE_DELETED] = r->deleted,
                                                 [STORE_QUEUE_REQUEUED] = r->requeued}};
    const struct notice_facts facts = {.here = &here,
                                       .ready_age_ms = SECONDS(r->ready_s),
                                       .claim_age_ms = SECONDS(r->claim_s),
                                       .waiters = r->waiters,
                                       .paused = r->paused,
                                       .rates = r->rated ? &rates : NULL};

    return notices_find(&facts, messages);
}

static void
ck_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t messages[NOTICES];
        const unsigned found = notices_of(&rows[i], messages);

        ck_assert_msg(found == bits(rows[i].expected), "row %zu: %#x", i, found);
    }
}

#define CK_ROWS(rows) ck_rows(rows, sizeof(rows) / sizeof((rows)[0]))

TEST_CASE("queues");

START_TEST(ready_messages_without_a_worker_are_noticed_at_once)
{
    static const struct row rows[] = {
        {"", .ready = 0},
        {"no_worker", .ready = 1},
        {"no_worker", .ready = 1, .rated = true},
        {"", .ready = 1, .waiters = 1},
        {"", .ready = 1, .claims = 1, .claimed = 1},
        {"", .ready = 1, .rated = true, .delivered = 1},
        {"", .ready = 1, .rated = true, .deleted = 1}, /* popped */
        {"paused", .ready = 1, .paused = STORE_PAUSE_CLAIMS},
        {"no_worker paused", .ready = 1, .paused = STORE_PAUSE_POSTS},
        {"dead_letters", .ready = 3, .dead = 3},
        {"no_worker dead_letters", .ready = 4, .dead = 3},
    };

    CK_ROWS(rows);
}

/* The age includes the delay. */
START_TEST(old_messages_are_noticed_if_workers_do_not_get_to_them)
{
    static const struct row rows[] = {
        {"", .ready = 3, .ready_s = 43200, .rated = true, .delivered = 1000},
        {"ready_too_old", .ready = 301, .ready_s = 43200, .rated = true,
         .delivered = 1000},
        {"", .ready = 300, .ready_s = 43200, .rated = true, .delivered = 1000},
        {"", .ready = 9, .ready_s = 300, .waiters = 1},
        {"ready_too_old", .ready = 9, .ready_s = 301, .waiters = 1},
        {"no_worker ready_too_old", .ready = 9, .ready_s = 301, .rated = true},
        {"paused", .ready = 9, .ready_s = 301, .paused = STORE_PAUSE_CLAIMS},
        {"dead_letters", .ready = 9, .ready_s = 301, .dead = 9},
        {"", .claims = 1, .claimed = 1, .claim_s = 3600},
        {"claim_too_old", .claims = 1, .claimed = 1, .claim_s = 3601},
    };

    CK_ROWS(rows);
}

START_TEST(messages_that_come_back_are_noticed)
{
    static const struct row rows[] = {
        {"", .claimed = 1, .rated = true, .delivered = 2000, .requeued = 100},
        {"returned", .claimed = 1, .rated = true, .delivered = 2000, .requeued = 101},
        {"returned", .delayed = 1, .rated = true, .requeued = 1},
        {"", .rated = true, .requeued = 1},
        {"", .claimed = 1, .requeued = 1},
    };

    CK_ROWS(rows);
}

START_TEST(a_notice_says_how_many_messages_it_is_about)
{
    const struct row row = {.ready = 5,
                            .claimed = 3,
                            .claims = 1,
                            .dead = 2,
                            .ready_s = 301,
                            .claim_s = 3601,
                            .rated = true,
                            .requeued = 200,
                            .paused = STORE_PAUSE_POSTS};
    uint64_t messages[NOTICES];

    ck_assert_uint_eq(notices_of(&row, messages),
                      bits("ready_too_old claim_too_old returned paused dead_letters"));
    ck_assert_uint_eq(messages[NOTICE_READY_TOO_OLD], 5);
    ck_assert_uint_eq(messages[NOTICE_CLAIM_TOO_OLD], 3);
    ck_assert_uint_eq(messages[NOTICE_RETURNED], 12); /* in a minute */
    ck_assert_uint_eq(messages[NOTICE_PAUSED], 5);
    ck_assert_uint_eq(messages[NOTICE_DEAD_LETTERS], 2);
}

TEST_CASE("summaries");

static void
ck_first(const struct notice_summary *s, const char *rows)
{
    ck_assert_uint_le(strlen(rows), NOTICE_ROWS);
    for (size_t i = 0; rows[i] != '\0'; i++)
        ck_assert_uint_eq(s->first[i].row, (uint32_t)(rows[i] - '0'));
}

START_TEST(a_summary_names_the_queues_with_most_messages)
{
    static const uint64_t ready[] = {2, 9, 0, 5, 7, 9, 1};
    struct notice_summary all[NOTICES] = {{.queues = 0}};

    for (uint32_t i = 0; i < sizeof(ready) / sizeof(ready[0]); i++) {
        const struct store_population here = {.ready = ready[i]};
        const struct notice_facts facts = {.here = &here};

        notices_add(all, &facts, i);
        if (i == 1)
            ck_first(&all[NOTICE_NO_WORKER], "10");
    }
    ck_assert_uint_eq(all[NOTICE_NO_WORKER].queues, 6);
    ck_assert_uint_eq(all[NOTICE_NO_WORKER].messages, 33);
    ck_first(&all[NOTICE_NO_WORKER], "154");
    ck_assert_uint_eq(all[NOTICE_NO_WORKER].first[2].messages, 7);
    ck_assert_uint_eq(all[NOTICE_PAUSED].queues, 0);
}

START_TEST(a_summary_names_the_oldest_messages_and_claims)
{
    struct notice_summary all[NOTICES] = {{.queues = 0}};

    for (uint32_t i = 0; i < 4; i++) {
        const struct store_population here = {
            .ready = 10 - i, .claimed = 10 - i, .claims = 1};
        const struct notice_facts facts = {.here = &here,
                                           .ready_age_ms = SECONDS(2000 + i),
                                           .claim_age_ms = SECONDS(4000 + i)};

        notices_add(all, &facts, i);
    }
    ck_first(&all[NOTICE_READY_TOO_OLD], "321");
    ck_first(&all[NOTICE_CLAIM_TOO_OLD], "321");
}
