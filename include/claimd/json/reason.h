/*
 * reason: why a document was rejected, in words for people.
 *
 * A reader of a document gets a struct reason, and fills it only if it rejects the
 * document. So a valid document costs nothing. A reason may contain bytes of the request:
 * escape it wherever it is shown (json_string_write() does).
 */
#ifndef CLAIMD_JSON_REASON_H
#define CLAIMD_JSON_REASON_H

#include "claimd/base/bytes.h"
#include "claimd/base/status.h"

/* Longer texts are cut. */
#define REASON_CAP 384

struct reason {
    char text[REASON_CAP]; /* NUL-terminated; empty: no reason */
};

/* Clears the reason. */
static inline void
reason_init(struct reason *why)
{
    why->text[0] = '\0';
}

/* Replaces the reason, and returns st. */
enum status reason_give(struct reason *why, enum status st, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Bytes of a received value that a reason shows. */
enum { RECEIVED_MOST = 64 };

struct received {
    char text[RECEIVED_MOST + 8]; /* including quotes and the dots of a cut */
};

/* A received value for a reason: cut at a character, with dots, and with ? for each
 * control character. Use it as received(value).text, and never for a secret. */
struct received received(struct bytes value);

#endif
