/*
 * due_model: due times by walking through the minutes of a wall clock, one after another.
 *
 * It knows the rules of claimd/schedule/cron.h, and shares no code with it: the wall
 * clock is that of the C library, and an expression is a table of minutes and days. The
 * latest time that the clock has shown decides about gaps and folds.
 *
 *   Cost     filling: 0.3 us an hour, and 4 bytes a minute. A walk: a few ns a minute
 *   Range    changes of the clock at whole minutes: since 1973
 *   Threads  one: it sets TZ
 */
#ifndef TESTS_MODEL_DUE_MODEL_H
#define TESTS_MODEL_DUE_MODEL_H

#include "support/random.h"

#include <stddef.h>

enum {
    DUE_TEXT_CAP = 256,
    DUE_DAY_MINUTES = 1440,
    DUE_CHANGES_MOST = 256,
    DUE_HISTORY = 4 * DUE_DAY_MINUTES /* minutes of the clock before the first walk */
};

/* The wall clock at a UTC minute. */
struct due_wall {
    uint16_t day; /* from the first day of the clock */
    uint16_t minute;
};

struct due_date {
    uint8_t month, day, weekday;
};

struct due_clock {
    int64_t begin; /* UTC second, at a minute */
    size_t minutes, days;
    struct due_wall *walls;                         /* owned, for each minute */
    struct due_date *dates;                         /* owned, for each day */
    size_t changes[DUE_CHANGES_MOST], change_count; /* of hours in which it jumps */
};

/* The wall clock of a zone in some years. */
void due_clock_open(struct due_clock *c, const char *zone, int first_year, int years);
void due_clock_close(struct due_clock *c);

/* An expression and what it means. */
struct due_expression {
    char text[DUE_TEXT_CAP];
    bool minutes[60], hours[24], days[32], months[13], weekdays[7];
    bool any_day, any_weekday;
    bool refused; /* claimd must refuse it */
};

void due_expression_make(struct due_expression *e, struct random *r);

/* A walk through a clock. */
struct due_walk {
    const struct due_clock *clock;
    bool hourly, time_matches[DUE_DAY_MINUTES];
    bool *day_matches; /* owned, for each day */
    size_t at;         /* the next minute to look at */
    int64_t latest;    /* the latest wall minute that the clock has shown */
};

/* Begins behind this UTC second, which is DUE_HISTORY minutes or more behind the clock's
 * first. */
void due_walk_begin(struct due_walk *w, const struct due_clock *c,
                    const struct due_expression *e, int64_t after);
void due_walk_end(struct due_walk *w);

/* The next due time, or INT64_MAX at the end of the clock. */
int64_t due_walk_next(struct due_walk *w);

#endif
