/*
 * main: the program claimd. It starts the load generator or the client if its first word
 * is one of their commands, runs a command of its own (command.h), or serves
 * (program.h).
 *
 * Read daemon.c for the parts of a server, and command_table.c for the commands.
 */
#include "claimd/base/streams.h"
#include "claimd/base/version.h"
#include "claimd/client/commands.h"
#include "main/command.h"
#include "main/exit_status.h"
#include "main/help.h"
#include "main/program.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/*
 * Fixed thresholds of malloc. By default malloc raises them after the first large buffer
 * is freed, and then keeps up to 64 MB of free memory per heap. Buffers below
 * MMAP_THRESHOLD come from the heap, because a mapping costs a page fault per 4 KB.
 * malloc returns free memory at the top of a heap beyond TRIM_THRESHOLD to the system.
 * (With 128 KB, the initial value of both, the soak test served a fifth fewer requests.)
 */
enum { MMAP_THRESHOLD = 4 * 1024 * 1024, TRIM_THRESHOLD = 1024 * 1024 };

/* Replaces this process by the program at a path. Returns only if there is none: false,
 * or after an error message true. */
static bool
exec_path(const char *path, char **argv, int *status)
{
    argv[0] = (char *)(uintptr_t)path;
    (void)execv(path, argv);
    if (errno == ENOENT)
        return false;
    *status = command_fails(*status, "cannot run %s: %s", path, strerror(errno));
    return true;
}

/* Writes the directory of the running executable, with a slash at the end; "" if it is
 * unknown. */
static void
own_folder(char folder[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", folder, PATH_MAX - 1);

    while (len > 0 && folder[len - 1] != '/')
        len--;
    folder[len < 0 ? 0 : len] = '\0';
}

/*
 * Replaces this process by the program of this name in the directory of the running
 * executable, or else in PATH. argv[1..] are the arguments. Returns an exit status after
 * an error message if that fails.
 */
static int
exec_program(const char *program, char **argv)
{
    char folder[PATH_MAX], path[PATH_MAX + NAME_MAX + 1];
    int status = EXIT_USAGE;

    own_folder(folder);
    (void)snprintf(path, sizeof(path), "%s%s", folder, program);
    if (folder[0] != '\0' && exec_path(path, argv, &status))
        return status;
    (void)snprintf(path, sizeof(path), "%s", program);
    argv[0] = path;
    (void)execvp(path, argv);
    if (errno != ENOENT)
        return command_fails(EXIT_USAGE, "cannot run %s: %s", program, strerror(errno));
    return command_fails(EXIT_USAGE, "%s is missing. It is neither in %s nor in PATH",
                         program, folder[0] == '\0' ? "the directory of claimd" : folder);
}

/*
 * Replaces this process by claimd-client, which is in the directory of the running
 * executable or in that of its installation. argv[1..] are the arguments. Returns an exit
 * status after an error message if that fails.
 */
static int
exec_client(char **argv)
{
    static const char installed[] = CLAIMD_LIBEXEC "/";
    char folder[PATH_MAX], path[PATH_MAX + sizeof(installed) + sizeof(CLIENT_PROGRAM)];
    int status = COMMAND_UNAVAILABLE;

    own_folder(folder);
    (void)snprintf(path, sizeof(path), "%s%s", folder, CLIENT_PROGRAM);
    if (exec_path(path, argv, &status))
        return status;
    (void)snprintf(path, sizeof(path), "%s%s%s", folder, installed, CLIENT_PROGRAM);
    if (exec_path(path, argv, &status))
        return status;
    return command_fails(
        status,
        "%s is missing. It is neither in %s nor in %s%s. It comes with claimd. "
        "Install all of claimd, or copy the program to one of these places",
        CLIENT_PROGRAM, folder, folder, installed);
}

int
main(int argc, char **argv)
{
    const struct command_entry *entry =
        argc > 1 ? command_find(&command_program, argv[1]) : NULL;
    const struct program program = {version_commit, argc, argv, environ};
    struct config config;
    struct clock clock;
    int status;

    if (!streams_open())
        return EXIT_USAGE;
    if (entry != NULL && entry->command == NULL)
        return exec_client(argv);
    if (entry != NULL && entry->command->program != NULL)
        return exec_program(entry->command->program, argv + 1);
    if (entry != NULL)
        return command_run(&command_program, entry, argv + 2);
    if (argc > 1 && strcmp(argv[1], "tables") == 0) { /* help does not show it */
        help_print_tables();
        return command_check_output(NULL, COMMAND_GOOD);
    }
    if (argc > 1 && argv[1][0] != '-' &&
        command_nearest(&command_program, argv[1]) != NULL)
        return command_fails(COMMAND_USAGE, "%s is not a command. Did you mean %s?",
                             argv[1], command_nearest(&command_program, argv[1]));
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD); /* a failure only costs speed */
    (void)mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD);
    clock_init_system(&clock);
    if (!program_begin(&program, &config, &status))
        return status;
    return program_serve(&config, &clock, NULL, NULL, NULL);
}
