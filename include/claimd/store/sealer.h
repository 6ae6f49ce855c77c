/*
 * store/sealer: how a store seals bodies by itself, without knowing how that is done.
 *
 * Posts come in sealed. But a message may also move from a queue whose messages are not encrypted
 * into one whose messages are: a dead letter.
 */
#ifndef CLAIMD_STORE_SEALER_H
#define CLAIMD_STORE_SEALER_H

#include "claimd/store/types.h"

struct store_sealer {
    size_t overhead; /* by which a sealed body is longer */
    void *arg;       /* borrowed for the life of the store, as the sealer is */

    /*
     * Writes body.len + overhead bytes, a body for this queue. ST_NO_KEY, ST_NO_MEMORY,
     * ST_UNAVAILABLE: the message stays where it is. Called without locks of the store.
     */
    enum status (*seal)(void *arg, const struct store_queue *queue, struct bytes body,
                        char *to);
};

#endif
