/*
 * warning: parts of a request that claimd accepts although they have no effect. A
 * response has a header Claimd-Warning for each (docs/api.md 4.6).
 *
 *   Memory   the request's arena. Without memory a warning is left out
 *   Bounds   WARNINGS_MAX warnings of WARNING_MOST bytes. Further ones are left out
 *   Threads  any: no state
 */
#ifndef API_WIRE_WARNING_H
#define API_WIRE_WARNING_H

#include "claimd/base/arena.h"
#include "claimd/base/nearest.h"

enum { WARNINGS_MAX = 3, WARNING_MOST = 240 };

struct warnings {
    const char *texts[WARNINGS_MAX];
    size_t count;
};

/* Adds a warning. Bytes that a header cannot have become \xNN. */
void __attribute__((format(printf, 3, 4)))
warning_add(struct warnings *w, struct arena *arena, const char *format, ...);

/* Adds that a member or parameter (`kind`) has no effect, with the known name that is
 * like it. */
void warning_add_unknown(struct warnings *w, struct arena *arena, const char *kind,
                         struct bytes name, const char *const *known, size_t count);

/* Bytes of the headers. */
size_t warnings_size(const struct warnings *w);

/* ------------------------------------------------------------------ names */

/* Unknown names of a document, as written there; each once. */
struct unknown_names {
    struct bytes all[WARNINGS_MAX];
    size_t count;
};

void unknown_add(struct unknown_names *names, struct bytes name);

#endif
