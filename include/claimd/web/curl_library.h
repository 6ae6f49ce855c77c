/*
 * curl_library: libcurl, loaded when somebody needs it.
 *
 * Linked, it would cost every server 3 ms of its start, 7 MB and 30 libraries.
 *
 *   Threads  any, once it is loaded
 */
#ifndef CLAIMD_WEB_CURL_LIBRARY_H
#define CLAIMD_WEB_CURL_LIBRARY_H

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
    CURLM *(*multi_init)(void);
    CURLMcode (*multi_setopt)(CURLM *multi, CURLMoption option, ...);
    CURLMcode (*multi_add_handle)(CURLM *multi, CURL *handle);
    CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *handle);
    CURLMcode (*multi_perform)(CURLM *multi, int *running);
    CURLMcode (*multi_poll)(CURLM *multi, struct curl_waitfd extra[], unsigned count,
                            int timeout_ms, int *ready);
    CURLMsg *(*multi_info_read)(CURLM *multi, int *left);
    CURLMcode (*multi_cleanup)(CURLM *multi);
};

/*
 * Loads it, in whichever flavour is there; it stays loaded until the process ends. From one thread
 * at a time. ST_UNAVAILABLE: *why says what is missing.
 */
enum status curl_library_load(struct curl_library *out, struct reason *why);

#endif
