/* The options that http_client sets for libcurl. */
#include "notify/http_client.h"

#include "support/check_main.h"

#include <stdarg.h>

/* What was set of the authorities that are trusted; stands in for a handle. */
struct heard {
    const char *file, *folder;
    bool file_set, folder_set;
    CURLcode about_cache; /* what CURLOPT_CA_CACHE_TIMEOUT gets */
};

static CURLcode
hear(CURL *handle, CURLoption option, ...)
{
    struct heard *heard = handle;
    va_list args;

    if (option == CURLOPT_CA_CACHE_TIMEOUT)
        return heard->about_cache;
    va_start(args, option);
    if (option == CURLOPT_CAINFO) {
        heard->file = va_arg(args, const char *);
        heard->file_set = true;
    } else if (option == CURLOPT_CAPATH) {
        heard->folder = va_arg(args, const char *);
        heard->folder_set = true;
    }
    va_end(args);
    return CURLE_OK;
}

static bool
set_up(struct heard *heard, const char *ca)
{
    struct notify_config config = {.ca = ca};
    struct http_client c = {.config = &config, .curl.easy_setopt = hear};
    struct delivery p = {.handle = heard, .target.kind = TARGET_WEB};

    return curl_setup(&c, &p);
}

static struct heard
pack(const char *ca)
{
    struct heard heard = {.file = "as it was", .folder = "as it was"};

    ck_assert(set_up(&heard, ca));
    return heard;
}

/* libcurl reads a folder beside the file, unless it is told that there is none. */
START_TEST(authorities_of_a_file_are_trusted_without_those_of_the_system)
{
    struct heard heard = pack("/ca.pem");

    ck_assert_str_eq(heard.file, "/ca.pem");
    ck_assert(heard.folder_set);
    ck_assert_ptr_null(heard.folder);
}

START_TEST(those_of_the_system_are_left_to_libcurl)
{
    struct heard heard = pack(NULL);

    ck_assert(!heard.file_set && !heard.folder_set);
}

/* That depends on its age, and on its TLS library. */
START_TEST(libcurl_may_lack_the_cache_of_certificates)
{
    struct heard none = {.about_cache = CURLE_NOT_BUILT_IN};
    struct heard old = {.about_cache = CURLE_UNKNOWN_OPTION};
    struct heard full = {.about_cache = CURLE_OUT_OF_MEMORY};

    ck_assert(set_up(&none, NULL) && set_up(&old, NULL));
    ck_assert(!set_up(&full, NULL));
}
