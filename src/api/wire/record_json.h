/*
 * record_json: writes records of a store as lines of JSON, and reads them (docs/api.md
 * 24). Dumps, the state of the test API and `--seed` use the same lines.
 *
 * Times are seconds with up to three decimals, relative to a moment. So the time between
 * writing and reading does not count. Lines have no tags and numbers, because the store
 * that applies a record gives it new ones.
 *
 *   Cost     O(length)
 *   Memory   the arena; bodies and other texts are borrowed from the line
 *   Errors   a refusal fills in `why`, which names the member but not the line
 *   Threads  a reader belongs to one thread
 */
#ifndef API_WIRE_RECORD_JSON_H
#define API_WIRE_RECORD_JSON_H

#include "claimd/api/limits.h"
#include "claimd/base/arena.h"
#include "claimd/base/buf.h"
#include "claimd/json/reason.h"
#include "claimd/store/store.h"

/* The version of the lines. */
enum { RECORD_JSON_VERSION = 1 };

/* The first line of a dump. */
/* The member that names a queue of this kind, a literal. */
const char *record_json_kind(enum store_kind kind);

void record_json_write_head(struct buf *out, int64_t now_ms);

/* Writes a record of this queue, with a newline. An absent project is left out. */
void record_json_write(struct buf *out, const struct store_queue *where,
                       const struct store_record *record, int64_t now_ms);

struct record_reader {
    const struct api_limits *limits;
    struct mem *mem;
    struct arena *arena;
    int64_t now_ms;       /* times are relative to it */
    struct bytes project; /* of lines without a project; absent: they must have one */
    bool only;            /* no line may name another project */
    struct reason *why;
};

struct record_line {
    enum { LINE_HEAD, LINE_RECORD, LINE_END } what;
    struct store_queue where;
    struct store_record record;
    struct bytes claim; /* MESSAGE: the name of its claim, if that is not an id */
    /* LINE_END: the number of lines before; UINT64_MAX: not counted. */
    uint64_t announced;
    size_t number; /* of the line, from 1 on; the caller sets it */
};

/* Reads a line. ST_BAD_BODY: no JSON; ST_BAD_VALUE: any other error; ST_NO_MEMORY. */
enum status
record_json_read(struct record_reader *r, struct bytes text, struct record_line *out);

#endif
