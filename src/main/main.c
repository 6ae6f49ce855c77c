#include "main/command.h"
#include "main/program.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/*
 * How malloc deals with the system. Left alone it learns from the first large answer that
 * is freed to keep up to 64 MB on top of each heap for ever. Large buffers shall come from
 * the heap, as it would learn too: mapping each costs a page fault for every 4 KB. But of
 * what is free on top more than a megabyte goes back. (128 KB, malloc's first guess for
 * both, cost a fifth of the requests in the soak.)
 */
enum { MAP_FROM = 4 * 1024 * 1024, KEEP_ON_TOP = 1024 * 1024 };

/*
 * Becomes the program of this name that stands beside the running executable, else one in
 * PATH, with the arguments argv[1..]. Returns only if there is none or it cannot be run:
 * an exit status, after a line on standard error.
 */
static int
become_program(const char *program, char **argv)
{
    struct config_errors errors = {.to = stderr};
    char folder[PATH_MAX], path[PATH_MAX + NAME_MAX + 1];
    ssize_t len;

    /* The folder of the running executable, with its last slash; "" if nothing tells. */
    len = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    while (len > 0 && folder[len - 1] != '/')
        len--;
    folder[len < 0 ? 0 : len] = '\0';
    if (folder[0] != '\0') {
        (void)snprintf(path, sizeof(path), "%s%s", folder, program);
        argv[0] = path;
        (void)execv(path, argv); /* comes back only to tell why not */
        if (errno != ENOENT) {
            config_error(&errors, "cannot run %s: %s", path, strerror(errno));
            return EXIT_USAGE;
        }
    }
    (void)snprintf(path, sizeof(path), "%s", program);
    argv[0] = path;
    (void)execvp(path, argv);
    if (errno == ENOENT)
        config_error(&errors, "%s is missing. It is neither in %s nor in PATH", program,
                     folder[0] == '\0' ? "the directory of claimd" : folder);
    else
        config_error(&errors, "cannot run %s: %s", program, strerror(errno));
    return EXIT_USAGE;
}

/* A first argument without hyphens names a subcommand; serving has no name. */
int
main(int argc, char **argv)
{
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
    const struct program program = {version_commit, argc, argv, environ};
    struct config config;
    struct clock clock;
    int status;

    if (command != NULL && command->program != NULL)
        return become_program(command->program, argv + 1);
    if (command != NULL)
        return command_run(command, argv + 2);
    (void)mallopt(M_MMAP_THRESHOLD, MAP_FROM); /* where it is refused, it is slower */
    (void)mallopt(M_TRIM_THRESHOLD, KEEP_ON_TOP);
    clock_init_system(&clock);
    if (!program_begin(&program, &config, &status))
        return status;
    return program_serve(&config, &clock, NULL, NULL, NULL);
}
