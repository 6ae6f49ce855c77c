#include "api/caller.h"
#include "claimd/api/api.h"
#include "claimd/base/hash.h"

#include <ctype.h>

#define PATCH_MEDIA_TYPE "application/openstack-messaging-v2.0-json-patch"

enum status
caller_content_type(struct bytes content_type, bool has_body)
{
    static const struct bytes form = BYTES_LIT("application/x-www-form-urlencoded");

    /* As in Zaqar, a type with parameters is allowed. */
    return has_body && bytes_equal_nocase(content_type, form) ? ST_BAD_CONTENT_TYPE
                                                              : ST_OK;
}

/* How closely a media range names application/json: 0 not at all, 3 exactly. */
static int
range_fit(struct bytes range)
{
    static const struct bytes exact = BYTES_LIT("application/json");
    static const struct bytes any_of_type = BYTES_LIT("application/*");

    if (bytes_equal_nocase(range, exact))
        return 3;
    if (bytes_equal_nocase(range, any_of_type))
        return 2;
    /* Some old Java clients send a single star. */
    return bytes_equal_str(range, "*/*") || bytes_equal_str(range, "*");
}

/* True for a quality value of zero: "0", "0." or "0.000". */
static bool
quality_is_zero(struct bytes quality)
{
    if (quality.len == 0 || quality.data[0] != '0')
        return false;
    for (size_t i = 1; i < quality.len; i++)
        if (quality.data[i] != (i == 1 ? '.' : '0'))
            return false;
    return true;
}

/* True if the parameters behind a media range forbid it. */
static bool
parameters_forbid(struct bytes parameters)
{
    while (bytes_present(parameters)) {
        struct bytes value = bytes_trim(bytes_cut(&parameters, ';'));
        struct bytes name = bytes_cut(&value, '=');

        if (bytes_equal_nocase(bytes_trim(name), bytes_str("q")))
            return quality_is_zero(bytes_trim(value));
    }
    return false;
}

enum status
caller_accept(struct bytes accept)
{
    int best = 0;
    bool allowed = false;

    if (bytes_trim(accept).len == 0)
        return ST_OK;
    /* The most specific range decides. Of several, one that allows is enough. */
    while (bytes_present(accept)) {
        struct bytes parameters = bytes_cut(&accept, ',');
        struct bytes range = bytes_trim(bytes_cut(&parameters, ';'));
        int fit = range_fit(range);

        if (fit == 0 || fit < best)
            continue;
        if (fit > best)
            allowed = false;
        best = fit;
        allowed = allowed || !parameters_forbid(parameters);
    }
    return allowed ? ST_OK : ST_NOT_ACCEPTABLE;
}

bool
caller_names_type(struct bytes accept, struct bytes type)
{
    while (bytes_present(accept)) {
        struct bytes parameters = bytes_cut(&accept, ',');

        if (bytes_equal_nocase(bytes_trim(bytes_cut(&parameters, ';')), type))
            return !parameters_forbid(parameters);
    }
    return false;
}

/* Removes a prefix, in any case. */
static void
strip_prefix(struct bytes *text, struct bytes prefix)
{
    if (text->len < prefix.len ||
        !bytes_equal_nocase(bytes_of(text->data, prefix.len), prefix))
        return;
    text->data += prefix.len;
    text->len -= prefix.len;
}

/* Reads the usual form of a UUID, 8-4-4-4-12 digits. False for any other form. */
static bool
uuid_read_canonical(struct bytes text, uint64_t halves[2])
{
    const char *at = text.data;
    uint32_t words[4];
    char middle[16];

    if (text.len != 36 || at[8] != '-' || at[13] != '-' || at[18] != '-' || at[23] != '-')
        return false;
    memcpy(middle, at + 9, 4);
    memcpy(middle + 4, at + 14, 4);
    memcpy(middle + 8, at + 19, 4);
    memcpy(middle + 12, at + 24, 4);
    if (!hex_read_eight_nocase(at, &words[0]) ||
        !hex_read_eight_nocase(middle, &words[1]) ||
        !hex_read_eight_nocase(middle + 8, &words[2]) ||
        !hex_read_eight_nocase(at + 28, &words[3]))
        return false;
    halves[0] = (uint64_t)words[0] << 32 | words[1];
    halves[1] = (uint64_t)words[2] << 32 | words[3];
    return true;
}

/* Reads a UUID as Zaqar does: 32 hexadecimal digits, besides a prefix, braces and
 * hyphens. */
static bool
uuid_read(struct bytes text, uint64_t halves[2])
{
    static const struct bytes urn = BYTES_LIT("urn:"), uuid = BYTES_LIT("uuid:");
    unsigned digits = 0;

    if (uuid_read_canonical(text, halves))
        return true;
    strip_prefix(&text, urn);
    strip_prefix(&text, uuid);
    while (text.len > 0 && (text.data[0] == '{' || text.data[0] == '}'))
        text = bytes_of(text.data + 1, text.len - 1);
    while (text.len > 0 &&
           (text.data[text.len - 1] == '{' || text.data[text.len - 1] == '}'))
        text.len--;
    halves[0] = halves[1] = 0;
    for (size_t i = 0; i < text.len; i++) {
        int value = hex_value(text.data[i]);

        if (text.data[i] == '-')
            continue;
        if (value < 0 || digits == 32)
            return false;
        halves[digits / 16] = halves[digits / 16] << 4 | (unsigned)value;
        digits++;
    }
    return digits == 32;
}

enum status
caller_client(struct bytes client_id, const struct api_limits *limits, uint64_t *out)
{
    /* Not a secret: a collision only hides messages from a client's own listing. */
    static const struct hash_key key = {0x636c69656e742d69ULL, 0x642069732074657aULL};
    uint64_t halves[2];

    if (!bytes_present(client_id))
        return ST_MISSING_CLIENT_ID;
    if (limits->client_id_strict && !uuid_read(client_id, halves))
        return ST_BAD_CLIENT_ID;
    if (!limits->client_id_strict &&
        ((int64_t)client_id.len < limits->min_length_client_id ||
         (int64_t)client_id.len > limits->max_length_client_id))
        return ST_BAD_CLIENT_ID;
    *out = limits->client_id_strict ? hash_mix(halves[0] ^ hash_mix(halves[1]))
                                    : hash_bytes(&key, client_id);
    if (*out == 0) /* which stands for no client */
        *out = 1;
    return ST_OK;
}

enum status
caller_project(struct bytes project, bool names_queue)
{
    if (!bytes_present(project))
        return ST_MISSING_PROJECT;
    if (project.len == 0)
        return ST_EMPTY_PROJECT;
    if (project.len > CALLER_PROJECT_MAX)
        return names_queue ? ST_BAD_QUEUE_NAME : ST_BAD_PROJECT;
    return ST_OK;
}

static bool
is_name_character(char c)
{
    unsigned char u = (unsigned char)c;
    unsigned char letter = u | 0x20; /* its lower case, if it is one */

    return (letter >= 'a' && letter <= 'z') || (u >= '0' && u <= '9') || u == '_' ||
           u == '-' || u == '.';
}

enum status
caller_queue_name(struct bytes name)
{
    if (name.len < 1 || name.len > CALLER_QUEUE_NAME_MAX)
        return ST_BAD_QUEUE_NAME;
    for (size_t i = 0; i < name.len; i++)
        if (!is_name_character(name.data[i]))
            return ST_BAD_QUEUE_NAME;
    return ST_OK;
}

enum status
caller_patch_type(struct bytes content_type)
{
    struct bytes type = bytes_trim(bytes_cut(&content_type, ';'));

    return bytes_equal_nocase(type, bytes_str(PATCH_MEDIA_TYPE)) ? ST_OK
                                                                 : ST_BAD_MEDIA_TYPE;
}

/* ------------------------------------------------------------------ hosts */

/* Longest name of a host. */
enum { NAME_MOST = 253 };

/* The host without its port. */
static struct bytes
cut_port(struct bytes host)
{
    const char *bracket =
        host.len > 0 && host.data[0] == '[' ? memchr(host.data, ']', host.len) : NULL;
    size_t skip = bracket == NULL ? 0 : (size_t)(bracket - host.data) + 1;
    const char *colon = memchr(host.data + skip, ':', host.len - skip);

    if (bracket != NULL && colon != bracket + 1)
        return host;
    return colon == NULL ? host : bytes_of(host.data, (size_t)(colon - host.data));
}

/*
 * A name of the DNS neither consists of digits and dots nor has brackets. So a browser
 * reads such a host as an address. The host may have a port.
 */
static bool
is_ipv4(struct bytes host)
{
    size_t i = 0;

    while (i < host.len &&
           ((host.data[i] >= '0' && host.data[i] <= '9') || host.data[i] == '.'))
        i++;
    return i > 0 && (i == host.len || host.data[i] == ':');
}

static bool
is_ipv6(struct bytes name) /* without a port */
{
    if (name.len <= 2 || name.data[0] != '[' || name.data[name.len - 1] != ']')
        return false;
    for (size_t i = 1; i < name.len - 1; i++)
        if (name.data[i] != '.' && name.data[i] != ':' &&
            !isxdigit((unsigned char)name.data[i]))
            return false;
    return true;
}

bool
host_is_allowed(struct bytes host, struct bytes list)
{
    struct bytes name;

    if (!bytes_present(host) || host.len == 0 || is_ipv4(host))
        return true;
    name = cut_port(host);
    if (is_ipv6(name) || bytes_equal_nocase(name, bytes_str("localhost")))
        return true;
    while (bytes_present(list))
        if (bytes_equal_nocase(bytes_trim(bytes_cut(&list, ',')), name))
            return true;
    return false;
}

bool
host_list_is_valid(struct bytes list)
{
    while (bytes_present(list)) {
        struct bytes name = bytes_trim(bytes_cut(&list, ','));

        if (name.len == 0 || name.len > NAME_MOST)
            return false;
        for (size_t i = 0; i < name.len; i++)
            if (!is_name_character(name.data[i]))
                return false;
    }
    return true;
}
