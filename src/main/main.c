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

/*
 * A first argument without hyphens would name a subcommand ("claimd bench ..."): this is
 * where one is told from the others. Serving is the only one, and has no name.
 */
int
main(int argc, char **argv)
{
    return main_serve(argc, argv);
}
