#include "claimd/json/reason.h"

#include <ctype.h>
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

struct received
received(struct bytes value)
{
    size_t len = value.len < RECEIVED_MOST ? value.len : RECEIVED_MOST;
    struct received out;

    while (len > 0 && len < value.len && (value.data[len] & 0xc0) == 0x80)
        len--;
    for (size_t i = 0; i < len; i++)
        out.text[i] = iscntrl((unsigned char)value.data[i]) ? '?' : value.data[i];
    strcpy(out.text + len, len < value.len ? "..." : "");
    return out;
}
