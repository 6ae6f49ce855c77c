#include "main/subcommand.h"

#include "main/config_errors.h"
#include "main/program.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/*
 * The folder of the running executable, with its last slash, however the executable was
 * found; "" if nothing tells.
 */
static void
find_own_folder(char out[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", out, PATH_MAX - 1);

    while (len > 0 && out[len - 1] != '/')
        len--;
    out[len < 0 ? 0 : len] = '\0';
}

int
subcommand_run(const char *program, char **argv)
{
    struct config_errors errors = {.to = stderr};
    char folder[PATH_MAX], path[PATH_MAX + NAME_MAX + 1];

    find_own_folder(folder);
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
