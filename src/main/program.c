#include "main/program.h"

#include "main/config_load.h"
#include "main/config_origin.h"
#include "main/help.h"
#include "main/signals.h"
#include "main/version.h"

#include <stdlib.h>

static int
finish_output(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_CANNOT_START;
}

/* Loads the configuration. ST_BAD_VALUE after error messages about all that is wrong. */
static enum status
load(const struct program *p, struct config *config, enum config_action *action)
{
    struct config_errors errors = {.to = stderr};
    enum status st = config_load(p->argc, p->argv, p->envp, config, action, &errors);

    /* Serving makes these checks itself; they are for those who will not get there. */
    if (st != ST_OK || *action == ACTION_CHECK_CONFIG)
        (void)daemon_check(config, &errors);
    return errors.count == 0 ? ST_OK : ST_BAD_VALUE;
}

bool
program_begin(const struct program *program, struct config *config, int *status)
{
    enum config_action action;

    if (load(program, config, &action) != ST_OK) {
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
        version_print(program->commit, stdout);
        break;
    case ACTION_PRINT_CONFIG:
        config_print(config, stdout);
        break;
    case ACTION_CHECK_CONFIG:
        (void)puts("claimd: the configuration is good");
        break;
    }
    *status = finish_output();
    return false;
}

static void
stop(void *ctx)
{
    daemon_stop(ctx);
}

static void
reload(void *ctx)
{
    daemon_reload(ctx);
}

static void
pause_posts(void *ctx)
{
    daemon_pause(ctx);
}

static int64_t
look(void *ctx)
{
    return daemon_look(ctx);
}

static void
ignored(void *ctx, const char *name)
{
    daemon_signal_ignored(ctx, name);
}

/* Why a daemon could not be opened. */
static int
exit_status_of(enum status st)
{
    if (st == ST_CONFLICT)
        return EXIT_JOURNAL_REFUSED;
    return st == ST_BAD_VALUE ? EXIT_USAGE : EXIT_CANNOT_START;
}

int
program_serve(const struct config *config, const struct clock *clock,
              program_hook *started, program_hook *ended, void *ctx)
{
    struct config_errors errors = {.to = stderr};
    struct daemon *d = NULL;
    struct signal_calls calls = {.stop = stop,
                                 .reload = reload,
                                 .pause = pause_posts,
                                 .ignored = ignored,
                                 .look = look};
    struct signals signals;

    enum status st;

    signals_block();
    st = daemon_open(config, clock, &d, &errors);
    if (st != ST_OK)
        return exit_status_of(st);
    calls.ctx = d;
    if (signals_start(&signals, &calls) != ST_OK) {
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
