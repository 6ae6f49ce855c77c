/*
 * ident: how the engine's ids and markers are written.
 *
 *   message       8 hex digits: tag of the queue's incarnation; 16: the message's number
 *   claim         12 random hex digits; 12: the claim's number
 *   subscription  12 hex digits that rise by random steps; 12: the subscription's number
 *   marker        the number of the last message seen, in decimal
 *
 * The first digit of an id is a letter, so no id can be taken for a marker.
 */
#ifndef ENGINE_IDENT_H
#define ENGINE_IDENT_H

#include "claimd/base/entropy.h"
#include "claimd/store/store.h"

#define IDENT_DIGITS 24

struct ident {
    uint32_t high; /* message: the tag; the top digit is a letter */
    uint64_t low;  /* message: the number; others: the number in the low 48 bits */
};

static inline bool
ident_equal(struct ident a, struct ident b)
{
    return a.high == b.high && a.low == b.low;
}

void ident_write(struct store_id *out, struct ident id);

/* False if the text is no id of this form. */
bool ident_read(struct bytes text, struct ident *out);

/*
 * The id of a claim: its number, by which the engine finds it, and 46 random bits, which
 * no client can guess. Numbers stay below 2^48: a queue makes so many claims in 89 years
 * of 100 000 a second. The caller has reserved IDENT_ENTROPY bytes of entropy.
 */
#define IDENT_ENTROPY 6
struct ident ident_claim(struct entropy *entropy, uint64_t number);
uint64_t ident_claim_number(struct ident id);

/*
 * The id of a subscription. It sorts behind `last`, the id of the newest subscription of
 * the queue (zero: none), which has a lower number. After a restart a number may be used
 * again. The random step then makes the id a different one. Needs entropy as a claim
 * does.
 */
struct ident
ident_subscription(struct entropy *entropy, struct ident last, uint64_t number);

/* The tag of the count-th queue of an engine whose random start is `start`. It differs
 * for 6 * 2^28 queues in a row, so no two queues have the same message ids. */
uint32_t ident_tag(uint64_t start, uint64_t count);

/* Decimal digits of a number. */
void ident_write_marker(struct store_id *out, uint64_t seq);

#endif
