/*
 * message: writes message documents straight into a buffer, with the stored bytes of the
 * bodies.
 *
 *   Cost     O(bytes written)
 *   Errors   without memory the buffer is `failed`
 *   Threads  any: no state
 */
#ifndef API_WIRE_MESSAGE_H
#define API_WIRE_MESSAGE_H

#include "claimd/base/buf.h"
#include "claimd/base/clock.h"
#include "claimd/base/status.h"
#include "claimd/store/store.h"

enum message_shape {
    MESSAGE_FULL, /* id, href, ttl, age, body; v2 and v1.1 */
    MESSAGE_V1,   /* href, ttl, age, body; never a checksum */
    MESSAGE_POP   /* id, age, ttl, body, claim_id (null), claim_count */
};

/* The form of the messages of a response. */
struct message_form {
    enum message_shape shape;
    struct bytes href; /* of the collection, such as /v2/queues/q/messages; not for pop */
    bool hide_claim;   /* v1 outside claims: the href has no ?claim_id= */
    bool checksum;     /* option enable_checksum */
    bool details;      /* Prefer: details (docs/api.md 25.2) */
    const struct clock *time_base; /* for details; as in struct api_config */
};

/* Writes a message document (docs/api.md 8.1). */
void message_write(struct buf *out, const struct message_form *form,
                   const struct store_message *message);

/* Write a time of the store in UTC, and the members of details (NULL: none), into an open
 * object. */
void
time_write(struct buf *out, const char *name, int64_t ms, const struct clock *time_base);
void details_write(struct buf *out, const struct store_details *details,
                   const struct clock *time_base);

/* The name of a known cause, and back. False: there is no such cause. */
struct bytes cause_name(enum store_cause cause);
bool cause_read(struct bytes name, enum store_cause *out);

/*
 * A worker, as the store keeps it (STORE_CLIENT_MAX): its Client-ID, its address and its
 * name (Claimd-Worker), with marks between them. Each may be empty, and older versions
 * kept the first only. No header can have the mark.
 */
#define HOLDER_MARK '\n'
enum { HOLDER_CLIENT_MAX = 36, HOLDER_ADDRESS_MAX = 45, HOLDER_WORKER_MAX = 40 };

struct holder {
    struct bytes client, address, worker; /* absent or empty: not known */
};

struct holder holder_of(struct bytes text);

/* True if one of its parts is this text. */
bool holder_has(struct bytes text, struct bytes part);

/* Writes the members client, address and worker with this prefix: unknown ones as null if
 * the prefix is empty, else not. */
void holder_write(struct buf *out, const char *prefix, struct bytes text);

/*
 * The last pause of a queue, as the store keeps it (STORE_PAUSED_BY_MAX): its time in ms
 * since 1970, a mark and the client. False: it is no such text, or absent, and *out is
 * empty.
 */
struct paused_by {
    int64_t at_ms;
    struct bytes holder;
};
bool paused_by_read(struct bytes text, struct paused_by *out);

/* "claimed", "delayed" or "ready". */
const char *message_state(const struct store_message *message);

/* The space that message_write_all() needs at most for `count` messages, besides their
 * bodies. */
size_t message_space(const struct message_form *form, size_t count);

/* Writes an array of message documents. */
void message_write_all(struct buf *out, const struct message_form *form,
                       const struct store_message *messages, size_t count);

/* ------------------------------------------------------------------ checksums */

/*
 * The MD5 of a body in one fixed form (docs/api.md 8.9).
 *
 * The form is that of Python's json.dumps(), with which clients compare: fixed
 * separators, ASCII only, and the shortest decimal for numbers that are no integers. Of
 * members of one name it has the last value, at the place of the first. In one character
 * the contract differs from Python: DEL is not escaped.
 *
 *   Cost     O(length) for a body without members of the same name
 *   Memory   a buffer of the form's length during the call
 */

/* "MD5:" and 32 hexadecimal digits. */
#define CHECKSUM_LEN 36

/* Makes the checksum of a JSON text. ST_NO_MEMORY; ST_BAD_BODY: it is not JSON. */
enum status checksum_of(struct bytes body, struct mem *mem, struct store_checksum *out);

/* Writes a checksum as text, without a NUL. */
void checksum_write(const struct store_checksum *checksum, char out[CHECKSUM_LEN]);

/* Appends the form to out, for tests. Statuses as above. */
enum status checksum_form(struct bytes body, struct buf *out);

#endif
