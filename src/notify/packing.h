/*
 * packing: a parcel as libcurl is told of it: text, headers, settings.
 */
#ifndef NOTIFY_PACKING_H
#define NOTIFY_PACKING_H

#include "notify/compose.h"
#include "notify/parcel.h"

/* Bytes of an answer's head and body; one that has more is a failure. */
enum { ANSWER_HEAD_MOST = 65536, ANSWER_BODY_MOST = 65536 };

/* Used to pack every parcel. */
struct packing {
    const struct notify_config *config; /* borrowed */
    struct composer composer;
    struct curl_library curl;
};

/* Writes its address and its text. Statuses of courier_send(). */
enum status packing_write(struct packing *k, struct parcel *p, struct reason *why);

/* Sets its handle up; the parcel stays where it is until it has ended. False: libcurl lacks
 * something, or has no memory. */
bool packing_set(const struct packing *k, struct parcel *p);

#endif
