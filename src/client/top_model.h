/*
 * top_model: the queues that `claimd top` shows, without a terminal.
 *
 *   Memory   one page of queues
 *   Threads  one
 */
#ifndef CLIENT_TOP_MODEL_H
#define CLIENT_TOP_MODEL_H

#include "claimd/base/buf.h"

#include <jansson.h>

/* A sample has the interval of the history of the server. */
enum { TOP_SAMPLES = 24, TOP_SAMPLE_S = 5 };

enum top_sort { TOP_OLDEST, TOP_READY, TOP_CLAIMED, TOP_NAME, TOP_SORTS };

struct top_row {
    json_t *queue; /* as the server describes it; owned */
    int64_t ready[TOP_SAMPLES];
    size_t samples;
    int64_t sampled_s;  /* time of the last sample */
    bool asked_history; /* the caller has requested the history */
};

struct top_model {
    struct mem *mem;
    struct top_row *rows; /* owned */
    size_t count, selected;
    int64_t total; /* queues, of which the rows are a page */
};

void top_model_init(struct top_model *m, struct mem *mem);
void top_model_fini(struct top_model *m);

/* Name of an order in the API. */
const char *top_sort_name(enum top_sort sort);

/*
 * Replaces the rows by those of a page of the server. A queue that was there keeps its
 * samples and the selection. False without memory; then nothing changes.
 */
bool top_model_update(struct top_model *m, const json_t *page, int64_t now_s);

/* Puts samples of the history of the server before those of the row. */
void top_row_add_history(struct top_row *row, const json_t *history);

/* The selected row; NULL: there is none. */
struct top_row *top_model_selected(const struct top_model *m);

/* Moves the selection by some rows, within the page. */
void top_model_move(struct top_model *m, long rows);

/* A text of the queue of a row; "" if there is none. */
const char *top_row_text(const struct top_row *row, const char *name);

/*
 * Writes the table of queues for a terminal of this width: a line for the head, then one
 * for each row. projects: with a column for the project. False without memory, or if the
 * terminal is too narrow.
 */
bool
top_model_write(const struct top_model *m, bool projects, size_t width, struct buf *out);

#endif
