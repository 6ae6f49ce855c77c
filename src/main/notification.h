/*
 * notification: who tells subscribers, as the configuration wants it.
 */
#ifndef MAIN_NOTIFICATION_H
#define MAIN_NOTIFICATION_H

#include "claimd/notify/notify.h"
#include "main/config.h"

/* Complains about what cannot be meant. */
void notification_check(const struct config *config, struct complaints *complaints);

/*
 * Reads the password of the server of mail from its file, owned: password_free() it; *out is NULL
 * if none is named. ST_BAD_VALUE after a complaint; ST_NO_MEMORY.
 */
enum status password_read(const struct config *config, struct mem *mem, char **out,
                          struct complaints *complaints);
void password_free(struct mem *mem, char *password);

/*
 * Opens it with what only the daemon knows, and what the configuration says. The configuration is
 * borrowed for its life. As notify_open().
 */
enum status notification_open(const struct config *config,
                              const struct notify_config *known, struct notify **out);

#endif
