#include "claimd/web/curl_library.h"

#include "claimd/base/library.h"

#include <dlfcn.h>

/* The flavours are the same to us. That with GnuTLS comes first: it is there already. */
static const char *const names[] = {"libcurl-gnutls.so." CLAIMD_CURL_VERSION,
                                    "libcurl.so." CLAIMD_CURL_VERSION};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static bool
find_all(void *library, struct curl_library *l)
{
    return library_find(library, "curl_global_init", &l->global_init) &&
           library_find(library, "curl_easy_init", &l->easy_init) &&
           library_find(library, "curl_easy_setopt", &l->easy_setopt) &&
           library_find(library, "curl_easy_perform", &l->easy_perform) &&
           library_find(library, "curl_easy_getinfo", &l->easy_getinfo) &&
           library_find(library, "curl_easy_reset", &l->easy_reset) &&
           library_find(library, "curl_easy_cleanup", &l->easy_cleanup) &&
           library_find(library, "curl_easy_strerror", &l->easy_strerror) &&
           library_find(library, "curl_slist_append", &l->slist_append) &&
           library_find(library, "curl_slist_free_all", &l->slist_free_all) &&
           library_find(library, "curl_multi_init", &l->multi_init) &&
           library_find(library, "curl_multi_setopt", &l->multi_setopt) &&
           library_find(library, "curl_multi_add_handle", &l->multi_add_handle) &&
           library_find(library, "curl_multi_remove_handle", &l->multi_remove_handle) &&
           library_find(library, "curl_multi_perform", &l->multi_perform) &&
           library_find(library, "curl_multi_poll", &l->multi_poll) &&
           library_find(library, "curl_multi_info_read", &l->multi_info_read) &&
           library_find(library, "curl_multi_cleanup", &l->multi_cleanup);
}

enum status
curl_library_load(struct curl_library *out, struct reason *why)
{
    void *library = NULL;

    for (size_t i = 0; library == NULL && i < NAMES; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return reason_give(why, ST_UNAVAILABLE,
                           "needs libcurl (Debian: libcurl3-gnutls or libcurl4): %s",
                           dlerror());
    if (!find_all(library, out))
        return reason_give(why, ST_UNAVAILABLE, "libcurl lacks a function: %s",
                           dlerror());
    if (out->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return reason_give(why, ST_UNAVAILABLE, "libcurl cannot begin");
    return ST_OK;
}
