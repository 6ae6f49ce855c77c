/*
 * Files of time zones: refused with a reason, or zones whose spans, wall times and due
 * times agree.
 *
 * Input: the file.
 */
#include "claimd/schedule/cron.h"
#include "fuzz/fuzz.h"

enum { SPANS = 40, TIMES = 10 };

/* The spans from a UTC second on join, and each shows its own times. */
static void
check_spans(const struct zone *zone, int64_t at)
{
    for (int i = 0; i < SPANS; i++) {
        const struct zone_span span = zone_span(zone, at);
        int64_t moments[ZONE_SHOWN_MOST];
        unsigned count;
        bool found = false;

        fuzz_check(span.begin <= at && at < span.end, "no span of %lld", (long long)at);
        fuzz_check(zone_reaches(zone, at + span.offset) <= at, "%lld is reached later",
                   (long long)at);
        fuzz_check(zone_latest_wall(zone, at) >= at + span.offset, "%lld goes back",
                   (long long)at);
        count = zone_moments(zone, at + span.offset, moments);
        for (unsigned n = 0; n < count; n++) {
            found = found || moments[n] == at;
            fuzz_check(zone_wall(zone, moments[n]) == at + span.offset, "another time");
        }
        fuzz_check(found || count == ZONE_SHOWN_MOST, "%lld is not shown", (long long)at);
        if (span.end > CALENDAR_LAST)
            break;
        at = span.end;
    }
}

static void
check_dues(const struct zone *zone, const char *expression, int64_t at)
{
    struct reason why;
    struct cron cron;

    fuzz_check(cron_parse(bytes_str(expression), &cron, &why) == ST_OK, "refused");
    for (int i = 0; i < TIMES; i++) {
        const int64_t next = cron_next(&cron, zone, at);

        fuzz_check(next > at, "%lld after %lld", (long long)next, (long long)at);
        at = next;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t begins[] = {CALENDAR_FIRST, -4000000000, 0, 1700000000,
                                     4000000000};
    const struct bytes file = fuzz_copy(fuzz_input(data, size));
    struct reason why = {""};
    struct fuzz_memory m;
    struct zone *zone;
    enum status st;

    fuzz_memory_open(&m);
    st = zone_read(m.mem, file, &zone, &why);
    fuzz_check((st == ST_OK) == (why.text[0] == '\0'), "reason: %s", why.text);
    for (size_t i = 0; st == ST_OK && i < sizeof(begins) / sizeof(begins[0]); i++) {
        check_spans(zone, begins[i]);
        check_dues(zone, "*/20 * * * *", begins[i]);
        check_dues(zone, "30 2 * * *", begins[i]);
    }
    if (st == ST_OK)
        zone_unref(zone);
    fuzz_free(file);
    fuzz_memory_close(&m);
    return 0;
}
