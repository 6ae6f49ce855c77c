/*
 * Cron expressions: refused with a reason, or with due times that match, ascend and are
 * not far apart.
 *
 * Input: the expression.
 */
#include "claimd/schedule/cron.h"
#include "fuzz/fuzz.h"

enum { TIMES = 20 };

/* True if the expression names this UTC time. */
static bool
shows(const struct cron *cron, int64_t utc)
{
    const int64_t day = calendar_wall_day(utc), minute = calendar_wall_second(utc) / 60;
    const struct date date = calendar_date(day);
    const bool by_day = (cron->days >> date.day & 1) != 0;
    const bool by_weekday = (cron->weekdays >> calendar_weekday(day) & 1) != 0;

    return utc % 60 == 0 && (cron->minutes >> minute % 60 & 1) != 0 &&
           (cron->hours >> minute / 60 & 1) != 0 &&
           (cron->months >> date.month & 1) != 0 &&
           (cron->any_day || cron->any_weekday ? by_day && by_weekday
                                               : by_day || by_weekday);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct bytes text = fuzz_copy(fuzz_input(data, size));
    struct reason why = {""};
    struct cron cron;
    int64_t at = (int64_t)size * 86400 * 365;
    enum status st = cron_parse(text, &cron, &why);

    fuzz_check(st == ST_OK || st == ST_BAD_VALUE, "%s", status_name(st));
    fuzz_check((st == ST_OK) == (why.text[0] == '\0'), "reason: %s", why.text);
    for (int i = 0; st == ST_OK && i < TIMES; i++) {
        const int64_t next = cron_next(&cron, NULL, at);

        fuzz_check(next > at && next - at <= INT64_C(86400) * (8 * 366 + 1),
                   "%lld after %lld", (long long)next, (long long)at);
        fuzz_check(shows(&cron, next), "%lld does not match", (long long)next);
        at = next;
    }
    fuzz_free(text);
    return 0;
}
