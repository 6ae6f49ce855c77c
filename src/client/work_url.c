#include "client/work_url.h"

#include <curl/curl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static CURLUcode
url_parse(CURLU *u, const char *url)
{
    return u == NULL ? CURLUE_OUT_OF_MEMORY : curl_url_set(u, CURLUPART_URL, url, 0);
}

const char *
url_check(const char *url)
{
    CURLU *u = curl_url();
    CURLUcode code = url_parse(u, url);
    char *port = NULL;

    if (code == CURLUE_OK && curl_url_get(u, CURLUPART_PORT, &port, 0) == CURLUE_OK &&
        strspn(port, "0") == strlen(port))
        code = CURLUE_BAD_PORT_NUMBER;
    curl_free(port);
    curl_url_cleanup(u);
    return code == CURLUE_OK ? NULL : curl_url_strerror(code);
}

void
url_describe(char out[SERVICE_NAME_MOST + 1], const char *url)
{
    static const CURLUPart secrets[] = {CURLUPART_USER, CURLUPART_PASSWORD,
                                        CURLUPART_OPTIONS, CURLUPART_QUERY,
                                        CURLUPART_FRAGMENT};
    CURLU *u = curl_url();
    char *text = NULL;
    bool good = url_parse(u, url) == CURLUE_OK;

    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        good = good && curl_url_set(u, secrets[i], NULL, 0) == CURLUE_OK;
    if (good && curl_url_get(u, CURLUPART_URL, &text, 0) != CURLUE_OK)
        text = NULL;
    (void)snprintf(out, SERVICE_NAME_MOST + 1, "%s", text != NULL ? text : "the service");
    for (char *at = out; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    curl_free(text);
    curl_url_cleanup(u);
}

bool
url_of_path(char *out, size_t cap, const char *url, const char *path)
{
    CURLU *u = curl_url();
    char *text = NULL;
    bool good;

    good = path[0] == '/' && path[1] != '/' && url_parse(u, url) == CURLUE_OK &&
           curl_url_set(u, CURLUPART_URL, path, 0) == CURLUE_OK &&
           curl_url_get(u, CURLUPART_URL, &text, 0) == CURLUE_OK && strlen(text) < cap;
    if (good)
        (void)snprintf(out, cap, "%s", text);
    curl_free(text);
    curl_url_cleanup(u);
    return good;
}

/* libcurl does not ask the resolver for these. */
static bool
is_local_name(const char *host)
{
    static const char local[] = ".localhost";
    const size_t len = strlen(host), tail = sizeof(local) - 1;

    return host[0] == '[' || strcasecmp(host, local + 1) == 0 ||
           (len > tail && strcasecmp(host + len - tail, local) == 0);
}

bool
url_host_is_unknown(const char *url)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_IDN};
    struct addrinfo *found = NULL;
    CURLU *u = curl_url();
    char *host = NULL;
    bool unknown = false;

    if (url_parse(u, url) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK && !is_local_name(host))
        unknown = getaddrinfo(host, NULL, &hints, &found) == EAI_NONAME;
    if (found != NULL)
        freeaddrinfo(found);
    curl_free(host);
    curl_url_cleanup(u);
    return unknown;
}
