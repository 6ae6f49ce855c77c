/*
 * json_string: JSON strings and numbers, checked, taken apart and written.
 *
 * Both UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF) and
 * escapes (RFC 8259, with both halves of a surrogate pair) are checked here and nowhere
 * else. What is written is escaped as little as JSON allows.
 *
 *   Cost     eight bytes at a time through plain ASCII; writing O(length)
 *   Memory   none
 */
#ifndef CLAIMD_JSON_STRING_H
#define CLAIMD_JSON_STRING_H

#include "claimd/base/buf.h"
#include "claimd/base/bytes.h"

/*
 * `at` is behind the opening quote. Returns what is behind the closing one, NULL if the
 * string is broken or does not end before `end`. Sets *escaped if it has a backslash.
 */
const unsigned char *
json_string_pass(const unsigned char *at, const unsigned char *end, bool *escaped);

/* The byte at which json_string_pass() refuses (`end` where more is missing) and why, in words;
 * NULL if it does not. */
const unsigned char *
json_string_fault(const unsigned char *at, const unsigned char *end, const char **why);

/* Behind the UTF-8 sequence of one character that begins at `at`, NULL if broken. */
const unsigned char *utf8_pass(const unsigned char *at, const unsigned char *end);

/*
 * Takes the next character of a checked inside (escapes undone) off *rest, which must
 * not be empty, and returns its code point.
 */
uint32_t json_string_next(struct bytes *rest);

/* True if a checked inside, its escapes undone, is this text. */
bool json_string_equals(struct bytes inside, struct bytes text);

/* Writes a code point as UTF-8 and returns the number of bytes. */
unsigned utf8_write(uint32_t code_point, char out[4]);

/* text as a JSON string, quotes included; bytes that are not UTF-8 become U+FFFD. */
void json_string_write(struct buf *out, struct bytes text);

/* ------------------------------------------------------------------ members */

/*
 * Write members of an object. A comma precedes each one but the first of its object. Names have
 * nothing to escape.
 */

/* The comma, for items of an array as well. */
void json_write_comma(struct buf *out);

/* The name and its colon. */
void json_write_name(struct buf *out, const char *name);

void json_write_raw(struct buf *out, const char *name, struct bytes json);
void
json_write_text(struct buf *out, const char *name, struct bytes text); /* if present */
void json_write_i64(struct buf *out, const char *name, int64_t value);
void json_write_u64(struct buf *out, const char *name, uint64_t value);
void json_write_flag(struct buf *out, const char *name, bool flag);

/* An array of the texts that `mark` separates. */
void json_write_list(struct buf *out, const char *name, struct bytes list, char mark);

/* ------------------------------------------------------------------ numbers */

/* Whatever the locale; reading and writing a double cost some hundred ns. */

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
