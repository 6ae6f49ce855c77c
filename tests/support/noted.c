/*
 * Notes the line of a test that calls a helper, for messages of failed assertions.
 * Declared in check_main.h. check_main.c has a main(), and the simulation and the fuzz
 * targets use the helpers without it.
 */
#include "support/check_main.h"

#include <string.h>

struct test_noted test_noted;

void
test_note_line(const char *file, int line)
{
    if (strstr(file, "support/") != NULL)
        return; /* a helper calls another one */
    test_noted.file = file;
    test_noted.line = line;
}

void
test_note_subject(const char *subject)
{
    test_noted.subject = subject;
}
