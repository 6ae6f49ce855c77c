/*
 * doors: who can reach the addresses that claimd listens on, and whether that is meant.
 */
#ifndef MAIN_DOORS_H
#define MAIN_DOORS_H

#include "claimd/http/listen.h"
#include "main/config.h"

/* True if only this machine can reach this listening address. */
bool doors_is_loopback(const char *address);

/*
 * Complains about each of the addresses that strangers can reach although nothing keeps
 * them out; `where` says what has named the addresses ("/etc/claimd.conf:3").
 */
void doors_check(const struct config *config, const struct listen_list *list,
                 const char *where, struct complaints *complaints);

#endif
