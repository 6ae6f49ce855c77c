/*
 * decode_integer: whole numbers in bodies and what is said about wrong ones (API.md 2.7).
 */
#ifndef API_DECODE_INTEGER_H
#define API_DECODE_INTEGER_H

#include "api/json_scan.h"

/*
 * Reads a value that may be left out (SCAN_NONE, or null, which counts as left out: *out
 * stays). ST_BAD_VALUE: out of range, or a boolean, which the original takes for 0 or 1;
 * ST_BAD_BODY: anything else that is no integer.
 */
enum status
decode_integer(const struct scan_value *value, int64_t min, int64_t max, int64_t *out);

/* Of two outcomes of one body the one to answer: a wrong type before a wrong value. */
enum status decode_worse(enum status a, enum status b);

#endif
