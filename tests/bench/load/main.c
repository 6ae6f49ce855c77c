/*
 * claimd-bench: a load generator for servers that speak the Zaqar API v2, beanstalkd's
 * protocol or Redis lists. docs/performance.md describes how it measures.
 *
 * options.c has its only command, `claimd bench`, which run_bench() runs (run.c).
 */
#include "claimd/base/version.h"
#include "load/options.h"

#include <stdio.h>

static const struct command_entry entry = {
    "bench", "bench [OPTION]...", "Measure a server under load.", &command_bench};
static const struct command_program program = {.entries = &entry, .count = 1};

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void)printf("claimd-bench " CLAIMD_VERSION "\ncommit %s\n", version_commit);
        return command_check_output(NULL, COMMAND_GOOD);
    }
    if (argc == 2 && strcmp(argv[1], "tables") == 0) {
        command_print_records(&program);
        return command_check_output(NULL, COMMAND_GOOD);
    }
    return command_run(&program, &entry, argc > 0 ? argv + 1 : argv);
}
