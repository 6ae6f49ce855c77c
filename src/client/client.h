/*
 * client: the connection of a command to claimd, and its requests.
 *
 *   Threads  one
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "claimd/base/buf.h"
#include "claimd/base/command.h"
#include "claimd/base/nearest.h"
#include "claimd/web/web_client.h"

#include <curl/curl.h>
#include <jansson.h>

enum { CLIENT_URL_MOST = 2048, CLIENT_ERROR_CAP = 1024 };

/* The response to a request. The next request of the client replaces it. */
struct client_response {
    long status; /* 0: no response */
    struct buf body;
    json_t *document;             /* owned; NULL: the response has none */
    char location[512];           /* "": none */
    char claim_number[32];        /* "": none */
    bool waited;                  /* the server waited, or would have waited */
    bool paused;                  /* the queue is paused */
    bool existing;                /* of a unique message: it existed */
    char error[CLIENT_ERROR_CAP]; /* why it is no success */
};

/* The settings are borrowed. */
struct client {
    struct mem *mem;
    struct web_client web;
    const char *project; /* NULL: none was named */
    char client_id[64];
    char *token;     /* owned; NULL: none */
    long timeout_ms; /* for each request, besides its long polling */
    bool json;       /* the output is for programs */
    bool quiet;      /* print no warnings of the server: a screen has the terminal */
    struct buf path; /* of the last request, with a NUL */
    struct buf body; /* client_body() */
    struct client_response response;
};

/* The options of all commands (command.c): indexes of command_args.common. */
enum {
    CLIENT_URL,
    CLIENT_PROJECT,
    CLIENT_TOKEN_FILE,
    CLIENT_CA,
    CLIENT_CERTIFICATE,
    CLIENT_CERTIFICATE_KEY,
    CLIENT_TIMEOUT,
    CLIENT_JSON
};

/*
 * Reads the options of all commands, the environment (CLAIMD_URL, CLAIMD_PROJECT,
 * CLAIMD_TOKEN_FILE, CLAIMD_CLIENT_ID) and the token. Returns an exit status, after an
 * error message if it is not 0. Call client_close() in any case.
 */
int client_open(struct client *c, const struct command_args *args);
void client_close(struct client *c);

/* Frees the response. */
void client_drop_response(struct client *c);

/*
 * ------------------------------------------------------------------ parts of a request
 */

/* Appends a header. False without memory. */
bool __attribute__((format(printf, 2, 3)))
client_add_header(struct curl_slist **list, const char *format, ...);

/*
 * Appends the headers that every request needs: Client-ID, X-Project-ID (project; NULL:
 * none), the token. False without memory.
 */
bool
client_add_headers(const struct client *c, const char *project, struct curl_slist **list);

/*
 * Copies the value of a header of the response that a handle has received to out[cap].
 * False, and out is "": there is none, or it does not fit.
 */
bool client_header(CURL *handle, const char *name, char *out, size_t cap);

/* ------------------------------------------------------------------ whole requests */

struct client_request {
    const char *method;   /* NULL: GET, or POST with a body */
    const char *path;     /* "/v2/queues/%s/claims/%s" */
    const char *parts[2]; /* in place of each %s, percent-encoded; NULL: no more */
    struct {
        const char *name, *value; /* the value is encoded, too; NULL: not sent */
    } query[4];
    struct bytes body;   /* JSON; absent: none */
    const char *type;    /* of the body; NULL: application/json */
    const char *key;     /* Idempotency-Key; NULL: none */
    const char *unique;  /* Claimd-Unique; NULL: none */
    int64_t wait_s;      /* long polling; 0: none */
    const char *member;  /* that the document of a success has; NULL: there is no document
                           (204, or 201 for a PUT) */
    bool may_be_empty;   /* 204 is a success in spite of `member` */
    bool details;        /* Prefer: details */
    bool text;           /* the response is a text, not JSON */
    const char *project; /* instead of that of the client; NULL: that of the client */
};

/*
 * Empties the buffer for the body of the next request, and returns it. If it fails, so
 * does the request.
 */
struct buf *client_body(struct client *c);

/*
 * Sends a request, reads the response into c->response, and prints its warnings. Returns
 * COMMAND_GOOD for a success (2xx) with the expected document, COMMAND_FAILED for any
 * other status, and COMMAND_UNAVAILABLE without a response that is one of claimd; then
 * c->response.error says why. The request may borrow from the response before.
 */
int client_send(struct client *c, const struct client_request *request);

/* The same, and prints the error. */
int client_call(struct client *c, const struct client_request *request);

/*
 * ' (did you mean "jobs"?)' if there is no such queue, but one of the first 1000 of the
 * project has a name like it, else "". Sends a request, and keeps the response.
 */
struct nearest_hint client_queue_hint(struct client *c, const char *queue);

/*
 * Prints the error of the response, with a hint if the queue (NULL: none) does not exist.
 * Returns the status.
 */
int client_fails(struct client *c, const char *queue, int status);

/* Prints the warnings of the response. */
void client_print_warnings(const struct client *c);

/*
 * Checks that a queue exists. Returns COMMAND_FAILED after an error message if not,
 * COMMAND_GOOD also if the server does not tell. For requests that succeed without the
 * queue.
 */
int client_check_queue(struct client *c, const char *queue);

/*
 * ------------------------------------------------------------------ lists, page by page
 */

/* Gets an item, and its text in the document. False ends the reading. Sends nothing. */
typedef bool page_item_fn(void *ctx, const json_t *item, struct bytes text);

/*
 * Requests a list, which is the member `name` of each page, and its next pages, and calls
 * `each` for the items. Returns an exit status as client_send().
 */
int client_read_pages(struct client *c, const struct client_request *first,
                      const char *name, page_item_fn *each, void *ctx);

/*
 * Path of the link of the response to the next page; NULL: there is none. Borrowed from
 * the response.
 */
const char *client_next_page(const struct client *c);

#endif
