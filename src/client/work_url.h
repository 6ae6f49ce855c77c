/*
 * work_url: the URL of a service (`claimd work --http`).
 *
 *   Threads  one
 */
#ifndef CLIENT_WORK_URL_H
#define CLIENT_WORK_URL_H

#include <stdbool.h>
#include <stddef.h>

/* Longest description of a URL. */
enum { SERVICE_NAME_MOST = 200 };

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
