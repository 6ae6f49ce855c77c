/*
 * claimd health: checks whether a server is ready, for containers without curl. It asks
 * the server of an address, of CLAIMD_URL, or of the configuration, which is why it is a
 * command of claimd and not of claimd-client.
 *
 * The table is at the end (command.h). The request goes through claimd/web/web_client.h.
 */
#include "claimd/base/server_url.h"
#include "claimd/http/listen.h"
#include "claimd/json/scan.h"
#include "main/command.h"
#include "main/option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* RESPONSE_MOST: larger than any response of claimd to this request. */
enum { PATIENCE_MS = 5000, RESPONSE_MOST = 1 << 20 };

/*
 * Finds the first address without TLS in the configuration of the server on this machine.
 * `file` is of --config, or NULL. Returns an exit status, after an error message unless
 * it is COMMAND_GOOD.
 */
static int
find_address(const char *file, struct listen_list *list, const char **out)
{
    char *const argv[] = {(char *)(uintptr_t) "claimd", (char *)(uintptr_t) "--config",
                          (char *)(uintptr_t)file, NULL};
    const struct config_origin *origin;
    struct config_errors errors = {.to = NULL};
    enum config_action unused;
    struct config config;
    struct reason why;

    /*
     * The command line of the server is unknown, so other options may seem to contradict
     * each other.
     */
    (void)config_load(file == NULL ? 1 : 3, argv, environ, &config, &unused, &errors);
    origin = &config.origins[option_find(bytes_str("listen")) - options];
    if (origin->refused || listen_read(config.listen, list, &why) != ST_OK ||
        (errors.count > 0 && config.file[0] != '\0' && origin->source == CONFIG_DEFAULT))
        return command_fails(COMMAND_FAILED,
                             "the configuration of the server has an error. Correct it, "
                             "or name an ADDRESS. %s",
                             errors.first);
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].kind != LISTEN_TLS) {
            *out = list->entries[i].address;
            return COMMAND_GOOD;
        }
    return command_fails(COMMAND_FAILED,
                         "all addresses of listen speak TLS, and the command speaks "
                         "plain HTTP. Add an address for it: metrics:127.0.0.1:9188");
}

/*
 * Takes the address out of "http://HOST:PORT/" and "http://HOST:PORT/readyz". Returns an
 * exit status.
 */
static int
read_address(const char *text, char out[LISTEN_ADDRESS_CAP])
{
    static const char scheme[] = "http://", tls[] = "https://";
    const size_t skipped =
        strncmp(text, scheme, sizeof(scheme) - 1) == 0 ? sizeof(scheme) - 1 : 0;
    const char *path = skipped == 0 ? NULL : strchr(text + skipped, '/'), *colon;
    size_t len = path == NULL ? strlen(text + skipped) : (size_t)(path - text) - skipped;

    if (strncmp(text, tls, sizeof(tls) - 1) == 0)
        return command_misused(
            "health",
            "the command speaks plain HTTP, not TLS. Name an address of the server "
            "without TLS, or add one to listen, such as metrics:127.0.0.1:9188");
    if (path != NULL && strcmp(path, "/") != 0 && strcmp(path, "/readyz") != 0)
        return command_misused("health",
                               "the command requests /readyz, so the address must have "
                               "no path, not \"%.100s\"",
                               path);
    if (len >= LISTEN_ADDRESS_CAP)
        return command_fails(COMMAND_FAILED, "the address has more than %d characters",
                             LISTEN_ADDRESS_CAP - 1);
    (void)snprintf(out, LISTEN_ADDRESS_CAP, "%.*s", (int)len, text + skipped);
    if (!server_url_is_unix(out) && strpbrk(out, "/?#@") != NULL)
        return command_misused("health", "%s is no address. Write HOST:PORT", out);
    colon = strrchr(out, ':');
    if (colon == NULL || colon[1] == '\0' || strchr(colon, ']') != NULL)
        return command_fails(COMMAND_FAILED, "%s has no port. Write HOST:PORT", out);
    return COMMAND_GOOD;
}

/* True if the transfer ended before the server could send anything. */
static bool
is_without_connection(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
           code == CURLE_OPERATION_TIMEDOUT || code == CURLE_URL_MALFORMAT ||
           code == CURLE_OUT_OF_MEMORY;
}

/* Reports the response of a server. Returns an exit status. */
static int
report(const char *shown, const struct web_response *response)
{
    const struct json_scan_value description =
        json_member(buf_view(&response->body), "description"); /* of an error */
    const struct bytes why =
        description.kind == SCAN_STRING ? json_scan_inside(&description) : bytes_str("");

    if (response->status >= 200 && response->status < 300) {
        (void)printf("%s is ready\n", shown);
        return COMMAND_GOOD;
    }
    return command_fails(COMMAND_FAILED, "%s is not ready. Its status is %ld%s%.*s",
                         shown, response->status, why.len > 0 ? ": " : "", (int)why.len,
                         why.data);
}

/*
 * Requests /readyz of the server, and reports the result. shown: its name in messages.
 * Returns an exit status.
 */
static int
check_server(const char *shown, const char *url, struct mem *mem)
{
    const struct web_request request = {
        .path = "/readyz", .timeout_ms = PATIENCE_MS, .response_most = RESPONSE_MOST};
    struct web_response response;
    struct command_client c;
    int status;

    if (!command_client_open(&c, url, mem))
        return COMMAND_FAILED;
    if (web_client_send(&c.web, &request, &response))
        status = report(shown, &response);
    else if (is_without_connection(response.code) || strncmp(url, "https://", 8) == 0)
        status = command_fails(COMMAND_FAILED, "%s", response.error);
    else
        status = command_fails(COMMAND_FAILED,
                               "%s does not respond to plain HTTP. If it is a TLS "
                               "address, name one without TLS",
                               shown);
    web_response_fini(&response);
    command_client_close(&c);
    return status;
}

/* The server of CLAIMD_URL. Returns an exit status. */
static int
check_url(const char *url, struct mem *mem)
{
    char why[SERVER_URL_WHY_CAP];

    return server_url_check(url, why) ? check_server(url, url, mem)
                                      : command_misused("health", "CLAIMD_URL: %s", why);
}

static int
run_health(const struct command_args *args)
{
    static const char scheme[] = "http://";
    const char *url = getenv("CLAIMD_URL"), *config = args->values[0];
    char given[LISTEN_ADDRESS_CAP], built[LISTEN_ADDRESS_CAP + sizeof(scheme)];
    const char *address = given;
    struct listen_list list;
    int status;

    if (args->words[0] != NULL)
        status = read_address(args->words[0], given);
    else if (config == NULL && url != NULL && url[0] != '\0')
        return check_url(url, args->mem);
    else
        status = find_address(config, &list, &address);
    if (status != COMMAND_GOOD)
        return status;
    (void)snprintf(built, sizeof(built), "%s%s",
                   server_url_is_unix(address) ? "" : scheme, address);
    return check_server(address, built, args->mem);
}

const struct command command_health = {
    .usages = {"health [--config FILE]", "health ADDRESS"},
    .about =
        "Requests /readyz of the claimd at ADDRESS, which is HOST:PORT, [IPv6]:PORT, "
        "http://HOST:PORT or unix:PATH. The default is the server of CLAIMD_URL. If this "
        "variable is not set, or with --config, it is the first address without TLS of "
        "the option listen, in FILE or in the environment (CLAIMD_CONFIG, "
        "CLAIMD_LISTEN). Only CLAIMD_URL may use TLS, with the authorities of the "
        "system. If "
        "the server has only addresses with TLS, add metrics:127.0.0.1:9188 to listen. "
        "The time limit is 5 seconds. Use it in containers without curl.",
    .options = {{"--config", "FILE", "Configuration file of the server"}},
    .example = "claimd health 127.0.0.1:8888",
    .statuses = {"The server is ready.",
                 "The server is not ready, or it does not respond."},
    .most = 1,
    .needs = "an address",
    .run = run_health};
