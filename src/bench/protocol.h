/* protocol: how the steps of a scenario are said in one server's language. */
#ifndef BENCH_PROTOCOL_H
#define BENCH_PROTOCOL_H

#include "bench/plan.h"
#include "claimd/base/buf.h"

enum reading {
    READING_MORE,  /* not whole yet: call again with more bytes */
    READING_DONE,  /* whole */
    READING_BROKEN /* not an answer in this protocol */
};

struct reply {
    size_t length;     /* bytes of input the answer took */
    unsigned messages; /* how many messages the step has moved */
    int refused;       /* 0, or the status (HTTP) or 1 (others) of a refusal */
    bool close;        /* the server will close the connection */
};

struct protocol {
    const char *name;

    /*
     * Appends the request(s) of a step to out. Returns how many requests that makes; 0
     * if this protocol has nothing to say here.
     */
    unsigned (*ask)(const struct plan *plan, struct actor *a, const struct step *step,
                    struct buf *out);

    /* As protocol_read(); *rest begins with the answer, and goes on behind it. */
    enum reading (*read)(const struct plan *plan, struct actor *a,
                         const struct step *step, struct bytes *rest, bool ended,
                         struct reply *out);
};

extern const struct protocol protocol_zaqar;
extern const struct protocol protocol_beanstalk;
extern const struct protocol protocol_redis;

/* The protocol of this name, NULL if there is none. */
const struct protocol *protocol_find(const char *name);

/*
 * Reads the whole answer to a step at the start of `in` and moves the actor on; `ended`: the server
 * closed the connection. The actor changes only on READING_DONE.
 */
enum reading
protocol_read(const struct plan *plan, struct actor *a, const struct step *step,
              struct bytes in, bool ended, struct reply *out);

/* ------------------------------------------------------------------ what protocols share */

/* Appends the actor's next body: with its number, in DELIVERY with its due time. */
void protocol_add_body(const struct plan *plan, struct actor *a, struct buf *out);

/* Moves the actor on behind a step that was answered. */
void actor_move_on(struct actor *a, const struct step *step);

/*
 * Cuts the line before the first LF off *rest, without its CRLF. False if no whole line
 * is there; *rest is left alone then.
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

/* Cuts a block of len bytes and its CRLF off *rest; false if it is not there yet. */
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

struct http_answer {
    int status;
    bool close;            /* the server will close the connection */
    bool has_length;       /* the head has the length of the body */
    uint64_t body_length;  /* bytes */
    size_t length;         /* head and body, bytes */
    struct bytes body;     /* into the input; empty when there is none */
    struct bytes location; /* value of Location, into the input; absent when missing */
};

/*
 * Finds the end of one HTTP/1.x answer at the start of `in`, and the few things in it that a load
 * generator needs, in one pass over the head. Chunked bodies, which no measured server sends, are
 * reported as broken. `ended` says that the server closed the
 * connection: a body without a length is whole then. *out is defined on READING_DONE.
 */
enum reading http_answer_read(struct bytes in, bool ended, struct http_answer *out);

#endif
