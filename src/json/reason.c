#include "claimd/json/reason.h"

#include <stdarg.h>
#include <stdio.h>

enum status
reason_give(struct reason *why, enum status st, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why->text, sizeof(why->text), format, args);
    va_end(args);
    return st;
}
