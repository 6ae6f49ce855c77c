#include "api/prefer.h"

/* Cuts *rest at the next `mark` outside of quoted strings, and returns the part before
 * it. */
static struct bytes
cut_unquoted(struct bytes *rest, char mark)
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

/* Reads delta-seconds, which consist of digits. */
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

/* The value of the first preference with this name; absent: there is none. */
static struct bytes
find_preference(struct bytes header, const char *wanted)
{
    while (header.len > 0) {
        struct bytes preference = cut_unquoted(&header, ',');
        struct bytes value = cut_unquoted(&preference, ';'); /* without its parameters */
        struct bytes name = cut_unquoted(&value, '=');

        if (bytes_equal_nocase(bytes_trim(name), bytes_str(wanted)))
            return bytes_present(value) ? bytes_trim(value) : bytes_str("");
    }
    return BYTES_NONE;
}

int64_t
prefer_wait(struct bytes header)
{
    struct bytes value = find_preference(header, "wait");

    return value.len > 0 ? read_seconds(value) : 0;
}

bool
prefer_details(struct bytes header)
{
    return bytes_present(find_preference(header, "details"));
}
