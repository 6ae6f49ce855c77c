/*
 * target: where a subscriber's URI leads, as far as we need to know: by which protocol, to
 * whom, and what of it may stand in a log. libcurl reads the URI for itself.
 *
 *     https://user:secret@Example.org:8443/hooks/T0/B0?key=secret
 *     `place`: https://example.org:8443
 *
 * Users, passwords, paths (many hooks have a secret there) and queries are never shown.
 */
#ifndef NOTIFY_TARGET_H
#define NOTIFY_TARGET_H

#include "claimd/base/bytes.h"

enum target_kind {
    TARGET_WEB,   /* http, https */
    TARGET_MAIL,  /* mailto */
    TARGET_TRUST, /* trust+http, trust+https: with credentials of Keystone */
    TARGET_OTHER  /* nobody we could tell anything */
};

enum { TARGET_PLACE_CAP = 272 };

struct target {
    enum target_kind kind;
    struct bytes rest; /* of the URI, behind "mailto:" */
    char place
        [TARGET_PLACE_CAP]; /* scheme and host, lower-case; may be cut; NUL-terminated */
};

/* Reads any text; *out borrows it. */
void target_read(struct bytes uri, struct target *out);

#endif
