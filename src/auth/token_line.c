#include "claimd/auth/token_line.h"

#include "claimd/base/clock.h"
#include "claimd/base/hash.h"
#include "claimd/base/invariant.h"
#include "claimd/ds/hashmap.h"
#include "claimd/ds/list.h"
#include "claimd/json/line_list.h"

#include <ctype.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <time.h>

static const struct bytes DIGEST_PREFIX = BYTES_LIT("sha256:");
static const struct bytes NEVER = BYTES_LIT("never"), ALL_PROJECTS = BYTES_LIT("*");

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
    clock_text(*out_ms, again); /* differs for dates that do not exist */
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
    *hex_write_bytes(to, bytes_of((const char *)secret, sizeof(secret))) = '\0';
    explicit_bzero(secret, sizeof(secret));
}

static bool
read_digest(struct bytes text, struct token_digest *out)
{
    return bytes_begin_with(text, DIGEST_PREFIX) &&
           hex_read_bytes(
               bytes_of(text.data + DIGEST_PREFIX.len, text.len - DIGEST_PREFIX.len),
               out->bytes, TOKEN_DIGEST_BYTES);
}

/* ------------------------------------------------------------------ lines */

enum { PROJECT_MAX = 256 };

/* Cuts off the next field; absent: there is none. */
static struct bytes
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
token_name_is_valid(struct bytes name)
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
projects_are_valid(struct bytes projects)
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

/* Checks a name, a role and projects, and returns the role. ST_BAD_VALUE with a
 * reason. */
static enum status
token_line_check(struct bytes name, struct bytes role, struct bytes projects,
                 enum role *out, struct reason *why)
{
    if (!token_name_is_valid(name))
        return reason_give(
            why, ST_BAD_VALUE,
            "a name must be 1 to %d characters from A-Z a-z 0-9 _ - . (received \"%s\")",
            TOKEN_NAME_MAX, received(name).text);
    *out = role_find(role);
    if (*out == ROLE_COUNT)
        return role_refuse(role, why);
    if (!projects_are_valid(projects))
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
    struct token_line l = {.expires_ms = TOKEN_NEVER};
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
    if (!bytes_equal(expires, NEVER) && !token_time_read(expires, &l.expires_ms))
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
    char expires[CLOCK_TEXT_CAP] = "never", digits[2 * TOKEN_DIGEST_BYTES];

    if (line->expires_ms != TOKEN_NEVER)
        clock_text(line->expires_ms, expires);
    buf_printf(out, "%.*s %s %.*s %s ", (int)line->name.len, line->name.data,
               role_name(line->role), (int)line->projects.len, line->projects.data,
               expires);
    buf_bytes(out, DIGEST_PREFIX);
    (void)hex_write_bytes(digits,
                          bytes_of((const char *)line->digest.bytes, TOKEN_DIGEST_BYTES));
    buf_add(out, digits, sizeof(digits));
    buf_byte(out, '\n');
}

bool
token_line_has(struct bytes projects, struct bytes project)
{
    if (bytes_equal(projects, ALL_PROJECTS))
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

    return bytes_present(rest) || bytes_equal(first, ALL_PROJECTS) ? BYTES_NONE : first;
}

/* ------------------------------------------------------------- lines of certificates */

static const struct bytes DNS = BYTES_LIT("dns:");

static bool
subject_is_valid(struct bytes text)
{
    static const struct bytes kinds[] = {BYTES_LIT("dns:"), BYTES_LIT("email:"),
                                         BYTES_LIT("uri:"), BYTES_LIT("subject:")};
    bool known = false;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        known = known || (text.len > kinds[i].len && bytes_begin_with(text, kinds[i]));
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return false;
    return known;
}

enum status
certificate_line_read(struct bytes line, struct token_line *out, struct reason *why)
{
    struct token_line l = {.expires_ms = TOKEN_NEVER};
    struct bytes rest = line, role;
    enum status st;

    l.name = token_line_field(&rest);
    role = token_line_field(&rest);
    l.projects = token_line_field(&rest);
    l.subject = bytes_trim(rest);
    if (!bytes_present(l.projects) || l.subject.len == 0)
        return reason_give(
            why, ST_BAD_VALUE,
            "a line must be NAME ROLE PROJECTS dns:HOST (or email:, uri:, subject:)");
    st = token_line_check(l.name, role, l.projects, &l.role, why);
    if (st != ST_OK)
        return st;
    if (!subject_is_valid(l.subject))
        return reason_give(
            why, ST_BAD_VALUE,
            "a certificate is identified by dns:, email:, uri: or subject:, not by %.*s",
            (int)(l.subject.len & 0xff), l.subject.data);
    *out = l;
    return ST_OK;
}

/* ------------------------------------------------------------------ lists */

struct entry {
    struct hashnode by_key, by_name;
    struct token_line line;
};

struct token_list {
    struct mem *mem;
    token_line_fn *read;
    char *text;            /* owned: the lines point into it */
    struct entry *entries; /* owned */
    size_t count;
    struct hashmap keys;  /* by digest or subject */
    struct hashmap names; /* of tokens */
};

static struct bytes
key_of(const struct token_line *line)
{
    return bytes_present(line->subject)
               ? line->subject
               : bytes_of((const char *)line->digest.bytes, TOKEN_DIGEST_BYTES);
}

static bool
has_key(const struct hashnode *node, const void *key)
{
    return bytes_equal_secret(key_of(&container_of(node, struct entry, by_key)->line),
                              *(const struct bytes *)key);
}

static bool
has_name(const struct hashnode *node, const void *name)
{
    return bytes_equal(container_of(node, struct entry, by_name)->line.name,
                       *(const struct bytes *)name);
}

/* The key need not be secret, because only the operator chooses the content of a list. */
static uint64_t
hash_of(struct bytes text)
{
    static const struct hash_key key = {0x6e616d65206f6620, 0x6120746f6b656e2e};

    return hash_bytes(&key, text);
}

static const struct token_line *
list_find(const struct token_list *list, struct bytes key)
{
    struct hashnode *node = hashmap_find(&list->keys, hash_of(key), has_key, &key);

    return node == NULL ? NULL : &container_of(node, struct entry, by_key)->line;
}

static enum status
list_add_line(void *ctx, struct bytes line, struct reason *why)
{
    struct token_list *list = ctx;
    struct entry *entry = &list->entries[list->count];
    struct token_line *l = &entry->line;
    const struct token_line *other;
    enum status st = list->read(line, l, why);
    const bool is_token = !bytes_present(l->subject);

    if (st != ST_OK)
        return st;
    if (!is_token && bytes_begin_with(l->subject, DNS)) /* host names ignore case */
        for (size_t i = 0; i < l->subject.len; i++) {
            char *c = (char *)(uintptr_t)&l->subject.data[i]; /* in list->text */

            *c = (char)tolower((unsigned char)*c);
        }
    if (is_token &&
        hashmap_find(&list->names, hash_of(l->name), has_name, &l->name) != NULL)
        return reason_give(why, ST_BAD_VALUE, "the name %.*s is used twice",
                           (int)l->name.len, l->name.data);
    other = list_find(list, key_of(l));
    if (other != NULL && is_token)
        return reason_give(why, ST_BAD_VALUE, "the token of %.*s is also on another line",
                           (int)l->name.len, l->name.data);
    if (other != NULL)
        return reason_give(
            why, ST_BAD_VALUE, "the certificate of %.*s is also that of %.*s",
            (int)l->name.len, l->name.data, (int)other->name.len, other->name.data);
    hashmap_insert(&list->keys, &entry->by_key, hash_of(key_of(l)));
    if (is_token)
        hashmap_insert(&list->names, &entry->by_name, hash_of(l->name));
    list->count++;
    return ST_OK;
}

enum status
token_list_read(struct mem *mem, struct bytes text, token_line_fn *read,
                struct token_list **out, size_t *bad_line, struct reason *why)
{
    struct token_list *list = mem_calloc(mem, 1, sizeof(*list));
    const size_t most = line_list_count(text);
    enum status st = ST_NO_MEMORY;

    if (list == NULL)
        return st;
    list->mem = mem;
    list->read = read;
    hashmap_init(&list->keys, mem);
    hashmap_init(&list->names, mem);
    list->text = mem_alloc(mem, text.len + 1);
    list->entries = mem_calloc(mem, most, sizeof(*list->entries));
    if (list->text != NULL && list->entries != NULL &&
        hashmap_reserve(&list->keys, most) == ST_OK &&
        hashmap_reserve(&list->names, most) == ST_OK) {
        if (text.len > 0)
            memcpy(list->text, text.data, text.len);
        st = line_list_read(bytes_of(list->text, text.len), list_add_line, list, bad_line,
                            why);
    }
    if (st == ST_OK)
        *out = list;
    else
        token_list_free(list);
    return st;
}

void
token_list_free(struct token_list *list)
{
    if (list == NULL)
        return;
    hashmap_fini(&list->keys);
    hashmap_fini(&list->names);
    mem_free(list->mem, list->text);
    mem_free(list->mem, list->entries);
    mem_free(list->mem, list);
}

size_t
token_list_count(const struct token_list *list)
{
    return list == NULL ? 0 : list->count;
}

const struct token_line *
token_list_find(const struct token_list *list, const struct token_digest *digest)
{
    return list == NULL ? NULL
                        : list_find(list, bytes_of((const char *)digest->bytes,
                                                   TOKEN_DIGEST_BYTES));
}

const struct token_line *
token_list_find_certificate(const struct token_list *list,
                            const struct certificate *shown)
{
    const struct token_line *first = NULL;
    struct bytes rest = shown->names;

    while (bytes_present(rest)) {
        const struct token_line *found = list_find(list, bytes_cut(&rest, '\n'));

        if (first == NULL || (found != NULL && found < first))
            first = found;
    }
    return first;
}

const char *
token_library_version(void)
{
    return gnutls_check_version(NULL);
}
