#include "claimd/base/status.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

const char *
errno_text(int error, const char *advice, char out[ERRNO_TEXT_CAP])
{
    struct passwd user, *found = NULL;
    char record[16 * 1024];

    (void)snprintf(out, ERRNO_TEXT_CAP, "%s", strerror(error));
    if (error != EACCES)
        return out;
    (void)getpwuid_r(geteuid(), &user, record, sizeof(record), &found);
    if (found != NULL)
        (void)snprintf(out, ERRNO_TEXT_CAP, "%s for user %s. %s", strerror(error),
                       user.pw_name, advice);
    else
        (void)snprintf(out, ERRNO_TEXT_CAP, "%s for user %u. %s", strerror(error),
                       (unsigned)geteuid(), advice);
    return out;
}
