#include "sim/promise.h"

#include <stdarg.h>
#include <stdio.h>

const char *
promise_text(enum promise p)
{
    static const char *const texts[] = {"none",
#define PROMISE_TEXT(name, text) text,
                                        PROMISE_LIST(PROMISE_TEXT)
#undef PROMISE_TEXT
    };

    return texts[p];
}

bool
verdict_break(struct verdict *v, enum promise p, const char *format, ...)
{
    va_list args;

    if (v->broken != PROMISE_NONE)
        return false;
    v->broken = p;
    va_start(args, format);
    (void)vsnprintf(v->why, sizeof(v->why), format, args); /* a longer one is cut */
    va_end(args);
    return false;
}
