/*
 * table: a table for people. On a terminal it is as wide as the terminal at most: texts
 * are cut, and if that is not enough, each row becomes a block of lines. Elsewhere
 * nothing is cut.
 *
 *   Memory   the texts of all cells
 *   Cost     O(cells)
 */
#ifndef CLIENT_TABLE_H
#define CLIENT_TABLE_H

#include "claimd/base/buf.h"

#include <jansson.h>
#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { TABLE_COLUMNS_MOST = 16 };

/* The form of a cell that table_row() adds. */
enum table_form {
    TABLE_MEMBER, /* the text of a member, or its JSON */
    TABLE_JSON,   /* always its JSON */
    TABLE_TIME,   /* a number of seconds as a time */
    TABLE_RATE,   /* a number with one decimal */
    TABLE_QUEUE,  /* the name of a queue. Is it paused, or without a worker? */
    TABLE_WORKER, /* worker_write(), of the members behind `member` */
    TABLE_GIVEN   /* the text that the caller gives */
};

struct table_column {
    const char *name;
    bool right;    /* aligned, for numbers */
    bool elastic;  /* may be cut */
    bool optional; /* is left out, the last one first, if a terminal is too narrow */
    enum table_form form;
    const char *member; /* of an object: "age", "details.state"; NULL: none */
};

/* Writes what is known of a worker, "web3 4711 (10.0.0.7)", of members such as
 * "last_worker", "last_client" and "last_address" of an object, with "last_". */
void worker_write(struct buf *out, const json_t *object, const char *prefix);

struct table {
    const struct table_column *columns; /* borrowed */
    size_t column_count, cell_count;
    struct buf text; /* of all cells, escaped */
    struct buf ends; /* their ends in `text`, as size_t */
};

void table_init(struct table *t, struct mem *mem, const struct table_column *columns,
                size_t count);
void table_fini(struct table *t);

/* Append a cell, row by row. "-" stands for an absent value. */
void table_text(struct table *t, struct bytes text);
void table_number(struct table *t, int64_t number);

/* Appends a row with members of an object. An absent or null member is absent. given: the
 * text for TABLE_GIVEN. */
void table_row(struct table *t, const json_t *object, struct bytes given);

/* Appends a row for each object of an array. */
void table_rows(struct table *t, const json_t *objects);

/* Appends a table that may take `width` columns (0: any number). False without memory. */
bool table_write(const struct table *t, size_t width, struct buf *out);

/* Prints a table on standard output, and frees it. Returns an exit status. */
int table_print(struct table *t);

/* Columns of the terminal that `to` is; 0: it is none. */
size_t terminal_width(FILE *to);

#endif
