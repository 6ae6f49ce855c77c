/*
 * request_id: short names for requests, unique over threads and restarts.
 *
 *     3f2a9c1e-03-000000002a
 *     |        |  counter of this source
 *     |        source: the worker, or the acceptor
 *     random tag of this run of the server
 */
#ifndef HTTP_REQUEST_ID_H
#define HTTP_REQUEST_ID_H

#include <stdint.h>

#define REQUEST_ID_CAP 23

struct request_ids {
    char prefix[12]; /* tag and source, hyphens included */
    uint64_t last;
};

/* tag: at least 8 characters, of which the first 8 are used. */
void request_ids_init(struct request_ids *ids, const char *tag, unsigned source);

/* Writes the next id and a NUL. Threads: none, each source has its own. */
void request_ids_next(struct request_ids *ids, char out[REQUEST_ID_CAP]);

#endif
