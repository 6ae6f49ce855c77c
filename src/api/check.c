#include "api/check.h"

#include "api/caller.h"

/*
 * Signatures are not built yet: none verifies, and a request that has one is not let
 * through as if it had none. An empty one is one.
 */
static enum status
check_signature(struct call *call)
{
    if (!bytes_present(call->req->headers[API_HEADER_URL_SIGNATURE]))
        return ST_OK;
    return call_refuse(call, ST_NO_PATH,
                       "this server does not know pre-signed URLs (URL-Signature)");
}

static enum status
check_content_type(const struct request *req)
{
    return caller_content_type(req->headers[API_HEADER_CONTENT_TYPE],
                               req->body.len > 0 || req->body_too_large);
}

/* A version that does not ask for a Client-ID checks one that is sent nevertheless. */
static enum status
check_client(struct call *call, const struct route *route)
{
    struct bytes text = call->req->headers[API_HEADER_CLIENT_ID];
    bool required = call->version->headers_required ||
                    (route != NULL && (route->flags & ROUTE_CLIENT) != 0);

    enum status st;

    if (!required && !bytes_present(text))
        return ST_OK;
    st = caller_client(text, call->limits, &call->client);
    if (st == ST_BAD_CLIENT_ID && !call->limits->client_id_strict)
        return call_refuse(call, st,
                           "the header Client-ID must have %lld to %lld characters "
                           "(min_length_client_id, max_length_client_id)",
                           (long long)call->limits->min_length_client_id,
                           (long long)call->limits->max_length_client_id);
    if (st == ST_BAD_CLIENT_ID)
        return call_refuse(call, st,
                           "the header Client-ID must be a UUID (client_id_uuid_safe)");
    return st;
}

/*
 * A token is read wherever one is sent. Without one the headers are believed, unless
 * there is a list of who may come in.
 */
static enum status
check_token(struct call *call, const struct route *route)
{
    struct bytes token = call->req->headers[API_HEADER_AUTH_TOKEN];
    struct auth_caller caller;
    enum status st;

    if (call->auth == NULL || call->version->open ||
        (route != NULL && (route->flags & ROUTE_OPEN) != 0))
        return ST_OK;
    if (token.len == 0 && !auth_is_required(call->auth))
        return ST_OK;
    st = auth_token_read(call->auth, call->req->now_ms, token, call->req->arena, &caller);
    if (st == ST_OK)
        call->token_project = caller.project;
    return st;
}

/* A project in the path takes the place of the header, as a proxy in front would do. */
static struct bytes
named_project(const struct call *call)
{
    return bytes_present(call->path_project) ? call->path_project
                                             : call->req->headers[API_HEADER_PROJECT_ID];
}

/* A token is good for its own project, also for a caller who does not name it. */
static enum status
check_token_project(struct call *call)
{
    struct bytes named = named_project(call);

    call->queue.project = call->token_project;
    if (named.len == 0 || bytes_equal(named, call->token_project))
        return ST_OK;
    return call_refuse(call, ST_FORBIDDEN, "the token is for another project");
}

static enum status
check_project(struct call *call)
{
    struct bytes project = named_project(call);

    if (bytes_present(call->token_project))
        return check_token_project(call);
    if (!bytes_present(project) && !call->version->headers_required) {
        call->queue.project = bytes_str(""); /* the nameless one */
        return ST_OK;
    }
    call->queue.project = project;
    return caller_project(project, bytes_present(call->queue.name));
}

enum status
check_request(struct call *call, const struct route *route)
{
    enum status st = check_signature(call);

    if (st == ST_OK)
        st = check_token(call, route);
    if (st == ST_OK)
        st = check_content_type(call->req);
    if (st == ST_OK)
        st = caller_accept(call->req->headers[API_HEADER_ACCEPT]);
    if (st != ST_OK || call->version->open)
        return st;
    st = check_client(call, route);
    if (st != ST_OK)
        return st;
    st = check_project(call);
    if (st != ST_OK || !bytes_present(call->queue.name))
        return st;
    return caller_queue_name(call->queue.name);
}
