/*
 * config_file: the INI file.
 *
 *     # comment
 *     max_claim_ttl = 7200
 *     [claimd]              ; the only section; keys may also stand before it
 *     listen = [::]:8888
 */
#ifndef MAIN_CONFIG_FILE_H
#define MAIN_CONFIG_FILE_H

#include "main/config.h"

/*
 * Applies a file to *config; what is wrong is told with path and line, and the rest is
 * applied. False if the file cannot be read as a whole: only regular files of at most 1 MB are, so
 * that neither a pipe nor a device can hold up the start or a reload.
 */
bool
config_file_apply(struct config *config, const char *path, struct config_errors *errors);

#endif
