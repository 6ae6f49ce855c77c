/*
 * json_number: numbers of JSON texts, checked, read and written, whatever the locale.
 *
 *   Cost     passing O(length); reading and writing a double some hundred ns
 *   Memory   none
 */
#ifndef CLAIMD_JSON_NUMBER_H
#define CLAIMD_JSON_NUMBER_H

#include "claimd/base/buf.h"
#include "claimd/base/bytes.h"

/*
 * `at` is at the number's first byte. Returns what is behind its last, NULL if it is no
 * number, an integer that int64_t does not hold, or too large for a double. Sets
 * *integer if it has neither fraction nor exponent.
 */
const unsigned char *
json_number_pass(const unsigned char *at, const unsigned char *end, bool *integer);

/* Why json_number_pass() refuses what begins here, with a minus or a digit. */
const char *json_number_fault(const unsigned char *at, const unsigned char *end);

/* The double nearest to a number that json_number_pass() has passed; HUGE_VAL if too large. */
double json_number_read(struct bytes text);

/*
 * The shortest decimal that reads back the same, as Python writes it: 2.5, 100.0, 1e+16,
 * 1e-05. The value must be finite.
 */
void json_number_write(struct buf *out, double value);

#endif
