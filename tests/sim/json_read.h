/*
 * json_read: a reader of responses, independent of the server's own scanner.
 *
 * Walks over objects and arrays and hands out the raw text of their values, so that a
 * message's body can be compared byte by byte with what was posted.
 */
#ifndef TESTS_SIM_JSON_READ_H
#define TESTS_SIM_JSON_READ_H

#include "claimd/base/bytes.h"

struct json_read {
    const char *at, *end;
    bool bad;   /* the text is not JSON */
    bool begun; /* a comma comes before the next */
    char close;
};

/* Begins at the inside of an object ('{') or array ('['). */
struct json_read json_read_begin(struct bytes text, char open);

/* The next member or item; false at the end, or when the text is bad. */
bool json_read_member(struct json_read *r, struct bytes *name, struct bytes *value);
bool json_read_item(struct json_read *r, struct bytes *value);

/* True if everything was read and was right. */
bool json_read_done(const struct json_read *r);

/* A text without its quotes (escapes stay), an integer; false if it is none. */
bool json_read_text(struct bytes value, struct bytes *out);
bool json_read_i64(struct bytes value, int64_t *out);

#endif
