/*
 * invariant_fixture: lets an invariant be broken in a child process, and reads its
 * error.
 */
#ifndef TESTS_SUPPORT_INVARIANT_FIXTURE_H
#define TESTS_SUPPORT_INVARIANT_FIXTURE_H

#include "support/check_main.h"

#include <stdio.h>
#include <string.h>

enum { BROKEN_LINE_CAP = 2048 };

/* Runs break_it in a child, which must abort; what it wrote to standard error is in
 * line. */
void catch_broken(void (*break_it)(void), char line[BROKEN_LINE_CAP]);

/* The same; the only line must report a broken invariant, contain a text, and end so. */
void expect_broken(void (*break_it)(void), const char *contains, const char *ends);

#endif
