#include "main/command.h"
#include "main/program.h"
#include "main/subcommand.h"
#include "main/version.h"

#include <malloc.h>

extern char **environ;

/*
 * How malloc deals with the system. Left alone it learns from the first large answer that
 * is freed to keep up to 64 MB on top of each heap for ever. Large buffers shall come from
 * the heap, as it would learn too: mapping each costs a page fault for every 4 KB. But of
 * what is free on top more than a megabyte goes back. (128 KB, malloc's first guess for
 * both, cost a fifth of the requests in the soak.)
 */
enum { MAP_FROM = 4 * 1024 * 1024, KEEP_ON_TOP = 1024 * 1024 };

static void
tune_malloc(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, MAP_FROM); /* where it is refused, it is slower */
    (void)mallopt(M_TRIM_THRESHOLD, KEEP_ON_TOP);
}

/* claimd [OPTION]... */
static int
main_serve(int argc, char **argv)
{
    const struct program program = {version_commit, argc, argv, environ};
    struct config config;
    struct clock clock;
    int status;

    tune_malloc();
    clock_init_system(&clock);
    if (!program_begin(&program, &config, &status))
        return status;
    return program_serve(&config, &clock, NULL, NULL, NULL);
}

/* A first argument without hyphens names a subcommand; serving has no name. */
int
main(int argc, char **argv)
{
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;

    if (command != NULL && command->program != NULL)
        return subcommand_run(command->program, argv + 1);
    if (command != NULL)
        return command_run(command, argv + 2);
    return main_serve(argc, argv);
}
