/*
 * wire/fault: a fault in words (docs/api.md 23.7), as rules and the header Claimd-Fault have it:
 *
 *     latency; ms=N                       status=429|503[; retry_after=N]
 *     cut=before|after                    half
 *     slow; bytes=N; every_ms=N           end_claim                clock; seconds=N
 */
#ifndef API_WIRE_FAULT_H
#define API_WIRE_FAULT_H

#include "claimd/base/buf.h"
#include "claimd/json/reason.h"
#include "claimd/testapi/faults.h"

/* ST_BAD_VALUE, with the reason, which does not name the whole. */
enum status fault_read(struct bytes text, struct fault *out, struct reason *why);

/* Room for any fault in words, with a NUL. */
enum { FAULT_TEXT_CAP = 64 };

/* Writes the words, with a NUL. */
void fault_text(const struct fault *fault, char out[FAULT_TEXT_CAP]);

#endif
