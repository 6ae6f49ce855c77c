#include "claimd/base/server_url.h"

#include <stdarg.h>
#include <stdio.h>

static const char unix_scheme[] = "unix:";

static bool __attribute__((format(printf, 2, 3)))
refuse_url(char why[SERVER_URL_WHY_CAP], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, SERVER_URL_WHY_CAP, format, args);
    va_end(args);
    return false;
}

/* Removes the scheme. False: there is none, or another one. */
static bool
cut_scheme(struct bytes *url)
{
    static const struct bytes schemes[] = {BYTES_LIT("http://"), BYTES_LIT("https://")};

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        const size_t len = schemes[i].len;

        if (url->len < len || !bytes_equal_nocase(bytes_of(url->data, len), schemes[i]))
            continue;
        *url = bytes_of(url->data + len, url->len - len);
        return true;
    }
    return false;
}

/* Cuts the host with its port off the URL behind the scheme. The rest is the path. */
static struct bytes
cut_authority(struct bytes *url)
{
    size_t len = 0;

    while (len < url->len && strchr("/?#", url->data[len]) == NULL)
        len++;
    *url = bytes_of(url->data + len, url->len - len);
    return bytes_of(url->data - len, len);
}

/* The text behind the colon of a port; absent: there is no colon. */
static struct bytes
find_port(struct bytes authority)
{
    const char *bracket = memrchr(authority.data, ']', authority.len);
    const char *from = bracket == NULL ? authority.data : bracket;
    const char *end = authority.data + authority.len;
    const char *colon = memchr(from, ':', (size_t)(end - from));

    return colon == NULL ? BYTES_NONE : bytes_of(colon + 1, (size_t)(end - colon - 1));
}

static bool
check_authority(struct bytes authority, const char *url, char why[SERVER_URL_WHY_CAP])
{
    const struct bytes port = find_port(authority);
    int64_t number;

    if (memchr(authority.data, '@', authority.len) != NULL)
        return refuse_url(why, "the URL has a user or a password. claimd takes tokens: "
                               "write http://HOST:PORT, and name a file with a token "
                               "(--token-file)");
    if (authority.len == 0 || authority.data[0] == ':')
        return refuse_url(why, "%s has no host. Write http://HOST:PORT", url);
    if (bytes_present(port) &&
        (!bytes_to_i64(port, &number) || number < 1 || number > 65535))
        return refuse_url(why, "%s has the port \"%.*s\". It must be 1 to 65535", url,
                          (int)port.len, port.data);
    return true;
}

static bool
is_version(struct bytes segment)
{
    return bytes_equal_str(segment, "v1") || bytes_equal_str(segment, "v1.1") ||
           bytes_equal_str(segment, "v2");
}

/* Checks the path, which begins with a slash or is empty. */
static bool
check_path(struct bytes path, const char *url, char why[SERVER_URL_WHY_CAP])
{
    while (path.len > 0 && path.data[path.len - 1] == '/')
        path.len--;
    (void)bytes_cut(&path, '/');
    while (bytes_present(path)) {
        const struct bytes segment = bytes_cut(&path, '/');

        if (is_version(segment))
            return refuse_url(
                why, "%s has the version %.*s of the API. Leave it out: write %.*s", url,
                (int)segment.len, segment.data, (int)(segment.data - url - 1), url);
        if (segment.len == 0 || bytes_equal_str(segment, ".") ||
            bytes_equal_str(segment, ".."))
            return refuse_url(why,
                              "%s has an empty part, or one of dots, in its path. Write "
                              "http://HOST:PORT, or with the path of a proxy "
                              "http://HOST:PORT/PATH",
                              url);
    }
    return true;
}

bool
server_url_check(const char *url, char why[SERVER_URL_WHY_CAP])
{
    struct bytes rest = bytes_str(url);
    struct bytes authority;

    for (const char *at = url; *at != '\0'; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            return refuse_url(why,
                              "%.200s is no URL of a server. It has a blank or a "
                              "control character",
                              url);
    if (rest.len > SERVER_URL_MOST)
        return refuse_url(why,
                          "%.200s... is no URL of a server. It is longer than %d bytes",
                          url, SERVER_URL_MOST);
    if (server_url_is_unix(url))
        return true;
    if (!cut_scheme(&rest))
        return refuse_url(why,
                          "%s is no URL of a server. It must be http://HOST:PORT, "
                          "https://HOST:PORT or unix:PATH",
                          url);
    authority = cut_authority(&rest);
    if (rest.len > 0 && strpbrk(rest.data, "?#") != NULL)
        return refuse_url(why, "%s has a %s. Write only %.*s", url,
                          strpbrk(rest.data, "?#")[0] == '?' ? "query" : "fragment",
                          (int)(strpbrk(url, "?#") - url), url);
    return check_authority(authority, url, why) && check_path(rest, url, why);
}

bool
server_url_is_unix(const char *url)
{
    return strncmp(url, unix_scheme, sizeof(unix_scheme) - 1) == 0 &&
           url[sizeof(unix_scheme) - 1] != '\0';
}

struct bytes
server_url_base(const char *url)
{
    struct bytes base = bytes_str(url);

    while (base.len > 0 && base.data[base.len - 1] == '/')
        base.len--;
    return base;
}

struct bytes
server_url_prefix(const char *url)
{
    struct bytes rest = server_url_base(url);

    (void)cut_scheme(&rest);
    (void)cut_authority(&rest);
    return rest;
}
