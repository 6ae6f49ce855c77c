/*
 * signer: pre-signed URLs, which give a client without credentials temporary access to a
 * part of a queue (docs/api.md 17), and signatures of web hooks (docs/api.md 20.6).
 *
 * A grant consists of paths, methods, a project and an end. Its signature is the
 * HMAC-SHA-256 of their text with a key of the server. The first of several keys signs,
 * and all keys verify. To replace a key, add the new one before it, and remove the old
 * one when all its signatures have expired.
 *
 *     # a key on each line
 *     7c0f...   64 hexadecimal digits, or any other text of 32 to 256 characters
 *
 *   Cost     to verify: one HMAC for each key, and sorting the lists
 *   Threads  any. The lock is held for a copy of the keys
 *   Memory   the keys
 *   Secrets  the time to verify does not reveal how much of a signature is right. Copies
 *            of keys are wiped
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

/* Makes a signer without keys, owned. ST_NO_MEMORY. */
enum status signer_new(struct mem *mem, struct signer **out);
void signer_free(struct signer *s);

/* Replaces the keys by those of a text of lines. ST_BAD_VALUE: *bad_line is invalid (0:
 * there is no key), with a reason. The keys are unchanged then. */
enum status
signer_replace(struct signer *s, struct bytes list, size_t *bad_line, struct reason *why);

/* Exchanges the keys of both. */
void signer_swap(struct signer *s, struct signer *with);

/* Paths and methods are lists, joined by commas, in any order. Nothing is decoded. */
struct grant {
    struct bytes paths, methods, project, expires;
};

/* Writes the signature and a NUL. ST_NOT_FOUND: there is no key. ST_NO_MEMORY. The arena
 * is as before. */
enum status signer_sign(struct signer *s, const struct grant *grant, struct arena *arena,
                        char out[SIGNATURE_DIGITS + 1]);

/* Verifies the signature of a grant. ST_NO_PATH: it is wrong, or there is no key.
 * ST_NO_MEMORY. */
enum status signer_verify(struct signer *s, const struct grant *grant,
                          struct bytes signature, struct arena *arena);

/*
 * A web hook to a subscriber of a project. The secret of a project is the HMAC-SHA-256 of
 * "claimd-webhook:PROJECT" with a key. Receivers know only the secret of their project,
 * because the keys would let them sign web hooks to all receivers.
 */
struct webhook {
    struct bytes project, id, body;
    int64_t sent_s; /* since 1970 */
};

enum { WEBHOOK_SIGNATURES_CAP = SIGNER_KEYS_MAX * 48 };

/*
 * Writes the signatures of a web hook and a NUL, as in Standard Webhooks: for each key
 * "v1," and the HMAC of "ID.SENT.BODY" in base64, separated by blanks. ST_NOT_FOUND:
 * there is no key. ST_NO_MEMORY.
 */
enum status signer_sign_webhook(struct signer *s, const struct webhook *webhook,
                                char out[WEBHOOK_SIGNATURES_CAP]);

#endif
