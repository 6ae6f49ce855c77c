/* The options that http_client sets for libcurl. */
#include "notify/http_client.h"

#include "support/check_main.h"

#include <stdarg.h>

/* The options for trusted authorities; stands in for a handle. */
struct curl_options {
    const char *file, *folder;
    bool file_set, folder_set;
    CURLcode about_cache; /* of CURLOPT_CA_CACHE_TIMEOUT */
};

static CURLcode
note_option(CURL *handle, CURLoption option, ...)
{
    struct curl_options *options = handle;
    va_list args;

    if (option == CURLOPT_CA_CACHE_TIMEOUT)
        return options->about_cache;
    va_start(args, option);
    if (option == CURLOPT_CAINFO) {
        options->file = va_arg(args, const char *);
        options->file_set = true;
    } else if (option == CURLOPT_CAPATH) {
        options->folder = va_arg(args, const char *);
        options->folder_set = true;
    }
    va_end(args);
    return CURLE_OK;
}

static bool
set_up(struct curl_options *options, const char *ca)
{
    struct notify_config config = {.ca = ca};
    struct http_client c = {.config = &config, .curl.easy_setopt = note_option};
    struct delivery p = {.handle = options, .target.kind = TARGET_WEB};

    return curl_setup(&c, &p);
}

static struct curl_options
pack(const char *ca)
{
    struct curl_options options = {.file = "as it was", .folder = "as it was"};

    ck_assert(set_up(&options, ca));
    return options;
}

/* libcurl reads a folder beside the file, unless an option says that there is none. */
START_TEST(authorities_of_a_file_are_trusted_without_those_of_the_system)
{
    struct curl_options options = pack("/ca.pem");

    ck_assert_str_eq(options.file, "/ca.pem");
    ck_assert(options.folder_set);
    ck_assert_ptr_null(options.folder);
}

START_TEST(those_of_the_system_are_left_to_libcurl)
{
    struct curl_options options = pack(NULL);

    ck_assert(!options.file_set && !options.folder_set);
}

/* That depends on its age, and on its TLS library. */
START_TEST(libcurl_may_lack_the_cache_of_certificates)
{
    struct curl_options none = {.about_cache = CURLE_NOT_BUILT_IN};
    struct curl_options old = {.about_cache = CURLE_UNKNOWN_OPTION};
    struct curl_options full = {.about_cache = CURLE_OUT_OF_MEMORY};

    ck_assert(set_up(&none, NULL) && set_up(&old, NULL));
    ck_assert(!set_up(&full, NULL));
}
