/*
 * packing: a parcel as libcurl is told of it: text, headers, settings.
 */
#ifndef NOTIFY_PACKING_H
#define NOTIFY_PACKING_H

#include "notify/courier.h"

/* Bytes of an answer's head and body; one that has more is a failure. */
enum { ANSWER_HEAD_MOST = 65536, ANSWER_BODY_MOST = 65536 };

/* Writes its address and its text. Statuses of courier_send(). */
enum status packing_write(struct courier *c, struct parcel *p, struct reason *why);

/* Sets its handle up; the parcel stays where it is until it has ended. False: libcurl lacks
 * something, or has no memory. */
bool packing_set(const struct courier *c, struct parcel *p);

#endif
