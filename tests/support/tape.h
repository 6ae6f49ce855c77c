/*
 * tape: choices read from a byte program instead of a random generator, so that a fuzzer
 * can write histories.
 */
#ifndef TESTS_SUPPORT_TAPE_H
#define TESTS_SUPPORT_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tape {
    const uint8_t *at; /* borrowed */
    size_t left;       /* bytes */
};

/* A number from 0 to n - 1 out of as few bytes as n needs; 0 once the tape has ended. */
static inline uint64_t
tape_below(struct tape *t, uint64_t n)
{
    uint64_t value = 0;

    for (uint64_t span = n - 1; span > 0 && t->left > 0; span >>= 8) {
        value = value << 8 | *t->at++;
        t->left--;
    }
    return value % n;
}

#endif
