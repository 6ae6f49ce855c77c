/*
 * profile: options set in one go for a family of clients.
 */
#ifndef MAIN_PROFILE_H
#define MAIN_PROFILE_H

#include "main/config.h"

/* The words of the option `profile`, in the order of enum profile. */
#define PROFILE_WORDS "zaqar|rackspace"

enum profile { PROFILE_ZAQAR, PROFILE_RACKSPACE };

/*
 * Gives every option that was not set anywhere the value that the profile, or ci_short, has for it; to
 * be called when all sources have been read.
 */
void profile_apply(struct config *config);

/* Shows what the profile rackspace sets, for help and manual. */
void
profile_show(void (*show)(void *ctx, const char *option, const char *value), void *ctx);

#endif
