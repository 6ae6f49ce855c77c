#include "api/wire/decode_integer.h"

#include "claimd/json/fault.h"

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
    return reason_give(why, st,
                       "%s is %s. It must be an integer between %lld and %lld (%s)", name,
                       json_received(value).text, (long long)range->min,
                       (long long)range->max, range->options);
}

enum status
decode_worse(enum status a, enum status b)
{
    if (a == ST_OK || b == ST_BAD_BODY)
        return b;
    return a;
}
