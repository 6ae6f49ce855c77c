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

#endif
