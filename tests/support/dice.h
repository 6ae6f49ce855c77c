/*
 * dice: the random numbers of a test, from a seed that is printed and can be set.
 *
 * CLAIMD_TEST_SEED=N repeats the run that printed N; without it each run is a new one.
 */
#ifndef TESTS_SUPPORT_DICE_H
#define TESTS_SUPPORT_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

/* Takes the seed from the environment or makes one up, and prints it with the name. */
void dice_init(struct dice *d, const char *name);

uint64_t dice_u64(struct dice *d);

/* A number from 0 to limit - 1; limit > 0. */
uint64_t dice_below(struct dice *d, uint64_t limit);

/* True once in n times. */
bool dice_once_in(struct dice *d, uint64_t n);

#endif
