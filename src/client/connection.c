/*
 * The settings of the connection of a command: from the options of all commands and from
 * the environment. Also the headers that each request needs.
 *
 * client.h declares them. request.c sends the requests, and work_requests.c those of
 * `claimd work`.
 */
#include "client/client.h"
#include "client/text.h"

#include "claimd/base/entropy.h"
#include "claimd/base/server_url.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TOKEN_MOST = 4096, TIMEOUT_S = 30, TIMEOUT_MOST_S = 86400 };

#define LINKED(name) .name = curl_##name,
static const struct curl_library linked_curl = {CURL_FUNCTIONS(LINKED)};
#undef LINKED

static const char default_url[] = "http://127.0.0.1:8888";

/* ------------------------------------------------------------------ settings */

/* A setting, and the option or variable that gives it. */
struct named_value {
    const char *value; /* NULL: not given */
    const char *from;
};

/* Reads the token: one line without blanks around it. Returns an exit status. */
static int
read_token(struct client *c, const struct named_value *from)
{
    const char *path = from->value;
    char text[TOKEN_MOST + 2];
    FILE *file = fopen(path, "re");
    struct bytes token = BYTES_NONE;
    size_t len = 0;
    bool failed = file == NULL;

    if (file != NULL) {
        len = fread(text, 1, sizeof(text) - 1, file);
        failed = ferror(file) != 0;
        (void)fclose(file);
    }
    if (failed)
        return command_fails(COMMAND_USAGE, "%s: %s cannot be read: %s", from->from, path,
                             strerror(errno));
    token = bytes_trim(bytes_of(text, len));
    if (token.len == 0 || len > TOKEN_MOST)
        return command_fails(COMMAND_USAGE, "%s: %s %s", from->from, path,
                             token.len == 0 ? "has no token"
                                            : "is larger than 4096 bytes");
    for (size_t i = 0; i < token.len; i++)
        if (token.data[i] < '!' || token.data[i] > '~')
            return command_fails(COMMAND_USAGE,
                                 "%s: %s must have one token. It has a blank, or a "
                                 "character that a token cannot have",
                                 from->from, path);
    c->token = mem_alloc(c->mem, token.len + 1);
    if (c->token == NULL)
        return command_no_memory();
    memcpy(c->token, token.data, token.len);
    c->token[token.len] = '\0';
    explicit_bzero(text, sizeof(text));
    return COMMAND_GOOD;
}

/* Checks a text that becomes the value of a header: it must not end the line. */
static int
check_header_value(const struct named_value *text)
{
    return text->value == NULL || strpbrk(text->value, "\r\n") == NULL
               ? COMMAND_GOOD
               : command_fails(COMMAND_USAGE, "%s has the end of a line", text->from);
}

/*
 * The setting of the command line, else that of the environment. An empty variable counts
 * as absent.
 */
static struct named_value
find_setting(const char *given, const char *option, const char *variable)
{
    const char *value = getenv(variable);

    if (given != NULL)
        return (struct named_value){given, option};
    return (struct named_value){value == NULL || value[0] == '\0' ? NULL : value,
                                variable};
}

/* Makes the name of this process. The host loses its end if both do not fit. */
static void
name_worker(struct client *c)
{
    char host[HOST_NAME_MAX + 1] = "", pid[16];
    int len = snprintf(pid, sizeof(pid), " %ld", (long)getpid());

    if (gethostname(host, sizeof(host) - 1) != 0)
        host[0] = '\0';
    for (char *at = host; *at != '\0'; at++)
        if (*at < '!' || *at > '~')
            *at = '?';
    (void)snprintf(c->worker, sizeof(c->worker), "%.*s%s",
                   (int)sizeof(c->worker) - 1 - len, host, pid);
}

int
client_open(struct client *c, const struct command_args *args)
{
    const char *const *given = args->common;
    struct named_value url = find_setting(given[CLIENT_URL], "--url", "CLAIMD_URL");
    const struct named_value project =
        find_setting(given[CLIENT_PROJECT], "--project", "CLAIMD_PROJECT");
    const struct named_value token_file =
        find_setting(given[CLIENT_TOKEN_FILE], "--token-file", "CLAIMD_TOKEN_FILE");
    const struct named_value id = find_setting(NULL, NULL, "CLAIMD_CLIENT_ID");
    int64_t timeout_s = TIMEOUT_S;
    char why[SERVER_URL_WHY_CAP];
    int status;

    if (url.value == NULL)
        url.value = default_url;
    *c = (struct client){.mem = args->mem,
                         .project = project.value,
                         .web = {.curl = &linked_curl,
                                 .mem = args->mem,
                                 .url = url.value,
                                 .ca = given[CLIENT_CA],
                                 .certificate = given[CLIENT_CERTIFICATE],
                                 .certificate_key = given[CLIENT_CERTIFICATE_KEY]},
                         .json = given[CLIENT_JSON] != NULL};
    buf_init(&c->path, c->mem);
    buf_init(&c->body, c->mem);
    buf_init(&c->response.body, c->mem);
    if (id.value != NULL)
        (void)snprintf(c->client_id, sizeof(c->client_id), "%s", id.value);
    else
        uid_text(c->client_id);
    name_worker(c);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
        return command_no_memory();
    if (given[CLIENT_TIMEOUT] != NULL &&
        !duration_read(bytes_str(given[CLIENT_TIMEOUT]), 1, TIMEOUT_MOST_S, &timeout_s))
        return command_fails(COMMAND_USAGE,
                             "--timeout: %.64s is no time. It must be 1s to 24h",
                             given[CLIENT_TIMEOUT]);
    c->timeout_ms = (long)timeout_s * 1000;
    if (!server_url_check(url.value, why))
        return command_fails(COMMAND_USAGE, "%s: %s", url.from, why);
    status = check_header_value(&project);
    if (status == COMMAND_GOOD)
        status = check_header_value(&id);
    if (status == COMMAND_GOOD && token_file.value != NULL)
        status = read_token(c, &token_file);
    return status;
}

void
client_drop_response(struct client *c)
{
    json_decref(c->response.document);
    buf_fini(&c->response.body);
    c->response = (struct client_response){.status = 0};
    buf_init(&c->response.body, c->mem);
}

void
client_close(struct client *c)
{
    client_drop_response(c);
    buf_fini(&c->body);
    buf_fini(&c->path);
    web_client_close(&c->web);
    if (c->token != NULL)
        explicit_bzero(c->token, strlen(c->token));
    mem_free(c->mem, c->token);
    curl_global_cleanup();
}

/*
 * ------------------------------------------------------------------ parts of a request
 */

bool
client_add_header(struct curl_slist **list, const char *format, ...)
{
    char line[CLIENT_URL_MOST + TOKEN_MOST];
    struct curl_slist *longer;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    longer = curl_slist_append(*list, line);
    if (longer != NULL)
        *list = longer;
    explicit_bzero(line, sizeof(line));
    return longer != NULL;
}

bool
client_add_headers(const struct client *c, const char *project, struct curl_slist **list)
{
    return client_add_header(list, "Client-ID: %s", c->client_id) &&
           client_add_header(list, "Claimd-Worker: %s", c->worker) &&
           client_add_header(list, "Expect:") &&
           (project == NULL ||
            client_add_header(list, "X-Project-ID%s%s", project[0] == '\0' ? ";" : ": ",
                              project)) &&
           (c->token == NULL || client_add_header(list, "X-Auth-Token: %s", c->token));
}
