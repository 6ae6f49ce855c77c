#include "redis/url.h"

#include <ctype.h>
#include <stdio.h>

enum {
    PORT = 6379,
    CONFIRM_MS = 1000,
    PATIENCE_MS = 2000,
    MS_MOST = 600000,
    REPLICAS_MOST = 16
};

static enum status
refuse(struct reason *why, const char *what)
{
    return reason_give(why, ST_BAD_VALUE, "%s", what);
}

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

/* What stands in front of the last @. */
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
        return refuse(why,
                      "the part in front of the @ must be user:password or :password");
    return unescape(bytes_of(login.data, (size_t)(colon - login.data)), out->user) &&
                   unescape(
                       bytes_of(colon + 1, login.len - 1 - (size_t)(colon - login.data)),
                       out->password)
               ? ST_OK
               : refuse(why, "user and password may have at most 255 characters each. "
                             "Write reserved characters of a URL as %XX");
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

        if (out->host_count == CLUSTER_SEEDS)
            return refuse(
                why,
                "the URL may name at most 16 hosts. claimd asks these for the others");
        if (!read_host(one, &out->hosts[out->host_count++]))
            return refuse(why, "a host must be HOST or HOST:PORT");
    } while (bytes_present(rest));
    return ST_OK;
}

static enum status
read_path(struct bytes path, struct url *out, struct reason *why)
{
    if (path.len == 0 || path.data[0] != '/' || path.len >= LINK_HOST_CAP)
        return refuse(why,
                      "redis+unix:// must be followed by the absolute path of a socket");
    memcpy(out->hosts[0].host, path.data, path.len);
    out->hosts[0].host[path.len] = '\0';
    out->host_count = 1;
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
        return refuse(why, "the URL has an unknown parameter. Allowed are replicas, "
                           "confirm_ms, patience_ms, restarts and unsafe");
    return good ? ST_OK
                : refuse(why, "the URL has an invalid parameter. Allowed are replicas=0 "
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
        return refuse(why,
                      "rediss:// needs TLS, which Debian's hiredis does not support. Use "
                      "a tunnel (stunnel) and redis:// or redis+unix://");
    if (!is_local && strncmp(text, tcp, sizeof(tcp) - 1) != 0)
        return refuse(why, "must be memory, or start with redis:// or redis+unix://");
    rest = bytes_cut(&parameters, '?');
    rest.data += (is_local ? sizeof(local) : sizeof(tcp)) - 1;
    rest.len -= (is_local ? sizeof(local) : sizeof(tcp)) - 1;
    st = read_login(&rest, out, why);
    if (st == ST_OK)
        st = is_local ? read_path(rest, out, why) : read_hosts(rest, out, why);
    while (st == ST_OK && bytes_present(parameters))
        st = read_parameter(bytes_cut(&parameters, '&'), out, why);
    return st;
}
