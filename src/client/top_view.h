/*
 * top_view: the screen of `claimd top` with its three views. A view requests documents
 * of the server, and draws what it has.
 *
 *   Threads  one. Drawing needs a screen of curses
 */
#ifndef CLIENT_TOP_VIEW_H
#define CLIENT_TOP_VIEW_H

#include "client/client.h"
#include "client/top_model.h"

#include <ncurses.h>

enum top_view { VIEW_LIST, VIEW_QUEUE, VIEW_MESSAGE };

enum { TOP_TEXT_CAP = 256 };

struct top {
    struct client *client;
    struct top_model model;
    enum top_view view;
    enum top_sort sort;
    char filter[65]; /* "": none */
    char page[CLIENT_URL_MOST],
        next[CLIENT_URL_MOST];     /* paths. "": the first page; none */
    char notice[CLIENT_ERROR_CAP]; /* an error, or a result; "": none */
    int64_t interval_ms;
    bool quits;

    /* The queue that QUEUE and MESSAGE show. Documents are owned; NULL: none. */
    char project[TOP_TEXT_CAP], queue[TOP_TEXT_CAP];
    json_t *claims, *messages, *history, *message;
    size_t selected;   /* message */
    int64_t history_s; /* time of the last request for the history */
};

/* Milliseconds of a clock that only grows. */
int64_t top_now_ms(void);

/* Sends a request. Keeps the error as the notice. Returns true for a success. */
bool top_send(struct top *t, const struct client_request *request);

/* Requests what the view shows. The notice is an error then, or "". */
void top_request(struct top *t);

/* Draws the view. */
void top_draw(struct top *t);

/* Puts a line of text on the screen. */
void __attribute__((format(printf, 4, 5)))
top_put_line(struct top *t, int row, attr_t attributes, const char *format, ...);

/* Queues that the screen has space for. */
size_t top_list_rows(void);

/* The id of the selected message; NULL: there is none. */
const char *top_selected_message(const struct top *t);

void top_drop_documents(struct top *t);

#endif
