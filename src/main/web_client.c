#include "main/web_client.h"

#include "main/command.h"
#include "main/text_file.h"

#include <stdio.h>
#include <string.h>

enum { CONNECT_MS = 10000, TARGET_CAP = 4096 };

static size_t
append_response(char *data, size_t size, size_t count, void *arg)
{
    struct buf *out = arg;

    buf_add(out, data, size * count);
    return out->failed ? 0 : size * count;
}

static bool
add_head(struct web_client *c, const char *line)
{
    struct curl_slist *grown = c->curl.slist_append(c->heads, line);

    if (grown != NULL)
        c->heads = grown;
    return grown != NULL;
}

static enum status
prepare(struct web_client *c, const char *token)
{
    char line[512];

    c->handle = c->curl.easy_init();
    if (c->handle == NULL || !add_head(c, "Content-Type: application/jsonl") ||
        !add_head(c, "Expect:"))
        return ST_NO_MEMORY;
    (void)snprintf(line, sizeof(line), "X-Auth-Token: %s", token == NULL ? "" : token);
    return token == NULL || add_head(c, line) ? ST_OK : ST_NO_MEMORY;
}

bool
web_client_open(struct web_client *c, const char *url, const char *token_file,
                struct mem *mem)
{
    const struct text_file file = {.path = token_file,
                                   .option = "token-file",
                                   .most = 4096,
                                   .secret = true,
                                   .once = true};
    struct config_errors errors = {.to = stderr};
    char *token = NULL;
    struct reason why;
    enum status st = ST_OK;

    *c = (struct web_client){.url = url == NULL ? "http://127.0.0.1:8888" : url};
    if (token_file != NULL)
        st = text_file_word(&file, mem, &token, &errors);
    reason_init(&why);
    if (st == ST_OK) {
        st = curl_library_load(&c->curl, &why);
        if (st != ST_OK)
            config_error(&errors, "%s", why.text);
    }
    if (st == ST_OK) {
        (void)c->curl.global_init(CURL_GLOBAL_DEFAULT); /* easy_init() would do it */
        st = prepare(c, token);
    }
    text_file_drop_word(mem, token);
    if (st == ST_OK)
        return true;
    if (errors.count == 0)
        config_error(&errors, "%s", status_text(st));
    web_client_close(c);
    return false;
}

void
web_client_close(struct web_client *c)
{
    if (c->heads != NULL)
        c->curl.slist_free_all(c->heads);
    if (c->handle != NULL)
        c->curl.easy_cleanup(c->handle);
    *c = (struct web_client){.handle = NULL};
}

int
web_client_ask(struct web_client *c, const char *target, struct bytes body, int *code,
               struct buf *out)
{
    const bool is_unix = strncmp(c->url, "unix:", 5) == 0;
    size_t len = strlen(c->url);
    char url[TARGET_CAP];
    CURLcode done;
    long status = 0;

    buf_reset(out, SIZE_MAX);
    c->curl.easy_reset(c->handle);
    while (len > 0 && c->url[len - 1] == '/')
        len--;
    if (is_unix) { /* any host will do */
        (void)c->curl.easy_setopt(c->handle, CURLOPT_UNIX_SOCKET_PATH, c->url + 5);
        (void)snprintf(url, sizeof(url), "http://localhost%s", target);
    } else {
        (void)snprintf(url, sizeof(url), "%.*s%s", (int)len, c->url, target);
    }
    (void)c->curl.easy_setopt(c->handle, CURLOPT_URL, url);
    (void)c->curl.easy_setopt(c->handle, CURLOPT_HTTPHEADER, c->heads);
    (void)c->curl.easy_setopt(c->handle, CURLOPT_NOSIGNAL, 1L);
    (void)c->curl.easy_setopt(c->handle, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    (void)c->curl.easy_setopt(c->handle, CURLOPT_ERRORBUFFER, c->error);
    (void)c->curl.easy_setopt(c->handle, CURLOPT_WRITEFUNCTION, append_response);
    (void)c->curl.easy_setopt(c->handle, CURLOPT_WRITEDATA, out);
    if (bytes_present(body)) {
        (void)c->curl.easy_setopt(c->handle, CURLOPT_POST, 1L);
        (void)c->curl.easy_setopt(c->handle, CURLOPT_POSTFIELDSIZE_LARGE,
                                  (curl_off_t)body.len);
        (void)c->curl.easy_setopt(c->handle, CURLOPT_POSTFIELDS, body.data);
    }
    c->error[0] = '\0';
    done = c->curl.easy_perform(c->handle);
    if (out->failed)
        return command_fails(COMMAND_FAILED, "%s: %s", c->url, status_text(ST_NO_MEMORY));
    if (done != CURLE_OK)
        return command_fails(COMMAND_FAILED, "%s: %s", c->url,
                             c->error[0] != '\0' ? c->error
                                                 : c->curl.easy_strerror(done));
    (void)c->curl.easy_getinfo(c->handle, CURLINFO_RESPONSE_CODE, &status);
    *code = (int)status;
    return COMMAND_GOOD;
}
