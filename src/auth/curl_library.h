/*
 * curl_library: libcurl, loaded when somebody needs it.
 *
 * Linked, it would cost every server 3 ms of its start, 7 MB and 30 libraries.
 *
 *   Threads  any, once it is loaded
 */
#ifndef AUTH_CURL_LIBRARY_H
#define AUTH_CURL_LIBRARY_H

#include "claimd/base/status.h"
#include "claimd/json/reason.h"

#include <curl/curl.h>

struct curl_library {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *handle, CURLoption option, ...);
    CURLcode (*easy_perform)(CURL *handle);
    CURLcode (*easy_getinfo)(CURL *handle, CURLINFO info, ...);
    void (*easy_reset)(CURL *handle);
    void (*easy_cleanup)(CURL *handle);
    const char *(*easy_strerror)(CURLcode code);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *line);
    void (*slist_free_all)(struct curl_slist *list);
};

/*
 * Loads it, in whichever flavour is there; it stays loaded until the process ends. To be called
 * before other threads may use a library of TLS. ST_UNAVAILABLE: *why says what is missing.
 */
enum status curl_library_load(struct curl_library *out, struct reason *why);

#endif
