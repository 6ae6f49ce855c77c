/*
 * api/dump: all that a store has as lines of JSON (docs/api.md 24), a page at a time.
 *
 *   Memory   a page, whatever there is
 *   Threads  one for each dump
 */
#ifndef CLAIMD_API_DUMP_H
#define CLAIMD_API_DUMP_H

#include "claimd/base/buf.h"
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
    uint64_t resume[3]; /* of struct store_image */
};

/*
 * Writes lines until there are `bytes` of them, or it is done. project: absent: of all. ST_AGAIN: so
 * much has fallen due that others should come first; ask again. ST_NO_MEMORY, and the store's.
 */
enum status
dump_lines(struct store *store, struct store_visit *visit, struct bytes project,
           size_t bytes, struct dump *dump, struct buf *out);

/* How far it has come, as a text for others, and back; false: it is none. */
void dump_write_marker(const struct dump *dump, struct buf *out);
bool dump_read_marker(struct bytes text, struct dump *out);

#endif
