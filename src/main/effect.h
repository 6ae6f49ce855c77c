/*
 * effect: options that are set, and change nothing with what the others say.
 */
#ifndef MAIN_EFFECT_H
#define MAIN_EFFECT_H

#include "claimd/http/listen.h"
#include "main/config.h"

/* Called for each option without effect; `where` is config_where()'s, `why` goes on behind a colon. */
typedef void
effect_report_fn(void *ctx, const char *option, const char *where, const char *why);

/*
 * Reports options that have another value than their default, but no effect, such as
 * tls_certificate where no listener has TLS.
 */
void effect_check(const struct config *config, const struct listen_list *list,
                  effect_report_fn *report, void *ctx);

#endif
