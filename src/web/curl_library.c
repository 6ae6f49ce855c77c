#include "claimd/web/curl_library.h"

#include "claimd/base/library.h"

#include <dlfcn.h>

enum { HEAD_MOST = 65536 };

#define FIND(name) library_find(library, "curl_" #name, &out->name) &&

/* The variants have the same functions. The one with GnuTLS is first, because claimd has
 * loaded GnuTLS. */
static const char *const names[] = {"libcurl-gnutls.so." CLAIMD_CURL_VERSION,
                                    "libcurl.so." CLAIMD_CURL_VERSION};

enum status
curl_library_load(struct curl_library *out, struct reason *why)
{
    void *library = NULL;

    for (size_t i = 0; library == NULL && i < 2; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return reason_give(why, ST_UNAVAILABLE,
                           "needs libcurl (Debian: libcurl3-gnutls or libcurl4): %s",
                           dlerror());
    if (!(CURL_FUNCTIONS(FIND) true))
        return reason_give(why, ST_UNAVAILABLE, "libcurl lacks a function: %s",
                           dlerror());
    if (out->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return reason_give(why, ST_UNAVAILABLE, "libcurl cannot begin");
    return ST_OK;
}

bool
curl_add_line(const struct curl_library *l, struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = l->slist_append(*list, line);

    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

/* libcurl ends the transfer if the result is not the number of bytes. */
static size_t
count_head(char *data, size_t size, size_t count, void *ctx)
{
    struct curl_transfer *t = ctx;

    (void)data;
    t->head += size * count;
    return t->head <= HEAD_MOST ? size * count : 0;
}

#define SET(option, value) (l->easy_setopt(handle, (option), (value)) == CURLE_OK)

/*
 * Reads a changed file of certificates with the next connection. A libcurl that keeps no
 * certificates, because of its age or its TLS library, refuses the option.
 */
static bool
keep_no_certificates(const struct curl_library *l, CURL *handle)
{
    CURLcode code = l->easy_setopt(handle, CURLOPT_CA_CACHE_TIMEOUT, 0L);

    return code == CURLE_OK || code == CURLE_NOT_BUILT_IN || code == CURLE_UNKNOWN_OPTION;
}

bool
curl_transfer_setup(const struct curl_library *l, CURL *handle, struct curl_transfer *t)
{
    return SET(CURLOPT_URL, t->url) && SET(CURLOPT_TIMEOUT_MS, (long)t->timeout_ms) &&
           SET(CURLOPT_NOSIGNAL, 1L) && SET(CURLOPT_FOLLOWLOCATION, 0L) &&
           SET(CURLOPT_PROXY, "") &&
           SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
           SET(CURLOPT_HTTP09_ALLOWED, 0L) && SET(CURLOPT_SSL_VERIFYPEER, 1L) &&
           SET(CURLOPT_SSL_VERIFYHOST, 2L) && keep_no_certificates(l, handle) &&
           /* A resumed session of TLS would accept a certificate that is no longer
            * valid. */
           SET(CURLOPT_SSL_SESSIONID_CACHE, 0L) &&
           (t->ca == NULL || (SET(CURLOPT_CAINFO, t->ca) &&
                              /* Without the certificates of the system. */
                              SET(CURLOPT_CAPATH, (const char *)NULL))) &&
           SET(CURLOPT_HEADERFUNCTION, count_head) && SET(CURLOPT_HEADERDATA, t) &&
           SET(CURLOPT_WRITEFUNCTION, t->body) && SET(CURLOPT_WRITEDATA, t->ctx);
}
