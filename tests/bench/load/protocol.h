/* protocol: writes the steps of a scenario as requests of one protocol, and reads the
 * responses. */
#ifndef LOAD_PROTOCOL_H
#define LOAD_PROTOCOL_H

#include "claimd/base/buf.h"
#include "load/plan.h"

enum reading {
    READING_MORE,  /* incomplete: call again with more bytes */
    READING_DONE,  /* complete */
    READING_BROKEN /* not a response of this protocol */
};

struct reply {
    size_t length;     /* of the response, bytes */
    unsigned messages; /* posted, claimed, deleted or listed by the step */
    int refused;       /* 0; if the server refused the step, the HTTP status, or 1 */
    bool close;        /* the server will close the connection */
};

struct protocol {
    const char *name;

    /* Appends the requests of a step to out. Returns their number, 0 if the step needs
     * none. */
    unsigned (*build)(const struct plan *plan, struct actor *a, const struct step *step,
                      struct buf *out);

    /* As protocol_read(). *rest begins with the response; the function moves it behind
     * that. */
    enum reading (*read)(const struct plan *plan, struct actor *a,
                         const struct step *step, struct bytes *rest, bool ended,
                         struct reply *out);
};

extern const struct protocol protocol_zaqar;
extern const struct protocol protocol_beanstalk;
extern const struct protocol protocol_redis;

/* Finds a protocol by name. NULL if there is none. */
const struct protocol *protocol_find(const char *name);

/*
 * Reads the response to a step at the start of `in`, and applies it to the actor. `ended`
 * says that the server closed the connection. The actor changes only on READING_DONE.
 */
enum reading
protocol_read(const struct plan *plan, struct actor *a, const struct step *step,
              struct bytes in, bool ended, struct reply *out);

/* --------------------------------------------------------------- shared by protocols */

/* Appends the next body of the actor, with its number or, in DELIVERY, its due time. */
void protocol_add_body(const struct plan *plan, struct actor *a, struct buf *out);

/* Removes the messages of a delete or release from the actor, after the response. */
void actor_apply_step(struct actor *a, const struct step *step);

/*
 * Cuts the line before the first LF off *rest, without its CRLF. False, and *rest is
 * unchanged, if there is no complete line.
 */
static inline bool
line_cut(struct bytes *rest, struct bytes *line)
{
    const char *stop = rest->len == 0 ? NULL : memchr(rest->data, '\n', rest->len);
    size_t len;

    if (stop == NULL)
        return false;
    len = (size_t)(stop - rest->data);
    *line = bytes_of(rest->data, len > 0 && rest->data[len - 1] == '\r' ? len - 1 : len);
    *rest = bytes_of(stop + 1, rest->len - len - 1);
    return true;
}

/* Cuts a block of len bytes and its CRLF off *rest. False if it is incomplete. */
static inline bool
block_cut(struct bytes *rest, size_t len, struct bytes *block)
{
    if (rest->len < len || rest->len - len < 2)
        return false;
    *block = bytes_of(rest->data, len);
    *rest = bytes_of(rest->data + len + 2, rest->len - len - 2);
    return true;
}

static inline bool
line_starts(struct bytes line, const char *text)
{
    size_t len = strlen(text);

    return line.len >= len && memcmp(line.data, text, len) == 0;
}

/* ------------------------------------------------------------------ HTTP */

struct http_response {
    int status;
    bool close;            /* the server will close the connection */
    bool has_length;       /* the head has the length of the body */
    uint64_t body_length;  /* bytes */
    size_t length;         /* of head and body, bytes */
    struct bytes body;     /* borrowed from the input */
    struct bytes location; /* value of Location, borrowed from the input; may be absent */
};

/*
 * Reads one HTTP/1.x response at the start of `in`, in one pass over the head. `ended`
 * says that the server closed the connection, which completes a body without a length.
 * Chunked bodies count as broken: no measured server sends them. *out is defined on
 * READING_DONE.
 */
enum reading http_response_read(struct bytes in, bool ended, struct http_response *out);

#endif
