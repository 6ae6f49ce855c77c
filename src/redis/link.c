#include "redis/link.h"

#include "claimd/base/invariant.h"
#include "claimd/base/library.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

/* ---------------------------------------------------------------------- library */

enum { ELEMENTS_MOST = 1 << 20 }; /* no response of claimd's scripts has as many */

static void *
create_limited_array(const redisReadTask *task, hiredis_count elements)
{
    const struct hiredis_library *l = task->privdata;

    return elements > ELEMENTS_MOST ? NULL : l->create_array(task, elements);
}

#define FIND(name, function) library_find(library, #function, &out->name) &&

enum status
hiredis_library_load(struct hiredis_library *out, struct reason *why)
{
    /* The version is that of the headers of this build. */
    void *library =
        dlopen("libhiredis.so." CLAIMD_HIREDIS_VERSION, RTLD_NOW | RTLD_LOCAL);
    redisReader *reader = NULL;

    if (library == NULL)
        return reason_give(why, ST_UNAVAILABLE,
                           "a store on Redis needs hiredis " CLAIMD_HIREDIS_VERSION
                           " (Debian: libhiredis" CLAIMD_HIREDIS_VERSION "): %s",
                           dlerror());
    if (HIREDIS_FUNCTIONS(FIND) true)
        reader = out->reader_create();
    if (reader == NULL)
        return reason_give(why, ST_UNAVAILABLE,
                           "hiredis lacks a function that claimd needs: %s", dlerror());
    /* hiredis does not export the functions of its readers, so they are copied from a
     * reader. */
    out->limited = *reader->fn;
    out->create_array = out->limited.createArray;
    out->limited.createArray = create_limited_array;
    out->reader_free(reader);
    return ST_OK;
}

/* ---------------------------------------------------------------------- URL */

enum {
    PORT = 6379,
    CONFIRM_MS = 1000,
    PATIENCE_MS = 2000,
    MS_MOST = 600000,
    REPLICAS_MOST = 16
};

/* Decodes %XX. */
static bool
url_unescape(struct bytes text, char out[URL_WORD_CAP])
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        unsigned code;

        if (len + 1 >= URL_WORD_CAP)
            return false;
        if (text.data[i] != '%') {
            out[len++] = text.data[i];
            continue;
        }
        if (i + 2 >= text.len || !isxdigit((unsigned char)text.data[i + 1]) ||
            !isxdigit((unsigned char)text.data[i + 2]) ||
            sscanf(text.data + i + 1, "%2x", &code) != 1 || code == 0)
            return false;
        out[len++] = (char)code;
        i += 2;
    }
    out[len] = '\0';
    return true;
}

/* Reads and removes the part before the last @. */
static enum status
url_read_login(struct bytes *rest, struct url *out, struct reason *why)
{
    const char *at = rest->len == 0 ? NULL : memrchr(rest->data, '@', rest->len);
    struct bytes login;
    const char *colon;

    if (at == NULL)
        return ST_OK;
    login = bytes_of(rest->data, (size_t)(at - rest->data));
    rest->len -= login.len + 1;
    rest->data = at + 1;
    colon = memchr(login.data, ':', login.len);
    if (colon == NULL)
        return reason_give(
            why, ST_BAD_VALUE,
            "the part in front of the @ must be user:password or :password");
    return url_unescape(bytes_of(login.data, (size_t)(colon - login.data)), out->user) &&
                   url_unescape(
                       bytes_of(colon + 1, login.len - 1 - (size_t)(colon - login.data)),
                       out->password)
               ? ST_OK
               : reason_give(why, ST_BAD_VALUE,
                             "user and password may have at most 255 characters each. "
                             "Write reserved characters of a URL as %%XX");
}

static bool
read_limited_number(struct bytes text, int64_t least, int64_t most, int64_t *out)
{
    return bytes_to_i64(text, out) && *out >= least && *out <= most;
}

static bool
url_read_host(struct bytes text, struct link_address *out)
{
    /* The last colon: an IPv6 address has others ([::1]:6379). */
    const char *colon = text.len == 0 ? NULL : memrchr(text.data, ':', text.len);
    int64_t port = PORT;
    size_t len = colon == NULL ? text.len : (size_t)(colon - text.data);

    if (colon != NULL && !read_limited_number(bytes_of(colon + 1, text.len - len - 1), 1,
                                              UINT16_MAX, &port))
        return false;
    if (len > 2 && text.data[0] == '[' && text.data[len - 1] == ']') {
        text.data++;
        len -= 2;
    }
    if (len == 0 || len >= LINK_HOST_CAP || memchr(text.data, '/', len) != NULL)
        return false;
    memcpy(out->host, text.data, len);
    out->host[len] = '\0';
    out->port = (uint16_t)port;
    return true;
}

static enum status
url_read_hosts(struct bytes rest, struct url *out, struct reason *why)
{
    do {
        struct bytes one = bytes_cut(&rest, ',');

        if (out->host_count == URL_HOSTS)
            return reason_give(
                why, ST_BAD_VALUE,
                "the URL may name at most 16 hosts. claimd asks these for the others");
        if (!url_read_host(one, &out->hosts[out->host_count++]))
            return reason_give(why, ST_BAD_VALUE, "a host must be HOST or HOST:PORT");
    } while (bytes_present(rest));
    return ST_OK;
}

static enum status
url_read_parameter(struct bytes one, struct url *out, struct reason *why)
{
    struct bytes name = bytes_cut(&one, '=');
    bool good = false;

    if (bytes_equal_str(name, "replicas"))
        good = read_limited_number(one, 0, REPLICAS_MOST, &out->replicas);
    else if (bytes_equal_str(name, "confirm_ms"))
        good = read_limited_number(one, 1, MS_MOST, &out->confirm_ms);
    else if (bytes_equal_str(name, "patience_ms"))
        good = read_limited_number(one, 0, MS_MOST, &out->patience_ms);
    else if (bytes_equal_str(name, "restarts"))
        good = out->restarts_held = bytes_equal_str(one, "held");
    else if (bytes_equal_str(name, "unsafe"))
        good = out->unsafe = bytes_equal_str(one, "1");
    else
        return reason_give(why, ST_BAD_VALUE,
                           "the URL has an unknown parameter. Allowed are replicas, "
                           "confirm_ms, patience_ms, restarts and unsafe");
    return good ? ST_OK
                : reason_give(why, ST_BAD_VALUE,
                              "the URL has an invalid parameter. Allowed are replicas=0 "
                              "to 16, confirm_ms=1 to 600000, patience_ms=0 to 600000, "
                              "restarts=held and unsafe=1");
}

enum status
url_read(const char *text, struct url *out, struct reason *why)
{
    static const char tcp[] = "redis://", local[] = "redis+unix://";
    const bool is_local = strncmp(text, local, sizeof(local) - 1) == 0;
    struct bytes parameters = bytes_str(text), rest;
    enum status st;

    *out = (struct url){
        .replicas = -1, .confirm_ms = CONFIRM_MS, .patience_ms = PATIENCE_MS};
    if (strncmp(text, "rediss://", 9) == 0)
        return reason_give(
            why, ST_BAD_VALUE,
            "rediss:// needs TLS, which Debian's hiredis does not support. Use "
            "a tunnel (stunnel) and redis:// or redis+unix://");
    if (!is_local && strncmp(text, tcp, sizeof(tcp) - 1) != 0)
        return reason_give(why, ST_BAD_VALUE,
                           "must be memory, or start with redis:// or redis+unix://");
    rest = bytes_cut(&parameters, '?');
    rest.data += (is_local ? sizeof(local) : sizeof(tcp)) - 1;
    rest.len -= (is_local ? sizeof(local) : sizeof(tcp)) - 1;
    st = url_read_login(&rest, out, why);
    if (st == ST_OK && is_local) {
        if (rest.len == 0 || rest.data[0] != '/' || rest.len >= LINK_HOST_CAP)
            return reason_give(
                why, ST_BAD_VALUE,
                "redis+unix:// must be followed by the absolute path of a socket");
        memcpy(out->hosts[0].host, rest.data, rest.len);
        out->host_count = 1;
    } else if (st == ST_OK) {
        st = url_read_hosts(rest, out, why);
    }
    while (st == ST_OK && bytes_present(parameters))
        st = url_read_parameter(bytes_cut(&parameters, '&'), out, why);
    return st;
}

/* ---------------------------------------------------------------------- connection */

bool
link_address_make(struct bytes host, int64_t port, const struct link_address *source,
                  struct link_address *out)
{
    if (port <= 0 || port > UINT16_MAX || host.len >= LINK_HOST_CAP)
        return false;
    *out = *source;
    out->port = (uint16_t)port;
    if (host.len > 0) {
        memcpy(out->host, host.data, host.len);
        out->host[host.len] = '\0';
    }
    return true;
}

void
link_name(const struct link_address *address, char out[LINK_NAME_CAP])
{
    if (address->port == 0)
        (void)snprintf(out, LINK_NAME_CAP, "%s", address->host);
    else
        (void)snprintf(out, LINK_NAME_CAP, "%s:%u", address->host, address->port);
}

static struct timeval
timeval_of(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

enum status
link_command(struct link *l, const struct bytes *words, size_t count, redisReply **out,
             struct reason *why)
{
    enum status st = link_append(l, words, count, NULL, BYTES_NONE);
    void *received = NULL;
    redisReply *response;

    *out = NULL;
    if (st != ST_OK)
        return st;
    if (l->library->get_reply(l->context, &received) != REDIS_OK || received == NULL)
        return reason_give(why, ST_UNAVAILABLE, "%s",
                           l->context->err == REDIS_ERR_IO && errno == EAGAIN
                               ? "Redis does not respond"
                               : l->context->errstr);
    response = received;
    if (link_is_drained(l) && response->type != REDIS_REPLY_ERROR) {
        *out = response;
        return ST_OK;
    }
    if (link_is_drained(l)) {
        st = reason_give(why, ST_UNAVAILABLE, "%s", response->str);
    } else {
        link_fail(l, LINK_SURPLUS);
        st = reason_give(why, ST_UNAVAILABLE, "%s", LINK_SURPLUS);
    }
    link_free_response(l, response);
    return st;
}

static enum status
link_log_in(struct link *l, const struct link_config *config, struct reason *why)
{
    struct bytes words[3] = {BYTES_LIT("AUTH")};
    redisReply *response = NULL;
    size_t count = 1;
    enum status st;

    if (config->password[0] == '\0')
        return ST_OK;
    if (config->user[0] != '\0')
        words[count++] = bytes_str(config->user);
    words[count++] = bytes_str(config->password);
    st = link_command(l, words, count, &response, why);
    link_free_response(l, response);
    return st;
}

enum status
link_open(struct link *l, const struct link_config *config, const struct link_address *to,
          struct reason *why)
{
    struct hiredis_library *library = config->library;
    const struct timeval limit = timeval_of(config->connect_ms);
    struct reason what;
    char name[LINK_NAME_CAP];
    enum status st;

    reason_init(&what);
    *l = (struct link){.library = library};
    l->context = to->port == 0 ? library->connect_unix(to->host, limit)
                               : library->connect(to->host, to->port, limit);
    if (l->context == NULL)
        return ST_NO_MEMORY;
    l->context->reader->fn = &library->limited;
    l->context->reader->privdata = library;
    if (l->context->err != 0 ||
        library->set_timeout(l->context, timeval_of(config->response_ms)) != REDIS_OK)
        st = reason_give(&what, ST_UNAVAILABLE, "%s", l->context->errstr);
    else
        st = link_log_in(l, config, &what);
    if (st == ST_OK)
        return ST_OK;
    link_close(l);
    link_name(to, name);
    return reason_give(why, st, "%s: %.100s", name, what.text);
}

void
link_set_timeout(struct link *l, int64_t response_ms)
{
    /* If this fails, the former limit stays. */
    (void)l->library->set_timeout(l->context, timeval_of(response_ms));
}

void
link_close(struct link *l)
{
    if (l->context != NULL)
        l->library->free(l->context);
    l->context = NULL;
}

bool
link_is_reusable(const struct link *l)
{
    char byte;
    ssize_t n;

    if (l->context == NULL || l->context->err != 0)
        return false;
    n = recv(l->context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static bool
append_data(struct link *l, const char *data, size_t len)
{
    return l->library->append(l->context, data, len) == REDIS_OK;
}

static bool
append_length(struct link *l, char mark, size_t number)
{
    char head[32];
    int len = snprintf(head, sizeof(head), "%c%zu\r\n", mark, number);

    return append_data(l, head, (size_t)len);
}

static bool
append_word(struct link *l, struct bytes word)
{
    return append_length(l, '$', word.len) && append_data(l, word.data, word.len) &&
           append_data(l, "\r\n", 2);
}

enum status
link_append(struct link *l, const struct bytes *words, size_t count,
            const struct command_words *rest, struct bytes last)
{
    bool good = append_length(
        l, '*', count + (rest == NULL ? 0 : rest->count) + (bytes_present(last) ? 1 : 0));

    for (size_t i = 0; good && i < count; i++)
        good = append_word(l, words[i]);
    if (good && rest != NULL)
        good = !rest->words.failed && append_data(l, rest->words.data, rest->words.len);
    if (good && bytes_present(last))
        good = append_word(l, last);
    return good ? ST_OK : ST_NO_MEMORY;
}

void
link_fail(struct link *l, const char *what)
{
    ENSURE(l->context != NULL);
    l->context->err = REDIS_ERR_PROTOCOL;
    (void)snprintf(l->context->errstr, sizeof(l->context->errstr), "%s", what);
}

bool
link_is_drained(const struct link *l)
{
    return l->context->reader->pos == l->context->reader->len;
}

void
link_free_response(const struct link *l, redisReply *response)
{
    if (response != NULL)
        l->library->free_reply(response);
}

bool
link_write(struct link *l, bool *all)
{
    int done = 0;

    if (l->library->write(l->context, &done) != REDIS_OK)
        return false;
    *all = done != 0;
    return true;
}

bool
link_flush(struct link *l)
{
    bool all = false;

    while (!all)
        if (!link_write(l, &all))
            return false;
    return true;
}

bool
link_read(struct link *l, bool *more)
{
    enum { PIECE = 16 << 10 }; /* hiredis reads no more at a time */
    const size_t before = l->context->reader->len;

    if (l->library->read(l->context) != REDIS_OK)
        return false;
    *more = l->context->reader->len - before == PIECE;
    return true;
}

redisReply *
link_next_response(struct link *l)
{
    void *response = NULL;

    return l->library->get_parsed(l->context, &response) == REDIS_OK ? response : NULL;
}
