#include "main/config_errors.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

void
config_error(struct config_errors *c, const char *format, ...)
{
    va_list args;

    c->count++;
    va_start(args, format);
    if (vsnprintf(c->last, sizeof(c->last), format, args) < 0)
        c->last[0] = '\0';
    va_end(args);
    for (char *at = c->last; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at))
            *at = '?';
    if (c->count == 1)
        memcpy(c->first, c->last, sizeof(c->first));
    if (c->to != NULL)
        (void)fprintf(c->to, "claimd: %s\n", c->last);
}
