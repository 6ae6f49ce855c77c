#include "api/wire/decode_integer.h"

enum status
decode_integer(const struct json_scan_value *value, const struct integer_range *range,
               int64_t *out)
{
    int64_t number;

    switch (value->kind) {
    case SCAN_NONE:
    case SCAN_NULL:
        return ST_OK;
    case SCAN_INTEGER:
        number = json_scan_to_i64(value);
        if (number < range->min || number > range->max)
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
integer_refuse(struct reason *why, enum status st, const char *name,
               const struct json_scan_value *value, const struct integer_range *range)
{
    if (value->kind != SCAN_INTEGER)
        return reason_give(why, st, "%s must be an integer", name);
    return reason_give(why, st, "%s must be between %lld and %lld (%s), not %.*s", name,
                       (long long)range->min, (long long)range->max, range->options,
                       (int)value->text.len, value->text.data);
}

enum status
decode_worse(enum status a, enum status b)
{
    if (a == ST_OK || b == ST_BAD_BODY)
        return b;
    return a;
}
