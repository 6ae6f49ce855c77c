/*
 * store/sealer: encrypts bodies for a store, which knows nothing about the encryption.
 *
 * Posts arrive encrypted. But a dead letter may move from a queue without encryption into
 * one with encryption.
 */
#ifndef CLAIMD_STORE_SEALER_H
#define CLAIMD_STORE_SEALER_H

#include "claimd/store/types.h"

struct store_sealer {
    size_t overhead; /* bytes by which encryption lengthens a body */
    void *arg;       /* borrowed for the life of the store, like the sealer */

    /*
     * Encrypts a body for this queue: writes body.len + overhead bytes. ST_NO_KEY,
     * ST_NO_MEMORY, ST_UNAVAILABLE: the message stays in its queue. Called without locks
     * of the store.
     */
    enum status (*seal)(void *arg, const struct store_queue *queue, struct bytes body,
                        char *to);
};

#endif
