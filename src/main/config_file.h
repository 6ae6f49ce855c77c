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

/* Applies a file to *config. ST_BAD_VALUE, with path and line in error. */
enum status
config_file_apply(struct config *config, const char *path, char error[CONFIG_ERROR_CAP]);

#endif
