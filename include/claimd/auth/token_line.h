/*
 * token_line: lines of the files of tokens and certificates, and lists of them.
 *
 *     NAME      ROLE    PROJECTS          EXPIRES               SHA-256
 *     invoices  worker  billing,archive   2027-03-31T00:00:00Z  sha256:9f86d081884c...
 *     pages     admin   *                 never                 sha256:60303ae22b99...
 *
 * Blanks separate the fields. "#" begins a comment line. A token is TOKEN_PREFIX and 64
 * hexadecimal digits: 256 random bits from claimd. Because no one can guess them, a fast
 * hash is enough.
 *
 *   Cost     O(length of a line); of a lookup in a list O(1)
 *   Threads  any. Nothing is shared, and lists do not change
 *   Memory   of a list: its text, and 200 bytes for each line
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

/* True if the line is blank or a comment. */
bool token_line_blank(struct bytes line);

/* Reads a line that is not blank. ST_BAD_VALUE with a reason. */
enum status
token_line_read(struct bytes line, struct token_line *out, struct reason *why);

/* Writes a line with its line feed. */
void token_line_write(struct buf *out, const struct token_line *line);

/* True if the projects of a line contain the project. */
bool token_line_has(struct bytes projects, struct bytes project);

/* The only one of the projects of a line; absent: there are several, or all. */
struct bytes token_line_project(struct bytes projects);

/* The digest of a token, which the file contains. */
void token_digest_of(struct bytes token, struct token_digest *out);

/* The version of the loaded GnuTLS, a literal. */
const char *token_library_version(void);

/* The time of the comparison does not reveal how much of a digest is right. */
bool token_digest_equal(const struct token_digest *a, const struct token_digest *b);

/* Makes a token. The caller has called entropy_reserve() for TOKEN_SECRET_BYTES. */
void token_make(struct entropy *entropy, char out[TOKEN_TEXT_LEN + 1]);

/* Reads "2027-03-31T00:00:00Z". False: the text is no such time. */
bool token_time_read(struct bytes text, int64_t *out_ms);

/* ------------------------------------------------------------------ certificates */

/*
 * A line of the file of certificates (docs/api.md 15.3):
 *
 *     NAME     ROLE    PROJECTS         SUBJECT
 *     worker1  worker  billing,archive  dns:worker1.example
 *     pages    admin   *                subject:CN=Pages,O=Example
 *
 * The last field extends to the end of the line: an alternative name of the certificate
 * (dns:, email:, uri:), or its subject in the form of RFC 4514. ST_BAD_VALUE with a
 * reason.
 */
enum status
certificate_line_read(struct bytes line, struct token_line *out, struct reason *why);

/* A verified certificate of a client. */
struct certificate {
    bool good; /* of a trusted authority, not expired, for clients */
    /* With good: its names, a line each, in the form of the last field. dns: is in lower
     * case. */
    struct bytes names;
};

/* ------------------------------------------------------------------ lists */

/* The lines of a file. */
struct token_list; /* opaque */

typedef enum status
token_line_fn(struct bytes line, struct token_line *out, struct reason *why);

/*
 * Reads a file with token_line_read() or certificate_line_read(), owned. ST_BAD_VALUE:
 * *bad_line is invalid, with a reason. Names and tokens, or certificates, must be unique.
 * ST_NO_MEMORY.
 */
enum status
token_list_read(struct mem *mem, struct bytes text, token_line_fn *read,
                struct token_list **out, size_t *bad_line, struct reason *why);
void token_list_free(struct token_list *list);

/* The number of lines; NULL has none. */
size_t token_list_count(const struct token_list *list);

/* The line with this digest; NULL: there is none. The list may be NULL. */
const struct token_line *
token_list_find(const struct token_list *list, const struct token_digest *digest);

/* The first line of the list with any name of the certificate; NULL: there is none. */
const struct token_line *token_list_find_certificate(const struct token_list *list,
                                                     const struct certificate *shown);

#endif
