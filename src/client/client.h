/*
 * client: the connection of a command to claimd, and its requests.
 *
 *   Threads  one
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "claimd/base/buf.h"
#include "claimd/base/command.h"
#include "claimd/web/web_client.h"

#include <curl/curl.h>
#include <jansson.h>

enum { CLIENT_URL_MOST = 2048, CLIENT_ERROR_CAP = 1024 };

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

/*
 * ------------------------------------------------------------------ parts of a request
 */

/* Appends a header. False without memory. */
bool __attribute__((format(printf, 2, 3)))
client_add_header(struct curl_slist **list, const char *format, ...);

/*
 * Appends the headers that every request needs: Client-ID, X-Project-ID, the token. False
 * without memory.
 */
bool client_add_headers(const struct client *c, struct curl_slist **list);

/* Appends a text with percent-encoding, for a path or a query. */
void client_add_encoded(struct buf *out, const char *text);

/*
 * Copies the value of a header of a response to out[cap], if its name is this one and it
 * fits.
 */
bool client_header_value(struct bytes line, const char *name, char *out, size_t cap);

/* ------------------------------------------------------------------ whole requests */

struct client_request {
    const char *method;  /* NULL: GET, or POST with a body */
    const char *path;    /* with its query; with `queue`: "/v2" or "/claimd" */
    const char *queue;   /* "/queues/QUEUE" and the next three follow; NULL: no more */
    const char *below;   /* "/stats"; NULL: nothing. Likewise the others */
    const char *item;    /* the name or id of an item, which becomes a part of the path */
    const char *behind;  /* the item: "/finish" */
    struct bytes body;   /* JSON; absent: none */
    const char *type;    /* of the body; NULL: application/json */
    const char *key;     /* Idempotency-Key; NULL: none */
    int64_t wait_s;      /* long polling; 0: none */
    const char *member;  /* that the document of a success has; NULL: there is no document
                           (204, or 201 for a PUT) */
    bool may_be_empty;   /* 204 is a success in spite of `member` */
    bool details;        /* Prefer: details */
    bool text;           /* the response is a text, not JSON */
    const char *project; /* instead of that of the client; NULL: that of the client */
};

enum { CLIENT_WARNINGS = 3, CLIENT_WARNING_CAP = 256 };

struct client_response {
    char warnings[CLIENT_WARNINGS][CLIENT_WARNING_CAP]; /* of the server */
    size_t warning_count;
    long status; /* 0: no response */
    struct buf body;
    json_t *document;      /* owned; NULL: the response has none */
    char location[512];    /* "": none */
    char claim_number[32]; /* "": none */
    bool replayed;         /* the server repeats the response to an earlier request */
    bool waited;           /* the server waited, or would have waited */
    bool paused;           /* the queue is paused */
    int64_t retry_after_s; /* -1: none */
    char error[CLIENT_ERROR_CAP]; /* why it is no success; escaped */
};

/*
 * Sends a request, reads the response, and prints its warnings. Returns COMMAND_GOOD for
 * a success (2xx) with the expected document, COMMAND_FAILED for any other status, and
 * COMMAND_UNAVAILABLE without a response that is one of claimd; then `error` says why.
 * Call client_response_free() in any case.
 */
int client_send(struct client *c, const struct client_request *request,
                struct client_response *response);

/* The same, and prints the error. */
int client_call(struct client *c, const struct client_request *request,
                struct client_response *response);
void client_response_free(struct client_response *response);

/*
 * Checks that a queue exists. Returns COMMAND_FAILED after an error message if not,
 * COMMAND_GOOD also if the server does not tell. For requests that succeed without the
 * queue.
 */
int client_check_queue(struct client *c, const char *queue);

/*
 * ------------------------------------------------------------------ lists, page by page
 */

/* Gets an item, and its text in the document. False ends the reading. */
typedef bool page_item_fn(void *ctx, const json_t *item, struct bytes text);

/*
 * Requests a list, which is the member `name` of each page, and its next pages, and calls
 * `each` for the items. Returns an exit status, after an error message if it is not 0.
 */
int pages_read(struct client *c, const struct client_request *first, const char *name,
               page_item_fn *each, void *ctx);

/* The same, without a message: `error` is set if the status is not 0. */
int pages_try(struct client *c, const struct client_request *first, const char *name,
              page_item_fn *each, void *ctx, char error[CLIENT_ERROR_CAP]);

/* Path of the link to the next page; NULL: there is none. Borrowed from the document. */
const char *page_next(const struct client *c, const json_t *document);

#endif
