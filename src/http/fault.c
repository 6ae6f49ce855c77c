#include "http/fault.h"

/* Bytes that libmicrohttpd has room for at a time, or as many as a piece has. */
enum { BLOCK = 16384 };

static bool
has_body(const struct exchange *ex)
{
    const int code = ex->response.code;

    return ex->request.method != METHOD_HEAD && code != MHD_HTTP_NO_CONTENT &&
           code != MHD_HTTP_NOT_MODIFIED && ex->response.body.len > 0;
}

bool
fault_cuts(const struct exchange *ex)
{
    switch (ex->response.fault.kind) {
    case FAULT_CUT_BEFORE:
    case FAULT_CUT_AFTER:
        return true;
    case FAULT_HALF:
        return !has_body(ex);
    default:
        return false;
    }
}

bool
fault_divides(const struct exchange *ex)
{
    const enum fault_kind kind = ex->response.fault.kind;

    return (kind == FAULT_HALF || kind == FAULT_SLOW) && has_body(ex);
}

/* ------------------------------------------------------------------ pieces */

void
fault_rest(struct worker *w, struct exchange *ex, int64_t ms)
{
    conn_enter(&w->conns, ex->conn, CONN_PARKED, w->now_ms);
    list_add_before(&w->parked.delayed, &ex->conn->turn);
    /* not a moment too early: now_ms is rounded down */
    wheel_arm(w->parked.deadlines, &ex->due, w->now_ms + ms + 1);
}

void
fault_resume(struct worker *w, struct exchange *ex)
{
    ex->piece = PIECE_DUE;
    conn_enter(&w->conns, ex->conn, CONN_ANSWERING, w->now_ms);
    if (ex->conn->held)
        worker_let_go(w, ex->conn);
}

/* Is another piece due? Behind each the connection rests. */
static bool
takes_piece(struct worker *w, struct exchange *ex)
{
    if (ex->piece == PIECE_DUE) {
        ex->piece = PIECE_GIVEN;
        return true;
    }
    if (ex->piece == PIECE_GIVEN) {
        ex->piece = PIECE_RESTS;
        fault_rest(w, ex, ex->response.fault.ms);
        list_add_before(&w->parked.fresh, &ex->conn->fresh);
    }
    return false;
}

static size_t
lesser(size_t a, uint64_t b)
{
    return a < b ? a : (size_t)b;
}

/* What libmicrohttpd asks for the body. */
static ssize_t
give(void *cls, uint64_t at, char *out, size_t room)
{
    struct exchange *ex = cls;
    struct worker *w = container_of(ex->conn->mailbox, struct worker, mailbox);
    const struct fault *fault = &ex->response.fault;
    const struct bytes body = buf_view(&ex->response.body);
    const uint64_t end = fault->kind == FAULT_HALF ? body.len / 2 : body.len;
    bool slow = fault->kind == FAULT_SLOW && !atomic_load(&w->shared->draining);
    size_t len;

    w->called = true;
    if (at >= end || ex->conn->phase == CONN_DOOMED)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (slow && !takes_piece(w, ex))
        return 0;
    len = lesser(room, end - at);
    if (slow)
        len = lesser(len, (uint64_t)fault->bytes);
    memcpy(out, body.data + at, len);
    return (ssize_t)len;
}

struct MHD_Response *
fault_body(struct exchange *ex)
{
    int64_t piece = ex->response.fault.bytes;

    return MHD_create_response_from_callback(
        ex->response.body.len, piece > BLOCK ? (size_t)piece : BLOCK, give, ex, NULL);
}
