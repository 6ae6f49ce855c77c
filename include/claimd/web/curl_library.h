/*
 * curl_library: loads libcurl when it is first needed, and sets the options that all
 * transfers of the server share.
 *
 * Linking libcurl would cost each server 3 ms at the start, 7 MB and 30 libraries.
 *
 *   Threads  any, after curl_library_load()
 *   Memory   that of libcurl
 */
#ifndef CLAIMD_WEB_CURL_LIBRARY_H
#define CLAIMD_WEB_CURL_LIBRARY_H

#include "claimd/base/status.h"
#include "claimd/json/reason.h"

#include <curl/curl.h>

/* The functions in use, without the prefix of their names. */
#define CURL_FUNCTIONS(X)                                                                \
    X(global_init)                                                                       \
    X(easy_init)                                                                         \
    X(easy_setopt)                                                                       \
    X(easy_perform)                                                                      \
    X(easy_getinfo)                                                                      \
    X(easy_reset)                                                                        \
    X(easy_cleanup)                                                                      \
    X(easy_strerror)                                                                     \
    X(slist_append)                                                                      \
    X(slist_free_all)                                                                    \
    X(multi_init)                                                                        \
    X(multi_setopt)                                                                      \
    X(multi_add_handle)                                                                  \
    X(multi_remove_handle)                                                               \
    X(multi_perform)                                                                     \
    X(multi_poll)                                                                        \
    X(multi_info_read)                                                                   \
    X(multi_cleanup)

#define CURL_MEMBER(name) __typeof__(curl_##name) *name;

struct curl_library {
    CURL_FUNCTIONS(CURL_MEMBER)
};

#undef CURL_MEMBER

/* Loads libcurl, with any TLS library, until the process ends. One thread at a time.
 * ST_UNAVAILABLE: something is missing, with a reason. */
enum status curl_library_load(struct curl_library *out, struct reason *why);

/* Appends a copy of the line. False: no memory, the list is unchanged. */
bool
curl_add_line(const struct curl_library *l, struct curl_slist **list, const char *line);

struct curl_transfer {
    const char *url;
    const char *ca; /* file of trusted certificates; NULL: those of the system */
    int64_t timeout_ms;
    curl_write_callback body; /* called with each part of the body of the response */
    void *ctx;
    size_t head; /* bytes of the head of the response. More than 64 KB end the transfer */
};

/*
 * Sets the options of a transfer: no proxies and redirects, verified certificates. *t
 * must not move until the transfer has ended. False: libcurl lacks an option, or has no
 * memory.
 */
bool
curl_transfer_setup(const struct curl_library *l, CURL *handle, struct curl_transfer *t);

#endif
