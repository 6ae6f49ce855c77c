/*
 * sometimes: what the tests have reached of the states in claimd/base/sometimes.h.
 */
#ifndef TESTS_SUPPORT_SOMETIMES_H
#define TESTS_SUPPORT_SOMETIMES_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Prints the states that this test of ctest must reach and has not. False: one of them is
 * common. NULL in a program that counts nothing.
 */
__attribute__((weak)) bool sometimes_report(const char *test, FILE *out);

#endif
