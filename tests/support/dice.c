#include "support/dice.h"

#include "claimd/base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void
dice_init(struct dice *d, const char *name)
{
    const char *given = getenv("CLAIMD_TEST_SEED");

    if (given != NULL)
        d->state = strtoull(given, NULL, 10);
    else if (getrandom(&d->state, sizeof(d->state), 0) != sizeof(d->state))
        d->state = 1; /* no entropy is no reason not to test */
    printf("%s: CLAIMD_TEST_SEED=%" PRIu64 "\n", name, d->state);
    (void)fflush(stdout); /* a crash must not take the seed with it */
}

uint64_t
dice_u64(struct dice *d)
{
    d->state += 0x9e3779b97f4a7c15ULL;
    return hash_mix(d->state);
}

uint64_t
dice_below(struct dice *d, uint64_t limit)
{
    return dice_u64(d) % limit;
}

bool
dice_once_in(struct dice *d, uint64_t n)
{
    return dice_below(d, n) == 0;
}
