/*
 * reason: why a document was refused, in words for people.
 *
 * Whoever reads a document is given room for one reason and fills it only when it refuses,
 * so that a document that is taken costs nothing. A reason may repeat bytes of the request:
 * it has to be escaped wherever it is shown (json_string_write() does).
 */
#ifndef CLAIMD_JSON_REASON_H
#define CLAIMD_JSON_REASON_H

#include "claimd/base/bytes.h"
#include "claimd/base/status.h"

/* A longer text is cut. */
#define REASON_CAP 384

struct reason {
    char text[REASON_CAP]; /* NUL-terminated; empty: none was given */
};

/* No reason yet. */
static inline void
reason_init(struct reason *why)
{
    why->text[0] = '\0';
}

/* Writes the reason, over one given before, and returns st. */
enum status reason_give(struct reason *why, enum status st, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Bytes of a received value that a refusal shows. */
enum { RECEIVED_MOST = 64 };

struct received {
    char text[RECEIVED_MOST + 8]; /* with room for quotes and the dots of a cut */
};

/*
 * A received value for a refusal: cut at a character, with dots, and with ? for each control
 * character. Use it as received(value).text, and never for a secret.
 */
struct received received(struct bytes value);

#endif
