/*
 * decode_state: documents of a project's whole state, and lines of a dump (docs/api.md 23.4, 24).
 *
 * All of it is checked before anything is loaded: what is refused is told with its place, such as
 * queues[3].messages[7].claim.
 *
 *   Cost     O(length), and sorting of ids
 *   Memory   the arena; bodies and other texts are borrowed from the document
 */
#ifndef API_WIRE_DECODE_STATE_H
#define API_WIRE_DECODE_STATE_H

#include "api/wire/state/queue.h"
#include "claimd/api/dump.h"
#include "claimd/api/limits.h"
#include "claimd/base/arena.h"
#include "claimd/json/reason.h"
#include "claimd/store/store.h"

struct state_project {
    struct bytes name;
    struct state_queue *queues; /* topics, too */
    size_t count;
};

struct state {
    struct state_project *projects;
    size_t count;
};

/*
 * Reads a document. One without `projects` is about `project`; if that is absent, it must have
 * them, and must not if it is there, unless it `may_name` others. ST_BAD_BODY: no JSON; ST_BAD_VALUE: anything else that is
 * wrong; ST_NO_MEMORY.
 */
enum status decode_state(struct state_decoder *d, struct bytes text, struct bytes project,
                         bool may_name, struct state *out);

/*
 * What a line of a dump has: one of them, and whose it is. A claim has its own place in
 * `image`.
 */
struct state_line {
    enum { STATE_HEAD, STATE_QUEUE, STATE_MESSAGE, STATE_SUBSCRIPTION, STATE_END } what;
    struct store_queue where;
    struct store_metadata metadata;
    struct store_image_message message; /* claim: 1 if it is held */
    struct store_image_claim claim;
    struct store_image_subscription subscription;
    uint64_t announced; /* by an end record: how many precede it, or DUMP_UNCOUNTED */
};

/* Likewise. The reason does not say which line. */
enum status
decode_state_line(struct state_decoder *d, struct bytes text, struct state_line *out);

#endif
