/*
 * random: a small seeded generator (SplitMix64, Steele, Lea & Flood 2014), so that every
 * random test can be run again from the seed it printed.
 */
#ifndef TESTS_SUPPORT_RANDOM_H
#define TESTS_SUPPORT_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

uint64_t random_next(struct random *r);

/* A number from 0 to n - 1; n is at least 1. The bias of the remainder does not matter.
 */
uint64_t random_below(struct random *r, uint64_t n);

/* A number from low to high, both included. */
int64_t random_between(struct random *r, int64_t low, int64_t high);

/* True `percent` times of a hundred. */
bool random_chance(struct random *r, unsigned percent);

/* True once in n times, for rarer things. */
bool random_once_in(struct random *r, uint64_t n);

/* The seed of this run: CLAIMD_TEST_SEED if set, else from the clock. Printed. */
uint64_t random_seed(const char *test);

/* How much a test is to do: CLAIMD_TEST_OPS if set, else `usual`. */
uint64_t random_operations(uint64_t usual);

#endif
