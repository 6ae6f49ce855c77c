/*
 * holder: the worker of a request, as the store keeps it with a claim or with a reason
 * (HOLDER_MARK).
 *
 *   Memory   the request's arena
 *   Threads  a context belongs to one call of api_handle()
 */
#ifndef API_HOLDER_H
#define API_HOLDER_H

#include "api/context.h"

/* Makes the text of the client, its address and its name. ST_BAD_VALUE: Claimd-Worker is
 * too long or has bytes that are not visible, explained; ST_NO_MEMORY. */
enum status holder_text(struct context *ctx, struct bytes *out);

#endif
