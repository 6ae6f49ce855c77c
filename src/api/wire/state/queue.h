/*
 * queue: one of a project, or a topic, in the document of a state.
 */
#ifndef API_WIRE_STATE_QUEUE_H
#define API_WIRE_STATE_QUEUE_H

#include "api/wire/state/doc.h"

struct state_queue {
    struct store_queue where;
    struct store_image image; /* whole: first */
};

/* The member of an object at `up` that names a queue. */
enum status state_name_read(struct state_decoder *d, const struct doc_at *up,
                            const struct doc_member *m, struct bytes *out);

/* Its metadata; none if it is left out. */
enum status state_metadata_read(struct state_decoder *d, const struct doc_at *up,
                                const struct doc_member *m, struct store_metadata *out);

/* The whole of it: name and image, which the store would take. */
enum status state_queue_read(struct state_decoder *d, const struct doc_at *at,
                             struct bytes text, struct state_queue *out);

#endif
