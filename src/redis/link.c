#include "redis/link.h"

#include "claimd/base/library.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

/* ---------------------------------------------------------------------- library */

enum { ELEMENTS_MOST = 1 << 20 }; /* an image has 256 heads of messages, a page fewer */

static void *
create_array(const redisReadTask *task, int elements)
{
    const struct hiredis_library *l = task->privdata;

    return elements > ELEMENTS_MOST ? NULL : l->create_array(task, elements);
}

/* hiredis does not export its functions of a reader: a reader shows them. */
static bool
copy_reader_functions(void *library, struct hiredis_library *l)
{
    redisReader *(*create)(void);
    void (*release)(redisReader * r);
    redisReader *reader;

    if (!library_find(library, "redisReaderCreate", &create) ||
        !library_find(library, "redisReaderFree", &release))
        return false;
    reader = create();
    if (reader == NULL)
        return false;
    l->limited = *reader->fn;
    l->create_array = l->limited.createArray;
    l->limited.createArray = create_array;
    release(reader);
    return true;
}

enum status
hiredis_library_load(struct hiredis_library *out, struct reason *why)
{
    /* The version is that of the headers: a build against another hiredis loads that one. */
    void *library =
        dlopen("libhiredis.so." CLAIMD_HIREDIS_VERSION, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return reason_give(why, ST_UNAVAILABLE,
                           "a store on Redis needs hiredis " CLAIMD_HIREDIS_VERSION
                           " (Debian: libhiredis" CLAIMD_HIREDIS_VERSION "): %s",
                           dlerror());
    if (!library_find(library, "redisConnectWithTimeout", &out->connect) ||
        !library_find(library, "redisConnectUnixWithTimeout", &out->connect_unix) ||
        !library_find(library, "redisSetTimeout", &out->set_timeout) ||
        !library_find(library, "redisAppendFormattedCommand", &out->append) ||
        !library_find(library, "redisBufferWrite", &out->write) ||
        !library_find(library, "redisBufferRead", &out->read) ||
        !library_find(library, "redisGetReplyFromReader", &out->get_parsed) ||
        !library_find(library, "redisGetReply", &out->get_reply) ||
        !library_find(library, "redisFree", &out->free) ||
        !library_find(library, "freeReplyObject", &out->free_reply) ||
        !copy_reader_functions(library, out))
        return reason_give(why, ST_UNAVAILABLE,
                           "hiredis lacks a function that claimd needs: %s", dlerror());
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

/* %40 is @. */
static bool
unescape(struct bytes text, char out[URL_WORD_CAP])
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

/* Reads the part in front of the last @. */
static enum status
read_login(struct bytes *rest, struct url *out, struct reason *why)
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
    return unescape(bytes_of(login.data, (size_t)(colon - login.data)), out->user) &&
                   unescape(
                       bytes_of(colon + 1, login.len - 1 - (size_t)(colon - login.data)),
                       out->password)
               ? ST_OK
               : reason_give(why, ST_BAD_VALUE,
                             "user and password may have at most 255 characters each. "
                             "Write reserved characters of a URL as %%XX");
}

static bool
read_number(struct bytes text, int64_t least, int64_t most, int64_t *out)
{
    return bytes_to_i64(text, out) && *out >= least && *out <= most;
}

static bool
read_host(struct bytes text, struct link_address *out)
{
    const char *colon =
        text.len == 0 ? NULL : memrchr(text.data, ':', text.len); /* [::1]:6379 */
    int64_t port = PORT;
    size_t len = colon == NULL ? text.len : (size_t)(colon - text.data);

    if (colon != NULL &&
        !read_number(bytes_of(colon + 1, text.len - len - 1), 1, UINT16_MAX, &port))
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
read_hosts(struct bytes rest, struct url *out, struct reason *why)
{
    do {
        struct bytes one = bytes_cut(&rest, ',');

        if (out->host_count == URL_HOSTS)
            return reason_give(
                why, ST_BAD_VALUE,
                "the URL may name at most 16 hosts. claimd asks these for the others");
        if (!read_host(one, &out->hosts[out->host_count++]))
            return reason_give(why, ST_BAD_VALUE, "a host must be HOST or HOST:PORT");
    } while (bytes_present(rest));
    return ST_OK;
}

static enum status
read_parameter(struct bytes one, struct url *out, struct reason *why)
{
    struct bytes name = bytes_cut(&one, '=');
    bool good = false;

    if (bytes_equal_str(name, "replicas"))
        good = read_number(one, 0, REPLICAS_MOST, &out->replicas);
    else if (bytes_equal_str(name, "confirm_ms"))
        good = read_number(one, 1, MS_MOST, &out->confirm_ms);
    else if (bytes_equal_str(name, "patience_ms"))
        good = read_number(one, 0, MS_MOST, &out->patience_ms);
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
    st = read_login(&rest, out, why);
    if (st == ST_OK && is_local) {
        if (rest.len == 0 || rest.data[0] != '/' || rest.len >= LINK_HOST_CAP)
            return reason_give(
                why, ST_BAD_VALUE,
                "redis+unix:// must be followed by the absolute path of a socket");
        memcpy(out->hosts[0].host, rest.data, rest.len);
        out->host_count = 1;
    } else if (st == ST_OK) {
        st = read_hosts(rest, out, why);
    }
    while (st == ST_OK && bytes_present(parameters))
        st = read_parameter(bytes_cut(&parameters, '&'), out, why);
    return st;
}

/* ---------------------------------------------------------------------- connection */

bool
link_address_make(struct bytes host, int64_t port, const struct link_address *asked,
                  struct link_address *out)
{
    if (port <= 0 || port > UINT16_MAX || host.len >= LINK_HOST_CAP)
        return false;
    *out = *asked;
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
interval(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

/* The next response, behind which nothing may be left. NULL: it has failed, with a reason. */
static redisReply *
read_response(struct link *l, struct reason *why)
{
    void *answer = NULL;

    if (l->library->get_reply(l->context, &answer) == REDIS_OK && answer != NULL) {
        if (link_is_drained(l))
            return answer;
        link_free(l, answer);
        link_fail(l, LINK_SURPLUS);
    }
    (void)reason_give(why, ST_UNAVAILABLE, "%s",
                      l->context->err == REDIS_ERR_IO && errno == EAGAIN
                          ? "Redis does not respond"
                          : l->context->errstr);
    return NULL;
}

enum status
link_say(struct link *l, const struct bytes *words, size_t count, redisReply **out,
         struct reason *why)
{
    enum status st = link_add(l, words, count, NULL, BYTES_NONE);

    if (st != ST_OK)
        return st;
    *out = read_response(l, why);
    if (*out == NULL)
        return ST_UNAVAILABLE;
    if ((*out)->type != REDIS_REPLY_ERROR)
        return ST_OK;
    st = reason_give(why, ST_UNAVAILABLE, "%s", (*out)->str);
    link_free(l, *out);
    *out = NULL;
    return st;
}

static enum status
log_in(struct link *l, const struct link_config *config, struct reason *why)
{
    struct bytes words[3] = {BYTES_LIT("AUTH")};
    redisReply *answer = NULL;
    size_t count = 1;
    enum status st;

    if (config->password[0] == '\0')
        return ST_OK;
    if (config->user[0] != '\0')
        words[count++] = bytes_str(config->user);
    words[count++] = bytes_str(config->password);
    st = link_say(l, words, count, &answer, why);
    link_free(l, answer);
    return st;
}

enum status
link_open(struct link *l, const struct link_config *config, const struct link_address *to,
          struct reason *why)
{
    struct hiredis_library *library = config->library;
    const struct timeval limit = interval(config->connect_ms);
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
        library->set_timeout(l->context, interval(config->answer_ms)) != REDIS_OK)
        st = reason_give(&what, ST_UNAVAILABLE, "%s", l->context->errstr);
    else
        st = log_in(l, config, &what);
    if (st == ST_OK)
        return ST_OK;
    link_close(l);
    link_name(to, name);
    return reason_give(why, st, "%s: %.100s", name, what.text);
}

void
link_limit(struct link *l, int64_t answer_ms)
{
    (void)l->library->set_timeout(l->context,
                                  interval(answer_ms)); /* or it stays as it was */
}

void
link_close(struct link *l)
{
    if (l->context != NULL)
        l->library->free(l->context);
    l->context = NULL;
}

bool
link_is_fresh(const struct link *l)
{
    char byte;
    ssize_t n;

    if (l->context == NULL || l->context->err != 0)
        return false;
    n = recv(l->context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static bool
append(struct link *l, const char *data, size_t len)
{
    return l->library->append(l->context, data, len) == REDIS_OK;
}

static bool
append_head(struct link *l, char mark, size_t number)
{
    char head[32];
    int len = snprintf(head, sizeof(head), "%c%zu\r\n", mark, number);

    return append(l, head, (size_t)len);
}

static bool
append_word(struct link *l, struct bytes word)
{
    return append_head(l, '$', word.len) && append(l, word.data, word.len) &&
           append(l, "\r\n", 2);
}

enum status
link_add(struct link *l, const struct bytes *words, size_t count,
         const struct command *rest, struct bytes last)
{
    bool good = append_head(
        l, '*', count + (rest == NULL ? 0 : rest->count) + (bytes_present(last) ? 1 : 0));

    for (size_t i = 0; good && i < count; i++)
        good = append_word(l, words[i]);
    if (good && rest != NULL)
        good = !rest->words.failed && append(l, rest->words.data, rest->words.len);
    if (good && bytes_present(last))
        good = append_word(l, last);
    return good ? ST_OK : ST_NO_MEMORY;
}

void
link_fail(struct link *l, const char *what)
{
    l->context->err = REDIS_ERR_PROTOCOL;
    (void)snprintf(l->context->errstr, sizeof(l->context->errstr), "%s", what);
}

bool
link_is_drained(const struct link *l)
{
    return l->context->reader->pos == l->context->reader->len;
}

void
link_free(const struct link *l, redisReply *reply)
{
    if (reply != NULL)
        l->library->free_reply(reply);
}

bool
link_push(struct link *l, bool *all)
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
        if (!link_push(l, &all))
            return false;
    return true;
}

bool
link_fill(struct link *l, bool *more)
{
    enum { PIECE = 16 << 10 }; /* hiredis reads no more at a time */
    const size_t before = l->context->reader->len;

    if (l->library->read(l->context) != REDIS_OK)
        return false;
    *more = l->context->reader->len - before == PIECE;
    return true;
}

redisReply *
link_parsed(struct link *l)
{
    void *reply = NULL;

    return l->library->get_parsed(l->context, &reply) == REDIS_OK ? reply : NULL;
}
