/*
 * plural: words of a text behind a number.
 *
 *   Threads  any: no state
 */
#ifndef CLAIMD_BASE_PLURAL_H
#define CLAIMD_BASE_PLURAL_H

#include <stdint.h>

/* The end of a noun behind a number that is not negative: "1 message", "2 messages". */
static inline const char *
plural_s(uint64_t number)
{
    return number == 1 ? "" : "s";
}

/* The verb: "1 message is lost", "2 messages are lost". */
static inline const char *
plural_are(uint64_t number)
{
    return number == 1 ? "is" : "are";
}

#endif
