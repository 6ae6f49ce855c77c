/*
 * token_line: a line of the file of tokens, and what a token is.
 *
 *     NAME      ROLE    PROJECTS          EXPIRES               SHA-256
 *     invoices  worker  billing,archive   2027-03-31T00:00:00Z  sha256:9f86d081884c7d65...
 *     pages     admin   *                 never                 sha256:60303ae22b998861...
 *
 * separated by blanks; "#" begins a comment line. A token is TOKEN_PREFIX and 64 hexadecimal
 * digits: 256 random bits that claimd has made, so that a fast hash is enough to keep.
 *
 *   Threads  any: nothing is shared
 */
#ifndef CLAIMD_AUTH_TOKEN_LINE_H
#define CLAIMD_AUTH_TOKEN_LINE_H

#include "claimd/auth/policy.h"
#include "claimd/base/buf.h"
#include "claimd/base/entropy.h"

#define TOKEN_PREFIX "claimd_"

enum {
    TOKEN_SECRET_BYTES = 32,
    TOKEN_TEXT_LEN = sizeof(TOKEN_PREFIX) - 1 + 2 * TOKEN_SECRET_BYTES,
    TOKEN_DIGEST_BYTES = 32
};

#define TOKEN_NEVER INT64_MAX

struct token_digest {
    uint8_t bytes[TOKEN_DIGEST_BYTES];
};

/* The texts are borrowed from the line. */
struct token_line {
    struct bytes name; /* 1 to TOKEN_NAME_MAX of A-Z a-z 0-9 _ - . */
    enum role role;
    struct bytes projects; /* joined by commas, as written; "*": all */
    int64_t expires_ms;    /* since 1970; TOKEN_NEVER */
    struct token_digest digest;
    struct bytes subject; /* of a certificate; absent: the line is of a token */
};

/* True if there is nothing in the line but blanks or a comment. */
bool token_line_blank(struct bytes line);

/* Cuts the next field off, at a blank; absent: there is none. */
struct bytes token_line_field(struct bytes *rest);

/* Checks a name and projects, and finds the role. ST_BAD_VALUE with a reason. */
enum status token_line_check(struct bytes name, struct bytes role, struct bytes projects,
                             enum role *out, struct reason *why);

/* Reads a line that is not blank. ST_BAD_VALUE: *why says what is wrong with it. */
enum status
token_line_read(struct bytes line, struct token_line *out, struct reason *why);

/* Writes it with its end. */
void token_line_write(struct buf *out, const struct token_line *line);

/* True if the project is one of the line's. */
bool token_line_has(struct bytes projects, struct bytes project);

/* Of the projects, the only one; absent: it has several, or all. */
struct bytes token_line_project(struct bytes projects);

/* What the file keeps of a token. */
void token_digest_of(struct bytes token, struct token_digest *out);

/* The version of GnuTLS that is in use, a literal. */
const char *token_library_version(void);

/* As a secret: how long it takes does not tell how much of it is right. */
bool token_digest_equal(const struct token_digest *a, const struct token_digest *b);

/* Makes a token; entropy_reserve() for TOKEN_SECRET_BYTES was called before. */
void token_make(struct entropy *entropy, char out[TOKEN_TEXT_LEN + 1]);

/* Reads "2027-03-31T00:00:00Z"; false: it is no such time. */
bool token_time_read(struct bytes text, int64_t *out_ms);

/* ------------------------------------------------------------------ certificates */

/*
 * A line of the file of certificates (docs/api.md 15.3):
 *
 *     NAME     ROLE    PROJECTS         SUBJECT
 *     worker1  worker  billing,archive  dns:worker1.example
 *     pages    admin   *                subject:CN=Pages,O=Example
 *
 * The last field goes to the end of the line: an alternative name of the certificate (dns:, email:,
 * uri:) or its whole subject as RFC 4514 has it. ST_BAD_VALUE as above.
 */
enum status
certificate_line_read(struct bytes line, struct token_line *out, struct reason *why);

/* A certificate that a client has sent, after it was verified. */
struct certificate {
    bool good; /* of an authority we know, not expired, made for clients */
    struct bytes
        names; /* good: lines in the form of the last field, dns: in small letters */
};

/* ------------------------------------------------------------------ lists */

/* The lines of a file, which do not change. A look-up costs a hash and a comparison. */
struct token_list; /* opaque */

typedef enum status
token_line_fn(struct bytes line, struct token_line *out, struct reason *why);

/*
 * Reads a file by token_line_read() or certificate_line_read(), owned. ST_BAD_VALUE: *bad_line
 * cannot be taken, and *why says why (a name or token, or a certificate, that is there twice, too);
 * ST_NO_MEMORY.
 */
enum status
token_list_read(struct mem *mem, struct bytes text, token_line_fn *read,
                struct token_list **out, size_t *bad_line, struct reason *why);
void token_list_free(struct token_list *list);

/* The number of lines; NULL has none. */
size_t token_list_count(const struct token_list *list);

/* The line with this digest; NULL: there is none, as in a list that is NULL. */
const struct token_line *
token_list_find(const struct token_list *list, const struct token_digest *digest);

/* The first line of the list for any of the names; NULL: there is none. */
const struct token_line *token_list_find_certificate(const struct token_list *list,
                                                     const struct certificate *shown);

#endif
