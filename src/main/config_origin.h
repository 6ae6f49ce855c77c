/*
 * config_origin: the values of a configuration, and where each comes from.
 */
#ifndef MAIN_CONFIG_ORIGIN_H
#define MAIN_CONFIG_ORIGIN_H

#include "main/option.h"

/* "default", "command line". */
const char *config_source_name(enum config_source source);

/* Writes where an option's value comes from: "/etc/claimd.conf:3", "command line". */
void config_where(const struct config *config, const struct option *option,
                  char out[CONFIG_TEXT_CAP]);

/* Complains about an option's value, and says where that comes from: "NAME (FILE:3) WHY". */
void config_refuse(const struct config *config, const char *name,
                   struct config_errors *errors, const char *why);

/* Prints all values as a file that config_load() would read. */
void config_print(const struct config *config, FILE *to);

#endif
