#include "claimd/auth/token_line.h"

#include "claimd/base/clock.h"
#include "claimd/base/invariant.h"
#include "claimd/json/line_list.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <time.h>

static const struct bytes digest_prefix = BYTES_LIT("sha256:");
static const struct bytes never = BYTES_LIT("never"), all = BYTES_LIT("*");

bool
token_time_read(struct bytes text, int64_t *out_ms)
{
    char plain[CLOCK_TEXT_CAP], again[CLOCK_TEXT_CAP];
    struct tm tm = {0};
    const char *end;

    if (text.len != CLOCK_TEXT_CAP - 1)
        return false;
    memcpy(plain, text.data, text.len);
    plain[text.len] = '\0';
    end = strptime(plain, "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (end == NULL || *end != '\0')
        return false;
    *out_ms = (int64_t)timegm(&tm) * 1000;
    clock_text(*out_ms, again); /* the 31st of February is none */
    return strcmp(plain, again) == 0;
}

/* ------------------------------------------------------------------ tokens */

void
token_digest_of(struct bytes token, struct token_digest *out)
{
    /* Fails for an unknown algorithm only. */
    int error = gnutls_hash_fast(GNUTLS_DIG_SHA256, token.data, token.len, out->bytes);

    ENSURE(error == 0);
}

bool
token_digest_equal(const struct token_digest *a, const struct token_digest *b)
{
    return bytes_equal_secret(bytes_of((const char *)a->bytes, sizeof(a->bytes)),
                              bytes_of((const char *)b->bytes, sizeof(b->bytes)));
}

void
token_make(struct entropy *entropy, char out[TOKEN_TEXT_LEN + 1])
{
    uint8_t secret[TOKEN_SECRET_BYTES];
    char *to = out + sizeof(TOKEN_PREFIX) - 1;

    entropy_take(entropy, secret, sizeof(secret));
    memcpy(out, TOKEN_PREFIX, sizeof(TOKEN_PREFIX) - 1);
    for (size_t i = 0; i < sizeof(secret); i++, to += 2)
        hex_write(to, secret[i], 2);
    *to = '\0';
    explicit_bzero(secret, sizeof(secret));
}

static bool
read_digest(struct bytes text, struct token_digest *out)
{
    const char *digits = text.data + digest_prefix.len;

    if (text.len != digest_prefix.len + 2 * TOKEN_DIGEST_BYTES ||
        memcmp(text.data, digest_prefix.data, digest_prefix.len) != 0)
        return false;
    for (size_t i = 0; i < TOKEN_DIGEST_BYTES; i++) {
        uint64_t value;

        if (!hex_read(bytes_of(digits + 2 * i, 2), &value))
            return false;
        out->bytes[i] = (uint8_t)value;
    }
    return true;
}

/* ------------------------------------------------------------------ lines */

enum { PROJECT_MAX = 256 };

struct bytes
token_line_field(struct bytes *rest)
{
    size_t len = 0;
    struct bytes field;

    *rest = bytes_trim(*rest);
    if (rest->len == 0)
        return BYTES_NONE;
    while (len < rest->len && rest->data[len] != ' ' && rest->data[len] != '\t')
        len++;
    field = bytes_of(rest->data, len);
    rest->data += len;
    rest->len -= len;
    return field;
}

static bool
is_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.data[i], letter = c | 0x20;

        if ((letter < 'a' || letter > 'z') && (c < '0' || c > '9') && c != '_' &&
            c != '-' && c != '.')
            return false;
    }
    return name.len > 0 && name.len <= TOKEN_NAME_MAX;
}

static bool
are_projects(struct bytes projects)
{
    while (bytes_present(projects)) {
        struct bytes one = bytes_cut(&projects, ',');

        if (one.len == 0 || one.len > PROJECT_MAX)
            return false;
        for (size_t i = 0; i < one.len; i++)
            if ((unsigned char)one.data[i] < 0x20 || one.data[i] == 0x7f)
                return false;
    }
    return true;
}

enum status
token_line_check(struct bytes name, struct bytes role, struct bytes projects,
                 enum role *out, struct reason *why)
{
    if (!is_name(name))
        return reason_give(
            why, ST_BAD_VALUE,
            "a name must be 1 to %d characters from A-Z a-z 0-9 _ - . (received \"%s\")",
            TOKEN_NAME_MAX, received(name).text);
    *out = role_find(role);
    if (*out == ROLE_COUNT)
        return role_refuse(role, why);
    if (!are_projects(projects))
        return reason_give(why, ST_BAD_VALUE,
                           "projects must be 1 to %d characters each, separated by "
                           "commas (received \"%s\")",
                           PROJECT_MAX, received(projects).text);
    return ST_OK;
}

bool
token_line_blank(struct bytes line)
{
    return line_is_comment(bytes_trim(line));
}

enum status
token_line_read(struct bytes line, struct token_line *out, struct reason *why)
{
    struct token_line l;
    struct bytes rest = line, role, expires, digest;
    enum status st;

    l.name = token_line_field(&rest);
    role = token_line_field(&rest);
    l.projects = token_line_field(&rest);
    expires = token_line_field(&rest);
    digest = token_line_field(&rest);
    if (!bytes_present(digest) || bytes_present(token_line_field(&rest)))
        return reason_give(why, ST_BAD_VALUE,
                           "a line must be NAME ROLE PROJECTS EXPIRES sha256:DIGITS");
    st = token_line_check(l.name, role, l.projects, &l.role, why);
    if (st != ST_OK)
        return st;
    l.expires_ms = TOKEN_NEVER;
    if (!bytes_equal(expires, never) && !token_time_read(expires, &l.expires_ms))
        return reason_give(
            why, ST_BAD_VALUE,
            "EXPIRES is %.*s, but must be never or a time such as 2027-03-31T00:00:00Z",
            (int)expires.len, expires.data);
    if (!read_digest(digest, &l.digest))
        return reason_give(
            why, ST_BAD_VALUE,
            "the digest of a token must be sha256: and %d lowercase hexadecimal digits",
            2 * TOKEN_DIGEST_BYTES);
    *out = l;
    return ST_OK;
}

void
token_line_write(struct buf *out, const struct token_line *line)
{
    char expires[CLOCK_TEXT_CAP] = "never", digits[2];

    if (line->expires_ms != TOKEN_NEVER)
        clock_text(line->expires_ms, expires);
    buf_printf(out, "%.*s %s %.*s %s ", (int)line->name.len, line->name.data,
               role_name(line->role), (int)line->projects.len, line->projects.data,
               expires);
    buf_bytes(out, digest_prefix);
    for (size_t i = 0; i < TOKEN_DIGEST_BYTES; i++) {
        hex_write(digits, line->digest.bytes[i], 2);
        buf_add(out, digits, sizeof(digits));
    }
    buf_byte(out, '\n');
}

bool
token_line_has(struct bytes projects, struct bytes project)
{
    if (bytes_equal(projects, all))
        return true;
    while (bytes_present(projects))
        if (bytes_equal(bytes_cut(&projects, ','), project))
            return true;
    return false;
}

struct bytes
token_line_project(struct bytes projects)
{
    struct bytes rest = projects, first = bytes_cut(&rest, ',');

    return bytes_present(rest) || bytes_equal(first, all) ? BYTES_NONE : first;
}

const char *
token_library_version(void)
{
    return gnutls_check_version(NULL);
}
