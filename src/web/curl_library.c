#include "claimd/web/curl_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* The flavours are the same to us. That with GnuTLS comes first: it is there already. */
static const char *const names[] = {"libcurl-gnutls.so.4", "libcurl.so.4"};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

/* Puts the address of a function where it is kept. */
static bool
find(void *library, const char *name, void *place)
{
    void *address = dlsym(library, name);

    memcpy(place, &address, sizeof(address));
    return address != NULL;
}

static bool
find_all(void *library, struct curl_library *l)
{
    return find(library, "curl_global_init", &l->global_init) &&
           find(library, "curl_easy_init", &l->easy_init) &&
           find(library, "curl_easy_setopt", &l->easy_setopt) &&
           find(library, "curl_easy_perform", &l->easy_perform) &&
           find(library, "curl_easy_getinfo", &l->easy_getinfo) &&
           find(library, "curl_easy_reset", &l->easy_reset) &&
           find(library, "curl_easy_cleanup", &l->easy_cleanup) &&
           find(library, "curl_easy_strerror", &l->easy_strerror) &&
           find(library, "curl_slist_append", &l->slist_append) &&
           find(library, "curl_slist_free_all", &l->slist_free_all) &&
           find(library, "curl_multi_init", &l->multi_init) &&
           find(library, "curl_multi_setopt", &l->multi_setopt) &&
           find(library, "curl_multi_add_handle", &l->multi_add_handle) &&
           find(library, "curl_multi_remove_handle", &l->multi_remove_handle) &&
           find(library, "curl_multi_perform", &l->multi_perform) &&
           find(library, "curl_multi_poll", &l->multi_poll) &&
           find(library, "curl_multi_info_read", &l->multi_info_read) &&
           find(library, "curl_multi_cleanup", &l->multi_cleanup);
}

static void *
load_any(void)
{
    void *library = NULL;

    for (size_t i = 0; library == NULL && i < NAMES; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

enum status
curl_library_load(struct curl_library *out, struct reason *why)
{
    void *library = load_any();

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
