#include "http/trace.h"

struct bytes
trace_id(struct bytes text)
{
    if (text.len == 0 || text.len > TRACE_ID_MAX)
        return BYTES_NONE;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return BYTES_NONE;
    return text;
}

static bool
is_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* So many lower-case hexadecimal digits; *zero: all of them are 0. */
static bool
has_digits(struct bytes text, size_t len, bool *zero)
{
    *zero = true;
    if (text.len != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(text.data[i]))
            return false;
        *zero = *zero && text.data[i] == '0';
    }
    return true;
}

/* Versions behind 00 may have more at the end, but begin the same; ff is none. */
struct bytes
trace_parent(struct bytes text)
{
    struct bytes rest = text;
    struct bytes version = bytes_cut(&rest, '-'), trace = bytes_cut(&rest, '-');
    struct bytes parent = bytes_cut(&rest, '-'), flags = bytes_cut(&rest, '-');
    bool first, no_trace, no_parent, zero;

    if (!has_digits(version, 2, &first) || !has_digits(trace, 32, &no_trace) ||
        !has_digits(parent, 16, &no_parent) || !has_digits(flags, 2, &zero))
        return BYTES_NONE;
    if (bytes_equal_str(version, "ff") || no_trace || no_parent ||
        (first && bytes_present(rest)) || text.len > TRACE_ID_MAX)
        return BYTES_NONE;
    return text;
}
