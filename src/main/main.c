#include "claimd/bench/bench.h"
#include "main/program.h"

extern char **environ;

/* claimd [OPTION]... */
static int
main_serve(int argc, char **argv)
{
    struct config config;
    struct clock clock;
    int status;

    clock_init_system(&clock);
    if (!program_begin(argc, argv, environ, &config, &status))
        return status;
    return program_serve(&config, &clock, NULL, NULL, NULL);
}

/* A first argument without hyphens names a subcommand; serving has no name. */
int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "bench") == 0)
        return bench_main(argc - 1, argv + 1);
    return main_serve(argc, argv);
}
