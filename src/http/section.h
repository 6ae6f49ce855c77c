/*
 * section: one of the libmicrohttpd daemons among which a worker divides its connections.
 *
 * Resuming a connection makes libmicrohttpd walk through all that are suspended in the
 * same daemon. So a worker with many connections has several, of SECTION_CONNS each, and
 * a walk is never longer than that; most workers have one. The next one is opened when
 * those there are are full, and closed when it is the last one and empty. TLS is a property of a
 * daemon, so where there is a listener for it a worker has a second first one.
 *
 *   Threads  none: belongs to the worker
 */
#ifndef HTTP_SECTION_H
#define HTTP_SECTION_H

#include "claimd/base/status.h"
#include "http/source.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SECTION_CONNS = 512 };

struct section {
    struct source source;
    bool tls;               /* its daemon speaks TLS */
    struct MHD_Daemon *mhd; /* owned; NULL: not open */
    size_t conns;
    bool due;           /* something has happened: it has to run in this round */
    int64_t due_ms;     /* when it wants to run anyway; real time, INT64_MAX: never */
    unsigned fruitless; /* rounds in a row in which it had work but did not */
};

struct server_config;
struct worker;

/* Opens those that every worker has from beginning to end. ST_NO_MEMORY, ST_IO. */
enum status sections_open_first(struct worker *w);

/* Stops it; nothing may be held. Fine when it is not open. */
void section_close(struct section *s);

/* Where the next connection goes: an open one, that has TLS or has not. */
struct section *section_choose(struct worker *w, bool tls);

/* How many those are: one, or two if there is TLS. */
size_t sections_least(const struct server_config *config);

/* How many sections of a kind so many connections need beyond the first of each worker, at most. */
size_t sections_beyond(size_t connections);

/* Has anything happened since they ran? */
bool sections_due(const struct worker *w);

/* Lets libmicrohttpd work where there is something to do. When the next is due. */
int64_t sections_run(struct worker *w);

#endif
