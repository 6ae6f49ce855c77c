/*
 * signer: pre-signed URLs: who has no credentials may use part of a queue for a while
 * (docs/api.md 17).
 *
 * What is granted - paths, methods, a project, an end - is a text, and the HMAC-SHA-256 of it
 * under a key that only the server has is the proof of it. Of several keys the first one signs
 * and each verifies: a new key goes in front, and the old one is taken out when what it has
 * signed is over.
 *
 *     # keys, a line each: the first one signs
 *     7c0f...   64 hexadecimal digits, or any other text of 32 to 256 characters
 *
 *   Cost     of a proof: one HMAC for each key, and one sorting of the lists
 *   Threads  any, also while the keys are replaced. Its lock is held for a copy of the keys
 *   Secrets  whether a signature is right is found out in a time that does not tell how much of it
 *            is. Copies of keys are wiped
 */
#ifndef CLAIMD_AUTH_SIGNER_H
#define CLAIMD_AUTH_SIGNER_H

#include "claimd/base/arena.h"
#include "claimd/base/mem.h"
#include "claimd/json/reason.h"

/* SIGNATURE_DIGITS: lower-case hexadecimal. */
enum { SIGNER_KEYS_MAX = 8, SIGNER_KEY_LEAST = 32, SIGNER_KEY_MOST = 256 };
enum { SIGNATURE_DIGITS = 64 };

struct signer; /* opaque */

/* Makes one without keys, owned. ST_NO_MEMORY. */
enum status signer_new(struct mem *mem, struct signer **out);
void signer_free(struct signer *s);

/*
 * Takes other keys, a text of lines. ST_BAD_VALUE: *bad_line cannot be taken, and *why says why
 * (a text without any key is one; its line is 0). Then all is as before.
 */
enum status
signer_replace(struct signer *s, struct bytes list, size_t *bad_line, struct reason *why);

/* Gives each the keys of the other. */
void signer_swap(struct signer *s, struct signer *with);

/* What is granted. The lists are joined by commas, in any order; nothing is decoded. */
struct grant {
    struct bytes paths, methods, project, expires;
};

/*
 * Writes the signature and a NUL. ST_NOT_FOUND: there is no key; ST_NO_MEMORY. What the arena
 * is used for is given back.
 */
enum status signer_sign(struct signer *s, const struct grant *grant, struct arena *arena,
                        char out[SIGNATURE_DIGITS + 1]);

/*
 * ST_OK: the signature is one of this grant. ST_NO_PATH: it is not, as all are without keys;
 * ST_NO_MEMORY.
 */
enum status signer_verify(struct signer *s, const struct grant *grant,
                          struct bytes signature, struct arena *arena);

/*
 * A web hook as it is sent to somebody of a project (docs/api.md 20.6). Receivers know the secret of
 * their project only, the HMAC-SHA-256 of "claimd-webhook:PROJECT" under a key: who has the keys
 * could say anything to everybody.
 */
struct hook {
    struct bytes project, id, body;
    int64_t sent_s; /* since 1970 */
};

enum { WEBHOOK_SIGNATURES_CAP = SIGNER_KEYS_MAX * 48 };

/*
 * Writes what shows that it is from us, as Standard Webhooks has it: for each key "v1," and the
 * HMAC of "ID.SENT.BODY" in base64, separated by blanks; and a NUL. ST_NOT_FOUND: there is no
 * key; ST_NO_MEMORY.
 */
enum status signer_sign_webhook(struct signer *s, const struct hook *hook,
                                char out[WEBHOOK_SIGNATURES_CAP]);

#endif
