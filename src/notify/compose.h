/*
 * compose: the text of a notification, made when it is sent.
 */
#ifndef NOTIFY_COMPOSE_H
#define NOTIFY_COMPOSE_H

#include "claimd/base/arena.h"
#include "claimd/notify/notify.h"
#include "notify/document.h"
#include "notify/wishes.h"

struct composer {
    const struct notify_config *config; /* borrowed */
    struct arena arena;                 /* for the time of a call */
};

void composer_init(struct composer *c, const struct notify_config *config);
void composer_fini(struct composer *c);

/*
 * What a web hook is sent. ST_NOT_FOUND: a confirmation, and there is no key to sign it with;
 * ST_BAD_VALUE: its project cannot be signed; ST_TOO_LARGE: what its template makes of it;
 * ST_UNAVAILABLE: a body cannot be opened now; ST_DAMAGED: nor ever; ST_NO_MEMORY.
 */
enum status compose_hook(struct composer *c, const struct store_delivery *d,
                         const struct wishes *wishes, struct buf *out);

/*
 * The same as a mail, with its head, and to whom it goes. ST_BAD_VALUE also for an address that is
 * none.
 */
enum status compose_mail(struct composer *c, const struct store_delivery *d,
                         const struct wishes *wishes, struct bytes rest, struct buf *to,
                         struct buf *out);

/* Names the notification; the same for each try of it. */
enum { HOOK_ID_CAP = 96 };
void hook_id(const struct store_delivery *d, char out[HOOK_ID_CAP]);

#endif
