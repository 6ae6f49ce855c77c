/*
 * json_scan: one validating pass over a JSON text, without memory of its own.
 *
 * A scanner has a place in a text. Calls move it into an object or an array, to the next
 * member or item, or behind a whole value, whose kind and bytes it returns. It checks all
 * that it passes: UTF-8, grammar, escapes and surrogate pairs, that integers fit int64_t
 * and other numbers a double, and the depth. It accepts what jansson accepts, with two
 * differences (docs/adr/0001-own-json-scanner.md).
 *
 * The first fault makes the scanner `bad`. From then on it is at the end of everything,
 * so loops over members and items end, and the caller checks once, with json_scan_end():
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
 *   Cost     O(length), about 1 ns per byte of ordinary documents; constant stack
 *   Memory   never allocates; it returns parts of the text
 *   Bounds   reads nothing behind the text, which need not end with a NUL
 *   Threads  one
 */
#ifndef CLAIMD_JSON_SCAN_H
#define CLAIMD_JSON_SCAN_H

#include "claimd/base/bytes.h"
#include "claimd/base/status.h"
#include "claimd/json/reason.h"

/* Counted as in jansson: a scalar in an array in an array is at depth 3. */
#define SCAN_DEPTH_MAX 2048

enum json_scan_kind {
    SCAN_NONE, /* no value begins here, or absent */
    SCAN_OBJECT,
    SCAN_ARRAY,
    SCAN_STRING,
    SCAN_INTEGER,
    SCAN_REAL,
    SCAN_TRUE,
    SCAN_FALSE,
    SCAN_NULL
};

/* A value: its kind and its bytes, with quotes and brackets, without spaces around. */
struct json_scan_value {
    enum json_scan_kind kind;
    struct bytes text; /* borrowed from the text scanned */
};

/* The name of a member as written, without the quotes. */
struct json_scan_name {
    struct bytes text; /* borrowed from the text scanned */
    bool escaped;      /* has escapes: text is not the name itself */
};

/* The element that was missing at a fault; json_fault() describes it. */
enum json_scan_wanted {
    SCAN_WANTS_VALUE, /* there is none, or an invalid one */
    SCAN_WANTS_NAME,  /* of a member */
    SCAN_WANTS_COLON,
    SCAN_WANTS_COMMA_OR_BRACE,
    SCAN_WANTS_COMMA_OR_BRACKET,
    SCAN_WANTS_LEVELS /* the limit SCAN_DEPTH_MAX is exceeded */
};

struct json_scan {
    const unsigned char *at, *end; /* private, like the rest */
    const unsigned char *fault;    /* place of the fault, if bad, until the next call */
    enum json_scan_wanted wanted;  /* after json_scan_value(): what was expected there */
    unsigned depth;                /* containers entered and not left */
    bool first;                    /* at the beginning of the innermost container */
    bool bad;
};

/* Starts before the value in text. */
void json_scan_begin(struct json_scan *s, struct bytes text);

/* The kind of the value that begins here, by its first byte. A number counts as an
 * integer. */
enum json_scan_kind json_scan_peek(struct json_scan *s);

/* Passes one whole value. False (and bad): there is none. out may be NULL. */
bool json_scan_value(struct json_scan *s, struct json_scan_value *out);

/* Enters the object or array that begins here. False: it is of another kind (not bad), or
 * too deep (bad). */
bool json_scan_enter(struct json_scan *s, enum json_scan_kind kind);

/* Moves to the value of the next member. False: the object ended and was left, or bad. */
bool json_scan_member(struct json_scan *s, struct json_scan_name *name);

/* Moves to the next item. False: the array ended and was left, or bad. */
bool json_scan_item(struct json_scan *s);

/* ST_OK: the text was one valid value and nothing else; else ST_BAD_BODY. */
enum status json_scan_end(struct json_scan *s);

/* Checks a whole document, whose top must be an object or an array. ST_BAD_BODY. */
enum status json_scan_document(struct bytes text);

/* True if the name, with escapes decoded, is this one. */
bool json_scan_name_is(const struct json_scan_name *name, const char *plain);

/* The value of a SCAN_INTEGER. */
int64_t json_scan_to_i64(const struct json_scan_value *value);

/* The text between the quotes of a SCAN_STRING, for string.h. */
struct bytes json_scan_inside(const struct json_scan_value *value);

/* ------------------------------------------------------------------ members */

/* A member that is null counts as left out. */
static inline bool
json_left_out(const struct json_scan_value *value)
{
    return value->kind == SCAN_NONE || value->kind == SCAN_NULL;
}

/* The names of an object's members. */
struct json_names {
    size_t count;
    struct bytes unknown; /* the first unknown name, as written; absent: none */
    const char *twice;    /* a name that appears twice; NULL: none */
};

/*
 * Reads the values of members by their names: SCAN_NONE without the member, the last one
 * of several. *seen (NULL: not wanted). ST_BAD_BODY: no object, or no JSON. O(length *
 * count).
 */
enum status json_members_read(struct bytes object, const char *const *names, size_t count,
                              struct json_scan_value *values, struct json_names *seen);

/* The same for one member. */
struct json_scan_value json_member(struct bytes object, const char *name);

/* ------------------------------------------------------------------ faults */

/*
 * Describes the fault for which json_scan_document() rejects a body. False: there is
 * none. It scans the text again, up to its first fault. Lines and columns count from 1,
 * columns in characters.
 */
bool json_fault(struct bytes body, struct reason *out);

/* A received value of a wrong kind. A string, which may be a secret, is only called "a
 * string". */
struct received json_received(const struct json_scan_value *value);

#endif
