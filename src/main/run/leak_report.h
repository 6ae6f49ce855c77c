/*
 * leak_report: what a server says of what tests have forgotten (docs/api.md 23.8), for people.
 */
#ifndef MAIN_LEAK_REPORT_H
#define MAIN_LEAK_REPORT_H

#include "claimd/base/bytes.h"

#include <stdio.h>

/* Lines that are written of each kind; what there is more is only counted. */
enum { LEAK_REPORT_LINES = 100 };

struct leak_report {
    FILE *to;
    const char *of; /* written behind each line: " (instance 2)"; "" for none */
    size_t claims, unread, dead_letters;
};

/*
 * Writes the leaks of a page, a document of GET /claimd/leaks. False: it is none. next: the target
 * of the next page; empty: there is none.
 */
enum { LEAK_REPORT_NEXT_CAP = 4096 };
bool leak_report_page(struct leak_report *r, struct bytes page,
                      char next[LEAK_REPORT_NEXT_CAP]);

size_t leak_report_count(const struct leak_report *r);

/* A line with what there was; nothing if there was nothing. */
void leak_report_sum_up(const struct leak_report *r);

#endif
