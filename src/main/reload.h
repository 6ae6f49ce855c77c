/*
 * reload: the options as their sources have them now, beside those in force.
 *
 * What only a restart changes stays as it is, and is told of.
 */
#ifndef MAIN_RELOAD_H
#define MAIN_RELOAD_H

#include "main/config.h"
#include "main/option.h"

struct reload {
    struct config next; /* that may be put in force */
    size_t changed;     /* options that have another value in it */
    size_t kept_count;
    const struct option *kept[CONFIG_OPTIONS_MAX]; /* would have one after a restart */
};

/* Reads them. ST_BAD_VALUE after error messages; then *r is of no use. */
enum status
reload_read(struct reload *r, const struct config *now, struct config_errors *errors);

/* Puts into *now what has changed; of other options not a byte is written. */
void reload_take(const struct reload *r, struct config *now);

#endif
