/*
 * Dates of ISO 8601 in bodies of requests, such as those of pre-signed URLs (docs/api.md
 * 17): which spellings claimd reads, and the one that it signs. Declared in
 * src/api/wire/decode.h.
 */
#include "api/wire/decode.h"
#include "support/check_main.h"

/* 2099-01-01T00:00:00Z */
#define BEGIN INT64_C(4070908800000)

START_TEST(dates_are_read_in_the_ways_that_people_write_them)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"2099-01-01T00:00:00", BEGIN},
        {"2099-01-01T00:00:00Z", BEGIN},
        {"2099-01-01 00:00:00", BEGIN},
        {"2099-01-01T00:00", BEGIN},
        {"2099-01-01", BEGIN},
        {"2099-01-01T02:00:00+02:00", BEGIN},
        {"2099-01-01T02:00:00+0200", BEGIN},
        {"2099-01-01T02:00+02", BEGIN},
        {"2099-01-01T00:45+00:45", BEGIN},
        {"2098-12-31T18:30:00-05:30", BEGIN},
        {"2099-01-01T00:00:00.999999Z", BEGIN},
        {"2099-01-01T00:00:01,5", BEGIN + 1000},
        {"1970-01-01T00:00:00", 0},
        {"1969-12-31T23:59:59", -1000},
        {"2096-02-29", INT64_C(3981312000000)},
        {"1000-01-01", INT64_C(-30610224000000)},
        {"9999-12-31T23:59:59", INT64_C(253402300799000)},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t ms = 7;

        ck_assert_msg(iso_time_read(bytes_str(rows[i].text), &ms), "%s", rows[i].text);
        ck_assert_msg(ms == rows[i].ms, "%s is %lld", rows[i].text, (long long)ms);
    }
}

START_TEST(an_invalid_date_is_refused)
{
    static const char *const texts[] = {
        "",
        "tomorrow",
        "1500000000",
        "2099",
        "2099-01",
        "20990101",
        "2099-1-1",
        "0000-01-01",
        "0999-12-31",
        "1000-01-01T00:00+01:00",
        "9999-12-31T23:00-01:00",
        "2099-00-01",
        "2099-13-01",
        "2099-01-00",
        "2099-01-32",
        "2099-02-29",
        "2099-04-31",
        "2099-01-01T",
        "2099-01-01T24:00:00",
        "2099-01-01T00:60:00",
        "2099-01-01T00:00:60",
        "2099-01-01T00:00:",
        "2099-01-01T00:00:00.",
        "2099-01-01T00:00:00 ",
        " 2099-01-01T00:00:00",
        "2099-01-01T00:00:00ZZ",
        "2099-01-01T00:00:00+",
        "2099-01-01T00:00:00+2",
        "2099-01-01T00:00:00+24:00",
        "2099-01-01T00:00:00+02:",
        "2099-01-01T00:00:00+02:60",
        "2099-01-01X00:00:00",
        "+099-01-01T00:00:00",
        "2099-01-01T00:00:00\n",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int64_t ms = 7;

        ck_assert_msg(!iso_time_read(bytes_str(texts[i]), &ms), "%s", texts[i]);
        ck_assert_int_eq(ms, 7);
    }
}

START_TEST(a_date_is_written_as_signatures_have_it)
{
    char text[ISO_TIME_CAP];
    int64_t ms;

    iso_time_write(BEGIN + 1999, text);
    ck_assert_str_eq(text, "2099-01-01T00:00:01");
    ck_assert(iso_time_read(bytes_str(text), &ms));
    ck_assert_int_eq(ms, BEGIN + 1000);
}
