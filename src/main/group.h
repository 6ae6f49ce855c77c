/*
 * group: the group of the Unix socket, from the options.
 */
#ifndef MAIN_GROUP_H
#define MAIN_GROUP_H

#include "main/config.h"

/*
 * Finds the number of the group that socket_group names; -1 if it is "none". ST_BAD_VALUE
 * after an error message that there is no such group, or that it cannot be looked up.
 */
enum status
group_find(const struct config *config, int64_t *out, struct config_errors *errors);

#endif
