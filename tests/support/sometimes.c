/* The counters of a program that is linked with the marked files
 * (tests/CMakeLists.txt). */
#include "claimd/base/sometimes.h"
#include "support/sometimes.h"

#include <string.h>

_Atomic uint64_t sometimes_counts[SOMETIMES_COUNT];

enum rarity { COMMON, RARE };

static const struct {
    const char *name, *test, *state;
    enum rarity rarity;
} states[SOMETIMES_COUNT] = {
#define SOMETIMES_ROW(name, test, rarity, state) {#name, test, state, rarity},
    SOMETIMES_LIST(SOMETIMES_ROW)
#undef SOMETIMES_ROW
};

bool
sometimes_report(const char *test, FILE *out)
{
    bool all = true;

    for (int i = 0; i < SOMETIMES_COUNT; i++) {
        if (strcmp(states[i].test, test) != 0 || sometimes_counts[i] > 0)
            continue;
        fprintf(out, "never reached%s: %s: %s\n",
                states[i].rarity == COMMON ? ", but common" : "", states[i].name,
                states[i].state);
        all = all && states[i].rarity != COMMON;
    }
    return all;
}
