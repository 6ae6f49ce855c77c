#include "api/decode_integer.h"

enum status
decode_integer(const struct scan_value *value, int64_t min, int64_t max, int64_t *out)
{
    int64_t number;

    switch (value->kind) {
    case SCAN_NONE:
    case SCAN_NULL:
        return ST_OK;
    case SCAN_INTEGER:
        number = scan_to_i64(value);
        if (number < min || number > max)
            return ST_BAD_VALUE;
        *out = number;
        return ST_OK;
    case SCAN_TRUE:
    case SCAN_FALSE:
        return ST_BAD_VALUE;
    default:
        return ST_BAD_BODY;
    }
}

enum status
decode_worse(enum status a, enum status b)
{
    if (a == ST_OK || b == ST_BAD_BODY)
        return b;
    return a;
}
