#include "claimd/base/status.h"

const char *
status_name(enum status st)
{
    static const char *const names[ST_COUNT] = {
#define STATUS_NAME(name, text) #name,
        STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    };

    return (unsigned)st < ST_COUNT ? names[st] : "UNKNOWN";
}

const char *
status_text(enum status st)
{
    static const char *const texts[ST_COUNT] = {
#define STATUS_TEXT(name, text) text,
        STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    };

    return (unsigned)st < ST_COUNT ? texts[st] : "unknown outcome";
}
