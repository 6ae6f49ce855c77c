/*
 * api/dump: the content of a store as lines of JSON (docs/api.md 24), a page at a time.
 *
 *   Cost     O(length of a page)
 *   Memory   a page
 *   Threads  one for each dump
 */
#ifndef CLAIMD_API_DUMP_H
#define CLAIMD_API_DUMP_H

#include "claimd/base/buf.h"
#include "claimd/json/reason.h"
#include "claimd/store/store.h"

enum { DUMP_PROJECT = 256, DUMP_NAME = 64 };

/* The progress of a dump. Zero at its beginning. */
struct dump {
    bool begun, done;
    bool in_project, behind_queue; /* project is valid; name is valid */
    bool in_queue;                 /* the queue has more records, from `resume` on */
    unsigned kind;                 /* enum store_kind */
    char project[DUMP_PROJECT], name[DUMP_NAME];
    size_t project_len, name_len;
    uint64_t resume[3];   /* of struct store_records */
    bool without_project; /* the lines do not name the project */
    uint64_t lines;       /* written so far */
};

/*
 * Reads the next slice, of the queue dump_queue(dump), into empty records. At the end
 * they stay empty. Statuses as dump_lines().
 */
enum status dump_read(struct store *store, struct store_op *op, struct bytes project,
                      struct dump *dump, struct store_records *out);
struct store_queue dump_queue(const struct dump *dump);

/* Goes to the next queue or topic without reading it. Without one the dump is done. */
enum status dump_next(struct store *store, struct store_op *op, struct bytes project,
                      struct dump *dump);

/*
 * Writes lines until there are `bytes` of them, or the dump is done. project: absent: all
 * projects. ST_AGAIN: so much was due that other requests should come first; call again.
 * ST_NO_MEMORY, and the store's.
 */
enum status dump_lines(struct store *store, struct store_op *op, struct bytes project,
                       size_t bytes, struct dump *dump, struct buf *out);

/* Writes the progress as a text for the client, and reads it. False: the text is not a
 * marker. */
void dump_write_marker(const struct dump *dump, struct buf *out);
bool dump_read_marker(struct bytes text, struct dump *out);

/* ------------------------------------------------------------------ completeness */

enum dump_record { DUMP_HEAD, DUMP_CONTENT, DUMP_END };

/* `announced` of a record that ends a page: it does not count the records before it. */
#define DUMP_UNCOUNTED UINT64_MAX

/*
 * Checks that a dump is complete. If it begins with the head, it must end with an end
 * record, which counts the records before it. Records without a head are a part of a
 * dump, and need no end. Zero before the first record.
 */
struct dump_check {
    uint64_t records;   /* before the end record */
    uint64_t announced; /* by the end record */
    bool needs_end, ended;
};

/* Counts a record. announced: of an end record. ST_BAD_VALUE: it follows the end
 * record. */
enum status dump_check_record(struct dump_check *c, enum dump_record record,
                              uint64_t announced, struct reason *why);

/* After the last record. ST_BAD_VALUE: the end record is missing, or its count is
 * wrong. */
enum status dump_check_complete(const struct dump_check *c, struct reason *why);

#endif
