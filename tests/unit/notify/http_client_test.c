/* The options that http_client sets for libcurl. */
#include "notify/http_client.h"

#include "support/check_main.h"

#include <stdarg.h>

/* What was set of the authorities that are trusted; stands in for a handle. */
struct heard {
    const char *file, *folder;
    bool file_set, folder_set;
};

static CURLcode
hear(CURL *handle, CURLoption option, ...)
{
    struct heard *heard = handle;
    va_list args;

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

static struct heard
pack(const char *ca)
{
    struct heard heard = {.file = "as it was", .folder = "as it was"};
    struct notify_config config = {.ca = ca};
    struct http_client c = {.config = &config, .curl.easy_setopt = hear};
    struct delivery p = {.handle = &heard, .target.kind = TARGET_WEB};

    ck_assert(curl_setup(&c, &p));
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
