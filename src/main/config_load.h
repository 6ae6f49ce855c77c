/*
 * config_load: reads the configuration from where an operator sets it, and checks it.
 */
#ifndef MAIN_CONFIG_LOAD_H
#define MAIN_CONFIG_LOAD_H

#include "main/config.h"

/*
 * Fills *out from the command line, the environment and the file that they name. *action says what
 * the operator asked for. ST_BAD_VALUE after error messages about all errors. Help and version win
 * over errors that come behind them.
 *
 * Nothing but the file is looked at: what an option names elsewhere is for
 * surroundings_check().
 */
enum status
config_load(int argc, char *const *argv, char *const *envp, struct config *out,
            enum config_action *action, struct config_errors *errors);

/*
 * Fills *out as config_load() did for `now`: from the same command line and environment, and
 * from the file as it is now. ST_BAD_VALUE likewise.
 */
enum status
config_reload(const struct config *now, struct config *out, struct config_errors *errors);

/* Complains about options that contradict each other. ST_BAD_VALUE if there are complaints. */
enum status config_check(const struct config *config, struct config_errors *errors);

#endif
