#include "support/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t
random_next(struct random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15ULL;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

uint64_t
random_below(struct random *r, uint64_t n)
{
    return random_next(r) % n;
}

int64_t
random_between(struct random *r, int64_t low, int64_t high)
{
    return low + (int64_t)random_below(r, (uint64_t)(high - low) + 1);
}

bool
random_chance(struct random *r, unsigned percent)
{
    return random_below(r, 100) < percent;
}

bool
random_once_in(struct random *r, uint64_t n)
{
    return random_below(r, n) == 0;
}

uint64_t
random_seed(const char *test)
{
    const char *text = getenv("CLAIMD_TEST_SEED");
    uint64_t seed = (uint64_t)time(NULL);

    if (text != NULL)
        seed = strtoull(text, NULL, 0);
    printf("%s: CLAIMD_TEST_SEED=%" PRIu64 "\n", test, seed);
    fflush(stdout);
    return seed;
}

uint64_t
random_operations(uint64_t usual)
{
    const char *text = getenv("CLAIMD_TEST_OPS");

    return text == NULL ? usual : strtoull(text, NULL, 0);
}
