/*
 * doc: reading a document of a state: its values, and refusals that name their place, such as
 * "queues[3].messages[7].claim: it must be a text". The text is valid JSON: it was checked.
 *
 * Whatever is read stays as it is if it is left out (or null). All return ST_BAD_VALUE with a
 * reason, some ST_NO_MEMORY.
 */
#ifndef API_WIRE_STATE_DOC_H
#define API_WIRE_STATE_DOC_H

#include "claimd/api/limits.h"
#include "claimd/base/arena.h"
#include "claimd/json/reason.h"
#include "claimd/json/scan.h"
#include "claimd/store/store.h"

/* A reader of a document. A refusal fills in `why`. */
struct state_decoder {
    const struct api_limits *limits;
    struct mem *mem;
    struct arena *arena;
    int64_t now_ms; /* the moment that times count from */
    struct reason *why;
};

/* A place in the document, from within outwards. */
struct doc_at {
    const struct doc_at *up;
    const char *name;  /* NULL: an item of a list */
    struct bytes text; /* besides the name: of a member that a client named */
    size_t index;
};

/* A member that an object may have. */
struct doc_member {
    const char *name;
    struct json_scan_value value; /* out; SCAN_NONE: left out */
};

/* ST_BAD_VALUE. */
enum status doc_refuse(struct state_decoder *d, const struct doc_at *at,
                       const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The reason of somebody else's refusal gets its place. */
enum status doc_place(struct state_decoder *d, const struct doc_at *at, enum status st);

/* Reads an object whose members are among these; each of them once. */
enum status doc_object(struct state_decoder *d, const struct doc_at *at,
                       struct bytes text, struct doc_member *members, size_t count);

bool doc_left_out(const struct json_scan_value *value);

/* Seconds with up to three decimals, of an object at `up`. */
enum status doc_seconds(struct state_decoder *d, const struct doc_at *up,
                        const struct doc_member *m, double least_s, int64_t *out_ms);

enum status doc_count(struct state_decoder *d, const struct doc_at *up,
                      const struct doc_member *m, int64_t most, uint64_t *out);

enum status doc_flag(struct state_decoder *d, const struct doc_at *up,
                     const struct doc_member *m, bool *out);

/* Borrowed from the document, or out of the arena if it has escapes. */
enum status doc_text(struct state_decoder *d, const struct doc_at *up,
                     const struct doc_member *m, struct bytes *out);

/* An id that is kept; "" if it is left out. */
enum status doc_id(struct state_decoder *d, const struct doc_at *up,
                   const struct doc_member *m, struct store_id *out);

/* What is inside of quotes, with its escapes undone; absent: no memory. */
struct bytes doc_unescape(struct bytes inside, struct arena *arena);

/* How many items a list has. */
enum status doc_items_count(struct state_decoder *d, const struct doc_at *at,
                            const struct doc_member *m, size_t *out);

/* Calls `read` with each item of a list and its place. */
typedef enum status doc_item_fn(struct state_decoder *d, const struct doc_at *at,
                                struct bytes text, size_t i, void *arg);

enum status doc_items(struct state_decoder *d, const struct doc_at *list,
                      const struct doc_member *m, doc_item_fn *read, void *arg);

/* Zeroed, out of the arena, with room for one more; NULL: no memory. */
void *doc_array(struct state_decoder *d, size_t count, size_t size);

/* Is it the version that this server reads? */
enum status doc_version(struct state_decoder *d, const struct doc_member *m);

#endif
