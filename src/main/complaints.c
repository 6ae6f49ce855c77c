#include "main/complaints.h"

#include <ctype.h>
#include <stdarg.h>

enum { LINE_CAP = 1024 };

void
complain(struct complaints *c, const char *format, ...)
{
    char line[LINE_CAP];
    va_list args;

    c->count++;
    if (c->to == NULL)
        return;
    va_start(args, format);
    if (vsnprintf(line, sizeof(line), format, args) < 0)
        line[0] = '\0';
    va_end(args);
    for (char *at = line; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at))
            *at = '?';
    (void)fprintf(c->to, "claimd: %s\n", line);
}
