/*
 * notification: who tells subscribers, as the configuration wants it.
 */
#ifndef MAIN_NOTIFICATION_H
#define MAIN_NOTIFICATION_H

#include "claimd/notify/notify.h"
#include "main/config.h"

/* Complains about what cannot be meant. */
void notification_check(const struct config *config, struct config_errors *errors);

/*
 * Opens it with what only the daemon knows, and what the configuration says. The configuration is
 * borrowed for its life. As notify_open().
 */
enum status notification_open(const struct config *config,
                              const struct notify_config *known, struct notify **out);

#endif
