/*
 * decode_integer: whole numbers in bodies and what is said about wrong ones (docs/api.md
 * 3.8).
 */
#ifndef API_WIRE_DECODE_INTEGER_H
#define API_WIRE_DECODE_INTEGER_H

#include "claimd/json/reason.h"
#include "claimd/json/scan.h"

/* What an integer may be, and the options that say so ("min_claim_ttl, max_claim_ttl"). */
struct integer_range {
    int64_t min, max;
    const char *options;
};

/*
 * Reads a value that may be left out (SCAN_NONE, or null, which counts as left out: *out
 * stays). ST_BAD_VALUE: out of range, or a boolean, which the original takes for 0 or 1;
 * ST_BAD_BODY: anything else that is no integer.
 */
enum status decode_integer(const struct json_scan_value *value,
                           const struct integer_range *range, int64_t *out);

/* Says why decode_integer() refused a value with st, which is returned. */
enum status
integer_refuse(struct reason *why, enum status st, const char *name,
               const struct json_scan_value *value, const struct integer_range *range);

/* Of two outcomes of one body the one to answer: a wrong type before a wrong value. */
enum status decode_worse(enum status a, enum status b);

#endif
