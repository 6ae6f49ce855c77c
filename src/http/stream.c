#include "http/stream.h"
#include "http/injected_fault.h"

enum { STREAM_INTERVAL_MS = 1000 };

/* Copies the part of a text that the bytes from *at to *at + cap of the event contain. */
static size_t
copy_part(struct bytes text, uint64_t *at, char *out, size_t cap)
{
    size_t len;

    if (*at >= text.len) {
        *at -= text.len;
        return 0;
    }
    len = text.len - (size_t)*at < cap ? text.len - (size_t)*at : cap;
    memcpy(out, text.data + *at, len);
    *at = 0;
    return len;
}

static void
arm_event(struct worker *w, struct exchange *ex)
{
    list_add_before(&w->suspended.delayed, &ex->conn->turn);
    wheel_arm(w->suspended.deadlines, &ex->due,
              w->loop.round.now_ms + STREAM_INTERVAL_MS);
}

/* Suspends a stream whose event was sent until the next one is due. */
static void
await_event(struct worker *w, struct exchange *ex)
{
    state_set(w, ex, EXCHANGE_STREAM);
    worker_set_phase(w, ex->conn, CONN_SUSPENDED);
    ex->stream.sent_ms = w->loop.round.now_ms;
    arm_event(w, ex);
    mhd_suspend(ex->conn);
}

ssize_t
stream_read_event(struct exchange *ex, uint64_t at, char *out, size_t cap)
{
    struct bytes parts[] = {bytes_str("data: "), buf_view(&ex->response.body),
                            bytes_str("\n\n")};
    struct worker *w = worker_of(ex->conn);
    size_t len = 0;

    if (ex->conn->phase == CONN_CLOSING)
        return PIECES_BREAK;
    if (ex->stream.over)
        return PIECES_END;
    /* Without chunks, libmicrohttpd asks again before it is suspended. */
    if (ex->state == EXCHANGE_STREAM)
        return 0;
    if (ex->state == EXCHANGE_READY) { /* the next event exists */
        if (fault_cuts(ex))
            return PIECES_BREAK;
        state_set(w, ex, EXCHANGE_RESPONDED);
        ex->stream.begin = at;
        ex->stream.last = !ex->response.stream;
    }
    if (ex->stream.last)
        parts[0] = bytes_str("event: end\ndata: ");
    at -= ex->stream.begin;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        len += copy_part(parts[i], &at, out + len, cap - len);
    ex->sent += len;
    if (len > 0)
        return (ssize_t)len;
    if (ex->stream.last)
        return PIECES_END;
    await_event(w, ex);
    return 0;
}

enum stream_step
stream_continue(struct worker *w, struct exchange *ex)
{
    const int64_t limit_ms = w->conns.table.limit_ms[CONN_RESPONDING];

    state_unlist(w, ex);
    if (ex->conn->hung_up || worker_is_draining(w)) {
        ex->stream.over = true;
        state_make_ready(w, ex);
        return STREAM_SUSPENDED;
    }
    if (conn_unsent(ex->conn) > 0) {
        if (w->loop.round.now_ms - ex->stream.sent_ms >= limit_ms)
            return STREAM_NOT_TAKEN;
        arm_event(w, ex);
        return STREAM_SUSPENDED;
    }
    arena_rewind(&ex->arena, ex->stream.mark);
    ex->request.progress = (struct progress){.admitted = true};
    ex->waiting.end = WAITING_ON; /* the event before may have waited for a snapshot */
    ex->until_ms = 0;
    return STREAM_NEXT;
}
