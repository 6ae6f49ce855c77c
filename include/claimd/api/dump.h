/*
 * api/dump: all that a store has as lines of JSON (docs/api.md 24), a page at a time.
 *
 *   Memory   a page, whatever there is
 *   Threads  one for each dump
 */
#ifndef CLAIMD_API_DUMP_H
#define CLAIMD_API_DUMP_H

#include "claimd/base/buf.h"
#include "claimd/json/reason.h"
#include "claimd/store/store.h"

enum { DUMP_PROJECT = 256, DUMP_NAME = 64 };

/* How far a dump has come. Zero: it begins. */
struct dump {
    bool begun, done;
    bool in_project, behind_queue; /* project, name: mean something */
    bool in_queue;                 /* there is more of it: resume */
    unsigned kind;                 /* enum store_kind */
    char project[DUMP_PROJECT], name[DUMP_NAME];
    size_t project_len, name_len;
    uint64_t resume[3]; /* of struct store_records */
};

/*
 * Reads the next slice, of dump_queue(dump), into empty records; they stay empty when it is done.
 * Statuses as dump_lines().
 */
enum status dump_read(struct store *store, struct store_op *op, struct bytes project,
                      struct dump *dump, struct store_records *out);
struct store_queue dump_queue(const struct dump *dump);

/* Goes to the next queue or topic without reading it; the dump is done if there is none. */
enum status dump_next(struct store *store, struct store_op *op, struct bytes project,
                      struct dump *dump);

/*
 * Writes lines until there are `bytes` of them, or it is done. project: absent: of all. ST_AGAIN: so
 * much has fallen due that others should come first; ask again. ST_NO_MEMORY, and the store's.
 */
enum status dump_lines(struct store *store, struct store_op *op, struct bytes project,
                       size_t bytes, struct dump *dump, struct buf *out);

/* How far it has come, as a text for others, and back; false: it is none. */
void dump_write_marker(const struct dump *dump, struct buf *out);
bool dump_read_marker(struct bytes text, struct dump *out);

/* ------------------------------------------------------------------ completeness */

enum dump_record { DUMP_HEAD, DUMP_CONTENT, DUMP_END };

/* The end of a page: it counts nothing. */
#define DUMP_UNCOUNTED UINT64_MAX

/*
 * Checks that a dump is complete: records that begin with the head stop with an end record, which
 * is the last one and counts those before it. Records without a head are a part of a dump, and need
 * no end. Zero: no record yet.
 */
struct dump_check {
    uint64_t records;   /* before the end record */
    uint64_t announced; /* by the end record */
    bool needs_end, ended;
};

/* Counts a record; `announced` by an end record. ST_BAD_VALUE: it follows the end record. */
enum status dump_check_record(struct dump_check *c, enum dump_record record,
                              uint64_t announced, struct reason *why);

/* After the last record. ST_BAD_VALUE: the end record is missing, or counts wrongly. */
enum status dump_check_complete(const struct dump_check *c, struct reason *why);

#endif
