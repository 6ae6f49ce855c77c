/*
 * crashes: runs seeds of the crash simulation (tests/crash); ends with what the first that
 * fails has to say.
 *
 *   crashes [--seeds N] [--seed S]
 *
 *   --seed S     the first seed (1)
 *   --seeds N    how many seeds from there on (1 if --seed was given, else 20000)
 *
 * Exit status 0 if every restart found what it should.
 */
#include "claimd/base/bytes.h"
#include "claimd/base/clock.h"
#include "crash/crash.h"

#include <stdbool.h>
#include <string.h>

static bool
read_options(int argc, char **argv, uint64_t *seed, uint64_t *seeds)
{
    *seed = 1;
    *seeds = 20000;
    for (int i = 1; i < argc; i += 2) {
        bool first = strcmp(argv[i], "--seed") == 0;

        if ((!first && strcmp(argv[i], "--seeds") != 0) || i + 1 == argc ||
            !bytes_to_u64(bytes_str(argv[i + 1]), first ? seed : seeds))
            return false;
        if (first && argc == 3)
            *seeds = 1;
    }
    return true;
}

int
main(int argc, char **argv)
{
    int64_t start_ns = clock_stopwatch_ns();
    struct crash_metrics metrics = {.seeds = 0};
    uint64_t seed, seeds;

    if (!read_options(argc, argv, &seed, &seeds)) {
        fprintf(stderr, "usage: crashes [--seeds N] [--seed S]\n");
        return 2;
    }
    for (uint64_t i = 0; i < seeds; i++)
        crash_run(seed + i, &metrics);
    crash_print(&metrics, stdout);
    printf("in %.1f s\n", (double)(clock_stopwatch_ns() - start_ns) / 1e9);
    return 0;
}
