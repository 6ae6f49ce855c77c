#include "api/wire/prefer.h"

#include <ctype.h>

/* Takes what stands in front of the next `mark` outside of quoted strings off *rest. */
static struct bytes
take_until(struct bytes *rest, char mark)
{
    bool quoted = false;
    struct bytes taken;
    size_t i = 0, used;

    for (; i < rest->len; i++) {
        char c = rest->data[i];

        if (c == '"')
            quoted = !quoted;
        else if (quoted && c == '\\' && i + 1 < rest->len)
            i++;
        else if (!quoted && c == mark)
            break;
    }
    taken = bytes_of(rest->data, i);
    used = i < rest->len ? i + 1 : i;
    *rest = bytes_of(rest->data + used, rest->len - used);
    return taken;
}

static bool
is_wait(struct bytes name)
{
    static const char wait[] = "wait";

    if (name.len != sizeof(wait) - 1)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (tolower((unsigned char)name.data[i]) != wait[i])
            return false;
    return true;
}

/* delta-seconds: digits and nothing else. */
static int64_t
read_seconds(struct bytes text)
{
    int64_t seconds = 0;

    for (size_t i = 0; i < text.len; i++) {
        int digit = text.data[i] - '0';

        if (digit < 0 || digit > 9)
            return 0;
        seconds = seconds > (INT64_MAX - digit) / 10 ? INT64_MAX : seconds * 10 + digit;
    }
    return seconds;
}

int64_t
prefer_wait(struct bytes header)
{
    while (header.len > 0) {
        struct bytes preference = take_until(&header, ',');
        struct bytes value = take_until(&preference, ';'); /* without its parameters */
        struct bytes name = take_until(&value, '=');

        if (is_wait(bytes_trim(name)))
            return read_seconds(bytes_trim(value));
    }
    return 0;
}
