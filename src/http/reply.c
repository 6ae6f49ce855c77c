#include "http/reply.h"

#include "http/fault.h"

#include <strings.h>

/* Borrows the text; libmicrohttpd's interface is older than const. */
static struct MHD_Response *
borrow(struct bytes body)
{
    return MHD_create_response_from_buffer(body.len, (void *)(uintptr_t)body.data,
                                           MHD_RESPMEM_PERSISTENT);
}

static bool
add_header(struct MHD_Response *mr, const char *name, const char *value)
{
    return MHD_add_response_header(mr, name, value) == MHD_YES;
}

static bool
bodiless(int code)
{
    return code == MHD_HTTP_NO_CONTENT || code == MHD_HTTP_NOT_MODIFIED;
}

static bool
add_headers(struct MHD_Response *mr, const struct response *res, const char *id,
            bool closing)
{
    for (size_t i = 0; i < res->header_count; i++) {
        const struct response_header *h = &res->headers[i];

        if (bodiless(res->code) && strcasecmp(h->name, "Content-Type") == 0)
            continue;
        if (!add_header(mr, h->name, h->value))
            return false;
    }
    if (closing && !add_header(mr, "Connection", "close"))
        return false;
    return add_header(mr, "X-Request-ID", id);
}

/* Queues mr and gives up our reference to it. */
static enum MHD_Result
queue(struct MHD_Connection *mhd, struct exchange *ex, struct MHD_Response *mr, int code,
      size_t len)
{
    enum MHD_Result ok = MHD_queue_response(mhd, (unsigned)code, mr);

    MHD_destroy_response(mr);
    if (ok == MHD_NO)
        return MHD_NO;
    ex->state = EXCHANGE_ANSWERED;
    ex->code = code;
    ex->sent = len;
    return MHD_YES;
}

enum MHD_Result
reply_queue(struct MHD_Connection *mhd, struct exchange *ex, bool closing)
{
    const struct response *res = &ex->response;
    struct bytes body = bodiless(res->code) ? bytes_str("") : buf_view(&res->body);
    struct MHD_Response *mr;

    mr = fault_befalls(ex) && fault_divides(ex) ? fault_body(ex) : borrow(body);
    if (mr == NULL)
        return MHD_NO;
    if (!add_headers(mr, res, ex->id, closing)) {
        MHD_destroy_response(mr);
        return MHD_NO;
    }
    return queue(mhd, ex, mr, res->code,
                 ex->request.method == METHOD_HEAD ? 0 : body.len);
}

/* The response of a refusal, without request id. */
static struct MHD_Response *
make_refusal(enum refusal which, bool closing)
{
    struct MHD_Response *mr = borrow(refusal_document(which));
    const char *wait = refusal_retry_after(which);

    if (mr == NULL)
        return NULL;
    if (!add_header(mr, "Content-Type", "application/json") ||
        (wait != NULL && !add_header(mr, "Retry-After", wait)) ||
        (closing && !add_header(mr, "Connection", "close"))) {
        MHD_destroy_response(mr);
        return NULL;
    }
    return mr;
}

enum MHD_Result
reply_refuse(struct MHD_Connection *mhd, struct exchange *ex, enum refusal which,
             bool closing)
{
    struct MHD_Response *mr = make_refusal(which, closing);

    if (mr == NULL)
        return MHD_NO;
    if (!add_header(mr, "X-Request-ID", ex->id)) {
        MHD_destroy_response(mr);
        return MHD_NO;
    }
    return queue(mhd, ex, mr, refusal_code(which), refusal_document(which).len);
}

struct MHD_Response *
reply_prepared(enum refusal which)
{
    return make_refusal(which, true);
}
