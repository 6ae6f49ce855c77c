/*
 * record_json: records of a store as lines of JSON, and back (docs/api.md 24). Dumps, the state of
 * the test API and `--seed` use the same lines.
 *
 * Times are seconds with up to three decimals, relative to a moment: a line that is read later
 * goes on where it was. Tags and numbers are not written: whoever applies a record numbers it
 * anew.
 *
 *   Cost     O(length)
 *   Memory   the arena; bodies and other texts are borrowed from the line
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
void record_json_write_head(struct buf *out, int64_t now_ms);

/* A record of this queue, with a newline. An absent project is left out. */
void record_json_write(struct buf *out, const struct store_queue *where,
                       const struct store_record *record, int64_t now_ms);

/* A reader of lines. A refusal fills in `why`. */
struct record_reader {
    const struct api_limits *limits;
    struct mem *mem;
    struct arena *arena;
    int64_t now_ms;       /* times are relative to it */
    struct bytes project; /* of lines that name none; absent: they must */
    bool only;            /* no line may name another project */
    struct reason *why;
};

/* A line. */
struct record_line {
    enum { LINE_HEAD, LINE_RECORD, LINE_END } what;
    struct store_queue where;
    struct store_record record;
    struct bytes claim; /* MESSAGE: what its claim is called if that is no id */
    uint64_t announced; /* LINE_END: how many lines precede it; UINT64_MAX: not counted */
    size_t number;      /* of the line, from 1 on; set by who reads a text */
};

/*
 * Reads a line. ST_BAD_BODY: no JSON; ST_BAD_VALUE: anything else that is wrong; ST_NO_MEMORY. The
 * reason names the member, but not the line.
 */
enum status
record_json_read(struct record_reader *r, struct bytes text, struct record_line *out);

#endif
