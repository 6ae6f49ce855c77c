#include "model/due_model.h"

#include <check.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HOUR_MINUTES = 60 };

/* ------------------------------------------------------------------ clock */

static long
library_offset(int64_t utc)
{
    const time_t second = (time_t)utc;
    struct tm tm;

    ck_assert_ptr_nonnull(localtime_r(&second, &tm));
    ck_assert_int_eq(tm.tm_gmtoff % 60, 0);
    return tm.tm_gmtoff / 60;
}

static int64_t
utc_of(int year)
{
    struct tm tm = {.tm_year = year - 1900, .tm_mday = 1};

    return (int64_t)timegm(&tm);
}

static void
fill_dates(struct due_clock *c, int64_t begin)
{
    for (size_t i = 0; i < c->days; i++) {
        const time_t noon = (time_t)(begin + (int64_t)i * 86400 + 43200);
        struct tm tm;

        ck_assert_ptr_nonnull(gmtime_r(&noon, &tm));
        c->dates[i] = (struct due_date){(uint8_t)(tm.tm_mon + 1), (uint8_t)tm.tm_mday,
                                        (uint8_t)tm.tm_wday};
    }
}

/* The clock begins on the first of January, and its days a day before. */
static void
set_wall(struct due_clock *c, size_t i, long offset)
{
    const int64_t minute = (int64_t)i + DUE_DAY_MINUTES + offset;

    c->walls[i] = (struct due_wall){(uint16_t)(minute / DUE_DAY_MINUTES),
                                    (uint16_t)(minute % DUE_DAY_MINUTES)};
}

void
due_clock_open(struct due_clock *c, const char *zone, int first_year, int years)
{
    char tz[80];
    long before;

    (void)snprintf(tz, sizeof(tz), ":%s", zone);
    ck_assert_int_eq(setenv("TZ", tz, 1), 0);
    tzset();
    *c = (struct due_clock){.begin = utc_of(first_year)};
    c->minutes = (size_t)(utc_of(first_year + years) - c->begin) / 60;
    c->days = c->minutes / DUE_DAY_MINUTES + 3;
    c->walls = calloc(c->minutes, sizeof(c->walls[0]));
    c->dates = calloc(c->days, sizeof(c->dates[0]));
    ck_assert(c->walls != NULL && c->dates != NULL);
    fill_dates(c, c->begin - 86400);
    before = library_offset(c->begin);
    for (size_t hour = 0; hour < c->minutes; hour += HOUR_MINUTES) {
        const int64_t utc = c->begin + (int64_t)hour * 60;
        const long behind = library_offset(utc + 3600);

        for (size_t i = 0; i < HOUR_MINUTES; i++)
            set_wall(c, hour + i,
                     before == behind ? before : library_offset(utc + (int64_t)i * 60));
        if (before != behind && c->change_count < DUE_CHANGES_MOST)
            c->changes[c->change_count++] = hour;
        before = behind;
    }
}

void
due_clock_close(struct due_clock *c)
{
    free(c->walls);
    free(c->dates);
}

/* ------------------------------------------------------------------ expressions */

static void __attribute__((format(printf, 2, 3)))
add_text(char *text, const char *format, ...)
{
    const size_t len = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    ck_assert_int_lt(vsnprintf(text + len, DUE_TEXT_CAP - len, format, arguments),
                     (int)(DUE_TEXT_CAP - len));
    va_end(arguments);
}

/* A value as a number or, if there are names, sometimes as one, of any case. */
static void
add_value(char *text, struct random *r, const char *names, int least, int value)
{
    char name[4] = "";

    if (names == NULL || random_chance(r, 50) ||
        (size_t)(value - least) * 3 >= strlen(names)) {
        add_text(text, random_chance(r, 10) ? "%02d" : "%d", value);
        return;
    }
    memcpy(name, names + (value - least) * 3, 3);
    for (int i = 0; i < 3; i++) {
        if (random_chance(r, 30))
            name[i] = (char)toupper(name[i]);
    }
    add_text(text, "%s", name);
}

struct values {
    const char *names;
    int least, most; /* of "*" */
    int limit;       /* also allowed; means `least` if it is beyond `most` */
    unsigned stars;  /* percent */
};

static void
set_values(bool *set, const struct values *v, int low, int high, int step)
{
    for (int value = low; value <= high; value += step)
        set[value > v->most ? v->least : value] = true;
}

/* Adds an entry of a list to a text and to its meaning. True: it has a star. */
static bool
add_entry(char *text, struct random *r, const struct values *v, bool *set)
{
    int low = (int)random_between(r, v->least, v->limit), high = low, step = 1;
    const bool star = random_chance(r, 15);

    if (star) {
        low = v->least;
        high = v->most;
        add_text(text, "*");
    } else {
        add_value(text, r, v->names, v->least, low);
    }
    if (!star && low < v->limit && random_chance(r, 40)) {
        high = (int)random_between(r, low + 1, v->limit);
        add_text(text, "-");
        add_value(text, r, v->names, v->least, high);
    }
    if (high > low && (star || random_chance(r, 40))) {
        step = (int)random_between(r, 1, high - low);
        add_text(text, "/%d", step);
    }
    set_values(set, v, low, high, step);
    return star;
}

/* True: the field has a star, and is more than one. */
static bool
add_field(char *text, struct random *r, const struct values *v, bool *set, bool *any)
{
    const bool unrestricted = random_chance(r, v->stars);
    bool star = false;

    *any = unrestricted;
    if (unrestricted) {
        add_text(text, "*");
        set_values(set, v, v->least, v->most, 1);
        return false;
    }
    for (int entries = (int)random_between(r, 1, 3); entries > 0; entries--) {
        star = add_entry(text, r, v, set) || star;
        if (entries > 1)
            add_text(text, ",");
    }
    return star;
}

/* True if a month of the expression has a day of it. */
static bool
has_date(const struct due_expression *e)
{
    static const int lengths[] = {0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    for (int month = 1; month <= 12; month++) {
        for (int day = 1; day <= lengths[month]; day++) {
            if (e->months[month] && e->days[day])
                return true;
        }
    }
    return false;
}

void
due_expression_make(struct due_expression *e, struct random *r)
{
    static const struct values minute = {NULL, 0, 59, 59, 8},
                               hour = {NULL, 0, 23, 23, 30};
    static const struct values day = {NULL, 1, 31, 31, 65};
    static const struct values month = {"janfebmaraprmayjunjulaugsepoctnovdec", 1, 12, 12,
                                        75};
    static const struct values weekday = {"sunmontuewedthufrisat", 0, 6, 7, 65};
    bool any, day_star, weekday_star;

    *e = (struct due_expression){.refused = false};
    (void)add_field(e->text, r, &minute, e->minutes, &any);
    add_text(e->text, " ");
    (void)add_field(e->text, r, &hour, e->hours, &any);
    add_text(e->text, random_chance(r, 10) ? " \t" : " ");
    day_star = add_field(e->text, r, &day, e->days, &e->any_day);
    add_text(e->text, " ");
    (void)add_field(e->text, r, &month, e->months, &any);
    add_text(e->text, " ");
    weekday_star = add_field(e->text, r, &weekday, e->weekdays, &e->any_weekday);
    e->refused = (!e->any_day && !e->any_weekday && (day_star || weekday_star)) ||
                 (e->any_weekday && !has_date(e));
}

/* ------------------------------------------------------------------ walks */

static bool
date_matches(const struct due_expression *e, struct due_date d)
{
    if (!e->months[d.month])
        return false;
    if (!e->any_day && !e->any_weekday)
        return e->days[d.day] || e->weekdays[d.weekday];
    return e->days[d.day] && e->weekdays[d.weekday];
}

static int64_t
wall_minute(struct due_wall wall)
{
    return (int64_t)wall.day * DUE_DAY_MINUTES + wall.minute;
}

void
due_walk_begin(struct due_walk *w, const struct due_clock *c,
               const struct due_expression *e, int64_t after)
{
    int hours = 0;

    *w = (struct due_walk){.clock = c, .at = (size_t)((after - c->begin) / 60 + 1)};
    for (int i = 0; i < 24; i++)
        hours += e->hours[i];
    w->hourly = hours == 24;
    for (int i = 0; i < DUE_DAY_MINUTES; i++)
        w->time_matches[i] = e->hours[i / 60] && e->minutes[i % 60];
    w->day_matches = calloc(c->days, sizeof(bool));
    ck_assert_ptr_nonnull(w->day_matches);
    for (size_t i = 0; i < c->days; i++)
        w->day_matches[i] = date_matches(e, c->dates[i]);
    ck_assert_uint_ge(w->at, DUE_HISTORY);
    for (size_t i = w->at - DUE_HISTORY; i < w->at; i++) {
        const int64_t shown = wall_minute(c->walls[i]);

        w->latest = shown > w->latest ? shown : w->latest;
    }
}

void
due_walk_end(struct due_walk *w)
{
    free(w->day_matches);
}

static bool
wall_matches(const struct due_walk *w, int64_t wall)
{
    return w->day_matches[wall / DUE_DAY_MINUTES] &&
           w->time_matches[wall % DUE_DAY_MINUTES];
}

/* Moves the latest wall minute forward. True if a minute that it passes matches. */
static bool
pass_minutes(struct due_walk *w, int64_t to)
{
    bool matches = false;

    while (w->latest < to)
        matches = wall_matches(w, ++w->latest) || matches;
    return matches;
}

int64_t
due_walk_next(struct due_walk *w)
{
    while (w->at < w->clock->minutes) {
        const size_t i = w->at++;
        const struct due_wall wall = w->clock->walls[i];
        const bool due = w->hourly
                             ? w->day_matches[wall.day] && w->time_matches[wall.minute]
                             : pass_minutes(w, wall_minute(wall));

        if (due)
            return w->clock->begin + (int64_t)i * 60;
    }
    return INT64_MAX;
}
