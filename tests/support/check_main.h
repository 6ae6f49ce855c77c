/*
 * check_main: what every Check program of the suite has in common.
 */
#ifndef TESTS_SUPPORT_CHECK_MAIN_H
#define TESTS_SUPPORT_CHECK_MAIN_H

#include <check.h>

/* Adds a case with a time limit that suits a slow sanitizer build. */
TCase *test_case(Suite *suite, const char *name);

/* Runs the suite without forking (a debugger and the sanitizers see everything). */
int check_main(Suite *suite);

#endif
