/*
 * pages: lists of the server, page by page.
 *
 *   Memory  one page
 */
#ifndef CLIENT_PAGES_H
#define CLIENT_PAGES_H

#include "client/client.h"

/* Gets an item, and its text in the document. False ends the reading. */
typedef bool page_item_fn(void *ctx, const json_t *item, struct bytes text);

/*
 * Requests a list, which is the member `name` of each page, and its next pages, and calls `each` for the items.
 * Returns an exit status, after an error message if it is not 0.
 */
int pages_read(struct client *c, const struct client_request *first, const char *name,
               page_item_fn *each, void *ctx);

/* The same, without a message: `error` is set if the status is not 0. */
int pages_try(struct client *c, const struct client_request *first, const char *name,
              page_item_fn *each, void *ctx, char error[CLIENT_ERROR_CAP]);

/* Path of the link to the next page; NULL: there is none. Borrowed from the document. */
const char *page_next(const struct client *c, const json_t *document);

#endif
