/*
 * work_requests: starts the requests of `claimd work`. Each returns false without memory;
 * then nothing was sent.
 */
#ifndef CLIENT_WORK_REQUESTS_H
#define CLIENT_WORK_REQUESTS_H

#include "client/work_claim.h"
#include "client/work_options.h"

struct client;

/* Claims up to `limit` messages. wait: with long polling. */
bool request_claim(struct work_transfers *all, struct work_transfer *t,
                   const struct client *server, const struct work_options *o,
                   size_t limit, bool wait);

bool request_renewal(struct work_transfers *all, struct work_claim *c,
                     const struct client *server);

/* Sends the outcomes of all ended jobs of the claim (work_finish.h). */
bool request_finish(struct work_transfers *all, struct work_claim *c,
                    const struct client *server);

/* Sends the body of a job to the service. */
bool request_service(struct work_transfers *all, struct work_job *j,
                     const struct work_options *o);

/* Asks the service for its health. */
bool request_health(struct work_transfers *all, struct work_transfer *t,
                    const struct work_options *o);

/* ------------------------------------------------------------------ the URL of --http */

/*
 * Why libcurl cannot use the URL. NULL: it can, as far as can be said without a request.
 */
const char *url_check(const char *url);

/*
 * Writes a URL for people: without user, password, query and fragment, and with question
 * marks for all bytes that are not printable ASCII. The URL has passed url_check(). A
 * long one is cut.
 */
void url_describe(char out[SERVICE_NAME_MOST + 1], const char *url);

/*
 * Writes the URL of a path, with or without a query, on the host of a URL. False: it is
 * no path, or does not fit.
 */
bool url_of_path(char *out, size_t cap, const char *url, const char *path);

/*
 * True if the host of the URL has a name, and the resolver of this machine says that
 * there is no such name. A failure that may pass is false. Waits for the resolver.
 */
bool url_host_is_unknown(const char *url);

#endif
