#include "main/program.h"

#include "claimd/auth/token_line.h"
#include "claimd/http/server.h"
#include "claimd/json/tree.h"
#include "main/help.h"
#include "main/signals.h"

#include <stdlib.h>

/* The first line is for programs. The libraries are those that run, not those of the build. */
static void
print_version(const char *commit)
{
    (void)printf("claimd " CLAIMD_VERSION "\n"
                 "commit %s\n"
                 "libmicrohttpd %s\n"
                 "jansson %s\n"
                 "gnutls %s\n",
                 commit, server_library_version(), json_tree_library_version(),
                 token_library_version());
}

bool
program_begin(const struct program *program, struct config *config, int *status)
{
    struct config_errors errors = {.to = stderr};
    enum config_action action;
    enum status st = config_load(program->argc, program->argv, program->envp, config,
                                 &action, &errors);

    /* Serving makes these checks itself; without it they are made here. */
    if (st != ST_OK || action == ACTION_CHECK_CONFIG)
        (void)daemon_check(config, &errors);
    if (errors.count > 0) {
        *status = EXIT_USAGE;
        return false;
    }
    switch (action) {
    case ACTION_SERVE:
        return true;
    case ACTION_HELP:
        if (!help_print(config->help_topic, stdout)) {
            (void)fprintf(stderr,
                          "claimd: the group \"%s\" does not exist. Use all or one of "
                          "these groups.\n",
                          config->help_topic);
            help_print_groups(stderr);
            *status = EXIT_USAGE;
            return false;
        }
        break;
    case ACTION_VERSION:
        print_version(program->commit);
        break;
    case ACTION_PRINT_CONFIG:
        config_print(config, stdout);
        break;
    case ACTION_CHECK_CONFIG:
        (void)puts("claimd: the configuration is good");
        break;
    }
    *status = fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_CANNOT_START;
    return false;
}

int
program_serve(const struct config *config, const struct clock *clock,
              program_hook *started, program_hook *ended, void *ctx)
{
    struct config_errors errors = {.to = stderr};
    struct daemon *d = NULL;
    struct signals signals;
    enum status st;

    signals_block();
    st = daemon_open(config, clock, &d, &errors);
    if (st != ST_OK)
        return st == ST_CONFLICT    ? EXIT_JOURNAL_REFUSED
               : st == ST_BAD_VALUE ? EXIT_USAGE
                                    : EXIT_CANNOT_START;
    if (signals_start(&signals, d) != ST_OK) {
        config_error(&errors, "cannot start a thread for signals");
        daemon_close(d);
        return EXIT_CANNOT_START;
    }
    if (started != NULL)
        started(ctx, d);
    daemon_announce(d);
    (void)daemon_serve(d); /* it has logged what was cut off */
    if (ended != NULL)
        ended(ctx, d);
    signals_end(&signals);
    daemon_close(d);
    return EXIT_SUCCESS;
}
