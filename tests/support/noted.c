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
