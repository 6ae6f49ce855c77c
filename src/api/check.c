#include "api/check.h"

#include "api/ident.h"

static enum status
check_content_type(const struct request *req)
{
    return ident_content_type(req->headers[API_HEADER_CONTENT_TYPE],
                              req->body.len > 0 || req->body_too_large);
}

/* A version that does not ask for a Client-ID checks one that is sent nevertheless. */
static enum status
check_client(struct call *call, const struct route *route)
{
    struct bytes text = call->req->headers[API_HEADER_CLIENT_ID];
    bool required = call->version->headers_required ||
                    (route != NULL && (route->flags & ROUTE_CLIENT) != 0);

    if (!required && !bytes_present(text))
        return ST_OK;
    return ident_client(text, call->limits, &call->client);
}

/* A project in the path takes the place of the header, as a proxy in front would do. */
static enum status
check_project(struct call *call)
{
    struct bytes project = bytes_present(call->path_project)
                               ? call->path_project
                               : call->req->headers[API_HEADER_PROJECT_ID];

    if (!bytes_present(project) && !call->version->headers_required) {
        call->queue.project = bytes_str(""); /* the nameless one */
        return ST_OK;
    }
    call->queue.project = project;
    return ident_project(project, bytes_present(call->queue.name));
}

enum status
check_request(struct call *call, const struct route *route)
{
    enum status st = check_content_type(call->req);

    if (st != ST_OK)
        return st;
    st = ident_accept(call->req->headers[API_HEADER_ACCEPT]);
    if (st != ST_OK || call->version == &version_root)
        return st;
    st = check_client(call, route);
    if (st != ST_OK)
        return st;
    st = check_project(call);
    if (st != ST_OK || !bytes_present(call->queue.name))
        return st;
    return ident_queue_name(call->queue.name);
}
