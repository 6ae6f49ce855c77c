#include "main/program.h"

#include "main/signals.h"

#include <stdlib.h>

static int
finish_output(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_SUCCESS : EXIT_CANNOT_START;
}

bool
program_begin(int argc, char *const *argv, char *const *envp, struct config *config,
              int *status)
{
    char error[CONFIG_ERROR_CAP];
    enum config_action action;

    if (config_load(argc, argv, envp, config, &action, error) != ST_OK) {
        (void)fprintf(stderr, "claimd: %s\n", error);
        *status = EXIT_USAGE;
        return false;
    }
    switch (action) {
    case ACTION_SERVE:
        return true;
    case ACTION_HELP:
        config_print_help(stdout);
        break;
    case ACTION_VERSION:
        (void)puts("claimd " CLAIMD_VERSION);
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
ignored(void *ctx, const char *name)
{
    daemon_signal_ignored(ctx, name);
}

int
program_serve(const struct config *config, const struct clock *clock,
              program_hook *started, program_hook *ended, void *ctx)
{
    char error[CONFIG_ERROR_CAP];
    struct daemon *d = NULL;
    struct signal_calls calls = {.stop = stop, .ignored = ignored};
    struct signals signals;

    signals_block();
    if (daemon_open(config, clock, &d, error) != ST_OK) {
        (void)fprintf(stderr, "claimd: %s\n", error);
        return EXIT_CANNOT_START;
    }
    calls.ctx = d;
    if (signals_start(&signals, &calls) != ST_OK) {
        (void)fprintf(stderr, "claimd: cannot start: no thread for signals\n");
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
