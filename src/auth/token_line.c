#include "claimd/auth/token_line.h"

#include "auth/line.h"
#include "claimd/base/clock.h"
#include "claimd/base/invariant.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <time.h>

static const struct bytes digest_prefix = BYTES_LIT("sha256:");
static const struct bytes never = BYTES_LIT("never"), all = BYTES_LIT("*");

/* ------------------------------------------------------------------ texts */

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

bool
token_line_blank(struct bytes line)
{
    line = bytes_trim(line);
    return line.len == 0 || line.data[0] == '#';
}

enum status
token_line_read(struct bytes line, struct token_line *out, struct reason *why)
{
    struct token_line l;
    struct bytes rest = line, role, expires, digest;
    enum status st;

    l.name = line_field(&rest);
    role = line_field(&rest);
    l.projects = line_field(&rest);
    expires = line_field(&rest);
    digest = line_field(&rest);
    if (!bytes_present(digest) || bytes_present(line_field(&rest)))
        return reason_give(why, ST_BAD_VALUE,
                           "a line must be NAME ROLE PROJECTS EXPIRES sha256:DIGITS");
    st = line_check(l.name, role, l.projects, &l.role, why);
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
