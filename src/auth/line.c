#include "auth/line.h"

enum { PROJECT_MAX = 256 };

struct bytes
line_field(struct bytes *rest)
{
    size_t len = 0;
    struct bytes field;

    *rest = bytes_trim(*rest);
    if (rest->len == 0)
        return BYTES_NONE;
    while (len < rest->len && rest->data[len] != ' ' && rest->data[len] != '\t')
        len++;
    field = bytes_of(rest->data, len);
    rest->data += len;
    rest->len -= len;
    return field;
}

static bool
is_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.data[i], letter = c | 0x20;

        if ((letter < 'a' || letter > 'z') && (c < '0' || c > '9') && c != '_' &&
            c != '-' && c != '.')
            return false;
    }
    return name.len > 0 && name.len <= TOKEN_NAME_MAX;
}

static bool
are_projects(struct bytes projects)
{
    while (bytes_present(projects)) {
        struct bytes one = bytes_cut(&projects, ',');

        if (one.len == 0 || one.len > PROJECT_MAX)
            return false;
        for (size_t i = 0; i < one.len; i++)
            if ((unsigned char)one.data[i] < 0x20 || one.data[i] == 0x7f)
                return false;
    }
    return true;
}

enum status
line_check(struct bytes name, struct bytes role, struct bytes projects, enum role *out,
           struct reason *why)
{
    if (!is_name(name))
        return reason_give(
            why, ST_BAD_VALUE,
            "a name must be 1 to %d characters from A-Z a-z 0-9 _ - . (received \"%s\")",
            TOKEN_NAME_MAX, received(name).text);
    *out = role_find(role);
    if (*out == ROLE_COUNT)
        return role_refuse(role, why);
    if (!are_projects(projects))
        return reason_give(why, ST_BAD_VALUE,
                           "projects must be 1 to %d characters each, separated by "
                           "commas (received \"%s\")",
                           PROJECT_MAX, received(projects).text);
    return ST_OK;
}
