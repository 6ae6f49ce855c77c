/*
 * json_scan: one validating pass over a JSON text, without memory of its own.
 *
 * A scanner stands somewhere in a text and is asked to go on: into an object or an array,
 * to the next member or item, or over a whole value whose kind and exact bytes it notes.
 * Whatever it passes has been checked: UTF-8, grammar, escapes and surrogate pairs, that
 * integers fit int64_t and other numbers a double, and the depth. It takes what jansson
 * takes (docs/adr/0001-own-json-scanner.md names the two differences).
 *
 * The first fault makes the scanner `bad`; from then on it is at the end of everything,
 * so that loops over members and items just stop, and the owner asks once, at json_scan_end():
 *
 *     json_scan_begin(&s, text);
 *     if (json_scan_enter(&s, SCAN_OBJECT))
 *         while (json_scan_member(&s, &name))
 *             if (json_scan_name_is(&name, "ttl"))
 *                 json_scan_value(&s, &ttl);
 *             else
 *                 json_scan_value(&s, NULL);
 *     return json_scan_end(&s);
 *
 *   Cost     O(length), about 1 ns a byte of ordinary documents; constant stack
 *   Memory   never allocates; what it returns are spans of the text given
 *   Bounds   reads nothing behind the text, which need not end with a NUL
 *   Threads  none
 */
#ifndef CLAIMD_JSON_SCAN_H
#define CLAIMD_JSON_SCAN_H

#include "claimd/base/bytes.h"
#include "claimd/base/status.h"
#include "claimd/json/reason.h"

/* As jansson counts: a scalar in an array in an array stands at depth 3. */
#define SCAN_DEPTH_MAX 2048

enum json_scan_kind {
    SCAN_NONE, /* no value can begin here; also: absent */
    SCAN_OBJECT,
    SCAN_ARRAY,
    SCAN_STRING,
    SCAN_INTEGER,
    SCAN_REAL,
    SCAN_TRUE,
    SCAN_FALSE,
    SCAN_NULL
};

/* A value passed: its kind and its bytes, quotes and brackets included, no space around.
 */
struct json_scan_value {
    enum json_scan_kind kind;
    struct bytes text; /* borrowed from the text scanned */
};

/* The name of a member as it is written, without the quotes. */
struct json_scan_name {
    struct bytes text; /* borrowed from the text scanned */
    bool escaped;      /* holds a backslash: text is not the name itself */
};

/* What a fault is about; json_fault() has words for it. */
enum json_scan_wanted {
    SCAN_WANTS_VALUE, /* none begins here, or what begins here is none */
    SCAN_WANTS_NAME,  /* of a member, likewise */
    SCAN_WANTS_COLON,
    SCAN_WANTS_COMMA_OR_BRACE,
    SCAN_WANTS_COMMA_OR_BRACKET,
    SCAN_WANTS_LEVELS /* more than SCAN_DEPTH_MAX of them */
};

struct json_scan {
    const unsigned char *at, *end; /* private, as is the rest */
    const unsigned char *fault; /* when bad, until the scanner is asked to go on: where */
    enum json_scan_wanted wanted; /* likewise: why */
    unsigned depth;               /* containers entered and not left */
    bool first;                   /* nothing of the innermost one was passed yet */
    bool bad;
};

/* Stands before the value that text holds. */
void json_scan_begin(struct json_scan *s, struct bytes text);

/* The kind of the value that begins here, by its first byte; a number counts as integer.
 */
enum json_scan_kind json_scan_peek(struct json_scan *s);

/* Passes one whole value. False (and bad) if there is none; out may be NULL. */
bool json_scan_value(struct json_scan *s, struct json_scan_value *out);

/* Enters the object or array that begins here; false (and not bad) if it is another kind.
 */
bool json_scan_enter(struct json_scan *s, enum json_scan_kind kind);

/* Goes to the value of the next member; false when the object was left, or bad. */
bool json_scan_member(struct json_scan *s, struct json_scan_name *name);

/* Goes to the next item; false when the array was left, or bad. */
bool json_scan_item(struct json_scan *s);

/* ST_OK if the text was one value and nothing else, and nothing was bad; ST_BAD_BODY. */
enum status json_scan_end(struct json_scan *s);

/* Checks a whole document, whose top must be an object or an array. ST_BAD_BODY. */
enum status json_scan_document(struct bytes text);

/* True if the name, its escapes undone, is this one. */
bool json_scan_name_is(const struct json_scan_name *name, const char *plain);

/* The value of a SCAN_INTEGER. */
int64_t json_scan_to_i64(const struct json_scan_value *value);

/* What is between the quotes of a SCAN_STRING, for json_string.h. */
struct bytes json_scan_inside(const struct json_scan_value *value);

/* ------------------------------------------------------------------ faults */

/*
 * Says what json_scan_document() has against a request's body; false, and nothing said, if it
 * has nothing. A text that was refused is scanned again, up to its first fault. Lines and columns count from 1, columns in characters.
 */
bool json_fault(struct bytes body, struct reason *out);

/* A received value of a wrong kind. A string, which may be a secret, is only named as one. */
struct received json_received(const struct json_scan_value *value);

#endif
