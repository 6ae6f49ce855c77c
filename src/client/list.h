/*
 * list: a list of the server, all pages of it, as a table for people or as a document.
 *
 *   Memory   all items
 *   Threads  one
 */
#ifndef CLIENT_LIST_H
#define CLIENT_LIST_H

#include "client/client.h"
#include "client/table.h"

/* Items of a list, as a table or as a document. */
struct list_output {
    struct client *client;
    const char *name; /* of the list in the document */
    const struct table_column *columns;
    size_t column_count;
    /* Appends the row of an item; NULL: table_row() does. */
    void (*add_row)(struct table *t, const json_t *item);
    const char *state; /* messages: only this state; NULL: all */
    int64_t left;      /* items that may be added */
    bool may_be_gone;  /* the server shows an empty list of a queue that does not exist */
    struct table table;
    struct buf document;
};

/* Reads a list and prints it. Returns an exit status. */
int list_print(struct list_output *l, const struct client_request *request);

#endif
