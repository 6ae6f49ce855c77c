#include "main/group.h"

#include "main/config_origin.h"
#include "main/option.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>

/* Groups may have very many members; a record that needs more is not looked at. */
enum { RECORD_FIRST = 1024, RECORD_MAX = 16 * 1024 * 1024 };

/* (gid_t)-1 means "leave it", so it is nobody's number. */
#define GROUP_MAX (INT64_C(4294967295) - 1)

/* Looks a name up: 0 and *out, -1 for none, if it is unknown; else an error. */
static int
look_up(const char *name, int64_t *out)
{
    int failed = ERANGE;

    *out = -1;
    for (size_t size = RECORD_FIRST; failed == ERANGE && size <= RECORD_MAX; size *= 4) {
        struct group group, *found = NULL;
        char *record = malloc(size);

        if (record == NULL)
            return ENOMEM;
        do
            failed = getgrnam_r(name, &group, record, size, &found);
        while (failed == EINTR);
        if (failed == 0 && found != NULL)
            *out = (int64_t)group.gr_gid;
        free(record);
    }
    /* What some sources say of a name that they do not know. */
    return failed == ENOENT || failed == ESRCH || failed == EBADF || failed == EPERM
               ? 0
               : failed;
}

enum status
group_find(const struct config *config, int64_t *out, struct config_errors *errors)
{
    const char *name = config->socket_group;
    char where[CONFIG_TEXT_CAP];
    uint64_t number;
    int failed;

    *out = -1;
    if (strcmp(name, "none") == 0)
        return ST_OK;
    if (bytes_to_u64(bytes_str(name), &number) && number <= GROUP_MAX) {
        *out = (int64_t)number;
        return ST_OK;
    }
    failed = look_up(name, out);
    if (failed == 0 && *out >= 0)
        return ST_OK;
    config_where(config, option_find(bytes_str("socket_group")), where);
    if (failed == 0)
        config_error(errors, "socket_group: there is no group %s (%s)", name, where);
    else
        config_error(errors, "socket_group: the group %s (%s) cannot be looked up: %s",
                     name, where, strerror(failed));
    return ST_BAD_VALUE;
}
