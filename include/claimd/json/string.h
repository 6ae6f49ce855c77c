/*
 * json_string: checks, reads and writes JSON strings and numbers.
 *
 * Only this module checks escapes (RFC 8259, with both halves of a surrogate pair), and
 * that texts are UTF-8. It writes as few escapes as JSON allows.
 *
 *   Cost     eight bytes at a time through plain ASCII; writing O(length)
 *   Memory   none
 */
#ifndef CLAIMD_JSON_STRING_H
#define CLAIMD_JSON_STRING_H

#include "claimd/base/buf.h"
#include "claimd/base/bytes.h"
#include "claimd/base/utf8.h"

/*
 * Passes a string; `at` is behind the opening quote. Returns the address behind the
 * closing one; NULL: the string is invalid or does not end before `end`. Sets *escaped if
 * it has a backslash.
 */
const unsigned char *
json_string_pass(const unsigned char *at, const unsigned char *end, bool *escaped);

/* The byte at which json_string_pass() fails (`end` if bytes are missing), and the reason
 * in words. NULL: it does not fail. */
const unsigned char *
json_string_fault(const unsigned char *at, const unsigned char *end, const char **why);

/* Removes the next character, with escapes decoded, from *rest, a checked and not empty
 * text between quotes. Returns its code point. */
uint32_t json_string_next(struct bytes *rest);

/* True if a checked text between quotes, with escapes decoded, is this text. */
bool json_string_equals(struct bytes inside, struct bytes text);

/* Writes a code point as UTF-8. Returns the number of bytes. */
unsigned utf8_write(uint32_t code_point, char out[4]);

/* Writes text as a JSON string with quotes. Bytes that are not UTF-8 become U+FFFD. */
void json_string_write(struct buf *out, struct bytes text);

/* ------------------------------------------------------------------ members */

/* These write members of an object, with commas between them. Names need no escapes. */

/* Writes a comma, unless the object or array is empty. */
void json_write_comma(struct buf *out);

/* Writes the name and its colon. */
void json_write_name(struct buf *out, const char *name);

void json_write_raw(struct buf *out, const char *name, struct bytes json);
void
json_write_text(struct buf *out, const char *name, struct bytes text); /* if present */

/* Writes null if the text is absent or empty. */
void json_write_text_or_null(struct buf *out, const char *name, struct bytes text);
void json_write_i64(struct buf *out, const char *name, int64_t value);
void json_write_u64(struct buf *out, const char *name, uint64_t value);
void json_write_flag(struct buf *out, const char *name, bool flag);

/* Writes a time in UTC, as clock_text(). */
void json_write_time(struct buf *out, const char *name, int64_t ms);

/* Writes an array of the parts of `list` between `mark`. */
void json_write_list(struct buf *out, const char *name, struct bytes list, char mark);

/* ------------------------------------------------------------------ numbers */

/* Independent of the locale. Reading or writing a double costs some hundred ns. */

/*
 * Passes a number; `at` is at its first byte. Returns the address behind it; NULL: it is
 * no number, an integer that does not fit int64_t, or too large for a double. Sets
 * *integer if it has neither fraction nor exponent.
 */
const unsigned char *
json_number_pass(const unsigned char *at, const unsigned char *end, bool *integer);

/* Says why json_number_pass() rejects a text that begins with a minus or a digit. */
const char *json_number_fault(const unsigned char *at, const unsigned char *end);

/* The double nearest to a number that json_number_pass() accepted; HUGE_VAL if too
 * large. */
double json_number_read(struct bytes text);

/* Writes the shortest decimal that reads back the same, like Python: 2.5, 100.0, 1e+16,
 * 1e-05. The value must be finite. */
void json_number_write(struct buf *out, double value);

#endif
