/*
 * trace: by what others know a request: their own id of it (X-Request-ID), and its place in a
 * trace (traceparent, W3C Trace Context). They stand in its line of the access log beside our
 * id; claimd asks nobody else on behalf of a request to whom they would be passed on.
 */
#ifndef HTTP_TRACE_H
#define HTTP_TRACE_H

#include "claimd/base/bytes.h"

enum { TRACE_ID_MAX = 128 };

/* A foreign id as it may stand in a log: 1 to TRACE_ID_MAX graphic characters; else absent. */
struct bytes trace_id(struct bytes text);

/* A traceparent if it is a valid one: "00-<32 digits>-<16 digits>-<2 digits>"; else absent. */
struct bytes trace_parent(struct bytes text);

#endif
